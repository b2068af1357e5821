//! How often one member may make this gateway do something that costs more than its message: dial, or read a
//! long message. The limit belongs to the member, not to the tunnel, which may be a new one each time.

use std::time::{Duration, Instant};

/// A bucket: allows `burst` at once, and then one more after each `refill`.
#[derive(Debug)]
pub(crate) struct Rate {
    burst: u32,
    refill: Duration,
    used: u32,
    since: Option<Instant>,
}

impl Rate {
    /// Dials at once: twice the lanes of a tunnel that was lost. Then two a second: a path that keeps failing
    /// is tried as often as this gateway would dial by itself.
    pub(crate) fn for_dials() -> Rate {
        Rate::new(32, Duration::from_millis(500))
    }

    /// Requests to a relay to be connected with one other site: at once as many as there are lanes, then a
    /// quarter of the rate at which that site's gateway dials relays.
    pub(crate) fn for_requests() -> Rate {
        Rate::new(16, Duration::from_secs(2))
    }

    /// Long messages: the description of a large site comes once with each tunnel. The longest takes a
    /// hundredth of a second to read.
    pub(crate) fn for_long_messages() -> Rate {
        Rate::new(8, Duration::from_secs(2))
    }

    fn new(burst: u32, refill: Duration) -> Rate {
        Rate {
            burst,
            refill,
            used: 0,
            since: None,
        }
    }

    /// Whether one more action is allowed now, which is then counted.
    pub(crate) fn take(&mut self, now: Instant) -> bool {
        let since = *self.since.get_or_insert(now);
        let free = now.saturating_duration_since(since).as_millis() / self.refill.as_millis();
        let free = u32::try_from(free).unwrap_or(u32::MAX);
        if free >= self.used {
            (self.used, self.since) = (0, Some(now));
        } else {
            self.used -= free;
            self.since = Some(since + self.refill * free);
        }
        let may = self.used < self.burst;
        self.used += u32::from(may);
        may
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_has_some_at_once_and_then_one_in_each_interval() {
        let refill = Duration::from_millis(500);
        let (mut rate, began) = (Rate::new(32, refill), Instant::now());
        let made = |rate: &mut Rate, at: Instant| (0..1000).filter(|_| rate.take(at)).count();
        assert_eq!(made(&mut rate, began), 32);
        assert_eq!(made(&mut rate, began + refill * 5 / 2), 2);
        assert_eq!(made(&mut rate, began + refill * 3), 1);
        assert_eq!(made(&mut rate, began + Duration::from_secs(3600)), 32);
    }
}
