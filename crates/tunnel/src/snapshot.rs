//! A tunnel's state on its way into another process, if the previous one was killed or has handed the tunnel
//! over.
//!
//! Lanes are not part of it: what they carried and the far side has not acknowledged is among the frames that
//! wait for the next lane, as after any loss of one. `records` and `recovery` write and read the state.

use crate::dues::Dues;
use crate::ids::{Seen, Side};
use crate::kept::Written;
use crate::messages::Messages;
use crate::pre_open::PreOpen;
use crate::ring::{Backlog, Shelf};
use crate::settings::Settings;
use crate::stream::Stream;
use crate::streams::Streams;
use crate::tunnel::Tunnel;
use crate::window::Budget;
use causeway_memory::Arena;
use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

/// One end of a tunnel, without its lanes.
#[derive(Debug, PartialEq)]
pub struct Snapshot {
    pub(crate) side: Side,
    pub(crate) next_id: u32,
    pub(crate) streams: HashMap<u32, Stream>,
    pub(crate) seen: Seen,
    pub(crate) pre_open: PreOpen,
    pub(crate) messages: Messages,
    pub(crate) control: Backlog,
    pub(crate) retransmits: Backlog,
    /// How long there has been no lane.
    pub(crate) dark: Duration,
}

/// Why bytes that can be read are not a tunnel's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    /// An invariant of this stream does not hold.
    #[error("the state of stream {0} contradicts itself")]
    Stream(u32),
    /// Ids belong to the wrong side.
    #[error("the state's stream ids are not of its side")]
    Side,
    /// The records cannot be read.
    #[error("the records of the state cannot be read")]
    Records,
    /// What arrived out of turn is inconsistent.
    #[error("the state of what arrived out of turn contradicts itself")]
    Early,
}

impl Snapshot {
    /// Restores the tunnel, as if its lanes had been lost, in memory that outlives this process: see
    /// [`Tunnel::kept`]. `settings` may differ from those that it had. The tunnel may have something to
    /// report at once ([`Tunnel::poll_event`]). Blocks that an earlier process has left must exist until this
    /// one has committed its journal for the first time.
    ///
    /// # Errors
    /// The state contradicts itself.
    pub fn into_tunnel(
        self,
        (settings, now): (Settings, Instant),
        (arena, owner): (&Arena, u64),
    ) -> Result<Tunnel, SnapshotError> {
        self.check()?;
        let windows = self.streams.values().map(|stream| stream.window);
        let arena = arena.clone();
        // The previous process may not have had time to report everything. Moreover, bytes that a socket
        // accepted, but that were not known to have arrived, may be followed by what was ahead of them.
        let ids: Vec<u32> = self.streams.keys().copied().collect();
        let mut tunnel = Tunnel {
            settings,
            budget: Budget::of(&settings.limits, windows),
            side: self.side,
            next_id: self.next_id,
            segments: self.streams.values().map(|stream| stream.ahead.len()).sum(),
            streams: Streams::new(self.streams, false),
            seen: self.seen,
            pre_open: self.pre_open,
            messages: self.messages,
            dues: Dues::all(ids.into_iter()),
            lanes: Default::default(),
            control: self.control,
            retransmits: self.retransmits,
            // If the clock has not run that long, the machine was rebooted: the wait begins anew.
            dark_since: Some(now.checked_sub(self.dark).unwrap_or(now)),
            shelf: Shelf { arena, owner },
            graves: VecDeque::new(),
            graves_from: 0,
            written: Written::default(),
        };
        tunnel.note_changes();
        tunnel.keep_orphaned_retransmits();
        Ok(tunnel)
    }

