//! On a lane that loses segments, sends a small frame after the last one of a burst.
//!
//! TCP learns that a segment was lost from those that arrive after it. After the last one of a burst, none
//! does: Linux probes after two round trips, or 200 ms later if only a single segment is in flight
//! (tcp_output.c, tcp_schedule_loss_probe), and an MPI program that waits for that message sends nothing
//! meanwhile. A frame sent a quarter of a round trip later is late enough for RACK (RFC 8985, section 6.2) to
//! take what is missing before it for lost.

use std::time::{Duration, Instant};

/// A lane that has lost a segment within this time may lose another.
pub(in crate::tunnels) const LOSSY: Duration = Duration::from_secs(60);

/// RACK waits for a quarter of the shortest round trip; this is a little more, because clocks tick and round
/// trips vary.
pub(in crate::tunnels) fn pause(rtt: Duration) -> Duration {
    rtt * 5 / 16
}

/// Whether a frame is sent after a lane's last frames, and when.
#[derive(Debug, Default)]
pub(crate) struct TailProbe {
    pub(in crate::tunnels) lost_at: Option<Instant>,
    pub(in crate::tunnels) retransmits: u32,
    pub(in crate::tunnels) rtt: Duration,
    pub(in crate::tunnels) armed: bool,
    /// How much the lane has sent in all, up to and including the last such frame.
    pub(in crate::tunnels) end: u64,
}

impl TailProbe {
    /// Takes the kernel's count of segments sent again, and the round trip.
    pub(crate) fn learn(&mut self, retransmits: u32, rtt: Duration, now: Instant) {
        if retransmits != self.retransmits {
            (self.retransmits, self.lost_at) = (retransmits, Some(now));
        }
        self.rtt = rtt;
    }

    /// Whether the lane has recently lost something.
    pub(in crate::tunnels) fn is_lossy(&self, now: Instant) -> bool {
        let at = self.lost_at;
        at.is_some_and(|at| now.saturating_duration_since(at) < LOSSY)
    }

    /// The previous lane over the same path recently lost something.
    pub(in crate::tunnels) fn expect_loss(&mut self, now: Instant) {
        self.lost_at = Some(now);
    }

    /// Notes the end of a burst; returns after how long to check whether more followed.
    pub(crate) fn arm(&mut self, sent_bytes: u64, now: Instant) -> Option<Duration> {
        if !self.is_lossy(now) || sent_bytes == self.end || std::mem::replace(&mut self.armed, true) {
            return None;
        }
        Some(pause(self.rtt))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUND: Duration = Duration::from_millis(16);

    #[test]
    fn a_lane_that_has_lost_nothing_lately_sends_no_more_than_it_must() {
        let now = Instant::now();
        let mut tail = TailProbe::default();
        tail.learn(0, ROUND, now);
        assert_eq!(tail.arm(1000, now), None);
        tail.learn(1, ROUND, now);
        assert_eq!(tail.arm(1000, now + LOSSY), None);
    }

    #[test]
    fn the_last_frame_of_a_lossy_lane_is_followed_once() {
        let now = Instant::now();
        let mut tail = TailProbe::default();
        tail.learn(1, ROUND, now);
        assert_eq!(tail.arm(1000, now), Some(Duration::from_millis(5)));
        assert_eq!(tail.arm(2000, now), None, "one look at a time");
        tail.armed = false;
        tail.end = 2016;
        assert_eq!(tail.arm(2016, now), None, "what follows is not followed");
        assert!(tail.arm(3000, now).is_some());
    }
}
