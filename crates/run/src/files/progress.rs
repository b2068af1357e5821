//! How far files have got, for people: a line now and then, if it takes long.

use causeway_host::say;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// When the first line is printed, and the pause before each other one.
pub(super) const FIRST: Duration = Duration::from_secs(3);
pub(super) const THEN: Duration = Duration::from_secs(10);

/// How many bytes were sent to all hosts.
pub(super) struct Progress {
    total: u64,
    hosts: usize,
    began: Instant,
    sent: AtomicU64,
}

impl Progress {
    pub(super) fn begin(total: u64, hosts: usize) -> Progress {
        Progress {
            total,
            hosts,
            began: Instant::now(),
            sent: AtomicU64::new(0),
        }
    }

    pub(super) fn add(&self, bytes: usize) {
        self.sent.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Reports the progress until `is_over`, which waits no longer than the time that it is given, returns
    /// true.
    pub(super) fn tell_until(&self, mut is_over: impl FnMut(Duration) -> bool) {
        let mut wait = FIRST;
        while !is_over(wait) {
            say::error(line(
                self.sent.load(Ordering::Relaxed),
                self.total,
                self.hosts,
                self.began.elapsed(),
            ));
            wait = THEN;
        }
    }
}

/// The line about the progress. As an archive is larger than its files, the sent bytes are limited to the
/// total.
fn line(sent: u64, total: u64, hosts: usize, elapsed: Duration) -> String {
    let sent = sent.min(total);
    let rate = sent as f64 / elapsed.as_secs_f64().max(1e-3);
    let left = match rate {
        0.0 => "nothing has been taken yet".to_owned(),
        rate => format!("{:.0} s left", (total - sent) as f64 / rate),
    };
    format!(
        "causeway: --send: {} of {} MB to {hosts} {}, {:.1} MB/s, {left}",
        sent / 1_000_000,
        total.div_ceil(1_000_000),
        if hosts == 1 { "host" } else { "hosts" },
        rate / 1e6
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_how_much_has_gone_how_fast_and_how_long_the_rest_takes() {
        let after = |sent, hosts| line(sent, 400_000_000, hosts, Duration::from_secs(4));
        assert_eq!(
            after(100_000_000, 2),
            "causeway: --send: 100 of 400 MB to 2 hosts, 25.0 MB/s, 12 s left"
        );
        assert!(after(500_000_000, 1).contains("400 of 400 MB to 1 host, 100.0 MB/s, 0 s left"));
        assert!(after(0, 1).ends_with("nothing has been taken yet"));
    }

    #[test]
    fn what_is_over_soon_is_not_told_of() {
        let progress = Progress::begin(10, 1);
        progress.add(10);
        let mut waits = Vec::new();
        progress.tell_until(|wait| {
            waits.push(wait);
            true
        });
        assert_eq!(waits, [FIRST]);
    }
}
