//! Addresses that follow each other, such as those of a site's nodes.

use super::GridError;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// The addresses from one to another, including both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    first: IpAddr,
    last: IpAddr,
}

impl Span {
    /// The fewest spans that contain these addresses and no others.
    pub fn of(addresses: impl IntoIterator<Item = IpAddr>) -> Vec<Span> {
        let mut addresses: Vec<IpAddr> = addresses.into_iter().collect();
        addresses.sort_unstable();
        let mut spans: Vec<Span> = Vec::new();
        for address in addresses {
            match spans.last_mut() {
                Some(span) if span.last == address || next(span.last) == Some(address) => span.last = address,
                _ => spans.push(Span {
                    first: address,
                    last: address,
                }),
            }
        }
        spans
    }

    /// Whether the span contains an address; families never mix, and IPv4-mapped IPv6 counts as IPv4.
    pub fn contains(&self, address: IpAddr) -> bool {
        (self.first..=self.last).contains(&address.to_canonical())
    }
}

fn next(address: IpAddr) -> Option<IpAddr> {
    match address {
        IpAddr::V4(address) => u32::from(address)
            .checked_add(1)
            .map(|next| IpAddr::V4(next.into())),
        IpAddr::V6(address) => u128::from(address)
            .checked_add(1)
            .map(|next| IpAddr::V6(next.into())),
    }
}

impl FromStr for Span {
    type Err = GridError;

    fn from_str(text: &str) -> Result<Span, GridError> {
        let wrong = || GridError::Span(text.to_owned());
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let read = |text: &str| text.parse::<IpAddr>().map_err(|_| wrong());
        let (first, last) = (read(first)?, read(last)?);
        if first.is_ipv4() == last.is_ipv4() && first <= last {
            Ok(Span { first, last })
        } else {
            Err(wrong())
        }
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first == self.last {
            write!(f, "{}", self.first)
        } else {
            write!(f, "{}-{}", self.first, self.last)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spans(addresses: &[&str]) -> Vec<String> {
        let spans = Span::of(addresses.iter().map(|address| address.parse().unwrap()));
        for span in &spans {
            assert_eq!(span.to_string().parse(), Ok(*span));
        }
        spans.iter().map(Span::to_string).collect()
    }

    #[test]
    fn addresses_that_follow_each_other_are_one_span() {
        assert_eq!(
            spans(&[
                "10.2.0.3",
                "10.2.0.1",
                "10.2.0.2",
                "10.2.0.9",
                "10.2.0.1",
                "10.1.0.255",
                "10.2.0.0"
            ]),
            ["10.1.0.255", "10.2.0.0-10.2.0.3", "10.2.0.9"]
        );
        assert_eq!(
            spans(&["fd00::2", "255.255.255.255", "fd00::1", "::"]),
            ["255.255.255.255", "::", "fd00::1-fd00::2"]
        );
        assert!(spans(&[]).is_empty());
    }

    #[test]
    fn a_span_holds_its_ends_and_nothing_of_the_other_family() {
        let span: Span = "10.2.0.1-10.2.0.9".parse().unwrap();
        for (address, holds) in [
            ("10.2.0.0", false),
            ("10.2.0.1", true),
            ("::ffff:10.2.0.9", true),
            ("10.2.0.10", false),
            ("fd00::1", false),
        ] {
            assert_eq!(span.contains(address.parse().unwrap()), holds, "{address}");
        }
        for wrong in [
            "",
            "10.2.0.9-10.2.0.1",
            "10.2.0.1-fd00::1",
            "10.2.0.1-",
            "nancy",
            "10.2.0.0/24",
        ] {
            assert_eq!(wrong.parse::<Span>(), Err(GridError::Span(wrong.to_owned())));
        }
    }
}
