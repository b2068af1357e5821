//! Connections from the gateway's host that have not yet shown what they are: they are set aside, so that
//! nobody waits for them in accept().
//!
//! Any user of that host can open one and send nothing. A real delivery brings its preface, or the gateway
//! connects once more, so that the listener is checked again. There is no lock and no allocated memory, for
//! the reasons that `table` gives: each slot has one owner at a time, the one that has changed its state.

use crate::sys;
use libc::c_int;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// Most connections of a process that are set aside; for one more, the oldest is closed.
const SLOT_COUNT: usize = 64;

/// How long a connection may stay silent. A gateway on a busy host may connect long before it can send. A
/// wrong guess ends a job, whereas a connection that waits only costs a slot, which others can take from it.
pub const PATIENCE_MS: u64 = 30_000;

const FREE: u32 = 0;
const BUSY: u32 = 1;
const TAKEN: u32 = 2;

struct Slot {
    state: AtomicU32,
    /// The socket, and its cookie: the program may close it without our knowledge.
    fd: AtomicI32,
    cookie: AtomicU64,
    /// The listener's cookie.
    listener: AtomicU64,
    /// The process that has set it aside: a child of fork has the parent's slots, but must not hand them out.
    process: AtomicU32,
    since_ms: AtomicU64,
    /// The connection's number among all that were set aside: several may come within a millisecond.
    number: AtomicU64,
}

static NEXT: AtomicU64 = AtomicU64::new(0);

static SLOTS: [Slot; SLOT_COUNT] = [const {
    Slot {
        state: AtomicU32::new(FREE),
        fd: AtomicI32::new(-1),
        cookie: AtomicU64::new(0),
        listener: AtomicU64::new(0),
        process: AtomicU32::new(0),
        since_ms: AtomicU64::new(0),
        number: AtomicU64::new(0),
    }
}; SLOT_COUNT];

/// How many slots are not free: usually none, and checking this costs one load.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// How a check of a connection that was set aside has ended.
pub enum Look<T> {
    /// The connection stays set aside.
    Stays,
    /// The connection has been closed.
    Gone,
    /// The connection is handed out.
    Found(T),
}

impl Slot {
    fn claim(&self) -> bool {
        let claimed = self
            .state
            .compare_exchange(TAKEN, BUSY, Ordering::Acquire, Ordering::Relaxed);
        claimed.is_ok()
    }

    fn free(&self) {
        self.state.store(FREE, Ordering::Release);
        COUNT.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether the socket is still the one that this process has set aside. Only the owner of the slot may
    /// call this.
    fn is_own(&self) -> bool {
        sys::cookie(self.fd.load(Ordering::Relaxed)) == Ok(self.cookie.load(Ordering::Relaxed))
    }
}

/// Sets a connection of a listener aside; if no slot is free, closes the oldest one, or else this one.
pub fn put(listener: c_int, fd: c_int, now_ms: u64) {
    let cookies = (sys::cookie(listener), sys::cookie(fd));
    let (Ok(listener), Ok(cookie)) = cookies else {
        return sys::close(fd);
    };
    let Some(slot) = free_slot().or_else(make_room) else {
        return sys::close(fd);
    };
    slot.fd.store(fd, Ordering::Relaxed);
    slot.cookie.store(cookie, Ordering::Relaxed);
    slot.listener.store(listener, Ordering::Relaxed);
    slot.process.store(std::process::id(), Ordering::Relaxed);
    slot.since_ms.store(now_ms, Ordering::Relaxed);
    slot.number
        .store(NEXT.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
    slot.state.store(TAKEN, Ordering::Release);
}

/// A slot that the caller may fill.
fn free_slot() -> Option<&'static Slot> {
    let claim = |slot: &&Slot| {
        let claimed = slot
            .state
            .compare_exchange(FREE, BUSY, Ordering::Acquire, Ordering::Relaxed);
        claimed.is_ok()
    };
    let found = SLOTS.iter().find(claim)?;
    COUNT.fetch_add(1, Ordering::Relaxed);
    Some(found)
}

fn make_room() -> Option<&'static Slot> {
    let number = |slot: &&Slot| slot.number.load(Ordering::Relaxed);
    let oldest = SLOTS.iter().min_by_key(number)?;
    if !oldest.claim() {
        return None;
    }
    if oldest.is_own() {
        sys::close(oldest.fd.load(Ordering::Relaxed));
    }
    Some(oldest)
}

