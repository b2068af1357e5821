//! Quantities as people write them: "11.6ms", "1 Gbit/s", "2MB", "0.1%", "30min". They are read exactly: each
//! is a whole number of the finest unit, or a mistake. A number without a unit is a mistake, too, because
//! later nobody can tell what it meant. Decimal prefixes are powers of 1000, "KiB" and "MiB" powers of 1024.
#![forbid(unsafe_code)]

use causeway_wire::TextError;
use std::ops::RangeInclusive;
use std::time::Duration;

/// Most digits before and after the point. Their product with the largest factor fits into 128 bits.
const MAX_DIGITS: (usize, usize) = (15, 9);

/// A kind of quantity: its units as multiples of the finest one, and which values make sense.
#[derive(Debug)]
pub struct Measure {
    /// Names and factors; if two texts are equally short, the one with the unit that comes first is written.
    pub units: &'static [(&'static str, u64)],
    /// The least and the greatest value that make sense, in the finest unit.
    pub range: RangeInclusive<u64>,
    /// The finest difference between two values.
    pub finest: &'static str,
    /// Examples of a value.
    pub such_as: &'static str,
}

/// Rates in bit/s. Nothing is slower than a modem, and no network is faster than 1000 Tbit/s.
pub static RATE: Measure = Measure {
    units: &[
        ("Gbit/s", 1_000_000_000),
        ("Mbit/s", 1_000_000),
        ("kbit/s", 1_000),
        ("bit/s", 1),
        ("GB/s", 8_000_000_000),
        ("MB/s", 8_000_000),
        ("kB/s", 8_000),
        ("B/s", 8),
    ],
    range: 1_000..=1_000_000_000_000_000,
    finest: "1bit/s",
    such_as: "a rate such as \"5120kB/s\" or \"1Gbit/s\"",
};

/// Latencies in ns, up to a minute.
pub static LATENCY: Measure = Measure {
    units: &[("ms", 1_000_000), ("us", 1_000), ("s", 1_000_000_000)],
    range: 1..=60_000_000_000,
    finest: "0.001us",
    such_as: "a latency such as \"5ms\" or \"20us\"",
};

/// Losses in parts of a thousand million. A network that loses everything is no network.
pub static LOSS: Measure = Measure {
    units: &[("%", 10_000_000)],
    range: 0..=999_999_999,
    finest: "0.0000001%",
    such_as: "a share below 100% such as \"0.1%\"",
};

/// Times on a network in ns, from nothing to a day.
pub static DELAY: Measure = Measure {
    units: &[
        ("ms", 1_000_000),
        ("us", 1_000),
        ("µs", 1_000),
        ("ns", 1),
        ("s", 1_000_000_000),
    ],
    range: 0..=86_400_000_000_000,
    finest: "1ns",
    such_as: "a time such as \"11.6ms\"",
};

/// Memory and files in bytes, up to 1000 TB.
pub static SIZE: Measure = Measure {
    units: &[
        ("GB", 1_000_000_000),
        ("MB", 1_000_000),
        ("kB", 1_000),
        ("B", 1),
        ("TB", 1_000_000_000_000),
        ("GiB", 1 << 30),
        ("MiB", 1 << 20),
        ("KiB", 1 << 10),
        ("TiB", 1 << 40),
    ],
    range: 1..=1_000_000_000_000_000,
    finest: "1B",
    such_as: "a size such as \"2GB\" or \"512MiB\"",
};

const LONG: &[(&str, u64)] = &[("h", 3600), ("min", 60), ("s", 1), ("d", 86_400)];

/// Lifetimes, and times since an event, in s, from nothing to a century.
pub static SPAN: Measure = Measure {
    units: LONG,
    range: 0..=100 * MAX_SECONDS,
    finest: "1s",
    such_as: "a time such as \"30min\", \"1h\" or \"2d\"",
};

/// Durations of jobs in s, up to a year.
pub static TIME: Measure = Measure {
    units: LONG,
    range: 1..=MAX_SECONDS,
    finest: "1s",
    such_as: "a time such as \"90s\", \"30min\", \"1h\" or \"2d\", up to a year",
};

/// Speeds in thousandths, without a unit.
pub static SPEED: Measure = Measure {
    units: &[("", 1_000)],
    range: 1..=1_000_000,
    finest: "0.001",
    such_as: "a number from 0.001 to 1000 such as 1.2",
};

