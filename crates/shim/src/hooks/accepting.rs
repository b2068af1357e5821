//! accept() and accept4().

use super::{fail, guard, write_address};
use crate::accept::{self as accepted, Accepted, Next};
use crate::address;
use crate::real;
use crate::sys::Errno;
use libc::{c_int, sockaddr, socklen_t};
use std::net::SocketAddr;

/// accept(2).
///
/// # Safety
/// Those of the C function: `address` is null, or points to `*length` writable bytes.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn accept(fd: c_int, address: *mut sockaddr, length: *mut socklen_t) -> c_int {
    let real = |peer: &mut Peer| forward!(accept(fd, peer.address(), &raw mut peer.length));
    // SAFETY: the caller's promise.
    unsafe { accepting(fd, (address, length), 0, real) }
}

/// accept4(2).
///
/// # Safety
/// Those of [`accept`].
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn accept4(
    fd: c_int,
    address: *mut sockaddr,
    length: *mut socklen_t,
    flags: c_int,
) -> c_int {
    let real = |peer: &mut Peer| forward!(accept4(fd, peer.address(), &raw mut peer.length, flags));
    // SAFETY: the caller's promise.
    unsafe { accepting(fd, (address, length), flags, real) }
}

/// Accepts until there is a connection for the application.
///
/// # Safety
/// `to` is null, or points to as many writable bytes as its length says.
unsafe fn accepting(
    fd: c_int,
    to: (*mut sockaddr, *mut socklen_t),
    flags: c_int,
    mut real: impl FnMut(&mut Peer) -> c_int,
) -> c_int {
    let mut has_dropped = false;
    loop {
        match guard(Next::Kernel, || accepted::next(fd, has_dropped, flags)) {
            Next::Kernel => {}
            Next::Socket(new, peer) => {
                // SAFETY: the caller's promise.
                unsafe { write_peer(peer.as_bytes(), to) };
                return new;
            }
            Next::Aborted => return fail(Errno(libc::ECONNABORTED)),
        }
        let mut peer = Peer::new();
        let new = real(&mut peer);
        // SAFETY: the caller's promise.
        if let Some(result) = unsafe { peer.hand_out(fd, new, to) } {
            return result;
        }
        has_dropped = true;
    }
}

/// The place where the kernel writes the peer of an accepted socket: it has room for every address family.
struct Peer {
    storage: libc::sockaddr_storage,
    length: socklen_t,
}

impl Peer {
    fn new() -> Peer {
        // SAFETY: zeroes are a valid sockaddr_storage.
        let storage: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
        Peer {
            storage,
            length: size_of_val(&storage) as socklen_t,
        }
    }

    fn address(&mut self) -> *mut sockaddr {
        (&raw mut self.storage).cast()
    }

    fn bytes(&self) -> &[u8] {
        let length = (self.length as usize).min(size_of_val(&self.storage));
        // SAFETY: these are bytes of a live structure that was zeroed as a whole.
        unsafe { std::slice::from_raw_parts((&raw const self.storage).cast(), length) }
    }

    /// The result of accept() on a listener; `None` if the connection was not for the application, or not
    /// yet.
    ///
    /// # Safety
    /// Those of [`write_peer`].
    unsafe fn hand_out(
        &self,
        listener: c_int,
        new: c_int,
        to: (*mut sockaddr, *mut socklen_t),
    ) -> Option<c_int> {
        if new < 0 {
            return Some(new);
        }
        let peer: Option<SocketAddr> = address::decode(self.bytes());
        let judged = guard(Accepted::Native, || accepted::accepted(listener, new, peer));
        let shown = match &judged {
            Accepted::Native => self.bytes(),
            Accepted::From(source) => source.as_bytes(),
            Accepted::Dropped => return None,
        };
        // SAFETY: the caller's promise.
        unsafe { write_peer(shown, to) };
        Some(new)
    }
}

/// Writes a peer's address, if the caller wants it.
///
/// # Safety
/// The address is null, or points to as many writable bytes as the length says.
unsafe fn write_peer(bytes: &[u8], (address, length): (*mut sockaddr, *mut socklen_t)) {
    // SAFETY: the caller's promise.
    if let Some(room) = unsafe { length.as_ref() }.copied()
        && !address.is_null()
    {
        // SAFETY: as above.
        unsafe { write_address(bytes, address, room, length) };
    }
}
