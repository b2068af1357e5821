//! Finds the port that an IP packet belongs to: by the longest prefix of its destination, which is all that
//! is read of the packet.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Prefixes and the ports behind them, the longest first.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    /// A scan is faster than a tree: a lab has a few prefixes for each site, and at most nine sites.
    entries: Vec<Entry>,
}

#[derive(Debug, PartialEq, Eq)]
struct Entry {
    network: IpAddr,
    bits: u8,
    port: usize,
}

impl Routes {
    /// Adds a prefix; bits of `network` beyond `bits` are ignored.
    ///
    /// Returns the port that already has exactly this prefix, if another one has it.
    pub(crate) fn add(&mut self, network: IpAddr, bits: u8, port: usize) -> Result<(), usize> {
        let network = masked(network, bits);
        if let Some(same) = self
            .entries
            .iter()
            .find(|entry| entry.network == network && entry.bits == bits)
        {
            return if same.port == port { Ok(()) } else { Err(same.port) };
        }
        let place = self.entries.partition_point(|entry| entry.bits >= bits);
        self.entries.insert(place, Entry { network, bits, port });
        Ok(())
    }

    /// The port with the longest prefix that contains `address`.
    pub(crate) fn port(&self, address: IpAddr) -> Option<usize> {
        self.entries
            .iter()
            .find(|entry| masked(address, entry.bits) == entry.network)
            .map(|entry| entry.port)
    }
}

/// Whether a prefix of this length exists in the address's family.
pub(crate) fn is_prefix_length(address: IpAddr, bits: u8) -> bool {
    bits <= if address.is_ipv4() { 32 } else { 128 }
}

/// The destination of an IPv4 or IPv6 packet; `None` if it is neither or cut short.
pub(crate) fn destination(packet: &[u8]) -> Option<IpAddr> {
    match packet.first()? >> 4 {
        4 => Some(Ipv4Addr::from(<[u8; 4]>::try_from(packet.get(16..20)?).ok()?).into()),
        6 => Some(Ipv6Addr::from(<[u8; 16]>::try_from(packet.get(24..40)?).ok()?).into()),
        _ => None,
    }
}

/// An IPv6 prefix longer than 32 never equals a masked IPv4 address, because the families differ.
fn masked(address: IpAddr, bits: u8) -> IpAddr {
    let bits = u32::from(bits);
    match address {
        IpAddr::V4(v4) => Ipv4Addr::from_bits(v4.to_bits() & !u32::MAX.checked_shr(bits).unwrap_or(0)).into(),
        IpAddr::V6(v6) => {
            Ipv6Addr::from_bits(v6.to_bits() & !u128::MAX.checked_shr(bits).unwrap_or(0)).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn routes(prefixes: &[(&str, u8, usize)]) -> Routes {
        let mut routes = Routes::default();
        for &(network, bits, port) in prefixes {
            routes.add(at(network), bits, port).unwrap();
        }
        routes
    }

    #[test]
    fn the_longest_prefix_wins_whatever_the_order_of_adding() {
        let routes = routes(&[
            ("10.0.0.0", 8, 0),
            ("10.1.0.0", 16, 1),
            ("0.0.0.0", 0, 2),
            ("10.1.2.3", 32, 3),
        ]);
        assert_eq!(routes.port(at("10.1.2.3")), Some(3));
        assert_eq!(routes.port(at("10.1.2.4")), Some(1));
        assert_eq!(routes.port(at("10.2.0.1")), Some(0));
        assert_eq!(routes.port(at("192.0.2.1")), Some(2));
    }

    #[test]
    fn the_families_do_not_meet() {
        let only_six = routes(&[("::", 0, 0), ("fd00:1::", 32, 1)]);
        assert_eq!(only_six.port(at("10.0.0.1")), None);
        assert_eq!(only_six.port(at("fd00:1::9")), Some(1));
        assert_eq!(only_six.port(at("fd00:2::9")), Some(0));
        assert_eq!(routes(&[("0.0.0.0", 0, 0)]).port(at("fd00::1")), None);
    }

    #[test]
    fn one_prefix_at_two_ports_is_refused() {
        let mut routes = routes(&[("10.1.0.0", 16, 4)]);
        assert_eq!(routes.add(at("10.1.200.1"), 16, 5), Err(4));
        assert_eq!(routes.add(at("10.1.200.1"), 16, 4), Ok(()));
    }

    #[test]
    fn the_destination_is_read_and_nonsense_is_not() {
        let mut four = [0u8; 20];
        four[0] = 0x45;
        four[16..20].copy_from_slice(&[10, 1, 2, 3]);
        assert_eq!(destination(&four), Some(at("10.1.2.3")));
        assert_eq!(destination(&four[..19]), None);
        let mut six = [0u8; 40];
        six[0] = 0x60;
        six[39] = 1;
        assert_eq!(destination(&six), Some(at("::1")));
        assert_eq!(destination(&six[..39]), None);
        assert_eq!(destination(&[0x50; 40]), None);
        assert_eq!(destination(&[]), None);
    }
}
