//! A process that shares this one's descriptors, and what such a pair of processes needs from the kernel.
#![allow(unsafe_code)]

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::Signal;
use nix::unistd::Pid;
use std::fmt::{self, Display, Formatter};
use std::fs;
use std::io;
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicI32, Ordering};

/// More descriptors than a process may have, unless an administrator has raised that limit (fs.nr_open).
const MOST_DESCRIPTORS: RawFd = 1 << 20;

/// Makes a child that has a copy of this process's memory, and shares its descriptors: what either opens or
/// closes is open or closed in both, and stays open when one of them ends (clone(2), CLONE_FILES). `None` in
/// the child.
///
/// The caller must have only one thread, as for fork(2).
///
/// # Errors
/// Those of clone(2).
pub(crate) fn divide() -> io::Result<Option<Pid>> {
    let flags = (libc::CLONE_FILES | libc::SIGCHLD) as libc::c_ulong;
    let none: libc::c_ulong = 0;
    // SAFETY: without CLONE_VM this is fork(2): the child has its own copy of the only thread's stack. All
    // other arguments are zero, so that their order, which differs among processors, does not matter.
    let child = unsafe { libc::syscall(libc::SYS_clone, flags, none, none, none, none) };
    match child {
        ..0 => Err(io::Error::last_os_error()),
        0 => Ok(None),
        child => Ok(Some(Pid::from_raw(child as libc::pid_t))),
    }
}

/// The descriptors that are open in this process.
///
/// # Errors
/// /proc cannot be read.
pub(crate) fn open_descriptors() -> io::Result<Vec<RawFd>> {
    let listed = fs::read_dir("/proc/self/fd")?;
    let numbers = listed.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let mut numbers: Vec<RawFd> = numbers.collect();
    // The descriptor through which the directory was read is among them, and closed by now.
    numbers.retain(|number| is_open(*number));
    Ok(numbers)
}

fn is_open(number: RawFd) -> bool {
    flags(number).is_ok()
}

fn flags(number: RawFd) -> nix::Result<FdFlag> {
    // SAFETY: a number that is not open only makes the call fail; it is not -1, which /proc never lists.
    let borrowed = unsafe { BorrowedFd::borrow_raw(number) };
    fcntl(borrowed, FcntlArg::F_GETFD).map(FdFlag::from_bits_retain)
}

/// Whether exec(3) closes a descriptor.
pub(crate) fn closes_on_exec(number: RawFd) -> bool {
    flags(number).is_ok_and(|flags| flags.contains(FdFlag::FD_CLOEXEC))
}

/// Sets whether exec(3) closes a descriptor.
///
/// # Errors
/// The number is not open.
pub(crate) fn set_closes_on_exec(number: RawFd, closes: bool) -> nix::Result<()> {
    let flags = if closes {
        FdFlag::FD_CLOEXEC
    } else {
        FdFlag::empty()
    };
    // SAFETY: as in `flags`.
    let borrowed = unsafe { BorrowedFd::borrow_raw(number) };
    fcntl(borrowed, FcntlArg::F_SETFD(flags)).map(drop)
}

/// Closes all descriptors except these. It opens none, because the table may be full.
pub(crate) fn close_all_but(kept: &[RawFd]) {
    let mut kept = kept.to_vec();
    kept.sort_unstable();
    let mut from = 0;
    for number in kept.into_iter().chain([RawFd::MAX]) {
        if from < number {
            close_range(from, number - 1);
        }
        from = number.saturating_add(1).max(from);
    }
}

fn close_range(first: RawFd, last: RawFd) {
    // SAFETY: by the caller's promise, no value of this process owns one of these.
    let closed = unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
    if closed != 0 {
        // Before Linux 5.9, there is no close_range(2).
        (first..=last.min(MOST_DESCRIPTORS)).for_each(close);
    }
}

