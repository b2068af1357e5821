//! Reads the list of getifaddrs(): its entries, and the node's own addresses. It hides and changes nothing;
//! `interfaces` does.

use crate::{address, real};
use libc::{c_int, ifaddrs};
use std::ffi::CStr;
use std::net::IpAddr;

/// The node's internet addresses, with the names of their interfaces.
pub fn own_addresses() -> Vec<(Vec<u8>, IpAddr)> {
    let (Some(list), Some(free)) = (real::getifaddrs(), real::freeifaddrs()) else {
        return Vec::new();
    };
    let mut head = std::ptr::null_mut();
    // SAFETY: the real function with a valid place for its result.
    if unsafe { list(&raw mut head) } != 0 {
        return Vec::new();
    }
    let mut addresses = Vec::new();
    let mut next = head;
    // SAFETY: entries of the list just made, which lives until it is freed below.
    while let Some(entry) = unsafe { next.as_ref() } {
        if let Some(ip) = ip_of(entry) {
            // SAFETY: the list gives every entry a name that ends in a zero byte.
            let name = unsafe { CStr::from_ptr(entry.ifa_name) };
            addresses.push((name.to_bytes().to_vec(), ip));
        }
        next = entry.ifa_next;
    }
    // SAFETY: the list's head, once.
    unsafe { free(head) };
    addresses
}

/// The internet address of an entry; `None` where it has another one.
pub fn ip_of(entry: &ifaddrs) -> Option<IpAddr> {
    // SAFETY: a sockaddr of the list, which is only read.
    let bytes = unsafe { bytes_of(entry.ifa_addr) }?;
    address::decode(bytes).map(|address| address.ip())
}

/// The bytes of an internet address; its family tells how many there are.
///
/// # Safety
/// `address` is null or an address of a list of getifaddrs() that nobody else uses meanwhile.
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
