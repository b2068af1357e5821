//! Reads the list of getifaddrs(): its entries, and the node's own addresses. It hides and changes nothing;
//! `interfaces` does that.

use crate::{address, real};
use causeway_wire::Cidr;
use libc::{c_int, ifaddrs};
use std::ffi::CStr;
use std::net::IpAddr;

/// An internet address of the node.
#[derive(Debug, Clone)]
pub struct Own {
    /// The name of the address's interface.
    pub interface: Vec<u8>,
    /// The address itself.
    pub ip: IpAddr,
    /// The network that the interface reaches directly.
    pub network: Option<Cidr>,
}

/// The node's internet addresses.
pub fn own_addresses() -> Vec<Own> {
    let (Some(list), Some(free)) = (real::getifaddrs(), real::freeifaddrs()) else {
        return Vec::new();
    };
    let mut head = std::ptr::null_mut();
    // SAFETY: this is the real function, with a valid place for its result.
    if unsafe { list(&raw mut head) } != 0 {
        return Vec::new();
    }
    let mut addresses = Vec::new();
    let mut next = head;
    // SAFETY: these are entries of the list just made, which lives until it is freed below.
    while let Some(entry) = unsafe { next.as_ref() } {
        if let Some(ip) = ip_of(entry) {
            // SAFETY: the list gives every entry a name that ends in a zero byte.
            let name = unsafe { CStr::from_ptr(entry.ifa_name) };
            // SAFETY: this is a sockaddr of the list, which is only read.
            let mask = unsafe { bytes_of(entry.ifa_netmask) }.and_then(|bytes| address::decode(bytes));
            addresses.push(Own {
                interface: name.to_bytes().to_vec(),
                ip,
                network: mask.and_then(|mask| network(ip, mask.ip())),
            });
        }
        next = entry.ifa_next;
    }
    // SAFETY: this is the list's head, and is freed once.
    unsafe { free(head) };
    addresses
}

/// The network of an address with a netmask.
fn network(ip: IpAddr, mask: IpAddr) -> Option<Cidr> {
    let prefix = match mask {
        IpAddr::V4(mask) => u32::from(mask).leading_ones(),
        IpAddr::V6(mask) => u128::from(mask).leading_ones(),
    };
    Cidr::new(ip, u8::try_from(prefix).ok()?)
}

/// The internet address of an entry; `None` if its address is of another kind.
pub fn ip_of(entry: &ifaddrs) -> Option<IpAddr> {
    // SAFETY: this is a sockaddr of the list, which is only read.
    let bytes = unsafe { bytes_of(entry.ifa_addr) }?;
    address::decode(bytes).map(|address| address.ip())
}

/// The bytes of an internet address, whose number depends on its family.
///
/// # Safety
/// `address` is null, or an address in a list of getifaddrs() that nobody else uses at the same time.
pub unsafe fn bytes_of<'a>(address: *mut libc::sockaddr) -> Option<&'a mut [u8]> {
    // SAFETY: the caller's promise.
    let length = match c_int::from(unsafe { address.as_ref() }?.sa_family) {
        libc::AF_INET => address::V4_BYTES,
        libc::AF_INET6 => address::V6_BYTES,
        _ => return None,
    };
    // SAFETY: as above.
    Some(unsafe { std::slice::from_raw_parts_mut(address.cast(), length) })
}
