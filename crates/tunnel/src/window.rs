//! Decides how many bytes a stream's receiver grants, so that a slow reader slows only its own stream, and
//! the memory of a tunnel stays bounded.
//!
//! A stream starts with its share of the budget and grows towards the maximum while its reader keeps up, as
//! long as the budget lasts. At worst, if every reader is stuck, a tunnel keeps `budget + least x streams`
//! bytes: 256 MiB + 64 KiB x streams with the defaults. The memory that bytes out of turn need besides
//! themselves is limited in `segments` and `pre_open`.

/// Limits of the receive windows of one tunnel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How much a stream gets however many there are, and how much may be sent before the far side has
    /// answered the open.
    pub least: u64,
    /// How much a stream starts with while streams are few.
    pub initial: u64,
    /// How far a stream's window may grow. The throughput of one stream is at most this per round trip.
    pub most: u64,
    /// How much all streams of a tunnel share beyond `least`.
    pub budget: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            least: MIN_BYTES,
            initial: 2 << 20, // the bandwidth-delay product of 1 Gbit/s at 16 ms: most links within a country
            most: 16 << 20,   // 1 Gbit/s at 134 ms: across the Atlantic
            budget: 256 << 20,
        }
    }
}

/// How many bytes may be sent before the first credit. Both ends must agree on it, so it is part of the
/// protocol. It is as large as the largest eager message of today's MPIs.
pub const MIN_BYTES: u64 = 64 << 10;

/// Counts what is granted beyond [`Limits::least`], over all streams of a tunnel.
#[derive(Debug, Default)]
pub(crate) struct Budget {
    granted: u64,
}

impl Budget {
    /// Counts what was granted to these windows.
    pub(crate) fn of(limits: &Limits, windows: impl Iterator<Item = u64>) -> Budget {
        let extra = windows.map(|window| window.saturating_sub(limits.least));
        Budget {
            granted: extra.fold(0, u64::saturating_add),
        }
    }

    /// The window with which a new stream starts.
    pub(crate) fn first_window(&mut self, limits: &Limits, streams: usize) -> u64 {
        let share = limits.budget / (streams as u64 + 1) / 2;
        let left = limits.budget.saturating_sub(self.granted);
        let extra = share.min(left).min(limits.initial.saturating_sub(limits.least));
        self.granted += extra;
        limits.least + extra
    }

    /// The window after a reader has emptied `window` without falling behind: it is doubled while the budget
    /// lasts.
    pub(crate) fn grown_window(&mut self, limits: &Limits, window: u64) -> u64 {
        let left = limits.budget.saturating_sub(self.granted);
        let extra = window.min(limits.most.saturating_sub(window)).min(left);
        self.granted += extra;
        window + extra
    }

    /// Gives back what was granted to a closed stream.
    pub(crate) fn release(&mut self, limits: &Limits, window: u64) {
        debug_assert!(window >= limits.least);
        self.granted = self.granted.saturating_sub(window.saturating_sub(limits.least));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_of_windows_never_exceeds_the_stated_bound() {
        let limits = Limits::default();
        let mut budget = Budget::default();
        let mut windows: Vec<u64> = Vec::new();
        for streams in 0..10_000 {
            windows.push(budget.first_window(&limits, streams));
            let last = windows[streams];
            windows[streams / 2] = budget.grown_window(&limits, windows[streams / 2]);
            assert!((limits.least..=limits.initial).contains(&last));
        }
        let sum: u64 = windows.iter().sum();
        assert!(sum <= limits.budget + limits.least * windows.len() as u64);
        for window in windows {
            budget.release(&limits, window);
        }
        assert_eq!(budget.granted, 0);
    }

    #[test]
    fn a_stream_alone_starts_large_and_grows_to_the_most() {
        let limits = Limits::default();
        let mut budget = Budget::default();
        let mut window = budget.first_window(&limits, 0);
        assert_eq!(window, limits.initial);
        for _ in 0..10 {
            window = budget.grown_window(&limits, window);
        }
        assert_eq!(window, limits.most);
    }
}
