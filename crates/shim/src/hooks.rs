//! The functions that the program calls instead of the C library's: each turns C's arguments into Rust's,
//! asks the safe code, and passes the call through, returns or fails.
//!
//! connect and accept are cancellation points. While the real function runs, no frame above it owns anything
//! or catches an unwinding, so that pthread_cancel works as it does without the shim.
//!
//! A program that passes a pointer for which the kernel would return EFAULT crashes here instead.

use crate::address::{self, Sockaddr};
use crate::context::{Context, become_rank, context};
use crate::interfaces::{self, Shown};
use crate::report::{self, Matter};
use crate::settle::{self, Settled};
use crate::sys::Errno;
use crate::{Outcome, connect as connecting, real, sys, table};
use libc::{c_int, c_ulong, c_void, ifaddrs, pid_t, sockaddr, socklen_t};
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Calls the real function; fails with ENOSYS if there is none.
macro_rules! forward {
    ($name:ident($($argument:expr),*)) => {
        match real::$name() {
            // SAFETY: the arguments are the caller's own, unchanged.
            Some(real) => unsafe { real($($argument),*) },
            None => fail(Errno(libc::ENOSYS)),
        }
    };
}

pub mod accepting;

/// connect(2).
///
/// # Safety
/// Those of the C function: `address` points to `length` bytes.
#[cfg_attr(not(test), unsafe(no_mangle))]
#[unsafe(naked)]
pub unsafe extern "C-unwind" fn connect(fd: c_int, address: *const sockaddr, length: socklen_t) -> c_int {
    // The address to which the call returns becomes the fourth argument.
    #[cfg(target_arch = "x86_64")]
    std::arch::naked_asm!("mov rcx, [rsp]", "jmp {}", sym connect_from);
    #[cfg(target_arch = "aarch64")]
    std::arch::naked_asm!("mov x3, x30", "b {}", sym connect_from);
}

/// The same function, with the address of its caller.
unsafe extern "C-unwind" fn connect_from(
    fd: c_int,
    address: *const sockaddr,
    length: socklen_t,
    caller: usize,
) -> c_int {
    // SAFETY: the caller's promise.
    let destination = unsafe { read_address(address, length) };
    match guard(Outcome::Failed(Errno(libc::EIO)), || {
        connecting::connect(fd, destination, caller)
    }) {
        Outcome::PassThrough => {
            // A socket that was redirected before no longer is: it connects elsewhere or is dissolved.
            table::forget(fd);
            forward!(connect(fd, address, length))
        }
        Outcome::Instead(other) => {
            table::forget(fd);
            let bytes = other.as_bytes();
            forward!(connect(fd, bytes.as_ptr().cast(), bytes.len() as socklen_t))
        }
        Outcome::Handled(value) => value,
        Outcome::Failed(errno) => fail(errno),
    }
}

/// getsockopt(2), of which only SO_ERROR matters here: it reports how a connect() that does not block has
/// ended.
///
/// # Safety
/// Those of the C function: `value` points to `*length` writable bytes.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn getsockopt(
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *mut c_void,
    length: *mut socklen_t,
) -> c_int {
    if (level, name) == (libc::SOL_SOCKET, libc::SO_ERROR)
        && let Settled::Failed(errno) = guard(Settled::Native, || settle::settle(fd))
    {
        // SAFETY: the caller's promise.
        unsafe { write_address(&errno.0.to_ne_bytes(), value.cast(), *length, length) };
        return 0;
    }
    forward!(getsockopt(fd, level, name, value, length))
}

/// The name of the site at which this process is, for the library of collectives in the same process; empty
/// if it is not known.
///
/// # Safety
/// `name` points to `bytes` writable bytes.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn causeway_own_site(name: *mut libc::c_char, bytes: usize) {
    let known = guard(None, || context().map(|context| context.here.name.as_str()));
    // SAFETY: the caller's promise.
    unsafe { put_text(known.unwrap_or_default(), name, bytes) }
}

/// This node's address as the grid knows it, for the world library in the same process; empty if it is not
/// known. From then on, the process is a rank, and accepts connections from other sites.
///
/// # Safety
/// `text` points to `bytes` writable bytes.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn causeway_own_address(text: *mut libc::c_char, bytes: usize) {
    become_rank();
    let known = guard(None, || context().and_then(Context::own_address));
    let known = known.map_or_else(String::new, |address| address.to_string());
    // SAFETY: the caller's promise.
    unsafe { put_text(&known, text, bytes) }
}

/// Writes as much of a text as there is room for, and a final zero.
///
/// # Safety
/// `place` points to `bytes` writable bytes.
unsafe fn put_text(text: &str, place: *mut libc::c_char, bytes: usize) {
    let length = text.len().min(bytes.saturating_sub(1));
    if bytes > 0 {
        // SAFETY: the caller's promise; `length` and the final zero have room.
        unsafe {
            std::ptr::copy_nonoverlapping(text.as_ptr().cast(), place, length);
            *place.add(length) = 0;
        }
    }
}

