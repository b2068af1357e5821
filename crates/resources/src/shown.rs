//! Quantities for people, with three digits at most.

/// `4.8 GB`: powers of 1000, as in a job's profile.
pub(crate) fn memory(bytes: u64) -> String {
    scaled(bytes, &["B", "kB", "MB", "GB", "TB", "PB", "EB"])
}

/// `940 Mbit/s`.
pub(crate) fn rate(bits_per_second: u64) -> String {
    scaled(
        bits_per_second,
        &[
            "bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s", "Pbit/s", "Ebit/s",
        ],
    )
}

/// `5.8 ms`.
pub(crate) fn latency(nanoseconds: u64) -> String {
    scaled(nanoseconds, &["ns", "us", "ms", "s", "ks", "Ms", "Gs"])
}

/// `0.1 %`.
pub(crate) fn loss(ppb: u32) -> String {
    match ppb {
        // These would be shown as zero.
        1..50_000 => "<0.01 %".to_owned(),
        _ => format!("{} %", digits(f64::from(ppb) / 1e7)),
    }
}

/// `1.2`: a multiple of the reference.
pub(crate) fn speed(thousandths: u32) -> String {
    format!("{:.1}", f64::from(thousandths) / 1000.0)
}

/// `45 s`, `4 min`, `2.5 h`, `3 d`.
pub(crate) fn time(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", digits(seconds as f64 / 60.0)),
        7200..172_800 => format!("{} h", digits(seconds as f64 / 3600.0)),
        _ => format!("{} d", digits(seconds as f64 / 86_400.0)),
    }
}

/// `2 nodes`.
pub(crate) fn count(number: u64, of: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{number} {of}{ending}")
}

/// Cuts a text that is longer than this; its last character then shows that it was cut.
pub(crate) fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let kept = text.chars().take(most.saturating_sub(1));
    kept.chain(['~']).collect()
}

fn scaled(number: u64, units: &[&str]) -> String {
    let mut value = number as f64;
    let mut at = 0;
    // 999.5 would be shown as 1000.
    while value >= 999.5 && at + 1 < units.len() {
        value /= 1000.0;
        at += 1;
    }
    format!("{} {}", digits(value), units.get(at).copied().unwrap_or_default())
}

/// One decimal place for numbers below ten that are not whole, two for those below one.
fn digits(value: f64) -> String {
    let text = match value {
        ..1.0 => format!("{value:.2}"),
        ..10.0 => format!("{value:.1}"),
        _ => return format!("{value:.0}"),
    };
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_have_units_and_few_digits() {
        assert_eq!(memory(33_554_432), "34 MB");
        assert_eq!(rate(940_400_000), "940 Mbit/s");
        assert_eq!(rate(999_700_000), "1 Gbit/s");
        assert_eq!(rate(0), "0 bit/s");
        assert_eq!(latency(5_800_000), "5.8 ms");
        assert_eq!(latency(u64::MAX), "18 Gs");
        assert_eq!(loss(1_000_000), "0.1 %");
        assert_eq!([loss(0), loss(1), loss(50_000)], ["0 %", "<0.01 %", "0.01 %"]);
        assert_eq!(
            [45, 240, 9000, 259_200].map(time),
            ["45 s", "4 min", "2.5 h", "3 d"]
        );
    }

    #[test]
    fn a_text_is_cut_between_characters() {
        assert_eq!(cut("abcd", 4), "abcd");
        assert_eq!(cut("äöüß", 3), "äö~");
        assert_eq!(cut("ab", 0), "~");
    }
}
