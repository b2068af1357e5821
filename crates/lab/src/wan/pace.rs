//! Decides when the loop polls again: as exactly as possible if little is happening, in batches if much is.
//!
//! Pure arithmetic on nanoseconds, like `link`. It is based on two measurements on a 2-core virtual machine:
//! at 940 Mbit/s, one wake-up for each packet costs half as much again as batches do; and a halted virtual
//! CPU fires a timer 50 us late, which, twice in each round trip, is half of the error that is allowed.

/// The shortest time between turns under lasting load. With 50 us the emulator took 0.70-0.73 of a core on a
/// machine whose cores are both busy with other work, with 100 us 0.51-0.60, with 150 us 0.56-0.59, when it
/// read packet by packet; super-segments halve that at 100 us, because the segments of a turn are written at
/// once. On average, a packet is late by half of it when it is read, and again when it is written, which is
/// little beside the queue that such a load builds.
const TURN_NS: u64 = 100_000;

/// Most turns that are taken without a pause after a quiet time: a ping-pong never reaches this limit.
const FREE_TURNS: u64 = 32;

/// The most by which a timer is set early.
const MAX_MARGIN_NS: u64 = 150_000;

/// Share of a core that polling for early timers may use: one part in this many.
const POLLING_SHARE: u64 = 20;

/// How long polling may go on at once after a quiet time, in nanoseconds.
const POLLING_BURST_NS: u64 = 2_000_000;

/// What to do until the next turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rest {
    /// Serve only requests until this time: there is enough other work.
    Pause(u64),
    /// Sleep until there is input or until this time; that is `early` by the margin if polling is to follow.
    Sleep { until_ns: Option<u64> },
    /// Poll again at once.
    Poll,
}

/// Decides how to rest.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// The time up to which turns are paid for, at `TURN_NS` each (a leaky bucket).
    turns_paid_ns: u64,
    /// The time up to which polling is paid for, at `POLLING_SHARE` times what it took.
    polling_paid_ns: u64,
    /// When the present polling began.
    polling_since_ns: Option<u64>,
    /// How late timers fire, smoothed.
    lateness_ns: u64,
}

impl Pace {
    /// Notes a turn at `now` that moved packets.
    pub(crate) fn on_turn(&mut self, now_ns: u64) {
        let oldest_ns = now_ns.saturating_sub(FREE_TURNS * TURN_NS);
        self.turns_paid_ns = self.turns_paid_ns.max(oldest_ns) + TURN_NS;
    }

    /// Notes that a sleep until `until_ns` ended at `now` without input.
    pub(crate) fn on_timer(&mut self, until_ns: u64, now_ns: u64) {
        let lateness_ns = now_ns.saturating_sub(until_ns);
        self.lateness_ns = (7 * self.lateness_ns + lateness_ns) / 8;
    }

    /// Decides how to wait for the packet due at `due_ns`.
    pub(crate) fn rest(&mut self, due_ns: Option<u64>, now_ns: u64) -> Rest {
        if self.turns_paid_ns > now_ns {
            self.stop_polling(now_ns);
            return Rest::Pause(self.turns_paid_ns);
        }
        let Some(due_ns) = due_ns else {
            self.stop_polling(now_ns);
            return Rest::Sleep { until_ns: None };
        };
        // Half as much again, because lateness varies.
        let margin_ns = (self.lateness_ns * 3 / 2).min(MAX_MARGIN_NS);
        if !self.may_poll(now_ns) {
            self.stop_polling(now_ns);
            return Rest::Sleep {
                until_ns: Some(due_ns),
            };
        }
        if now_ns + margin_ns < due_ns {
            self.stop_polling(now_ns);
            return Rest::Sleep {
                until_ns: Some(due_ns - margin_ns),
            };
        }
        self.polling_since_ns.get_or_insert(now_ns);
        Rest::Poll
    }

    /// Under lasting load, no packet is alone enough for its exact time to matter.
    fn may_poll(&self, now_ns: u64) -> bool {
        if self.turns_paid_ns + FREE_TURNS / 2 * TURN_NS > now_ns {
            return false;
        }
        let under_way_ns = self
            .polling_since_ns
            .map_or(0, |since_ns| now_ns.saturating_sub(since_ns));
        self.polling_paid_ns + under_way_ns * POLLING_SHARE <= now_ns
    }

    fn stop_polling(&mut self, now_ns: u64) {
        if let Some(since_ns) = self.polling_since_ns.take() {
            let oldest_ns = now_ns.saturating_sub(POLLING_BURST_NS * POLLING_SHARE);
            let cost_ns = now_ns.saturating_sub(since_ns) * POLLING_SHARE;
            self.polling_paid_ns = self.polling_paid_ns.max(oldest_ns) + cost_ns;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_quiet_loop_sleeps_until_a_packet_is_due() {
        let mut pace = Pace::default();
        assert_eq!(pace.rest(None, MS), Rest::Sleep { until_ns: None });
        assert_eq!(
            pace.rest(Some(9 * MS), MS),
            Rest::Sleep {
                until_ns: Some(9 * MS)
            }
        );
    }

    #[test]
    fn late_timers_are_set_earlier_and_the_rest_is_polled() {
        let mut pace = Pace::default();
        for _ in 0..100 {
            pace.on_timer(MS, MS + 60_000);
        }
        let Rest::Sleep {
            until_ns: Some(until_ns),
        } = pace.rest(Some(100 * MS), 90 * MS)
        else {
            panic!("no sleep");
        };
        assert!(
            (100 * MS - 90_000..100 * MS - 60_000).contains(&until_ns),
            "{until_ns}"
        );
        assert_eq!(pace.rest(Some(100 * MS), until_ns), Rest::Poll);
    }

    #[test]
    fn polling_takes_no_more_than_its_share() {
        let mut pace = Pace {
            lateness_ns: MAX_MARGIN_NS,
            ..Pace::default()
        };
        let step_ns = 10_000;
        let polled = (0..100_000u64)
            .filter(|turn| {
                let now_ns = 1_000 * MS + turn * step_ns;
                pace.rest(Some(now_ns + step_ns), now_ns) == Rest::Poll
            })
            .count() as u64;
        let share_ns = 100_000 * step_ns / POLLING_SHARE + POLLING_BURST_NS;
        assert!(
            polled * step_ns <= share_ns + share_ns / 10,
            "{} ns of {share_ns}",
            polled * step_ns
        );
        assert!(polled > 0);
    }

    #[test]
    fn a_loaded_loop_polls_for_nothing() {
        let mut pace = Pace {
            lateness_ns: MAX_MARGIN_NS,
            ..Pace::default()
        };
        let now_ns = 1_000 * MS;
        assert_eq!(pace.rest(Some(now_ns + 1), now_ns), Rest::Poll);
        for _ in 0..FREE_TURNS * 2 / 3 {
            pace.on_turn(now_ns);
        }
        assert_eq!(
            pace.rest(Some(now_ns + 1), now_ns),
            Rest::Sleep {
                until_ns: Some(now_ns + 1)
            }
        );
    }

    #[test]
    fn many_turns_are_spread_and_a_few_are_free() {
        let mut pace = Pace::default();
        let now_ns = 1_000 * MS;
        let free = (0..1000).take_while(|_| {
            pace.on_turn(now_ns);
            !matches!(pace.rest(None, now_ns), Rest::Pause(_))
        });
        assert_eq!(free.count() as u64, FREE_TURNS);
        assert_eq!(pace.rest(None, now_ns), Rest::Pause(now_ns + TURN_NS));
        assert_eq!(pace.rest(None, now_ns + TURN_NS), Rest::Sleep { until_ns: None });
    }
}
