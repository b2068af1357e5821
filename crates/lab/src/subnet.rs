//! An IPv4 network such as 10.1.0.0/24, and the addresses that the lab hands out in it.

use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// An IPv4 network: base address and prefix length. The host bits of the base are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Subnet {
    base: Ipv4Addr,
    prefix: u8,
}

impl Subnet {
    /// Makes a network of `prefix` bits that holds `address`.
    pub const fn holding(address: Ipv4Addr, prefix: u8) -> Subnet {
        let mask = if prefix == 0 {
            0
        } else {
            u32::MAX << (32 - prefix as u32)
        };
        Subnet {
            base: Ipv4Addr::from_bits(address.to_bits() & mask),
            prefix,
        }
    }

    /// The first address, in which all host bits are zero.
    pub fn base(&self) -> Ipv4Addr {
        self.base
    }

    /// Length of the network part in bits.
    pub fn prefix(&self) -> u8 {
        self.prefix
    }

    /// Addresses that can be given to hosts.
    pub fn usable(&self) -> u32 {
        (1u32 << (32 - u32::from(self.prefix))).saturating_sub(2)
    }

    /// The n-th usable address, counted from 1.
    pub fn nth(&self, n: u32) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.base.to_bits().wrapping_add(n))
    }

    /// The n-th usable address from the end: 1 is the last.
    pub fn nth_last(&self, n: u32) -> Ipv4Addr {
        self.nth(self.usable() + 1 - n)
    }

    /// Whether the two share an address.
    pub fn overlaps(&self, other: &Subnet) -> bool {
        let prefix = self.prefix.min(other.prefix);
        Subnet::holding(self.base, prefix) == Subnet::holding(other.base, prefix)
    }
}

impl FromStr for Subnet {
    type Err = String;

    fn from_str(text: &str) -> Result<Subnet, String> {
        let wanted = || format!("\"{text}\" is not an IPv4 network such as \"10.1.0.0/24\"");
        let (base, prefix) = text.split_once('/').ok_or_else(wanted)?;
        let base: Ipv4Addr = base.parse().map_err(|_| wanted())?;
        let prefix: u8 = prefix.parse().map_err(|_| wanted())?;
        if !(8..=30).contains(&prefix) {
            return Err(format!("\"{text}\": the prefix length must be 8..30"));
        }
        let subnet = Subnet::holding(base, prefix);
        if subnet.base != base {
            return Err(format!(
                "\"{text}\" has bits set beyond its prefix; did you mean \"{subnet}\"?"
            ));
        }
        Ok(subnet)
    }
}

impl TryFrom<String> for Subnet {
    type Error = String;

    fn try_from(text: String) -> Result<Subnet, String> {
        text.parse()
    }
}

impl From<Subnet> for String {
    fn from(subnet: Subnet) -> String {
        subnet.to_string()
    }
}

impl fmt::Display for Subnet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.base, self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_counted_from_both_ends() {
        let subnet: Subnet = "10.1.0.0/24".parse().unwrap();
        assert_eq!(subnet.nth(1), Ipv4Addr::new(10, 1, 0, 1));
        assert_eq!(subnet.nth_last(1), Ipv4Addr::new(10, 1, 0, 254));
        assert_eq!(subnet.nth_last(2), Ipv4Addr::new(10, 1, 0, 253));
        assert_eq!(subnet.usable(), 254);
    }

    #[test]
    fn overlap_is_seen_between_networks_of_different_size() {
        let wide: Subnet = "10.0.0.0/8".parse().unwrap();
        let narrow: Subnet = "10.1.0.0/24".parse().unwrap();
        let other: Subnet = "192.168.1.0/24".parse().unwrap();
        assert!(wide.overlaps(&narrow) && narrow.overlaps(&wide) && !narrow.overlaps(&other));
    }

    #[test]
    fn host_bits_are_refused_with_the_network_that_was_meant() {
        assert!(
            "10.1.0.5/24"
                .parse::<Subnet>()
                .unwrap_err()
                .contains("10.1.0.0/24")
        );
    }
}
