//! Socket options the standard library lacks. The one file of this crate with unsafe code.
#![allow(unsafe_code)]

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd};

/// What the kernel knows of a TCP connection's path (tcp(7), `struct tcp_info`).
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PathInfo {
    pub(crate) rtt_microseconds: u32,
    /// Segments sent again since the connection came up.
    pub(crate) retransmits: u32,
}

pub(crate) fn path_info(socket: &impl AsFd) -> io::Result<PathInfo> {
    let mut info = MaybeUninit::<libc::tcp_info>::zeroed();
    let mut length = size_of::<libc::tcp_info>() as libc::socklen_t;
    // SAFETY: the buffer is valid for `length` bytes and zeroed, and every bit pattern is a tcp_info.
    let status = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if status != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: zeroed above and filled by the kernel in part; all of it is initialised.
    let info = unsafe { info.assume_init() };
    Ok(PathInfo {
        rtt_microseconds: info.tcpi_rtt,
        retransmits: info.tcpi_total_retrans,
    })
}

/// The socket counts as writable only while less than `bytes` wait unsent in the kernel: what waits stays in this
/// process, where small frames can still overtake it.
pub(crate) fn set_unsent_low_water(socket: &impl AsFd, bytes: u32) -> io::Result<()> {
    // SAFETY: the option takes one int, which lives across the call.
    let status = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_NOTSENT_LOWAT,
            (&raw const bytes).cast(),
            size_of::<u32>() as libc::socklen_t,
        )
    };
    if status == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// The factor by which BBR paces faster or slower than the bandwidth it has seen, in 1/256; `None` under another congestion
/// control (`struct tcp_bbr_info`, include/uapi/linux/inet_diag.h: bandwidth in two words, minimum round trip, pacing
/// gain, window gain).
pub(crate) fn bbr_pacing_gain(socket: &impl AsFd) -> Option<u32> {
    const PACING_GAIN: usize = 3;
    let mut info = [0u32; 5];
    let mut length = size_of_val(&info) as libc::socklen_t;
    // SAFETY: the buffer is valid for `length` bytes, and the kernel writes no more than that.
    let status = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_CC_INFO,
            info.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    // Other congestion controls answer with less, or nothing.
    (status == 0 && length as usize == size_of_val(&info)).then_some(info[PACING_GAIN])
}
