//! Deadlines of the loop: what is to happen at what time, unless it is no longer needed.

use crate::keys::{CommandKey, HandshakeKey, IntakeKey, LaneKey, LaneNumber, LegKey, PeerIndex, SpliceKey};
use causeway_wire::Token;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// What a deadline is for. A key may have been reused by the time the deadline passes: whoever handles it
/// compares the generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deadline {
    Tunnels(TunnelsDeadline),
    Site(SiteDeadline),
    Traversal(TraversalDeadline),
    Telemetry(TelemetryDeadline),
    Commands(CommandsDeadline),
    /// Accept again: there was no room or no descriptor for more, or other sources needed their turn.
    Accept,
    /// Check whether the socket for commands still exists.
    Control,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TunnelsDeadline {
    /// A dialled gateway has not answered.
    Connect(HandshakeKey, u64),
    /// A lane's handshake has not ended.
    Handshake(HandshakeKey, u64),
    /// Handshakes with strangers wait for their share of another turn.
    Strangers,
    /// Dial this lane to the peer with this index again.
    Dial(PeerIndex, LaneNumber),
    /// A lane may have to send something after its last bytes.
    TailProbe(LaneKey),
    /// A lane that was dialled from afar may be trained.
    TrainingTurn(LaneKey),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SiteDeadline {
    /// A preface has not arrived in full.
    Intake(IntakeKey, u64),
    /// A delivery's connect has not ended.
    Delivery(LegKey, u64),
    /// The process of a delivery may not have seen its preface.
    Greeting(LegKey, u64),
    /// Some of the connections that make a listener check again have been open long enough.
    Knocks,
    /// A refused connection is to be reset.
    Refused,
    /// The remaining streams of an ended job have to end.
    Streams(Token),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TraversalDeadline {
    /// Look for a relay for this lane of the peer with this index.
    Seek(PeerIndex, LaneNumber),
    /// A relay has not answered the request for this lane under this number.
    Ask(PeerIndex, LaneNumber, u64),
    /// Two sites have not met here, or what is carried for them may be idle.
    Splice(SpliceKey, u64),
    /// Tell other sites what this relay carries.
    Offer,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TelemetryDeadline {
    /// A reader of the metrics has not sent its request, or has not read the answer.
    Scrape(usize, u64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommandsDeadline {
    /// A command's request has not arrived, or not every site has confirmed its job.
    Command(CommandKey, u64),
    /// Look after the processes started on nodes.
    Starters,
    /// The start of a process should be written down by now.
    Records,
    /// A batch system should have answered by now.
    Looks,
    /// Look for submitted jobs that no process carries.
    Submitted,
}

macro_rules! deadlines {
    ($($owner:ident($deadline:ident),)*) => {$(
        impl From<$deadline> for Deadline {
            fn from(deadline: $deadline) -> Deadline {
                Deadline::$owner(deadline)
            }
        }
    )*};
}

deadlines! {
    Tunnels(TunnelsDeadline),
    Site(SiteDeadline),
    Traversal(TraversalDeadline),
    Telemetry(TelemetryDeadline),
    Commands(CommandsDeadline),
}

#[derive(Default)]
pub(crate) struct Timers {
    due: BTreeMap<(Instant, u64), Deadline>,
    next: u64,
}

impl Timers {
    pub(crate) fn set(&mut self, after: Duration, deadline: impl Into<Deadline>) {
        self.next += 1;
        self.due
            .insert((Instant::now() + after, self.next), deadline.into());
    }

    /// Returns how long the loop may sleep.
    pub(crate) fn wait(&self) -> Option<Duration> {
        let ((first, _), _) = self.due.first_key_value()?;
        Some(first.saturating_duration_since(Instant::now()))
    }

    /// One deadline that has passed.
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<Deadline> {
        let entry = self.due.first_entry()?;
        (entry.key().0 <= now).then(|| entry.remove())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadlines_strike_in_order_and_only_when_due() {
        let mut timers = Timers::default();
        timers.set(Duration::from_secs(20), Deadline::Accept);
        timers.set(
            Duration::from_secs(10),
            TunnelsDeadline::Dial(PeerIndex(1), LaneNumber(0)),
        );
        let now = Instant::now();
        assert_eq!(timers.pop_due(now), None);
        assert_eq!(
            timers.pop_due(now + Duration::from_secs(15)),
            Some(TunnelsDeadline::Dial(PeerIndex(1), LaneNumber(0)).into())
        );
        assert_eq!(timers.pop_due(now + Duration::from_secs(15)), None);
        assert_eq!(
            timers.pop_due(now + Duration::from_secs(25)),
            Some(Deadline::Accept)
        );
        assert!(timers.wait().is_none());
    }
}
