//! A tunnel's state on its way into another process, such as a newer version of the same gateway.
//!
//! Lanes do not travel: what they carried and the far side has not acknowledged is among the frames that wait
//! for the next one, as after any loss of a lane. Times travel as the time that has passed. The format is the
//! serializer's and ours alone: both processes are of one machine, and whoever writes it names its version.

use crate::ids::{Seen, Side};
use crate::kept::Written;
use crate::messages::Messages;
use crate::pre_open::PreOpen;
use crate::ring::{Backlog, Shelf};
use crate::settings::Settings;
use crate::stream::Stream;
use crate::streams::Streams;
use crate::tunnel::{MAX_LANES, Tunnel};
use crate::window::Budget;
use causeway_memory::{Arena, Block};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

/// One end of a tunnel, without its lanes.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct Snapshot<'a> {
    pub(crate) side: Side,
    pub(crate) next_id: u32,
    pub(crate) streams: Cow<'a, HashMap<u32, Stream>>,
    pub(crate) seen: Cow<'a, Seen>,
    pub(crate) pre_open: Cow<'a, PreOpen>,
    pub(crate) messages: Cow<'a, Messages>,
    pub(crate) control: Cow<'a, Backlog>,
    pub(crate) retransmits: Cow<'a, Backlog>,
    /// How long there has been no lane.
    pub(crate) dark: Duration,
}

/// Why bytes that could be read are no tunnel's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    /// An invariant of this stream does not hold.
    #[error("the state of stream {0} contradicts itself")]
    Stream(u32),
    /// Ids are not of the sides they should be.
    #[error("the state's stream ids are not of its side")]
    Side,
    /// What was written down cannot be read.
    #[error("the records of the state cannot be read")]
    Records,
    /// What arrived out of turn does not add up.
    #[error("the state of what arrived out of turn contradicts itself")]
    Early,
}

impl Tunnel {
    /// Puts every lane down and shows what is left. All events must have been taken
    /// ([`Tunnel::poll_event`]): they do not travel.
    pub fn snapshot(&mut self, now: Instant) -> Snapshot<'_> {
        debug_assert!(self.events.is_empty());
        for lane in 0..MAX_LANES {
            self.lane_down(lane, now);
        }
        let since = self.dark_since.unwrap_or(now);
        Snapshot {
            side: self.side,
            next_id: self.next_id,
            streams: Cow::Borrowed(self.streams.map()),
            seen: Cow::Borrowed(&self.seen),
            pre_open: Cow::Borrowed(&self.pre_open),
            messages: Cow::Borrowed(&self.messages),
            control: Cow::Borrowed(&self.control),
            retransmits: Cow::Borrowed(&self.retransmits),
            dark: now.saturating_duration_since(since),
        }
    }
}

