//! The addresses of this host.

use std::net::IpAddr;

/// Whether an interface of this host has the address. Asked anew each time: interfaces come and go.
pub(crate) fn is_of_this_host(address: IpAddr) -> bool {
    let interfaces = nix::ifaddrs::getifaddrs().into_iter().flatten();
    let mut own = interfaces.filter_map(|interface| {
        let address = interface.address?;
        let v4 = address.as_sockaddr_in().map(|address| IpAddr::V4(address.ip()));
        v4.or_else(|| address.as_sockaddr_in6().map(|address| IpAddr::V6(address.ip())))
    });
    // The kernel answers on all of 127.0.0.0/8.
    address.is_loopback() || own.any(|own| own == address)
}
