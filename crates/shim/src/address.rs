//! Socket addresses: converts between C's bytes and Rust's types, without pointers.
//!
//! IPv4-mapped IPv6 addresses are left unchanged: which form to show depends on the socket, not on the
//! address.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Size of `sockaddr_in`.
pub const V4_BYTES: usize = 16;
/// Size of `sockaddr_in6`.
pub const V6_BYTES: usize = 28;
/// The size that the kernel accepts of a `sockaddr_in6` without its scope (RFC 2133 had none).
const V6_BYTES_WITHOUT_SCOPE: usize = 24;

/// An address in the bytes of `sockaddr_in` or `sockaddr_in6`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sockaddr {
    bytes: [u8; V6_BYTES],
    length: usize,
}

impl Sockaddr {
    /// Returns the bytes to pass to the kernel or to copy to the caller.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

impl From<SocketAddr> for Sockaddr {
    fn from(address: SocketAddr) -> Sockaddr {
        let mut bytes = [0; V6_BYTES];
        bytes[2..4].copy_from_slice(&address.port().to_be_bytes());
        let (family, length) = match address.ip() {
            IpAddr::V4(ip) => {
                bytes[4..8].copy_from_slice(&ip.octets());
                (libc::AF_INET, V4_BYTES)
            }
            IpAddr::V6(ip) => {
                bytes[8..24].copy_from_slice(&ip.octets());
                (libc::AF_INET6, V6_BYTES)
            }
        };
        bytes[..2].copy_from_slice(&(family as u16).to_ne_bytes());
        Sockaddr { bytes, length }
    }
}

/// The family that a `sockaddr` claims, if it has enough bytes for one.
pub fn family(bytes: &[u8]) -> Option<libc::c_int> {
    Some(u16::from_ne_bytes([*bytes.first()?, *bytes.get(1)?]).into())
}

/// Reads `sockaddr_in` or `sockaddr_in6`; `None` for other families, and if there are too few bytes.
pub fn decode(bytes: &[u8]) -> Option<SocketAddr> {
    let family = family(bytes)?;
    let ip: IpAddr = if family == libc::AF_INET && bytes.len() >= V4_BYTES {
        Ipv4Addr::from(<[u8; 4]>::try_from(&bytes[4..8]).ok()?).into()
    } else if family == libc::AF_INET6 && bytes.len() >= V6_BYTES_WITHOUT_SCOPE {
        Ipv6Addr::from(<[u8; 16]>::try_from(&bytes[8..24]).ok()?).into()
    } else {
        return None;
    };
    Some(SocketAddr::new(ip, u16::from_be_bytes([bytes[2], bytes[3]])))
}

/// The address in the form that a socket of the family of `like` shows; `None` if that family cannot show it.
pub fn in_family_of(address: SocketAddr, like: SocketAddr) -> Option<SocketAddr> {
    let ip = match (address.ip().to_canonical(), like.ip()) {
        (IpAddr::V4(ip), IpAddr::V6(_)) => ip.to_ipv6_mapped().into(),
        (IpAddr::V6(_), IpAddr::V4(_)) => return None,
        (ip, _) => ip,
    };
    Some(SocketAddr::new(ip, address.port()))
}

/// Whether an address belongs to a network: loopback and "any" are the same at every site.
pub fn is_of_network(address: SocketAddr) -> bool {
    let ip = address.ip().to_canonical();
    !ip.is_loopback() && !ip.is_unspecified()
}

/// Whether an address is an IPv4-mapped IPv6 address.
pub fn is_mapped(address: SocketAddr) -> bool {
    address.is_ipv6() && address.ip().to_canonical().is_ipv4()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn the_bytes_are_those_of_the_c_structures() {
        let v4 = Sockaddr::from(parse("10.1.2.3:258"));
        assert_eq!(v4.as_bytes()[2..8], [1, 2, 10, 1, 2, 3]);
        assert_eq!(v4.as_bytes().len(), size_of::<libc::sockaddr_in>());
        assert_eq!(family(v4.as_bytes()), Some(libc::AF_INET));
        let v6 = Sockaddr::from(parse("[fd00::1]:258"));
        assert_eq!(v6.as_bytes().len(), size_of::<libc::sockaddr_in6>());
        assert_eq!(v6.as_bytes()[8..10], [0xfd, 0]);
    }

    #[test]
    fn every_form_round_trips() {
        for text in ["10.1.2.3:65535", "[fd00::1]:1", "[::ffff:10.1.2.3]:80"] {
            assert_eq!(decode(Sockaddr::from(parse(text)).as_bytes()), Some(parse(text)));
        }
    }

    #[test]
    fn loopback_and_any_are_of_no_network_in_either_form() {
        for text in [
            "127.0.0.1:1",
            "0.0.0.0:1",
            "[::1]:1",
            "[::]:1",
            "[::ffff:127.0.0.1]:1",
            "[::ffff:0.0.0.0]:1",
        ] {
            assert!(!is_of_network(parse(text)), "{text}");
        }
        for text in ["10.1.2.3:1", "[fd00::1]:1", "[::ffff:10.1.2.3]:1"] {
            assert!(is_of_network(parse(text)), "{text}");
        }
    }

    #[test]
    fn short_and_foreign_bytes_are_no_address() {
        let v6 = Sockaddr::from(parse("[fd00::1]:1"));
        assert_eq!(decode(&v6.as_bytes()[..24]), Some(parse("[fd00::1]:1")));
        assert_eq!(decode(&v6.as_bytes()[..23]), None);
        assert_eq!(decode(&Sockaddr::from(parse("1.2.3.4:5")).as_bytes()[..15]), None);
        assert_eq!(decode(&[]), None);
        assert_eq!(decode(&[1; 110]), None);
    }

    #[test]
    fn an_address_takes_the_form_of_the_socket_it_is_shown_on() {
        let (v4, v6, mapped) = (
            parse("10.1.2.3:7"),
            parse("[fd00::1]:7"),
            parse("[::ffff:10.1.2.3]:7"),
        );
        assert_eq!(in_family_of(v4, v6), Some(mapped));
        assert_eq!(in_family_of(mapped, v4), Some(v4));
        assert_eq!(in_family_of(v6, mapped), Some(v6));
        assert_eq!(in_family_of(v6, v4), None);
        assert!(is_mapped(mapped) && !is_mapped(v4) && !is_mapped(v6));
    }
}