/// bind(2), to a virtual address of this node.
///
/// # Safety
/// Those of the C function: `address` points to `length` bytes.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn bind(fd: c_int, address: *const sockaddr, length: socklen_t) -> c_int {
    // SAFETY: the caller's promise.
    let wanted = unsafe { read_address(address, length) };
    let real = guard(None, || {
        let wanted = wanted.filter(|wanted| address::is_of_network(*wanted))?;
        with_virtual_addresses()?.real(wanted)
    });
    match real.map(Sockaddr::from) {
        Some(real) => {
            let bytes = real.as_bytes();
            forward!(bind(fd, bytes.as_ptr().cast(), bytes.len() as socklen_t))
        }
        None => forward!(bind(fd, address, length)),
    }
}

/// getpeername(2). The kernel is asked first, so that a connection that has ended has no peer.
///
/// # Safety
/// Those of [`accepting::accept`].
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn getpeername(
    fd: c_int,
    address: *mut sockaddr,
    length: *mut socklen_t,
) -> c_int {
    // A connection that has failed has ended by now, and has no peer.
    let _ = guard(Settled::Native, || settle::settle(fd));
    // SAFETY: the caller's promise. The kernel overwrites the length, and the room is needed later.
    let room = unsafe { length.as_ref() }.copied();
    let result = forward!(getpeername(fd, address, length));
    let neighbour = || shown_instead(sys::peer_name(fd));
    let peer = || table::true_peer(fd).or_else(neighbour);
    if let (0, Some(room)) = (result, room)
        && let Some(peer) = guard(None, peer)
    {
        // SAFETY: the kernel has just written to the same place, with the same room.
        unsafe { write_address(Sockaddr::from(peer).as_bytes(), address, room, length) };
    }
    result
}

/// getsockname(2): the address by which the grid knows this node.
///
/// # Safety
/// Those of [`accepting::accept`].
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn getsockname(
    fd: c_int,
    address: *mut sockaddr,
    length: *mut socklen_t,
) -> c_int {
    // SAFETY: the caller's promise; see getpeername.
    let room = unsafe { length.as_ref() }.copied();
    let result = forward!(getsockname(fd, address, length));
    let own = || shown_instead(sys::local_name(fd));
    if let (0, Some(room)) = (result, room)
        && let Some(own) = guard(None, own)
    {
        // SAFETY: the kernel has just written to the same place, with the same room.
        unsafe { write_address(Sockaddr::from(own).as_bytes(), address, room, length) };
    }
    result
}

/// dup(2).
///
/// # Safety
/// None besides the C function's.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn dup(fd: c_int) -> c_int {
    copied(fd, forward!(dup(fd)))
}

/// dup2(2).
///
/// # Safety
/// None besides the C function's.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn dup2(fd: c_int, new: c_int) -> c_int {
    copied(fd, forward!(dup2(fd, new)))
}

/// dup3(2).
///
/// # Safety
/// None besides the C function's.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn dup3(fd: c_int, new: c_int, flags: c_int) -> c_int {
    copied(fd, forward!(dup3(fd, new, flags)))
}

/// fcntl(2), of which only the commands that duplicate a descriptor matter here.
///
/// It is variadic in C. Stable Rust cannot define such functions; but on x86_64 and aarch64 Linux a caller
/// puts the one variadic argument, an integer or a pointer, into the register in which a third named argument
/// is expected.
///
/// # Safety
/// Those of the C function.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn fcntl(fd: c_int, command: c_int, argument: usize) -> c_int {
    let result = forward!(fcntl(fd, command, argument));
    if duplicates(command) {
        copied(fd, result)
    } else {
        result
    }
}

/// The name of fcntl(2) in programs that are built with 64-bit file offsets.
///
/// # Safety
/// Those of [`fcntl`].
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn fcntl64(fd: c_int, command: c_int, argument: usize) -> c_int {
    let result = forward!(fcntl64(fd, command, argument));
    if duplicates(command) {
        copied(fd, result)
    } else {
        result
    }
}

/// ioctl(2), of which only the requests that list interfaces matter here. It is variadic in C, see [`fcntl`].
///
/// # Safety
/// Those of the C function.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn ioctl(fd: c_int, request: c_ulong, argument: *mut c_void) -> c_int {
    let result = forward!(ioctl(fd, request, argument));
    if result < 0 || argument.is_null() {
        return result;
    }
    match request {
        // SAFETY: the kernel has just accepted the argument as the `ifconf` that the request requires.
        libc::SIOCGIFCONF => unsafe { show_list(&mut *argument.cast()) },
        // SAFETY: the kernel has just accepted the argument as the `ifreq` that the request requires.
        libc::SIOCGIFADDR => unsafe { show_one(argument.cast()) },
        _ => result,
    }
}