impl Snapshot<'_> {
    /// The tunnel again, as if its lanes had been lost. `settings` may differ from those it had. It may have
    /// something to tell at once ([`Tunnel::poll_event`]).
    ///
    /// # Errors
    /// When the state contradicts itself.
    pub fn into_tunnel(self, settings: Settings, now: Instant) -> Result<Tunnel, SnapshotError> {
        self.into_tunnel_on(settings, now, Shelf::private())
    }

    /// The same in memory that outlives this process: see [`Tunnel::kept`]. It may have something to tell at
    /// once ([`Tunnel::poll_event`]). Blocks of the number `owner` that
    /// an earlier process left, `graves`, are kept as long as what is in them is nowhere else.
    ///
    /// # Errors
    /// When the state contradicts itself.
    pub fn into_kept_tunnel(
        self,
        settings: Settings,
        now: Instant,
        (arena, owner): (&Arena, u64),
        graves: Vec<Block>,
    ) -> Result<Tunnel, SnapshotError> {
        let arena = arena.clone();
        let mut tunnel = self.into_tunnel_on(settings, now, Shelf { arena, owner })?;
        tunnel.graves = graves;
        // What a socket has taken that was not known to have arrived may be followed by what was ahead.
        let ids: Vec<u32> = tunnel.streams.map().keys().copied().collect();
        ids.into_iter().for_each(|id| tunnel.settle(id));
        Ok(tunnel)
    }

    fn into_tunnel_on(self, settings: Settings, now: Instant, shelf: Shelf) -> Result<Tunnel, SnapshotError> {
        self.check()?;
        let streams = self.streams.into_owned();
        let mut tunnel = Tunnel {
            settings,
            budget: Budget::of(&settings.limits, streams.values().map(|stream| stream.window)),
            side: self.side,
            next_id: self.next_id,
            segments: streams.values().map(|stream| stream.ahead.len()).sum(),
            streams: Streams::new(streams, false),
            seen: self.seen.into_owned(),
            pre_open: self.pre_open.into_owned(),
            messages: self.messages.into_owned(),
            events: VecDeque::new(),
            lanes: Default::default(),
            control: self.control.into_owned(),
            retransmits: self.retransmits.into_owned(),
            // A clock that has not run for so long is that of a machine that was started since: the wait
            // begins anew.
            dark_since: Some(now.checked_sub(self.dark).unwrap_or(now)),
            shelf,
            graves: Vec::new(),
            written: Written::default(),
        };
        tunnel.note_changes();
        Ok(tunnel)
    }

    /// Whether another process could go on with it.
    ///
    /// # Errors
    /// When the state contradicts itself.
    pub fn check(&self) -> Result<(), SnapshotError> {
        if let Some((id, _)) = self.streams.iter().find(|(_, stream)| !stream.is_sound()) {
            return Err(SnapshotError::Stream(*id));
        }
        if !self.side.chooses(self.next_id) || !self.seen.is_of(self.side.other()) {
            return Err(SnapshotError::Side);
        }
        if !self.pre_open.is_sound() || !self.messages.is_sound() {
            return Err(SnapshotError::Early);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::open::Target;
    use crate::{Event, OpenRequest, StreamId};
    use causeway_wire::{Reason, Token};

    fn request() -> OpenRequest {
        OpenRequest {
            token: Token([9; 16]),
            target: Target::Node("nancy-1".into()),
        }
    }

    /// An end with something of every kind: streams of both sides, one reset and not all arrived, one known
    /// before its open, bytes out of turn, half a message, frames of a lost lane.
    fn busy(now: Instant) -> Tunnel {
        let mut far = Tunnel::new(Side::Even, Settings::default(), now);
        let mut near = Tunnel::new(Side::Odd, Settings::default(), now);
        for tunnel in [&mut far, &mut near] {
            (0..2).for_each(|lane| tunnel.lane_up(lane, now));
        }
        let id = near.open(&request());
        near.prepare(0, u64::MAX, now);
        near.reserve(0, id)[..3].copy_from_slice(b"abc");
        near.commit(0, id, 3, now);
        // Of the far end's two lanes only one arrives: what it carries follows what does not.
        far.message(&[7; 100]);
        let lost = far.open(&request());
        far.prepare(0, u64::MAX, now);
        let begun = far.open(&request());
        far.prepare(1, u64::MAX, now);
        for (lane, id) in [(0, begun), (1, begun), (1, lost)] {
            far.reserve(lane, id)[..3].copy_from_slice(b"def");
            far.commit(lane, id, 3, now);
        }
        far.reset(lost, Reason::Refused);
        far.message(&[8; 2 * crate::MAX_PAYLOAD]);
        far.prepare(1, u64::MAX, now);
        let bytes = far.unsent(1).to_vec();
        let mut input = &bytes[..];
        while near.on_input(1, &mut input, now).unwrap().is_some() {}
        near
    }

    #[test]
    fn a_tunnel_is_the_same_after_its_journey() {
        let now = Instant::now();
        let mut tunnel = busy(now);
        let bytes = postcard::to_stdvec(&tunnel.snapshot(now)).unwrap();
        let snapshot: Snapshot<'static> = postcard::from_bytes(&bytes).unwrap();
        let mut again = snapshot.into_tunnel(Settings::default(), now).unwrap();
        assert!(again.snapshot(now) == tunnel.snapshot(now));
        for part in ["Refused", "Waiting", "nancy-1"] {
            assert!(format!("{tunnel:?}").contains(part), "{part}");
        }
        assert!(!tunnel.retransmits.is_empty());
        assert_eq!(again.streams(), 1);
        assert_eq!(again.sendable(StreamId(1)), tunnel.sendable(StreamId(1)));
    }

    #[test]
    fn the_time_in_the_dark_goes_on() {
        let start = Instant::now();
        let mut tunnel = busy(start);
        let hour = Duration::from_secs(3600);
        (0..2).for_each(|lane| tunnel.lane_down(lane, start + hour));
        let resume = Settings::default().resume;
        let seen = start + hour + resume / 2;
        let snapshot = tunnel.snapshot(seen);
        let mut again = snapshot.into_tunnel(Settings::default(), seen).unwrap();
        again.on_time(start + hour + resume - Duration::from_millis(1));
        assert_eq!(again.poll_event(), None);
        again.on_time(start + hour + resume);
        assert_eq!(again.poll_event(), Some(Event::Expired));
    }

    #[test]
    fn damaged_bytes_are_refused_or_a_tunnel_and_never_panic() {
        let now = Instant::now();
        let bytes = postcard::to_stdvec(&busy(now).snapshot(now)).unwrap();
        for at in (0..bytes.len().min(400)).chain(bytes.len() - 400..bytes.len()) {
            for value in [0, 1, 0x7f, 0x80, 0xff, bytes[at] ^ 1] {
                let mut damaged = bytes.clone();
                damaged[at] = value;
                if let Ok(snapshot) = postcard::from_bytes::<Snapshot<'static>>(&damaged)
                    && let Ok(mut tunnel) = snapshot.into_tunnel(Settings::default(), now)
                {
                    tunnel.lane_up(0, now);
                    tunnel.prepare(0, u64::MAX, now);
                }
            }
            assert!(postcard::from_bytes::<Snapshot<'static>>(&bytes[..at]).is_err());
        }
    }

    #[test]
    fn a_state_that_contradicts_itself_is_refused() {
        let now = Instant::now();
        let refusal = |spoil: fn(&mut Tunnel)| {
            let mut tunnel = busy(now);
            spoil(&mut tunnel);
            let snapshot = tunnel.snapshot(now);
            snapshot.into_tunnel(Settings::default(), now).err()
        };
        assert_eq!(refusal(|_| {}), None);
        let spoilt = refusal(|tunnel| tunnel.streams.get_mut(1).unwrap().sent = u64::MAX);
        assert_eq!(spoilt, Some(SnapshotError::Stream(1)));
        let spoilt = refusal(|tunnel| tunnel.streams.get_mut(1).unwrap().consumed = 1);
        assert_eq!(spoilt, Some(SnapshotError::Stream(1)));
        assert_eq!(refusal(|tunnel| tunnel.next_id = 2), Some(SnapshotError::Side));
        assert_eq!(
            refusal(|tunnel| tunnel.seen = Seen::new(Side::Odd)),
            Some(SnapshotError::Side)
        );
    }
}
