//! Reads quantities as people write them: "11.6ms", "1 Gbit/s", "2MB", "0.1%". A bare number is refused,
//! because nobody can tell later what it meant. Decimal prefixes are powers of 1000, "KiB" and "MiB" powers
//! of 1024.

use std::time::Duration;

/// Reads a length of time with its unit (ns, us, ms, s).
///
/// # Errors
/// Says what is wrong with the text: no number, no unit, unknown unit, negative, too long.
pub fn duration(text: &str) -> Result<Duration, String> {
    let seconds = scaled(text, DURATIONS, "a time such as \"11.6ms\"")?;
    Duration::try_from_secs_f64(seconds).map_err(|_| format!("\"{text}\" is too long"))
}

/// Reads a rate in bits per second with its unit (bit/s, kbit/s, Mbit/s, Gbit/s).
///
/// # Errors
/// Says what is wrong with the text; a rate of 0 is refused.
pub fn rate_bits_per_second(text: &str) -> Result<u64, String> {
    positive(text, scaled(text, RATES, "a rate such as \"1Gbit/s\"")?)
}

/// Reads a size in bytes with its unit (B, kB, MB, GB, KiB, MiB, GiB).
///
/// # Errors
/// Says what is wrong with the text; a size of 0 is refused.
pub fn size_bytes(text: &str) -> Result<u64, String> {
    positive(text, scaled(text, SIZES, "a size such as \"2MB\"")?)
}

/// Reads a share in per cent ("0.1%") and returns it as a fraction of one.
///
/// # Errors
/// Says what is wrong with the text, or that it lies outside 0..100 %.
pub fn fraction(text: &str) -> Result<f64, String> {
    let value = scaled(text, &[("%", 0.01)], "a share such as \"0.1%\"")?;
    if value > 1.0 {
        return Err(format!("\"{text}\" is outside 0%..100%"));
    }
    Ok(value)
}

fn scaled(text: &str, units: &[(&str, f64)], wanted: &str) -> Result<f64, String> {
    let text = text.trim();
    let end = text
        .find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '-' | '+')))
        .unwrap_or(text.len());
    let (number, unit) = (&text[..end], text[end..].trim());
    let number: f64 = number
        .parse()
        .map_err(|_| format!("\"{text}\" is not {wanted}"))?;
    if number < 0.0 {
        return Err(format!("\"{text}\" is negative"));
    }
    if unit.is_empty() {
        return Err(format!("\"{text}\" has no unit; write {wanted}"));
    }
    match units.iter().find(|(name, _)| *name == unit) {
        Some((_, factor)) => Ok(number * factor),
        None => {
            let known: Vec<&str> = units.iter().map(|(name, _)| *name).collect();
            Err(format!(
                "\"{text}\" has the unknown unit \"{unit}\"; use one of {}",
                known.join(", ")
            ))
        }
    }
}

fn positive(text: &str, value: f64) -> Result<u64, String> {
    // 2^53: above it an f64 no longer holds every integer, and no link or queue is that large.
    if !(1.0..=9e15).contains(&value) {
        return Err(format!("\"{text}\" must be more than 0 and less than 9e15"));
    }
    Ok(value.round() as u64)
}

const DURATIONS: &[(&str, f64)] = &[("ns", 1e-9), ("us", 1e-6), ("µs", 1e-6), ("ms", 1e-3), ("s", 1.0)];
const RATES: &[(&str, f64)] = &[("bit/s", 1.0), ("kbit/s", 1e3), ("Mbit/s", 1e6), ("Gbit/s", 1e9)];
const SIZES: &[(&str, f64)] = &[
    ("B", 1.0),
    ("kB", 1e3),
    ("MB", 1e6),
    ("GB", 1e9),
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_with_units_are_read() {
        assert_eq!(duration("11.6ms").unwrap(), Duration::from_micros(11_600));
        assert_eq!(duration("0s").unwrap(), Duration::ZERO);
        assert_eq!(rate_bits_per_second("1 Gbit/s").unwrap(), 1_000_000_000);
        assert_eq!(size_bytes("2MB").unwrap(), 2_000_000);
        assert_eq!(size_bytes("1MiB").unwrap(), 1_048_576);
        assert!((fraction("0.1%").unwrap() - 0.001).abs() < 1e-12);
    }

    #[test]
    fn what_is_wrong_with_a_quantity_is_said() {
        assert!(duration("12").unwrap_err().contains("has no unit"));
        assert!(
            duration("12 parsec")
                .unwrap_err()
                .contains("unknown unit \"parsec\"")
        );
        assert!(
            rate_bits_per_second("0Mbit/s")
                .unwrap_err()
                .contains("more than 0")
        );
        assert!(size_bytes("much").unwrap_err().contains("is not a size"));
        assert!(fraction("101%").unwrap_err().contains("outside"));
        assert!(fraction("-1%").unwrap_err().contains("negative"));
    }
}
