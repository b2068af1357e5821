//! How much of one tunnel's input is acted on before others get their turn.
//!
//! It is limited by time, not by bytes: sixteen bytes may open a stream or end a job, and a megabyte of one
//! stream's data may cost less than either.

use std::time::{Duration, Instant};

/// A tunnel's share of a turn, which its lanes divide among themselves: more lanes get no more time. A read
/// of 256 kB of data takes a tenth of it. If a hundred sites flood this gateway, each has had its turn after
/// a fifth of a second.
const SHARE: Duration = Duration::from_millis(2);

/// Events between two checks of the clock, which costs as much as a small event.
const EVENTS: u32 = 16;

/// The turn of one lane, or of the events that a tunnel has without input.
pub(crate) struct Turn {
    ends: Instant,
    unlooked: u32,
}

impl Turn {
    /// Begins the turn of one of this many lanes.
    pub(crate) fn begin(now: Instant, lanes: usize) -> Turn {
        // The number fits: there are sixteen lanes at most.
        let lanes = u32::try_from(lanes.max(1)).unwrap_or(u32::MAX);
        Turn {
            ends: now + SHARE / lanes,
            unlooked: 0,
        }
    }

    /// Whether enough was done since the turn began; asked after each event.
    pub(crate) fn is_over(&mut self, clock: impl FnOnce() -> Instant) -> bool {
        self.unlooked += 1;
        if self.unlooked < EVENTS {
            return false;
        }
        self.unlooked = 0;
        self.ended(clock())
    }

    /// Whether its time is over by now.
    pub(crate) fn ended(&self, now: Instant) -> bool {
        now >= self.ends
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_ends_after_its_share_of_time_however_little_each_event_takes() {
        let began = Instant::now();
        for (lanes, event_microseconds, events) in [(1, 1, 2000), (4, 1, 512), (1, 100, 32), (1, 10_000, 16)]
        {
            let mut turn = Turn::begin(began, lanes);
            let mut done = 0;
            loop {
                done += 1;
                let now = began + Duration::from_micros(event_microseconds * done);
                if turn.is_over(|| now) {
                    break;
                }
            }
            assert_eq!(done, events, "events of {event_microseconds} us, {lanes} lanes");
        }
    }
}
