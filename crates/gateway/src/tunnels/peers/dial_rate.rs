//! How often one member may have this gateway connect to somewhere.

use std::time::{Duration, Instant};

/// Asked for at once: the lanes of a tunnel that was lost, twice.
const BURST: u32 = 32;

/// Then one more comes free so often. A path that flaps is tried as often as this gateway itself would dial.
const REFILL: Duration = Duration::from_millis(500);

/// A bucket of dials.
#[derive(Debug, Default)]
pub(crate) struct DialRate {
    used: u32,
    since: Option<Instant>,
}

impl DialRate {
    /// Says whether one more may be made now.
    pub(crate) fn take(&mut self, now: Instant) -> bool {
        let since = *self.since.get_or_insert(now);
        let free = now.saturating_duration_since(since).as_millis() / REFILL.as_millis();
        let free = u32::try_from(free).unwrap_or(u32::MAX);
        if free >= self.used {
            (self.used, self.since) = (0, Some(now));
        } else {
            self.used -= free;
            self.since = Some(since + REFILL * free);
        }
        let may = self.used < BURST;
        self.used += u32::from(may);
        may
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_has_some_dials_at_once_and_then_two_a_second() {
        let (mut rate, began) = (DialRate::default(), Instant::now());
        let made = |rate: &mut DialRate, at: Instant| (0..1000).filter(|_| rate.take(at)).count();
        assert_eq!(made(&mut rate, began), BURST as usize);
        assert_eq!(made(&mut rate, began + REFILL * 5 / 2), 2);
        assert_eq!(made(&mut rate, began + REFILL * 3), 1);
        assert_eq!(made(&mut rate, began + Duration::from_secs(3600)), BURST as usize);
    }
}