/// The seconds of a year.
pub const MAX_SECONDS: u64 = 31_536_000;

/// Reads a time on a network, such as "11.6ms".
///
/// # Errors
/// See [`Measure::read`].
pub fn delay(text: &str) -> Result<Duration, TextError> {
    DELAY.read(text).map(Duration::from_nanos)
}

/// Reads a rate in bit/s, such as "1Gbit/s".
///
/// # Errors
/// See [`Measure::read`].
pub fn rate(text: &str) -> Result<u64, TextError> {
    RATE.read(text)
}

/// Reads a size in bytes, such as "2MB".
///
/// # Errors
/// See [`Measure::read`].
pub fn size(text: &str) -> Result<u64, TextError> {
    SIZE.read(text)
}

/// Reads a rate of loss, such as "0.1%", as a fraction of one.
///
/// # Errors
/// See [`Measure::read`].
pub fn loss(text: &str) -> Result<f64, TextError> {
    Ok(LOSS.read(text)? as f64 / 1e9)
}

/// Reads a lifetime in seconds, such as "7d".
///
/// # Errors
/// See [`Measure::read`].
pub fn span(text: &str) -> Result<u64, TextError> {
    SPAN.read(text)
}

/// Reads a duration of a job, such as "30min".
///
/// # Errors
/// See [`Measure::read`].
pub fn time(text: &str) -> Result<Duration, TextError> {
    TIME.read(text).map(Duration::from_secs)
}

impl Measure {
    /// Reads a number with its unit; returns it in the finest unit.
    ///
    /// # Errors
    /// The text has another form, or its value is finer than the finest difference or out of range.
    pub fn read(&self, text: &str) -> Result<u64, TextError> {
        let end = text
            .find(|letter: char| !letter.is_ascii_digit() && letter != '.')
            .unwrap_or(text.len());
        let (number, unit) = text.split_at(end);
        let unit = unit.trim_start_matches(' ');
        let known = self.units.iter().find(|(name, _)| *name == unit);
        match known {
            Some((_, factor)) => self.read_number(number, *factor, text),
            None => Err(self.wrong(text)),
        }
    }

    /// Reads a number without a unit; the unit is known to be this factor of the finest one.
    ///
    /// # Errors
    /// See [`Measure::read`].
    pub fn read_plain(&self, number: &str, factor: u64) -> Result<u64, TextError> {
        self.read_number(number, factor, number)
    }

    fn read_number(&self, number: &str, factor: u64, text: &str) -> Result<u64, TextError> {
        let (digits, decimals) = decimal(number).ok_or_else(|| self.wrong(text))?;
        let (value, scale) = (digits * u128::from(factor), 10_u128.pow(decimals));
        if value % scale != 0 {
            return Err(format!("{text:?} is finer than {}", self.finest).into());
        }
        match u64::try_from(value / scale) {
            Ok(value) if self.range.contains(&value) => Ok(value),
            _ => {
                let (least, most) = (self.show(*self.range.start()), self.show(*self.range.end()));
                Err(format!("{text:?} is not between {least} and {most}").into())
            }
        }
    }

    /// Writes a value in the unit that makes the text shortest, without a point if possible.
    pub fn show(&self, value: u64) -> String {
        let forms = self.units.iter().filter_map(|(unit, factor)| {
            let number = plain(value, *factor)?;
            Some(format!("{number}{unit}"))
        });
        let shortest = forms.min_by_key(|text| (text.len(), text.contains('.')));
        // The finest unit of each measure is among its units, or nine digits after the point suffice.
        shortest.unwrap_or_default()
    }

    fn wrong(&self, text: &str) -> TextError {
        format!("{text:?} is not {}", self.such_as).into()
    }
}

/// A value in the finest unit, written exactly in a unit of this factor; `None` if that needs too many
/// digits.
pub fn plain(value: u64, factor: u64) -> Option<String> {
    let factor = u128::from(factor);
    for decimals in 0..=MAX_DIGITS.1 {
        let scale = 10_u128.pow(u32::try_from(decimals).ok()?);
        let scaled = u128::from(value) * scale;
        if scaled % factor == 0 {
            let (whole, rest) = (scaled / factor / scale, scaled / factor % scale);
            return (whole.to_string().len() <= MAX_DIGITS.0).then(|| match decimals {
                0 => whole.to_string(),
                _ => format!("{whole}.{rest:0decimals$}"),
            });
        }
    }
    None
}

