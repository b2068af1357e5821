//! Shows a process of a multi-homed node only the addresses of its site (and loopback), so that every MPI picks
//! one that all sites agree on without any flag.
//!
//! Covers getifaddrs() (libfabric, newer UCX), SIOCGIFCONF (Open MPI) and SIOCGIFADDR (UCX, Open MPI). Not
//! /proc/net/if_inet6 nor netlink.

use crate::context::{Context, context};
use crate::{address, real};
use libc::{c_int, ifaddrs};
use std::ffi::CStr;
use std::net::IpAddr;

/// Bytes of an interface's name in `ifreq`.
pub const NAME_BYTES: usize = libc::IFNAMSIZ;
/// Bytes of one entry of SIOCGIFCONF.
pub const ENTRY_BYTES: usize = size_of::<libc::ifreq>();

impl Context {
    /// Whether an address of the node may be shown.
    fn shows(&self, ip: IpAddr) -> bool {
        ip.is_loopback() || self.here.contains(ip)
    }
}

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

/// Unlinks what is not to be shown from the list of getifaddrs(), in place, so that the real freeifaddrs()
/// still frees all of it.
///
/// # Safety
/// `head` is a list that glibc's getifaddrs() has made and nobody else sees yet.
pub unsafe fn hide(head: *mut ifaddrs) {
    let Some(context) = context() else { return };
    let hidden = |entry: &ifaddrs| ip_of(entry).is_some_and(|ip| !context.shows(ip));
    // SAFETY: entries of the list, which is exclusively ours for the time of the call.
    unsafe {
        let mut last_shown = head;
        while let Some(next) = last_shown.as_ref().map(|entry| entry.ifa_next)
            && let Some(entry) = next.as_ref()
        {
            if hidden(entry) {
                (*last_shown).ifa_next = entry.ifa_next;
            } else {
                last_shown = next;
            }
        }
    }
    // The head is the block that freeifaddrs() frees, so it cannot be unlinked. It is the loopback device's
    // entry wherever there is one; else its successor's content takes its place.
    // SAFETY: as above. The moved content points into the same block.
    unsafe {
        if let Some(first) = head.as_ref()
            && hidden(first)
            && let Some(second) = first.ifa_next.as_ref()
        {
            *head = *second;
        }
    }
}

fn ip_of(entry: &ifaddrs) -> Option<IpAddr> {
    if entry.ifa_addr.is_null() {
        return None;
    }
    // SAFETY: a sockaddr of the list; its family tells how long it is.
    let bytes = unsafe {
        let length = match c_int::from((*entry.ifa_addr).sa_family) {
            libc::AF_INET => address::V4_BYTES,
            libc::AF_INET6 => address::V6_BYTES,
            _ => return None,
        };
        std::slice::from_raw_parts(entry.ifa_addr.cast::<u8>(), length)
    };
    address::decode(bytes).map(|address| address.ip())
}

/// Removes from the answer to SIOCGIFCONF what is not to be shown; returns the bytes that remain.
pub fn filter_list(entries: &mut [u8]) -> usize {
    match context() {
        Some(context) => retain(entries, |ip| context.shows(ip)),
        None => entries.len(),
    }
}

fn retain(entries: &mut [u8], shows: impl Fn(IpAddr) -> bool) -> usize {
    let mut kept = 0;
    for start in (0..entries.len() / ENTRY_BYTES).map(|index| index * ENTRY_BYTES) {
        let entry = &entries[start..start + ENTRY_BYTES];
        if address::decode(&entry[NAME_BYTES..]).is_none_or(|address| shows(address.ip())) {
            entries.copy_within(start..start + ENTRY_BYTES, kept);
            kept += ENTRY_BYTES;
        }
    }
    kept
}

/// What SIOCGIFADDR should say of an interface instead of what the kernel said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    /// The same.
    Same,
    /// Another address of the interface, which lies in the site.
    Instead(std::net::Ipv4Addr),
    /// That it has none.
    Nothing,
}

/// Judges the answer (`ifreq`: name, then address) to SIOCGIFADDR.
pub fn filter_one(entry: &[u8]) -> Shown {
    let address = entry.get(NAME_BYTES..).and_then(address::decode);
    let (Some(context), Some(address)) = (context(), address) else {
        return Shown::Same;
    };
    if context.shows(address.ip()) {
        return Shown::Same;
    }
    let name = entry[..NAME_BYTES]
        .split(|byte| *byte == 0)
        .next()
        .unwrap_or_default();
    let mut of_site = context
        .addresses
        .iter()
        .filter(|(of, ip)| of == name && context.here.contains(*ip));
    let v4 = of_site.find_map(|(_, ip)| match ip {
        IpAddr::V4(ip) => Some(*ip),
        IpAddr::V6(_) => None,
    });
    v4.map_or(Shown::Nothing, Shown::Instead)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::Sockaddr;

    fn entry(name: &str, address: &str) -> Vec<u8> {
        let mut bytes = vec![0; ENTRY_BYTES];
        bytes[..name.len()].copy_from_slice(name.as_bytes());
        let address = Sockaddr::from(address.parse::<std::net::SocketAddr>().unwrap());
        bytes[NAME_BYTES..NAME_BYTES + 16].copy_from_slice(address.as_bytes());
        bytes
    }

    #[test]
    fn hidden_entries_leave_no_gap_in_the_list() {
        let (lo, site, other) = (
            entry("lo", "127.0.0.1:0"),
            entry("eth0", "10.1.0.1:0"),
            entry("eth1", "192.168.0.1:0"),
        );
        let mut list = [other.clone(), lo.clone(), other, site.clone()].concat();
        let kept = retain(&mut list, |ip| {
            ip.is_loopback() || ip.to_string().starts_with("10.")
        });
        assert_eq!(list[..kept], [lo, site].concat());
    }

    #[test]
    fn half_an_entry_at_the_end_is_not_looked_at() {
        let mut list = entry("eth1", "192.168.0.1:0");
        list.truncate(ENTRY_BYTES - 1);
        assert_eq!(retain(&mut list, |_| true), 0);
    }
}
