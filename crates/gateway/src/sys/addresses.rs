//! The addresses and networks of this host.

use causeway_wire::Cidr;
use nix::ifaddrs::InterfaceAddress;
use nix::sys::socket::SockaddrStorage;
use std::net::IpAddr;

/// Whether an interface of this host has the address. Asked anew each time, because interfaces come and go.
pub(crate) fn is_of_this_host(address: IpAddr) -> bool {
    let interfaces = nix::ifaddrs::getifaddrs().into_iter().flatten();
    let mut own = interfaces.filter_map(|interface| ip_of(interface.address?));
    // The kernel answers on all of 127.0.0.0/8.
    address.is_loopback() || own.any(|own| own == address)
}

/// The networks that this host reaches directly, except loopback and those that every link has.
pub(crate) fn networks_of_this_host() -> Vec<Cidr> {
    let interfaces = nix::ifaddrs::getifaddrs().into_iter().flatten();
    let mut networks: Vec<Cidr> = interfaces.filter_map(network).collect();
    networks.sort_unstable_by_key(|network| (network.address(), network.prefix()));
    networks.dedup();
    networks
}

fn network(interface: InterfaceAddress) -> Option<Cidr> {
    let (address, mask) = (ip_of(interface.address?)?, ip_of(interface.netmask?)?);
    let (first, prefix) = match (address, mask) {
        (IpAddr::V4(address), IpAddr::V4(mask)) => {
            let first = u32::from(address) & u32::from(mask);
            (IpAddr::V4(first.into()), mask.to_bits().leading_ones())
        }
        (IpAddr::V6(address), IpAddr::V6(mask)) if !address.is_unicast_link_local() => {
            let first = u128::from(address) & u128::from(mask);
            (IpAddr::V6(first.into()), mask.to_bits().leading_ones())
        }
        _ => return None,
    };
    let network = Cidr::new(first, u8::try_from(prefix).ok()?)?;
    (!address.is_loopback()).then_some(network)
}

fn ip_of(address: SockaddrStorage) -> Option<IpAddr> {
    let v4 = address.as_sockaddr_in().map(|address| IpAddr::V4(address.ip()));
    v4.or_else(|| address.as_sockaddr_in6().map(|address| IpAddr::V6(address.ip())))
}
