//! System calls that the shim makes for itself, as safe functions.
//!
//! They are raw calls, not libc's wrappers, for two reasons: the names of the wrappers are the ones that are
//! hooked here, and the wrappers are cancellation points, whose unwinding must not pass through Rust frames
//! that own something.

use crate::address::{self, Sockaddr};
use libc::{c_int, c_long, c_void};
use std::net::SocketAddr;
use std::time::Instant;

/// An error number as C knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Errno(pub c_int);

impl Errno {
    /// The error that the last call of this thread has left.
    pub fn last() -> Errno {
        // SAFETY: glibc gives every thread a valid location for as long as the thread lives.
        Errno(unsafe { *libc::__errno_location() })
    }

    /// Sets errno to this, for the caller of a hook.
    pub fn set(self) {
        // SAFETY: as above.
        unsafe { *libc::__errno_location() = self.0 }
    }

    /// The error in the words of the C library.
    pub fn text(self) -> String {
        let text = std::io::Error::from_raw_os_error(self.0).to_string();
        let words = text.split(" (os error").next().unwrap_or_default();
        words.to_lowercase()
    }
}

/// A value that socket options carry: any bit pattern is valid.
pub trait OptionValue: Copy + Default {}
impl OptionValue for c_int {}
impl OptionValue for u64 {}

/// `struct timeval` of the 64-bit ABI, for SO_SNDTIMEO.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Timeval {
    /// Whole seconds.
    pub seconds: i64,
    /// Additional microseconds.
    pub microseconds: i64,
}
impl OptionValue for Timeval {}

fn check(result: c_long) -> Result<usize, Errno> {
    usize::try_from(result).map_err(|_| Errno::last())
}

/// connect(2).
pub fn connect(fd: c_int, to: &Sockaddr) -> Result<(), Errno> {
    let bytes = to.as_bytes();
    // SAFETY: the pointer and the length are of one live slice.
    check(unsafe { libc::syscall(libc::SYS_connect, fd, bytes.as_ptr(), bytes.len()) }).map(drop)
}

/// Ends a connection or an attempt, but keeps the socket, its options and its binding, so that it can connect
/// again; also clears the error that the attempt has left.
pub fn dissolve(fd: c_int) {
    let unspecified = [0_u8; address::V4_BYTES];
    // SAFETY: these are sixteen readable bytes that mean AF_UNSPEC.
    unsafe { libc::syscall(libc::SYS_connect, fd, unspecified.as_ptr(), unspecified.len()) };
    let _ = option::<c_int>(fd, libc::SOL_SOCKET, libc::SO_ERROR);
}

/// getsockopt(2).
pub fn option<T: OptionValue>(fd: c_int, level: c_int, name: c_int) -> Result<T, Errno> {
    let mut value = T::default();
    let mut length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes to a T, for which any bytes are valid.
    let result = unsafe {
        libc::syscall(
            libc::SYS_getsockopt,
            fd,
            level,
            name,
            &raw mut value,
            &raw mut length,
        )
    };
    check(result).map(|_| value)
}

/// setsockopt(2).
pub fn set_option<T: OptionValue>(fd: c_int, level: c_int, name: c_int, value: T) -> Result<(), Errno> {
    // SAFETY: the kernel reads the bytes of one live T.
    let result = unsafe {
        libc::syscall(
            libc::SYS_setsockopt,
            fd,
            level,
            name,
            &raw const value,
            size_of::<T>(),
        )
    };
    check(result).map(drop)
}

/// The number that the kernel gives each socket and never uses again (SO_COOKIE, since Linux 4.12). If there
/// is none, as in an emulator, the number of the socket's file, which repeats after 2^32 others.
pub fn cookie(fd: c_int) -> Result<u64, Errno> {
    match option(fd, libc::SOL_SOCKET, libc::SO_COOKIE) {
        Err(Errno(libc::EINVAL | libc::ENOPROTOOPT)) => file_number(fd),
        known => known,
    }
}

fn file_number(fd: c_int) -> Result<u64, Errno> {
    let mut found = std::mem::MaybeUninit::<libc::stat>::zeroed();
    // SAFETY: the kernel writes one struct stat, which is libc's on 64-bit processors.
    check(unsafe { libc::syscall(libc::SYS_fstat, fd, found.as_mut_ptr()) })?;
    // SAFETY: zeroes are a valid struct stat, too.
    Ok(unsafe { found.assume_init() }.st_ino)
}

/// getsockname(2) of an internet socket.
pub fn local_name(fd: c_int) -> Result<SocketAddr, Errno> {
    name(libc::SYS_getsockname, fd)
}

/// getpeername(2) of an internet socket: what the kernel says, not what the application is shown.
pub fn peer_name(fd: c_int) -> Result<SocketAddr, Errno> {
    name(libc::SYS_getpeername, fd)
}

