//! Times of UTC in the forms that commands of batch systems use.

use std::time::{SystemTime, UNIX_EPOCH};

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

const DAY: u64 = 86_400;

/// Years that are read: longer than any job waits.
const YEARS: std::ops::Range<u64> = 1970..3000;

/// Seconds since 1970 at `Fri Nov 27 14:30:37 2026`, the form of asctime(3).
pub fn at_date(text: &str) -> Option<u64> {
    let mut parts = text.split_whitespace().skip(1);
    let (month, day, clock, year) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let month = MONTHS.iter().position(|name| *name == month)?;
    let day: u64 = day.parse().ok().filter(|day| (1..=31).contains(day))?;
    let year: u64 = year.parse().ok().filter(|year| YEARS.contains(year))?;
    let mut seconds = 0_u64;
    for part in clock.split(':') {
        let part: u64 = part.parse().ok().filter(|part| *part < 61)?;
        seconds = seconds.checked_mul(60)?.checked_add(part)?;
    }
    let days = (YEARS.start..year).map(days_of).sum::<u64>();
    let months: u64 = (0..month).map(|month| days_of_month(month, year)).sum();
    (days + months + day - 1).checked_mul(DAY)?.checked_add(seconds)
}

/// `202611271430.37`, the form of touch(1).
pub fn date(at: SystemTime) -> String {
    let seconds = at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let (mut days, second) = (seconds / DAY, seconds % DAY);
    let mut year = YEARS.start;
    while days >= days_of(year) && year < YEARS.end {
        days -= days_of(year);
        year += 1;
    }
    let mut month = 0;
    while month < MONTHS.len() - 1 && days >= days_of_month(month, year) {
        days -= days_of_month(month, year);
        month += 1;
    }
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!(
        "{year}{:02}{:02}{hour:02}{minute:02}.{second:02}",
        month + 1,
        days + 1
    )
}

fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400)
}

fn days_of(year: u64) -> u64 {
    365 + u64::from(is_leap(year))
}

/// January is month 0.
fn days_of_month(month: usize, year: u64) -> u64 {
    match month {
        1 => 28 + u64::from(is_leap(year)),
        3 | 5 | 8 | 10 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_date_is_a_time_of_utc_both_ways() {
        for (seconds, read, written) in [
            (0, "Thu Jan  1 00:00:00 1970", "197001010000.00"),
            (951_782_400, "Tue Feb 29 00:00:00 2000", "200002290000.00"),
            (1_795_789_837, "Fri Nov 27 14:30:37 2026", "202611271430.37"),
            (1_798_761_599, "Thu Dec 31 23:59:59 2026", "202612312359.59"),
        ] {
            assert_eq!(at_date(read), Some(seconds), "{read}");
            assert_eq!(date(UNIX_EPOCH + Duration::from_secs(seconds)), written);
        }
        for wrong in [
            "",
            "soon",
            "Fri Nov 27 2026",
            "Fri Nov 0 1:1:1 2026",
            "Fri Nov 1 1:1:1 9999",
        ] {
            assert_eq!(at_date(wrong), None, "{wrong}");
        }
    }
}