/// Lends an open descriptor, which must stay open meanwhile; `None` if it is not open.
pub(crate) fn borrow(number: RawFd) -> Option<BorrowedFd<'static>> {
    if number < 0 {
        return None;
    }
    // SAFETY: a number that is not open only makes the call fail; it is not -1.
    let borrowed = unsafe { BorrowedFd::borrow_raw(number) };
    fcntl(borrowed, FcntlArg::F_GETFD).ok().map(|_| borrowed)
}

/// Closes a descriptor that no value of this process owns.
pub(crate) fn close(number: RawFd) {
    // SAFETY: the caller's promise; a number that is not open only makes the call fail.
    unsafe { libc::close(number) };
}

/// Another descriptor of the same open file, which exec(3) closes.
///
/// # Errors
/// The number is not open, or this process has too many.
pub(crate) fn duplicate(number: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: a number that is not open only makes the call fail; it is not -1.
    let borrowed = unsafe { BorrowedFd::borrow_raw(number) };
    let copy = fcntl(borrowed, FcntlArg::F_DUPFD_CLOEXEC(libc::STDERR_FILENO + 1))?;
    // SAFETY: the kernel has just made it, and nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(copy) })
}

/// Signals that are raised by a program's own faults, including abort(3) and forbidden system calls.
const FAULTS: [i32; 7] = [
    libc::SIGILL,
    libc::SIGTRAP,
    libc::SIGABRT,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGSEGV,
    libc::SIGSYS,
];

/// How a child has ended, by the words of wait(2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) process: Pid,
    /// CLD_EXITED, CLD_KILLED or CLD_DUMPED.
    pub(crate) code: i32,
    /// Its status, or the signal's number.
    pub(crate) status: i32,
}

impl Ended {
    /// Whether it was killed from outside, by another process or by the kernel: by a signal that no fault of
    /// a program raises.
    pub(crate) fn is_killed(self) -> bool {
        self.code != libc::CLD_EXITED && !FAULTS.contains(&self.status)
    }

    /// The status that a shell would report.
    pub(crate) fn exit_status(self) -> u8 {
        let base = if self.code == libc::CLD_EXITED { 0 } else { 128 };
        u8::try_from(self.status + base).unwrap_or(1)
    }
}

impl Display for Ended {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        if self.code == libc::CLD_EXITED {
            return write!(formatter, "ended with status {}", self.status);
        }
        match Signal::try_from(self.status) {
            Ok(signal) => write!(formatter, "was killed by signal {} ({signal})", self.status),
            Err(_) => write!(formatter, "was killed by signal {}", self.status),
        }
    }
}

/// A child that has ended, if one has: this one, or any. It can be found again until it is collected.
///
/// # Errors
/// Those of waitid(2); having no child is not an error.
pub(crate) fn ended_child(which: Option<Pid>) -> io::Result<Option<Ended>> {
    let (kind, id) = match which {
        Some(process) => (libc::P_PID, process.as_raw().cast_unsigned()),
        None => (libc::P_ALL, 0),
    };
    let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: every bit pattern is a siginfo_t.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    // SAFETY: `info` lives across the call.
    let waited = unsafe { libc::waitid(kind, id, &raw mut info, options) };
    if waited != 0 {
        let error = io::Error::last_os_error();
        return match error.raw_os_error() {
            Some(libc::ECHILD) => Ok(None),
            _ => Err(error),
        };
    }
    // SAFETY: waitid(2) fills these fields, or leaves them zero if no child has ended.
    let (process, status) = unsafe { (info.si_pid(), info.si_status()) };
    Ok((process != 0).then_some(Ended {
        process: Pid::from_raw(process),
        code: info.si_code,
        status,
    }))
}

/// Makes orphans among the descendants of this process its children, and not init's (prctl(2),
/// PR_SET_CHILD_SUBREAPER). exec(3) does not change that.
pub(crate) fn take_in_orphans() -> nix::Result<()> {
    nix::sys::prctl::set_child_subreaper(true)
}

/// How long a worker may take to send its last messages once its keeper is gone: a little longer than an
/// orderly stop takes.
const LAST_WORDS_SECONDS: libc::c_uint = 3;