fn name(call: c_long, fd: c_int) -> Result<SocketAddr, Errno> {
    let mut bytes = [0_u8; address::V6_BYTES];
    let mut length = bytes.len() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes to the array.
    check(unsafe { libc::syscall(call, fd, bytes.as_mut_ptr(), &raw mut length) })?;
    address::decode(&bytes).ok_or(Errno(libc::EAFNOSUPPORT))
}

/// Sends as much as possible without waiting and without SIGPIPE.
pub fn send(fd: c_int, bytes: &[u8]) -> Result<usize, Errno> {
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    let nowhere = std::ptr::null::<c_void>();
    // SAFETY: the pointer and the length are of one live slice; there is no address.
    check(unsafe {
        libc::syscall(
            libc::SYS_sendto,
            fd,
            bytes.as_ptr(),
            bytes.len(),
            flags,
            nowhere,
            0,
        )
    })
}

/// Receives what has come, without waiting; zero is the end of the stream.
pub fn receive(fd: c_int, into: &mut [u8]) -> Result<usize, Errno> {
    receive_with(fd, into, libc::MSG_DONTWAIT)
}

/// Does the same as [`receive`], but leaves the bytes in the stream.
pub fn peek(fd: c_int, into: &mut [u8]) -> Result<usize, Errno> {
    receive_with(fd, into, libc::MSG_DONTWAIT | libc::MSG_PEEK)
}

/// Receives one byte of urgent data without waiting; `None` if there is none, or it was received before.
pub fn receive_urgent(fd: c_int) -> Result<Option<u8>, Errno> {
    let mut byte = [0];
    match receive_with(fd, &mut byte, libc::MSG_DONTWAIT | libc::MSG_OOB) {
        Ok(1) => Ok(Some(byte[0])),
        Ok(_) | Err(Errno(libc::EINVAL | libc::EAGAIN)) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// How much a TCP connection has received: bytes, including urgent ones, and one more for its end. 0 if the
/// kernel does not report it (before Linux 4.1).
pub fn received_bytes(fd: c_int) -> u64 {
    // The offset of tcpi_bytes_received in struct tcp_info of linux/tcp.h; libc's ends with
    // tcpi_total_retrans.
    const AT: usize = 128;
    let mut info = [0_u8; AT + 8];
    let mut length = info.len() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes to the array.
    let result = unsafe {
        libc::syscall(
            libc::SYS_getsockopt,
            fd,
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr(),
            &raw mut length,
        )
    };
    let bytes = info[AT..].try_into().map_or(0, u64::from_ne_bytes);
    check(result).map_or(0, |_| bytes)
}

fn receive_with(fd: c_int, into: &mut [u8], flags: c_int) -> Result<usize, Errno> {
    let nobody = std::ptr::null_mut::<c_void>();
    // SAFETY: the kernel writes at most the slice's length; no address is requested.
    let result = unsafe {
        libc::syscall(
            libc::SYS_recvfrom,
            fd,
            into.as_mut_ptr(),
            into.len(),
            flags,
            nobody,
            nobody,
        )
    };
    check(result)
}

/// Waits for events of poll(2), an error or a hang-up; false if the deadline came first. Signals do not end
/// the wait: their handlers run, and it goes on.
pub fn wait(fd: c_int, events: libc::c_short, deadline: Instant) -> Result<bool, Errno> {
    let mut poll = [unready(fd, events)];
    poll_until(&mut poll, deadline).map(|ready| ready > 0)
}

/// Waits as [`wait`] does, for several descriptors; returns the places of those that are ready, in order, and
/// none at the deadline.
pub fn wait_any(wanted: &[(c_int, libc::c_short)], deadline: Instant) -> Result<Vec<usize>, Errno> {
    let mut polls: Vec<_> = wanted.iter().map(|(fd, events)| unready(*fd, *events)).collect();
    poll_until(&mut polls, deadline)?;
    let ready = polls.iter().enumerate().filter(|(_, poll)| poll.revents != 0);
    Ok(ready.map(|(at, _)| at).collect())
}

fn unready(fd: c_int, events: libc::c_short) -> libc::pollfd {
    libc::pollfd {
        fd,
        events,
        revents: 0,
    }
}

/// Waits, and returns how many are ready.
fn poll_until(polls: &mut [libc::pollfd], deadline: Instant) -> Result<usize, Errno> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = libc::timespec {
            tv_sec: left.as_secs() as libc::time_t,
            tv_nsec: left.subsec_nanos() as c_long,
        };
        let no_mask = std::ptr::null::<c_void>();
        // SAFETY: there are this many live pollfds and one live timespec; there is no signal mask.
        let result = unsafe {
            libc::syscall(
                libc::SYS_ppoll,
                polls.as_mut_ptr(),
                polls.len(),
                &raw const timeout,
                no_mask,
                0_usize,
            )
        };
        match check(result) {
            Err(Errno(libc::EINTR)) => {}
            result => return result,
        }
    }
}