/// setpgid(2). Open MPI 4's launcher sets the group of each agent both in the agent's process and in its own,
/// and warns if the agent was faster: for a child that has executed its program, the kernel refuses, even if
/// the child is already in that group. In that case, nothing is left to do.
///
/// # Safety
/// None besides the C function's.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn setpgid(pid: pid_t, group: pid_t) -> c_int {
    let result = forward!(setpgid(pid, group));
    if result < 0 && Errno::last() == Errno(libc::EACCES) && sys::is_in_group(pid, group) {
        return 0;
    }
    result
}

/// getifaddrs(3).
///
/// # Safety
/// Those of the C function: `list` is a place for the result.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn getifaddrs(list: *mut *mut ifaddrs) -> c_int {
    let result = forward!(getifaddrs(list));
    if result == 0 {
        // SAFETY: the real function has just stored a list of its own there.
        guard((), || unsafe { interfaces::show(*list) });
    }
    result
}

/// # Safety
/// `address` is null, or points to `length` bytes.
unsafe fn read_address(address: *const sockaddr, length: socklen_t) -> Option<SocketAddr> {
    if address.is_null() {
        return None;
    }
    // SAFETY: the caller's promise; no more than an IPv6 address is read.
    let bytes =
        unsafe { std::slice::from_raw_parts(address.cast::<u8>(), (length as usize).min(address::V6_BYTES)) };
    address::decode(bytes)
}

/// Copies an address out as the kernel does: as much as there is room for, and the full length even if that
/// is more.
///
/// # Safety
/// `address` points to `room` writable bytes, `length` to a place for the length.
unsafe fn write_address(bytes: &[u8], address: *mut sockaddr, room: socklen_t, length: *mut socklen_t) {
    // A negative length counts as no room; the kernel would return EINVAL, also only afterwards.
    let room = usize::try_from(room as c_int).unwrap_or(0);
    // SAFETY: the caller's promise.
    unsafe {
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), address.cast::<u8>(), bytes.len().min(room));
        *length = bytes.len() as socklen_t;
    }
}

/// # Safety
/// `list` is what SIOCGIFCONF has filled in.
unsafe fn show_list(list: &mut libc::ifconf) -> c_int {
    // SAFETY: this is the active member of the union for SIOCGIFCONF.
    let buffer = unsafe { list.ifc_ifcu.ifcu_buf };
    if !buffer.is_null() {
        // SAFETY: the kernel has written this many bytes there.
        let entries = unsafe {
            std::slice::from_raw_parts_mut(buffer.cast::<u8>(), usize::try_from(list.ifc_len).unwrap_or(0))
        };
        list.ifc_len = guard(list.ifc_len, || interfaces::filter_list(entries) as c_int);
    }
    0
}

/// # Safety
/// `entry` is an `ifreq` that SIOCGIFADDR has filled in.
unsafe fn show_one(entry: *mut u8) -> c_int {
    // SAFETY: the caller's promise.
    let bytes = unsafe { std::slice::from_raw_parts_mut(entry, interfaces::ENTRY_BYTES) };
    match guard(Shown::Same, || interfaces::filter_one(bytes)) {
        Shown::Same => 0,
        Shown::Instead(ip) => {
            let address = interfaces::NAME_BYTES + 4;
            bytes[address..address + 4].copy_from_slice(&ip.octets());
            0
        }
        Shown::Nothing => fail(Errno(libc::EADDRNOTAVAIL)),
    }
}

/// The address in the grid for one that the kernel has returned. Reads the context only if that could matter:
/// a program that uses local sockets alone must not wait for a gateway.
fn shown_instead(kernel: Result<SocketAddr, Errno>) -> Option<SocketAddr> {
    let real = kernel.ok().filter(|real| address::is_of_network(*real))?;
    with_virtual_addresses()?.shown(real)
}

/// The context, if the grid knows this site by other addresses than the site's own.
fn with_virtual_addresses() -> Option<&'static Context> {
    context().filter(|context| context.here.is_virtual())
}

fn duplicates(command: c_int) -> bool {
    command == libc::F_DUPFD || command == libc::F_DUPFD_CLOEXEC
}

fn copied(old: c_int, new: c_int) -> c_int {
    if new >= 0 {
        table::copy(old, new);
    }
    new
}

fn fail(errno: Errno) -> c_int {
    errno.set();
    -1
}

/// Calls a function; returns `otherwise` if it panics, as a panic, which would be a defect here, must not
/// cross into C.
fn guard<T>(otherwise: T, decide: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(decide)).unwrap_or_else(|_| {
        report::once(
            Matter::Defect,
            0,
            format_args!("defect in the shim (panic); please report it"),
        );
        otherwise
    })
}