/// The digits of a decimal number, and how many of them are after the point.
fn decimal(number: &str) -> Option<(u128, u32)> {
    let (whole, rest) = number.split_once('.').unwrap_or((number, "0"));
    let fits = |part: &str, most: usize| {
        (1..=most).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit())
    };
    if !fits(whole, MAX_DIGITS.0) || !fits(rest, MAX_DIGITS.1) {
        return None;
    }
    let digits = format!("{whole}{rest}").parse().ok()?;
    Some((digits, u32::try_from(rest.len()).ok()?))
}

/// The form of a text with a quantity of this kind, as a regular expression for JSON Schema.
pub fn pattern(measure: &Measure) -> String {
    let units: Vec<&str> = measure.units.iter().map(|(name, _)| *name).collect();
    let (whole, rest) = MAX_DIGITS;
    format!(
        r"^[0-9]{{1,{whole}}}(\.[0-9]{{1,{rest}}})? *({})$",
        units.join("|")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read_exactly() {
        assert_eq!(RATE.read("5120kB/s").unwrap(), 40_960_000);
        assert_eq!(RATE.read("1.5 Gbit/s").unwrap(), 1_500_000_000);
        assert_eq!(LATENCY.read("5ms").unwrap(), 5_000_000);
        assert_eq!(LOSS.read("0.1%").unwrap(), 1_000_000);
        assert_eq!(SIZE.read("2GB").unwrap(), 2_000_000_000);
        assert_eq!(SIZE.read("1GiB").unwrap(), 1 << 30);
        assert_eq!(TIME.read("1.5h").unwrap(), 5400);
        assert_eq!(SPEED.read("1.2").unwrap(), 1200);
        assert_eq!(delay("11.6ms").unwrap(), Duration::from_micros(11_600));
        assert_eq!(delay("0s").unwrap(), Duration::ZERO);
        assert_eq!(rate("1 Gbit/s").unwrap(), 1_000_000_000);
        assert_eq!(time("2d").unwrap(), Duration::from_secs(172_800));
        assert!((loss("0.1%").unwrap() - 0.001).abs() < 1e-12);
    }

    #[test]
    fn a_quantity_that_means_nothing_is_refused_with_the_reason() {
        let said = |measure: &Measure, text: &str| measure.read(text).unwrap_err().to_string();
        let such = "is not a rate such as \"5120kB/s\" or \"1Gbit/s\"";
        for text in [
            "",
            "5120",
            "kB/s",
            "-1kB/s",
            "1.kB/s",
            ".5MB/s",
            "1e3kB/s",
            "5kb/s",
            "1.2.3MB/s",
        ] {
            assert_eq!(said(&RATE, text), format!("{text:?} {such}"));
        }
        assert_eq!(said(&TIME, "0.0001h"), "\"0.0001h\" is finer than 1s");
        assert_eq!(said(&TIME, "366d"), "\"366d\" is not between 1s and 365d");
        assert_eq!(said(&LOSS, "100%"), "\"100%\" is not between 0% and 99.9999999%");
    }

    #[test]
    fn a_value_is_written_in_the_unit_that_makes_it_shortest() {
        assert_eq!(RATE.show(40_960_000), "5120kB/s");
        assert_eq!(RATE.show(1_000_000_000), "1Gbit/s");
        assert_eq!(LATENCY.show(5_000_000), "5ms");
        assert_eq!(LOSS.show(1_000_000), "0.1%");
        assert_eq!(TIME.show(3600), "1h");
        assert_eq!(SIZE.show(1 << 30), "1GiB");
        assert_eq!(SPEED.show(2_000), "2");
    }

    #[test]
    fn any_value_is_read_as_it_was_written() {
        let seed = fastrand::u64(..);
        println!("seed {seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        for measure in [&RATE, &LATENCY, &DELAY, &LOSS, &SIZE, &SPAN, &TIME, &SPEED] {
            for _ in 0..2_000 {
                let value = random.u64(measure.range.clone()) >> random.u32(0..50);
                let value = value.max(*measure.range.start());
                let text = measure.show(value);
                assert_eq!(
                    measure.read(&text).map_err(|error| error.to_string()),
                    Ok(value),
                    "{text}"
                );
            }
        }
    }
}
