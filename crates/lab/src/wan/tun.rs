//! Opens TUN and TAP devices. Addresses, routes and `up` are left to the namespace's owner.
//!
//! The device lives as long as the descriptor, in the network namespace of the thread that opened it. Its
//! queue towards us holds `txqueuelen` packets, and silently drops any more: the owner sets it to
//! [`TXQUEUELEN`]. TUN devices are opened for segmentation offload, which the WAN then switches on.

use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

/// Packets that the device must hold while the emulator thread is not running. The default of 500 is 6 ms at
/// 1 Gbit/s, less than one scheduling delay on a machine whose MPI ranks busy-wait; 10 000 is 123 ms.
pub const TXQUEUELEN: u32 = 10_000;

/// Opens a TUN device (IP packets) in the caller's current network namespace, non-blocking, with an offload
/// header before each packet (IFF_VNET_HDR) if the kernel supports it.
///
/// # Errors
/// Opening /dev/net/tun fails (no such device, no permission), the name is too long or taken, or the caller
/// lacks CAP_NET_ADMIN in its namespace.
pub fn open_tun(name: &str) -> io::Result<OwnedFd> {
    match open(name, libc::IFF_TUN | libc::IFF_VNET_HDR) {
        Err(failure) if failure.raw_os_error() == Some(libc::EINVAL) => open_tun_without_offload(name),
        opened => opened,
    }
}

/// Opens the device for single, complete packets.
pub(crate) fn open_tun_without_offload(name: &str) -> io::Result<OwnedFd> {
    open(name, libc::IFF_TUN)
}

/// Opens a TAP device (Ethernet frames) in the caller's current network namespace, non-blocking.
///
/// # Errors
/// As for [`open_tun`].
pub fn open_tap(name: &str) -> io::Result<OwnedFd> {
    open(name, libc::IFF_TAP)
}

fn open(name: &str, kind: libc::c_int) -> io::Result<OwnedFd> {
    // The kernel's array keeps a terminating zero.
    if name.is_empty() || name.len() >= libc::IFNAMSIZ || name.contains('\0') {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("interface name {name:?}: 1 to 15 bytes"),
        ));
    }
    let device = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK)
        .open("/dev/net/tun")?;
    // SAFETY: ifreq is plain old data, for which all zeroes is a valid value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (place, byte) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *place = byte as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (kind | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: TUNSETIFF reads and writes one ifreq, which outlives the call.
    if unsafe { libc::ioctl(device.as_raw_fd(), libc::TUNSETIFF, &mut request) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(device.into())
}

/// Whether packets of this device have an offload header before them; `false` if it is not a TUN or TAP
/// device.
pub(crate) fn has_offload_header(device: &OwnedFd) -> bool {
    // SAFETY: ifreq is plain old data, for which all zeroes is a valid value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // SAFETY: TUNGETIFF writes one ifreq, which outlives the call.
    if unsafe { libc::ioctl(device.as_raw_fd(), libc::TUNGETIFF, &mut request) } < 0 {
        return false;
    }
    // SAFETY: TUNGETIFF has filled in the flags, and any bits are a valid number.
    let flags = unsafe { request.ifr_ifru.ifru_flags };
    libc::c_int::from(flags) & libc::IFF_VNET_HDR != 0
}

/// Asks the kernel to hand over super-segments and open checksums, and returns whether it will. It accepts
/// them in any case.
pub(crate) fn accept_super_segments(device: &OwnedFd) -> bool {
    let tcp = libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6;
    // Segmented UDP (Linux 6.2) is only available for both families at once.
    [tcp | libc::TUN_F_USO4 | libc::TUN_F_USO6, tcp]
        .into_iter()
        .any(|wanted| {
            let wanted = libc::c_ulong::from(wanted);
            // SAFETY: TUNSETOFFLOAD takes a number and touches no memory of ours.
            unsafe { libc::ioctl(device.as_raw_fd(), libc::TUNSETOFFLOAD, wanted) == 0 }
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_kernel_would_cut_are_refused_before_anything_is_opened() {
        for name in ["", "sixteen-bytes-xx", "a\0b"] {
            assert_eq!(open_tun(name).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        }
    }
}