    /// Checks whether another process could continue the tunnel.
    ///
    /// # Errors
    /// The state contradicts itself.
    pub fn check(&self) -> Result<(), SnapshotError> {
        if let Some((id, _)) = self.streams.iter().find(|(_, stream)| !stream.is_sound()) {
            return Err(SnapshotError::Stream(*id));
        }
        if !self.side.chooses(self.next_id) || !self.seen.is_of(self.side.other()) {
            return Err(SnapshotError::Side);
        }
        if !self.pre_open.is_sound() {
            return Err(SnapshotError::Early);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::open::Target;
    use crate::tunnel::MAX_LANES;
    use crate::{Event, Moved, OpenRequest, StreamId, recover};
    use causeway_memory::{Found, Journal, Key};
    use causeway_wire::{Reason, Token};
    use std::collections::BTreeMap;

    const OWNER: u64 = 3;

    type Left = (BTreeMap<Key, Vec<u8>>, Vec<Found>);

    fn request() -> OpenRequest {
        OpenRequest {
            token: Token([9; 16]),
            target: Target::Node("nancy-1".into()),
        }
    }

    /// An end with something of every kind: streams of both sides, one that was reset but has not arrived
    /// completely, one that is known before its open, bytes out of turn, half a message, frames of a lost
    /// lane.
    fn busy(now: Instant) -> Tunnel {
        let mut far = Tunnel::new(Side::Even, Settings::default(), now);
        let arena = Arena::shared().unwrap();
        let mut near = Tunnel::kept(Side::Odd, Settings::default(), now, &arena, OWNER);
        for tunnel in [&mut far, &mut near] {
            (0..2).for_each(|lane| tunnel.lane_up(lane, now));
        }
        let id = near.open(&request());
        near.prepare(0, u64::MAX, now);
        near.reserve(0, id)[..3].copy_from_slice(b"abc");
        near.commit(0, id, 3, now);
        // Only one of the far end's two lanes delivers, and what it carries follows what is missing.
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

    /// Writes a tunnel to a journal and ends its process; returns what the next one finds.
    fn end(tunnel: &mut Tunnel, now: Instant) -> (Arena, Left) {
        let mut journal = Journal::shared().unwrap();
        tunnel.write_down(&mut journal, now);
        journal.commit(std::time::Instant::now()).unwrap();
        let (_, records) = Journal::open(journal.duplicate().unwrap()).unwrap();
        let arena = &tunnel.shelf.arena;
        let (next, found) = Arena::open(arena.duplicate().unwrap()).unwrap();
        arena.abandon();
        (next, (records.into_iter().collect(), found))
    }

    fn go_on((arena, (records, mut found)): (Arena, Left), now: Instant) -> Result<Tunnel, SnapshotError> {
        let still = Moved::Bytes { read: 0, written: 0 };
        let moved = (0..20).map(|id| (id, still)).collect();
        let recovered = recover(OWNER, &records, &mut found, &moved)?;
        assert!(recovered.lost.is_empty());
        let times = (Settings::default(), now);
        let tunnel = recovered.snapshot.into_tunnel(times, (&arena, OWNER));
        // This is done after the first commit.
        drop(found);
        arena.reclaim();
        tunnel
    }

    /// The parts of a tunnel that another process gets; its lanes are taken down.
    fn parts(tunnel: &mut Tunnel, now: Instant) -> Snapshot {
        (0..MAX_LANES).for_each(|lane| tunnel.lane_down(lane, now));
        Snapshot {
            side: tunnel.side,
            next_id: tunnel.next_id,
            streams: tunnel.streams.map().clone(),
            seen: tunnel.seen.clone(),
            pre_open: tunnel.pre_open.clone(),
            messages: tunnel.messages.clone(),
            control: tunnel.control.clone(),
            retransmits: tunnel.retransmits.clone(),
            dark: Duration::ZERO,
        }
    }

    #[test]
    fn a_tunnel_is_the_same_after_its_journey() {
        let now = Instant::now();
        let mut tunnel = busy(now);
        let expected = parts(&mut busy(now), now);
        let mut again = go_on(end(&mut tunnel, now), now).unwrap();
        assert_eq!(again.streams(), 1);
        assert_eq!(again.sendable(StreamId(1)), tunnel.sendable(StreamId(1)));
        assert!(parts(&mut again, now) == expected);
        for part in ["Refused", "Waiting", "nancy-1"] {
            assert!(format!("{again:?}").contains(part), "{part}");
        }
        assert!(!again.retransmits.is_empty());
        // This is done again, with what the second process has written.
        let mut third = go_on(end(&mut again, now), now).unwrap();
        assert!(parts(&mut third, now) == expected);
    }

    #[test]
    fn the_time_in_the_dark_goes_on() {
        let start = Instant::now();
        let mut tunnel = busy(start);
        let hour = Duration::from_secs(3600);
        (0..2).for_each(|lane| tunnel.lane_down(lane, start + hour));
        let resume = Settings::default().resume;
        let seen = start + hour + resume / 2;
        let mut again = go_on(end(&mut tunnel, seen), seen).unwrap();
        while again.poll_event().is_some() {}
        again.on_time(start + hour + resume - Duration::from_millis(1));
        assert_eq!(again.poll_event(), None);
        again.on_time(start + hour + resume);
        assert_eq!(again.poll_event(), Some(Event::Expired));
    }

    #[test]
    fn damaged_records_are_refused_or_a_tunnel_and_never_panic() {
        let now = Instant::now();
        let (_, (records, _)) = end(&mut busy(now), now);
        let arena = Arena::private();
        for (key, value) in &records {
            for at in (0..value.len().min(400)).chain(value.len().saturating_sub(400)..value.len()) {
                for byte in [0, 1, 0x7f, 0x80, 0xff, value[at] ^ 1] {
                    let mut damaged = records.clone();
                    damaged.get_mut(key).unwrap()[at] = byte;
                    let left = (damaged, Vec::new());
                    if let Ok(mut tunnel) = try_go_on(&arena, left, now) {
                        tunnel.lane_up(0, now);
                        tunnel.prepare(0, u64::MAX, now);
                    }
                }
            }
            let mut less = records.clone();
            less.remove(key);
            let _ = try_go_on(&arena, (less, Vec::new()), now);
        }
    }

    fn try_go_on(arena: &Arena, (records, mut found): Left, now: Instant) -> Result<Tunnel, SnapshotError> {
        let recovered = recover(OWNER, &records, &mut found, &HashMap::new())?;
        recovered
            .snapshot
            .into_tunnel((Settings::default(), now), (arena, OWNER))
    }

    #[test]
    fn a_state_that_contradicts_itself_is_refused() {
        let now = Instant::now();
        let refusal = |spoil: fn(&mut Tunnel)| {
            let mut tunnel = busy(now);
            spoil(&mut tunnel);
            go_on(end(&mut tunnel, now), now).err()
        };
        assert_eq!(refusal(|_| {}), None);
        let spoilt = refusal(|tunnel| tunnel.streams.get_mut(1).unwrap().window = 0);
        assert_eq!(spoilt, Some(SnapshotError::Stream(1)));
        let spoilt = refusal(|tunnel| tunnel.streams.get_mut(1).unwrap().grown_at = 1);
        assert_eq!(spoilt, Some(SnapshotError::Stream(1)));
        assert_eq!(refusal(|tunnel| tunnel.next_id = 2), Some(SnapshotError::Side));
    }
}
