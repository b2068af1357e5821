//! Blocks that may be used, and which of them keep their memory.
//!
//! Giving memory back, and having the kernel find and clear it again, costs more than copying a block's
//! bytes. So blocks keep their memory as long as that many are needed again and again.

use crate::place::Place;
use std::time::{Duration, Instant};

/// How many free blocks always keep their memory.
pub(crate) const SPARE: usize = 4;

/// At this interval, blocks that were not needed meanwhile lose their memory.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Blocks that nobody uses.
#[derive(Debug)]
pub(crate) struct Free {
    /// Blocks that keep their memory come last; the one that was given back last is at the end.
    places: Vec<Place>,
    /// How many blocks do not keep their memory.
    cold: usize,
    /// The smallest number of blocks that kept their memory since the last check, and the time of that check.
    least_warm: usize,
    looked: Instant,
}

impl Free {
    pub(crate) fn new() -> Free {
        Free {
            places: Vec::new(),
            cold: 0,
            least_warm: 0,
            looked: Instant::now(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Counts the blocks that keep their memory.
    pub(crate) fn warm(&self) -> usize {
        self.places.len() - self.cold
    }

    pub(crate) fn take(&mut self) -> Option<Place> {
        let place = self.places.pop()?;
        self.cold = self.cold.min(self.places.len());
        self.least_warm = self.least_warm.min(self.warm());
        Some(place)
    }

    pub(crate) fn put(&mut self, place: Place) {
        self.places.push(place);
    }

    /// Takes all out.
    pub(crate) fn take_all(&mut self) -> Vec<Place> {
        (self.cold, self.least_warm) = (0, 0);
        std::mem::take(&mut self.places)
    }

    /// Returns blocks whose memory was not needed since the last check, if a check is due. The caller gives
    /// the memory back.
    pub(crate) fn idle(&mut self, now: Instant) -> &[Place] {
        let from = self.cold;
        if now.saturating_duration_since(self.looked) >= LOOK_EVERY {
            self.cold += self.least_warm.saturating_sub(SPARE);
            self.least_warm = self.warm();
            self.looked = now;
        }
        &self.places[from..self.cold]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place::{heap_block, release};

    #[test]
    fn memory_that_is_needed_again_and_again_is_kept_and_the_rest_given_back_after_a_while() {
        let mut free = Free::new();
        (0..100).for_each(|_| free.put(heap_block()));
        let mut now = Instant::now();
        let mut idle = |free: &mut Free| {
            now += LOOK_EVERY;
            free.idle(now).len()
        };
        // What has just been given back counts from now on.
        assert_eq!(idle(&mut free), 0);
        let lost = [(); 3].map(|()| {
            let taken: Vec<Place> = (0..70).filter_map(|_| free.take()).collect();
            taken.into_iter().for_each(|place| free.put(place));
            idle(&mut free)
        });
        assert_eq!(lost, [30 - SPARE, 0, 0]);
        assert_eq!(free.warm(), 70 + SPARE);
        assert_eq!(idle(&mut free), 70);
        assert_eq!((idle(&mut free), free.warm()), (0, SPARE));
        free.take_all().into_iter().for_each(release);
    }
}
