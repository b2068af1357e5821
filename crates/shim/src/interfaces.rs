//! Shows a process of a multi-homed node only the addresses of its site (and loopback), and in the form in
//! which the grid knows them. So every MPI, without any option, chooses one about which all sites agree.
//!
//! If sites each run their own MPI, nothing is hidden or replaced: such an MPI looks for the site's network.
//!
//! This covers getifaddrs() (libfabric, newer UCX), SIOCGIFCONF (Open MPI) and SIOCGIFADDR (UCX, Open MPI),
//! but not /proc/net/if_inet6 or netlink.

use crate::address::{self, Sockaddr};
use crate::context::{Context, context};
use crate::ifaddrs::{bytes_of, ip_of};
use libc::ifaddrs;
use std::net::{IpAddr, SocketAddr};

/// Bytes of an interface's name in `ifreq`.
pub const NAME_BYTES: usize = libc::IFNAMSIZ;
/// Bytes of one entry of SIOCGIFCONF.
pub const ENTRY_BYTES: usize = size_of::<libc::ifreq>();

impl Context {
    /// Whether an address of the node may be shown.
    fn shows(&self, ip: IpAddr) -> bool {
        self.is_own_mpi || ip.is_loopback() || self.here.has_node(ip)
    }

    /// Replaces a real address with the address that the grid knows, in the bytes of a socket address.
    fn translate(&self, bytes: &mut [u8]) {
        let shown = address::decode(bytes).and_then(|real| self.shown(real));
        if let Some(shown) = shown.map(Sockaddr::from) {
            // All of an IPv6 address except its scope is replaced: a virtual address has no scope.
            let length = shown.as_bytes().len().min(bytes.len());
            bytes[..length].copy_from_slice(&shown.as_bytes()[..length]);
        }
    }
}

/// Unlinks hidden addresses from the list of getifaddrs(), and replaces the others with those that the grid
/// knows. It works in place, so that the real freeifaddrs() still frees the whole list.
///
/// # Safety
/// `head` is a list that glibc's getifaddrs() has made and that nobody else sees yet.
pub unsafe fn show(head: *mut ifaddrs) {
    let Some(context) = context() else { return };
    // SAFETY: the caller's promise.
    unsafe { hide(context, head) };
    if !context.here.is_virtual() {
        return;
    }
    let mut next = head;
    // SAFETY: these are entries of the list, which is exclusively ours during the call, and so are their
    // addresses.
    while let Some(entry) = unsafe { next.as_ref() } {
        for address in [entry.ifa_addr, entry.ifa_ifu] {
            // SAFETY: as above.
            if let Some(bytes) = unsafe { bytes_of(address) } {
                context.translate(bytes);
            }
        }
        next = entry.ifa_next;
    }
}

/// # Safety
/// Those of [`show`].
unsafe fn hide(context: &Context, head: *mut ifaddrs) {
    let hidden = |entry: &ifaddrs| ip_of(entry).is_some_and(|ip| !context.shows(ip));
    // SAFETY: these are entries of the list, which is exclusively ours during the call.
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
    // The head is the block that freeifaddrs() frees, so it cannot be unlinked. Usually it is the entry of
    // the loopback device; if it must be hidden, the content of the next entry replaces it. SAFETY: as above.
    // The moved content points into the same block.
    unsafe {
        if let Some(first) = head.as_ref()
            && hidden(first)
            && let Some(second) = first.ifa_next.as_ref()
        {
            *head = *second;
        }
    }
}

/// Removes what must not be shown from the answer to SIOCGIFCONF; returns how many bytes remain.
pub fn filter_list(entries: &mut [u8]) -> usize {
    match context() {
        Some(context) => {
            let kept = retain(entries, |ip| context.shows(ip));
            for entry in entries[..kept].chunks_exact_mut(ENTRY_BYTES) {
                context.translate(&mut entry[NAME_BYTES..]);
            }
            kept
        }
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

/// What SIOCGIFADDR should report about an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    /// The same.
    Same,
    /// Another address of the interface, which belongs to the site.
    Instead(std::net::Ipv4Addr),
    /// The interface has no address.
    Nothing,
}

/// Judges the answer to SIOCGIFADDR (an `ifreq`: name, then address).
pub fn filter_one(entry: &[u8]) -> Shown {
    let address = entry.get(NAME_BYTES..).and_then(address::decode);
    let (Some(context), Some(address)) = (context(), address) else {
        return Shown::Same;
    };
    let instead = |ip: IpAddr| match context.here.in_grid(ip) {
        IpAddr::V4(ip) => Some(Shown::Instead(ip)),
        IpAddr::V6(_) => None,
    };
    if context.shows(address.ip()) {
        return match context.shown(address) {
            Some(SocketAddr::V4(shown)) => Shown::Instead(*shown.ip()),
            _ => Shown::Same,
        };
    }
    let name = entry[..NAME_BYTES]
        .split(|byte| *byte == 0)
        .next()
        .unwrap_or_default();
    let mut own = context
        .addresses
        .iter()
        .filter(|own| own.interface == name && context.here.has_node(own.ip));
    own.find_map(|own| instead(own.ip)).unwrap_or(Shown::Nothing)
}

#[cfg(test)]
mod tests {
    use super::*;

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
