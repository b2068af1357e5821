//! How much of one lane's input is acted on before the others get their turn.
//!
//! By time, not by bytes: sixteen bytes may open a stream or end a job, and a megabyte of one stream's data may
//! cost less than either.

use std::time::{Duration, Instant};

/// A lane's share of a turn. A read of 256 kB of data takes a tenth of it; a far gateway that has a hundred of
/// these in a queue still answers in a quarter of a second.
const SHARE: Duration = Duration::from_millis(2);

/// Events between two looks at the clock, which costs as much as a small event.
const EVENTS: u32 = 16;

/// One lane's turn.
pub(crate) struct Turn {
    ends: Instant,
    unlooked: u32,
}

impl Turn {
    pub(crate) fn begin(now: Instant) -> Turn {
        Turn {
            ends: now + SHARE,
            unlooked: 0,
        }
    }

    /// Whether what has been done since it began was enough, asked after each event.
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
        for (event_microseconds, events) in [(1, 2000), (100, 32), (10_000, 16)] {
            let mut turn = Turn::begin(began);
            let mut done = 0;
            loop {
                done += 1;
                let now = began + Duration::from_micros(event_microseconds * done);
                if turn.is_over(|| now) {
                    break;
                }
            }
            assert_eq!(done, events, "events of {event_microseconds} us");
        }
    }
}
