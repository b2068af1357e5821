//! The few calls to the kernel that neither std nor nix offers safely: children that never exec, namespaces
//! by process, descriptors by message. All other modules of the lab are free of `unsafe`.

mod child;
mod message;

pub(crate) use child::{
    clone_with, close_all_but, close_on_exec, default_sigpipe, duplicate_onto, exec, fork, is_ignored,
    siblings,
};
pub(crate) use message::{receive, send};

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use nix::sched::CloneFlags;

/// A handle of a process that cannot come to refer to another one.
pub(crate) fn pidfd(pid: i32) -> io::Result<OwnedFd> {
    // SAFETY: pidfd_open takes two integers and touches no memory of ours.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just given us this descriptor, and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
}

/// Sends a signal to the process behind a handle.
pub(crate) fn signal(pidfd: BorrowedFd<'_>, signal: i32) -> io::Result<()> {
    let none = std::ptr::null::<libc::siginfo_t>();
    // SAFETY: a null siginfo is allowed and means that the kernel fills it in.
    let result = unsafe { libc::syscall(libc::SYS_pidfd_send_signal, pidfd.as_raw_fd(), signal, none, 0) };
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// Moves the caller into a new network namespace and returns the handle that keeps it alive.
pub(crate) fn new_network_namespace() -> io::Result<File> {
    nix::sched::unshare(CloneFlags::CLONE_NEWNET)?;
    File::open("/proc/thread-self/ns/net")
}
