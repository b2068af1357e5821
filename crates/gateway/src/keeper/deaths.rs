//! How soon after each other workers have died, and what follows from that.

use std::time::{Duration, Instant};

/// This many deaths within [`WITHIN`] are assumed to be caused by what the workers took up. A worker that
/// another process killed while it served did not die of that.
const TOO_MANY: usize = 3;
const WITHIN: Duration = Duration::from_secs(10);

/// A worker that lived this long did not die of its start.
const LONG: Duration = Duration::from_millis(100);

/// Up to this many short lives in a row cause no pause.
const FREE: u32 = 3;

/// How long the keeper waits after the next short life; twice as long after each further one.
const FIRST_WAIT: Duration = Duration::from_millis(50);
const LONGEST_WAIT: Duration = Duration::from_secs(5);

#[derive(Debug, Default)]
pub(super) struct Deaths {
    /// Times of the deaths since the last clean start.
    recent: Vec<Instant>,
    /// Short lives in a row.
    short_lives: u32,
    too_many: bool,
}

impl Deaths {
    /// Notes the death of a worker that began at `began`. `was_killed`: another process killed it while it
    /// served.
    pub(super) fn add(&mut self, began: Instant, now: Instant, was_killed: bool) {
        self.short_lives = match now.saturating_duration_since(began) < LONG {
            true => self.short_lives.saturating_add(1),
            false => 0,
        };
        self.recent
            .retain(|death| now.saturating_duration_since(*death) < WITHIN);
        if !was_killed {
            self.recent.push(now);
        }
        self.too_many = !was_killed && self.recent.len() >= TOO_MANY;
        if self.too_many {
            self.recent.clear();
        }
    }

    /// Whether the next worker must take nothing up.
    pub(super) fn are_too_many(&self) -> bool {
        self.too_many
    }

    /// How long to wait before the next worker is made, if at all.
    pub(super) fn wait(&self) -> Option<Duration> {
        let doublings = self.short_lives.checked_sub(FREE + 1)?;
        let factor = 1_u32.checked_shl(doublings).unwrap_or(u32::MAX);
        Some(FIRST_WAIT.saturating_mul(factor).min(LONGEST_WAIT))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_third_death_within_ten_seconds_has_the_next_worker_begin_clean() {
        let (mut deaths, began) = (Deaths::default(), Instant::now());
        let mut die = |seconds| {
            deaths.add(began, began + Duration::from_secs(seconds), false);
            deaths.are_too_many()
        };
        assert_eq!(
            [2, 5, 13, 14, 15].map(&mut die),
            [false, false, false, true, false]
        );
        assert_eq!([16, 17].map(die), [false, true]);
    }

    #[test]
    fn workers_that_others_kill_are_followed_however_many_they_are() {
        let (mut deaths, began) = (Deaths::default(), Instant::now());
        for number in 0..100 {
            deaths.add(began, began + Duration::from_millis(10 * number), true);
            assert!(!deaths.are_too_many());
        }
    }

    #[test]
    fn the_first_short_lives_cost_no_time_and_a_row_of_them_ever_more_up_to_a_bound() {
        let (mut deaths, began) = (Deaths::default(), Instant::now());
        let mut waits = Vec::new();
        for _ in 0..12 {
            deaths.add(began, began + LONG / 2, true);
            waits.push(deaths.wait());
        }
        let seconds = |wait: &Option<Duration>| wait.map(|wait| wait.as_millis());
        assert_eq!(seconds(&waits[2]), None);
        assert_eq!(seconds(&waits[3]), Some(50));
        assert_eq!(seconds(&waits[4]), Some(100));
        assert_eq!(seconds(&waits[11]), Some(5000));
        deaths.add(began, began + LONG, true);
        assert_eq!(deaths.wait(), None);
    }
}