/// Whether no listener of this process has a connection set aside.
pub fn is_empty() -> bool {
    COUNT.load(Ordering::Relaxed) == 0
}

/// Passes each connection of a listener to `look`, with whether it is late, until one is handed out.
pub fn find<T>(listener: c_int, now_ms: u64, mut look: impl FnMut(c_int, bool) -> Look<T>) -> Option<T> {
    if is_empty() {
        return None;
    }
    let listener = sys::cookie(listener).ok()?;
    for slot in &SLOTS {
        if !slot.claim() {
            continue;
        }
        let fd = slot.fd.load(Ordering::Relaxed);
        if !slot.is_own() {
            slot.free();
            continue;
        }
        let is_late = now_ms.saturating_sub(slot.since_ms.load(Ordering::Relaxed)) >= PATIENCE_MS;
        let is_inherited = slot.process.load(Ordering::Relaxed) != std::process::id();
        if is_inherited || (is_late && slot.listener.load(Ordering::Relaxed) != listener) {
            // The parent has its own descriptor for the connection, or nobody accepts at that listener any
            // more.
            sys::close(fd);
            slot.free();
            continue;
        }
        if slot.listener.load(Ordering::Relaxed) != listener {
            slot.state.store(TAKEN, Ordering::Release);
            continue;
        }
        match look(fd, is_late) {
            Look::Stays => slot.state.store(TAKEN, Ordering::Release),
            Look::Gone => slot.free(),
            Look::Found(found) => {
                slot.free();
                return Some(found);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::{AsRawFd, IntoRawFd};

    fn pair(listener: &TcpListener) -> (TcpStream, c_int) {
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (client, listener.accept().unwrap().0.into_raw_fd())
    }

    fn stays(_: c_int, is_late: bool) -> Look<c_int> {
        assert!(!is_late);
        Look::Stays
    }

    /// This is a single test, as the slots belong to the process.
    #[test]
    fn what_is_set_aside_is_found_again_by_its_listener_alone_and_the_oldest_goes_first() {
        let (one, other) = (
            TcpListener::bind("127.0.0.1:0").unwrap(),
            TcpListener::bind("127.0.0.1:0").unwrap(),
        );
        let (_client, fd) = pair(&one);
        put(one.as_raw_fd(), fd, 5000);
        assert_eq!(find(one.as_raw_fd(), 5000 + PATIENCE_MS - 1, stays), None);
        assert_eq!(find(other.as_raw_fd(), 5000, stays), None);
        let late = find(one.as_raw_fd(), 5000 + PATIENCE_MS, |fd, is_late| match is_late {
            true => Look::Found(fd),
            false => Look::Stays,
        });
        assert_eq!(late, Some(fd));
        assert_eq!(find(one.as_raw_fd(), 6000, stays), None, "it was handed out");
        sys::close(fd);
        // The program closes it without our knowledge.
        let (_gone, fd) = pair(&one);
        put(one.as_raw_fd(), fd, 6000);
        sys::close(fd);
        assert_eq!(find(one.as_raw_fd(), 6000, stays), None);
        // A flood of connections.
        let clients: Vec<_> = (0..=SLOT_COUNT)
            .map(|number| {
                let (client, fd) = pair(&one);
                put(one.as_raw_fd(), fd, 7000 + number as u64);
                client
            })
            .collect();
        assert_eq!(COUNT.load(Ordering::Relaxed), SLOT_COUNT, "the oldest was closed");
        clients[0].set_nonblocking(true).unwrap();
        assert_eq!(std::io::Read::read(&mut &clients[0], &mut [0]).unwrap(), 0);
        // Late connections of another listener, at which nobody accepts, are closed.
        assert_eq!(find(other.as_raw_fd(), 9000 + PATIENCE_MS, stays), None);
        assert_eq!(COUNT.load(Ordering::Relaxed), 0);
    }
}
