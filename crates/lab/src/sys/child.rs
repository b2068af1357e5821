//! Children made by fork or clone that go on running this program's code, and the exec at the end of some of
//! them.
//!
//! Only the calling thread exists in such a child. fork() leaves glibc's allocator usable there; clone_with()
//! and siblings() are therefore called only from children of fork(), which have a single thread. No child
//! prints through std (a lock may be held for ever by a thread that does not exist in it) or returns into its
//! caller.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::panic::{AssertUnwindSafe, catch_unwind};

use nix::sched::CloneFlags;
use nix::sys::signal::Signal;

/// Process id of a child, seen from its creator.
pub(crate) type Child = i32;

/// Forks; the child runs `body` and exits with what it returns.
pub(crate) fn fork(body: impl FnOnce() -> i32) -> io::Result<Child> {
    // SAFETY: see the top of this file; glibc's own fork keeps malloc consistent in the child.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => run(body),
        child => Ok(child),
    }
}

/// Clones into new namespaces; the child runs `body` and exits with what it returns. For single-threaded
/// callers.
pub(crate) fn clone_with(namespaces: CloneFlags, body: impl FnOnce() -> i32) -> io::Result<Child> {
    raw_clone(namespaces.bits() | libc::SIGCHLD, body)
}

/// Does what [`clone_with`] does, but the child belongs to the caller's parent, which waits for it. For
/// single-threaded callers.
pub(crate) fn siblings(body: impl FnOnce() -> i32) -> io::Result<Child> {
    raw_clone(libc::CLONE_PARENT | libc::SIGCHLD, body)
}

fn raw_clone(flags: i32, body: impl FnOnce() -> i32) -> io::Result<Child> {
    let none = 0usize;
    // SAFETY: without CLONE_VM and with a null stack this is fork(): the child has a copy of all memory. The
    // caller has a single thread, so no lock of the allocator is held.
    match unsafe { libc::syscall(libc::SYS_clone, flags as usize, none, none, none, none) } {
        -1 => Err(io::Error::last_os_error()),
        0 => run(body),
        child => Ok(child as Child),
    }
}

fn run(body: impl FnOnce() -> i32) -> ! {
    // Unwinding into the copied frames of the parent would run its destructors a second time.
    exit_now(catch_unwind(AssertUnwindSafe(body)).unwrap_or(EXIT_PANIC))
}

/// Ends the process without running what was registered with atexit by the program we were forked from.
pub(crate) fn exit_now(code: i32) -> ! {
    // SAFETY: _exit takes an integer and does not return.
    unsafe { libc::_exit(code) }
}

/// Closes every descriptor from 3 on, except these.
pub(crate) fn close_all_but(keep: &[RawFd]) {
    let mut keep: Vec<RawFd> = keep.iter().copied().filter(|fd| *fd > 2).collect();
    keep.sort_unstable();
    let mut from = 3;
    for fd in keep.into_iter().chain([RawFd::MAX]) {
        if fd > from {
            // SAFETY: called right after fork, before anything that owns a descriptor is used in the child;
            // owners copied from the parent are never dropped, because the child ends with _exit.
            unsafe { libc::syscall(libc::SYS_close_range, from, fd - 1, 0) };
        }
        from = fd.saturating_add(1);
    }
}

/// Makes every descriptor from 3 on close at the next exec.
pub(crate) fn close_on_exec() {
    // SAFETY: the call only sets a flag on descriptors.
    unsafe { libc::syscall(libc::SYS_close_range, 3, RawFd::MAX, libc::CLOSE_RANGE_CLOEXEC) };
}

/// Makes `target` (0, 1 or 2) refer to what `stream` refers to.
pub(crate) fn duplicate_onto(stream: &OwnedFd, target: RawFd) -> io::Result<()> {
    // SAFETY: dup2 takes two integers; what `target` referred to before belongs to nobody in this child.
    match unsafe { libc::dup2(stream.as_raw_fd(), target) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Undoes what std does at start: a command that writes to a closed pipe should be ended by that.
pub(crate) fn default_sigpipe() {
    // SAFETY: the default action is installed; no handler of ours runs.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
}

/// Whether this process was started with this signal ignored.
pub(crate) fn is_ignored(signal: Signal) -> bool {
    // SAFETY: all zeroes is a valid sigaction; without a new one, the call only writes to the old one.
    unsafe {
        let mut now: libc::sigaction = std::mem::zeroed();
        let asked = libc::sigaction(signal as i32, std::ptr::null(), &raw mut now);
        asked == 0 && now.sa_sigaction == libc::SIG_IGN
    }
}

/// Replaces the process by the first of `candidates` that can be executed; returns only if none can.
pub(crate) fn exec(candidates: &[CString], argv: &[CString], env: &[CString]) -> io::Error {
    let pointers = |strings: &[CString]| -> Vec<*const libc::c_char> {
        strings
            .iter()
            .map(|string| string.as_ptr())
            .chain([std::ptr::null()])
            .collect()
    };
    let (argv, env) = (pointers(argv), pointers(env));
    let mut worst = io::Error::from_raw_os_error(libc::ENOENT);
    for candidate in candidates {
        // SAFETY: all three are zero-terminated and outlive the call.
        unsafe { libc::execve(candidate.as_ptr(), argv.as_ptr(), env.as_ptr()) };
        let error = io::Error::last_os_error();
        // As execvp does: "not found" in one directory must not hide a more telling error from another.
        if !matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ENOTDIR)) {
            worst = error;
        }
    }
    worst
}

/// The status of sysexits' EX_SOFTWARE.
const EXIT_PANIC: i32 = 70;
