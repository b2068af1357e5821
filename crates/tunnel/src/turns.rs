//! Whose bytes go next: small frames overtake bulk, bulk takes turns.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// A read of at most this much is a message, not a part of bulk. The size to which MPIs send at once.
const SMALL_READ: usize = 4096;

/// A stream that had nothing to say for this long starts anew with a small frame's right: longer than the gap between
/// two chunks of a sender that is merely slow.
const IDLE: Duration = Duration::from_millis(10);

/// Small frames in a row before bulk gets a turn: it slows a flood of small frames by a few per cent and never stops.
const SMALL_RUN: u32 = 32;

/// How one stream has behaved.
#[derive(Debug, Clone, Copy, Default)]
pub struct Pace {
    bulk: bool,
    emptied: Option<Instant>,
}

impl Pace {
    /// `count` bytes were read from the stream's socket; `emptied`: that was all there was.
    pub fn on_read(&mut self, count: usize, emptied: bool, now: Instant) {
        self.bulk = count > SMALL_READ;
        self.emptied = emptied.then_some(now);
    }

    /// Whether the stream's next frame goes before bulk.
    pub fn is_urgent(&self, now: Instant) -> bool {
        !self.bulk
            || self
                .emptied
                .is_some_and(|at| now.saturating_duration_since(at) >= IDLE)
    }
}

/// Streams that may have something to send, by the keys of a driver.
#[derive(Debug, Default)]
pub struct Turns {
    urgent: VecDeque<usize>,
    bulk: VecDeque<usize>,
    run: u32,
}

impl Turns {
    /// Queues a stream behind those of its kind.
    pub fn push(&mut self, key: usize, urgent: bool) {
        let queue = if urgent { &mut self.urgent } else { &mut self.bulk };
        queue.push_back(key);
    }

    /// Whose turn it is.
    pub fn pop(&mut self) -> Option<usize> {
        if self.run >= SMALL_RUN && !self.bulk.is_empty() {
            self.run = 0;
            return self.bulk.pop_front();
        }
        self.run += 1;
        self.urgent.pop_front().or_else(|| {
            self.run = 0;
            self.bulk.pop_front()
        })
    }

    /// Nobody waits.
    pub fn is_empty(&self) -> bool {
        self.urgent.is_empty() && self.bulk.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_frames_overtake_bulk_and_do_not_starve_it() {
        let mut turns = Turns::default();
        turns.push(1, false);
        turns.push(2, false);
        turns.push(3, true);
        assert_eq!(
            [turns.pop(), turns.pop(), turns.pop(), turns.pop()],
            [Some(3), Some(1), Some(2), None]
        );
        turns.push(1, false);
        let mut waited = 0;
        loop {
            turns.push(3, true);
            match turns.pop() {
                Some(1) => break,
                _ => waited += 1,
            }
        }
        assert_eq!(waited, SMALL_RUN);
    }

    #[test]
    fn a_stream_is_urgent_until_it_fills_frames_and_again_when_it_was_idle() {
        let now = Instant::now();
        let mut pace = Pace::default();
        assert!(pace.is_urgent(now));
        pace.on_read(60_000, true, now);
        assert!(!pace.is_urgent(now));
        assert!(pace.is_urgent(now + IDLE));
        pace.on_read(60_000, false, now);
        assert!(!pace.is_urgent(now + IDLE));
        pace.on_read(100, true, now);
        assert!(pace.is_urgent(now));
    }
}