/// Whether a process is in this process group; as in setpgid(2), 0 is the group with the process's own
/// number. Leaves errno unchanged.
pub fn is_in_group(pid: libc::pid_t, group: libc::pid_t) -> bool {
    let before = Errno::last();
    // SAFETY: the argument is only a number.
    let present = unsafe { libc::syscall(libc::SYS_getpgid, pid) };
    before.set();
    let wanted = if group == 0 { pid } else { group };
    present == c_long::from(wanted)
}

/// close(2).
pub fn close(fd: c_int) {
    // SAFETY: closing a number is safe; only the callers have these descriptors.
    unsafe { libc::syscall(libc::SYS_close, fd) };
}

/// Creates a TCP socket of the shim's own, which neither blocks nor survives exec.
pub fn tcp_socket(v4: bool) -> Result<c_int, Errno> {
    let family = if v4 { libc::AF_INET } else { libc::AF_INET6 };
    let kind = libc::SOCK_STREAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: numbers only.
    let fd = check(unsafe { libc::syscall(libc::SYS_socket, family, kind, 0) })?;
    c_int::try_from(fd).map_err(|_| Errno(libc::EMFILE))
}

/// getrandom(2).
pub fn random<const BYTES: usize>() -> Result<[u8; BYTES], Errno> {
    let mut bytes = [0; BYTES];
    // SAFETY: the kernel writes at most the array's length to it.
    let filled = check(unsafe { libc::syscall(libc::SYS_getrandom, bytes.as_mut_ptr(), bytes.len(), 0) })?;
    // According to its manual page, no call for up to 256 bytes returns fewer.
    (filled == BYTES).then_some(bytes).ok_or(Errno(libc::EIO))
}

/// Gives a socket the flags that accept4() was asked for.
pub fn set_flags(fd: c_int, flags: c_int) {
    let status = if flags & libc::SOCK_NONBLOCK != 0 {
        libc::O_NONBLOCK
    } else {
        0
    };
    let descriptor = if flags & libc::SOCK_CLOEXEC != 0 {
        libc::FD_CLOEXEC
    } else {
        0
    };
    // SAFETY: all arguments are numbers; nobody else has the descriptor yet.
    unsafe {
        libc::syscall(libc::SYS_fcntl, fd, libc::F_SETFL, libc::O_RDWR | status);
        libc::syscall(libc::SYS_fcntl, fd, libc::F_SETFD, descriptor);
    }
}

/// Milliseconds since the host started (CLOCK_MONOTONIC).
pub fn monotonic_ms() -> u64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: this is a place for the result.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    // Neither number is negative.
    now.tv_sec as u64 * 1000 + now.tv_nsec as u64 / 1_000_000
}

/// Whether the other end has closed, or nothing more can come.
pub fn has_ended(fd: c_int) -> bool {
    let mut poll = [unready(fd, libc::POLLRDHUP)];
    poll_until(&mut poll, Instant::now()).is_ok_and(|ready| ready > 0)
}

/// Whether O_NONBLOCK is set.
pub fn is_nonblocking(fd: c_int) -> Result<bool, Errno> {
    // SAFETY: F_GETFL takes no argument.
    let flags = check(unsafe { libc::syscall(libc::SYS_fcntl, fd, libc::F_GETFL, 0) })?;
    Ok(flags & libc::O_NONBLOCK as usize != 0)
}

/// write(2), once: a line is shorter than what a pipe accepts in one piece.
pub fn write(fd: c_int, bytes: &[u8]) {
    // SAFETY: the pointer and the length are of one live slice.
    unsafe { libc::syscall(libc::SYS_write, fd, bytes.as_ptr(), bytes.len()) };
}

/// Ends the process at once: none of the program's code runs any more.
pub fn end(status: c_int) -> ! {
    // SAFETY: the call takes a number and does not return.
    unsafe { libc::_exit(status) }
}

/// Gets fresh memory from mmap(2), for places where the heap must not be used.
pub fn map(bytes: usize) -> Result<*mut c_void, Errno> {
    let (access, kind) = (
        libc::PROT_READ | libc::PROT_WRITE,
        libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
    );
    // SAFETY: this is a new mapping at a place that the kernel chooses.
    let place = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, kind, -1, 0) };
    if place == libc::MAP_FAILED {
        return Err(Errno::last());
    }
    Ok(place)
}

/// Releases what [`map`] has returned.
pub fn unmap(place: *mut c_void, bytes: usize) {
    // SAFETY: the callers unmap what they have mapped, and do so once.
    unsafe { libc::munmap(place, bytes) };
}