/// The parent without which this process stops.
static PARENT: AtomicI32 = AtomicI32::new(0);

/// Makes this process stop, as by SIGTERM, when its parent is gone; if it then does not, the kernel ends it.
/// It must read SIGTERM from a descriptor.
pub(crate) fn stop_with_parent(parent: Pid) -> nix::Result<()> {
    PARENT.store(parent.as_raw(), Ordering::Relaxed);
    // Not a signal that people send. Only a libc knows the number.
    let signal = libc::SIGRTMIN() + 3;
    // SAFETY: all zero is a valid sigaction; the handler calls only what is safe there (signal-safety(7)).
    let installed = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_parents_death as extern "C" fn(libc::c_int) as usize;
        action.sa_flags = libc::SA_RESTART;
        libc::sigaction(signal, &raw const action, std::ptr::null_mut())
    };
    nix::errno::Errno::result(installed)?;
    // SAFETY: no memory is involved.
    nix::errno::Errno::result(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, signal) }).map(drop)
}

/// Runs even if the loop does not: a worker that no longer serves must not keep the gateway's addresses.
extern "C" fn on_parents_death(_: libc::c_int) {
    // SAFETY: all calls are safe in a signal handler. If somebody else sends the signal, it has no effect.
    unsafe {
        if libc::getppid() != PARENT.load(Ordering::Relaxed) {
            libc::alarm(LAST_WORDS_SECONDS);
            libc::kill(libc::getpid(), libc::SIGTERM);
        }
    }
}

/// Whether the parent without which this process stops is gone.
pub(crate) fn is_orphan(parent: u32) -> bool {
    nix::unistd::getppid().as_raw().cast_unsigned() != parent
}

/// Raises the limit on open files as far as the user may, and returns it: a stream takes one file at each
/// gateway.
pub(crate) fn raise_file_limit() -> u64 {
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else {
        return u64::MAX;
    };
    match setrlimit(Resource::RLIMIT_NOFILE, hard, hard) {
        Ok(()) => hard,
        Err(_) => soft,
    }
}

/// How much more readily the kernel ends this process than its parent when memory runs out (proc(5),
/// oom_score_adj).
const ENDED_FIRST: i32 = 100;
const MOST_SCORE: i32 = 1000;

fn change_score(file: &str, change: i32) -> Option<()> {
    let score: i32 = fs::read_to_string(file).ok()?.trim().parse().ok()?;
    fs::write(file, (score + change).min(MOST_SCORE).to_string()).ok()
}

/// Makes the kernel end this process before other processes of its user when memory runs out.
pub(crate) fn be_ended_first() {
    let _ = change_score("/proc/self/oom_score_adj", ENDED_FIRST);
}

/// Undoes this in a process that this one has started. If that is refused, nothing changes.
pub(crate) fn not_ended_first(child: u32) {
    let _ = change_score(&format!("/proc/{child}/oom_score_adj"), -ENDED_FIRST);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_told_as_a_shell_would() {
        let ended = |code, status| Ended {
            process: Pid::from_raw(7),
            code,
            status,
        };
        assert_eq!(ended(libc::CLD_EXITED, 3).to_string(), "ended with status 3");
        let killed = ended(libc::CLD_KILLED, libc::SIGKILL).to_string();
        assert_eq!(killed, "was killed by signal 9 (SIGKILL)");
        assert_eq!(ended(libc::CLD_DUMPED, 64).to_string(), "was killed by signal 64");
    }

    #[test]
    fn open_descriptors_are_those_that_can_be_used() {
        let file = std::fs::File::open("/proc/self/status").unwrap();
        let number = std::os::fd::AsRawFd::as_raw_fd(&file);
        assert!(open_descriptors().unwrap().contains(&number));
        assert!(closes_on_exec(number));
        let copy = duplicate(number).unwrap();
        assert_ne!(std::os::fd::AsRawFd::as_raw_fd(&copy), number);
        assert!(duplicate(1 << 30).is_err());
    }
}
