//! Bounds how much news a site may make, because all other sites are told of each change of its record.

/// Bytes of records that a site may announce at once, as `Member::bytes` estimates them. The largest record
/// comes to 2 MiB by that estimate: this is four times as much.
const MOST: u64 = 8 * 1024 * 1024;

/// How fast that refills, in bytes a second: in eight seconds by the largest record.
const A_SECOND: u64 = 256 * 1024;

/// The least cost: even the smallest change is written to the disk, and wakes everybody.
const LEAST: u64 = 16 * 1024;

/// How much a site may still announce.
#[derive(Debug)]
pub(super) struct Budget {
    left: u64,
    /// When that number was computed, in seconds since 1970.
    at: u64,
}

impl Budget {
    pub(super) fn new(now: u64) -> Budget {
        Budget { left: MOST, at: now }
    }

    /// Takes the cost of a record of `bytes` bytes.
    ///
    /// # Errors
    /// There is not enough; the error is the number of seconds until there is.
    pub(super) fn take(&mut self, bytes: usize, now: u64) -> Result<(), u64> {
        // If the clock was set back, nothing is added.
        let since = now.saturating_sub(self.at);
        (self.left, self.at) = (
            self.left.saturating_add(since.saturating_mul(A_SECOND)).min(MOST),
            now,
        );
        let cost = (bytes as u64).clamp(LEAST, MOST);
        match self.left.checked_sub(cost) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => Err((cost - self.left).div_ceil(A_SECOND)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(budget: &mut Budget, bytes: usize, now: u64) -> usize {
        (0..100_000)
            .take_while(|_| budget.take(bytes, now).is_ok())
            .count()
    }

    #[test]
    fn a_site_makes_so_many_bytes_of_news_at_once_and_so_many_a_second() {
        let mut budget = Budget::new(1000);
        assert_eq!(told(&mut budget, 2 << 20, 1000), 4);
        assert_eq!(budget.take(2 << 20, 1000), Err(8));
        assert_eq!(budget.take(2 << 20, 1007), Err(1));
        assert_eq!(budget.take(2 << 20, 1008), Ok(()));
        let mut small = Budget::new(1000);
        assert_eq!(told(&mut small, 1, 1000), 512);
        assert_eq!(told(&mut small, 1, 1001), 16);
        assert_eq!(told(&mut small, 1, 999), 0);
        assert_eq!(told(&mut small, 1, 1_000_000), 512);
        assert_eq!(small.take(usize::MAX, u64::MAX), Ok(()));
    }
}
