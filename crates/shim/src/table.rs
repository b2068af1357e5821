//! The table of sockets, by file descriptor, whose true peer is not the one that the kernel reports.
//!
//! Readers take no lock and nothing is ever freed, so the table is safe in signal handlers and after fork.
//! Each entry contains its socket's cookie: if a descriptor was closed and used again without our knowledge,
//! the cookies differ, and the entry does not count. So close() need not be hooked.

use crate::sys;
use libc::c_int;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering, fence};

const CHUNK_SLOTS: usize = 256;
/// Enough chunks for 1 048 576 descriptors, the kernel's own default limit (fs.nr_open). A socket beyond it
/// works, but its peer is shown as the gateway.
const CHUNKS: usize = 4096;
/// How often to try a slot: a writer holds it for some ten nanoseconds, and one that holds it longer was lost
/// in a fork.
const SPINS: usize = 1000;

const ASKED: u32 = 1 << 24;

static CHUNK: [AtomicPtr<Chunk>; CHUNKS] = [const { AtomicPtr::new(std::ptr::null_mut()) }; CHUNKS];

/// A part of the table; all bytes zero means that all slots are empty.
#[repr(C)]
struct Chunk([Slot; CHUNK_SLOTS]);

/// An entry with a sequence lock, which is odd while somebody writes.
#[repr(C)]
struct Slot {
    sequence: AtomicU32,
    /// The port, above it 4 or 6, and above that 1 if a verdict will come.
    port_and_family: AtomicU32,
    /// The socket's cookie; zero if the slot is empty, as the kernel numbers sockets from one.
    cookie: AtomicU64,
    high: AtomicU64,
    low: AtomicU64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    cookie: u64,
    peer: SocketAddr,
    /// Whether the gateway was asked for a verdict that nobody has fetched.
    is_asked: bool,
}

/// Records the true peer of a socket.
pub fn note(fd: c_int, peer: SocketAddr) {
    put(fd, peer, false);
}

/// Records the true peer of a socket for which a verdict will come.
pub fn note_asked(fd: c_int, peer: SocketAddr) {
    put(fd, peer, true);
}

fn put(fd: c_int, peer: SocketAddr, is_asked: bool) {
    if let (Ok(cookie), Some(slot)) = (sys::cookie(fd), slot_or_new(fd)) {
        slot.write(Some(Entry {
            cookie,
            peer,
            is_asked,
        }));
    }
}

/// Removes the entry of a socket.
pub fn forget(fd: c_int) {
    if let Some(slot) = slot(fd)
        && slot.read().is_some()
    {
        slot.write(None);
    }
}

/// The true peer of a socket, if it is in the table. If it is not, this costs a load or two.
pub fn true_peer(fd: c_int) -> Option<SocketAddr> {
    let entry = slot(fd)?.read()?;
    (sys::cookie(fd) == Ok(entry.cookie)).then_some(entry.peer)
}

/// The true peer of a socket for which a verdict will come.
pub fn asked(fd: c_int) -> Option<SocketAddr> {
    let entry = slot(fd)?.read().filter(|entry| entry.is_asked)?;
    (sys::cookie(fd) == Ok(entry.cookie)).then_some(entry.peer)
}

/// Copies an entry, because the descriptor `new` is now the same socket as `old`.
pub fn copy(old: c_int, new: c_int) {
    if let Some(entry) = slot(old).and_then(Slot::read)
        && let Some(slot) = slot_or_new(new)
    {
        slot.write(Some(entry));
    }
}

fn slot(fd: c_int) -> Option<&'static Slot> {
    let index = usize::try_from(fd).ok()?;
    let chunk = CHUNK.get(index / CHUNK_SLOTS)?.load(Ordering::Acquire);
    // SAFETY: a pointer that is published here stays valid and shared until the process ends.
    let chunk = unsafe { chunk.as_ref() }?;
    chunk.0.get(index % CHUNK_SLOTS)
}

fn slot_or_new(fd: c_int) -> Option<&'static Slot> {
    let index = usize::try_from(fd).ok()? / CHUNK_SLOTS;
    let chunk = CHUNK.get(index)?;
    if chunk.load(Ordering::Acquire).is_null() {
        let new = new_chunk()?;
        let none = std::ptr::null_mut();
        if chunk
            .compare_exchange(none, new, Ordering::AcqRel, Ordering::Acquire)
            .is_err()
        {
            // SAFETY: this is the mapping just made, which nobody else has seen.
            unsafe { libc::munmap(new.cast(), size_of::<Chunk>()) };
        }
    }
    slot(fd)
}

/// Makes a chunk with mmap: a signal handler must not call the allocator.
fn new_chunk() -> Option<*mut Chunk> {
    let (protection, flags) = (
        libc::PROT_READ | libc::PROT_WRITE,
        libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
    );
    // SAFETY: this is a new private mapping, of zeroes, aligned to a page.
    let chunk = unsafe { libc::mmap(std::ptr::null_mut(), size_of::<Chunk>(), protection, flags, -1, 0) };
    (chunk != libc::MAP_FAILED).then_some(chunk.cast())
}

impl Slot {
    /// Returns `None` if the slot is empty, or a writer takes too long: only the user of the descriptor
    /// writes.
    fn read(&self) -> Option<Entry> {
        for _ in 0..SPINS {
            let before = self.sequence.load(Ordering::Acquire);
            let cookie = self.cookie.load(Ordering::Relaxed);
            let (high, low) = (
                self.high.load(Ordering::Relaxed),
                self.low.load(Ordering::Relaxed),
            );
            let port_and_family = self.port_and_family.load(Ordering::Relaxed);
            fence(Ordering::Acquire);
            if before.is_multiple_of(2) && self.sequence.load(Ordering::Relaxed) == before {
                let entry = Entry {
                    cookie,
                    peer: unpack(port_and_family, high, low),
                    is_asked: port_and_family & ASKED != 0,
                };
                return (cookie != 0).then_some(entry);
            }
            std::hint::spin_loop();
        }
        None
    }

    fn write(&self, entry: Option<Entry>) {
        let odd = self.lock();
        let (cookie, (mut port_and_family, high, low)) =
            entry.map_or((0, (0, 0, 0)), |entry| (entry.cookie, pack(entry.peer)));
        if entry.is_some_and(|entry| entry.is_asked) {
            port_and_family |= ASKED;
        }
        self.cookie.store(cookie, Ordering::Relaxed);
        self.high.store(high, Ordering::Relaxed);
        self.low.store(low, Ordering::Relaxed);
        self.port_and_family.store(port_and_family, Ordering::Relaxed);
        self.sequence.store(odd.wrapping_add(1), Ordering::Release);
    }

    /// Makes the sequence odd and returns it. Takes a slot over from a writer that was lost in a fork.
    fn lock(&self) -> u32 {
        let mut tries = 0;
        loop {
            let seen = self.sequence.load(Ordering::Relaxed);
            let odd = if seen.is_multiple_of(2) {
                seen.wrapping_add(1)
            } else {
                seen.wrapping_add(2)
            };
            tries += 1;
            let free = seen.is_multiple_of(2) || tries > SPINS;
            if free
                && self
                    .sequence
                    .compare_exchange(seen, odd, Ordering::Acquire, Ordering::Relaxed)
                    .is_ok()
            {
                fence(Ordering::Release);
                return odd;
            }
            std::hint::spin_loop();
        }
    }
}

fn pack(peer: SocketAddr) -> (u32, u64, u64) {
    let (family, bits) = match peer.ip() {
        IpAddr::V4(ip) => (4, u128::from(ip.to_bits())),
        IpAddr::V6(ip) => (6, ip.to_bits()),
    };
    (
        family << 16 | u32::from(peer.port()),
        (bits >> 64) as u64,
        bits as u64,
    )
}

fn unpack(port_and_family: u32, high: u64, low: u64) -> SocketAddr {
    let ip: IpAddr = match (port_and_family & !ASKED) >> 16 {
        4 => std::net::Ipv4Addr::from_bits(low as u32).into(),
        _ => Ipv6Addr::from_bits(u128::from(high) << 64 | u128::from(low)).into(),
    };
    SocketAddr::new(ip, port_and_family as u16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream, UdpSocket};
    use std::os::fd::AsRawFd;

    fn peer(port: u16) -> SocketAddr {
        SocketAddr::new("10.2.0.1".parse().unwrap(), port)
    }

    #[test]
    fn addresses_survive_packing() {
        for text in [
            "10.2.0.1:65535",
            "[fd00:2::1]:1",
            "[::ffff:10.2.0.1]:80",
            "0.0.0.0:0",
        ] {
            let (port_and_family, high, low) = pack(text.parse().unwrap());
            assert_eq!(unpack(port_and_family, high, low), text.parse().unwrap());
        }
    }

    #[test]
    fn an_entry_is_of_one_socket_and_not_of_its_number() {
        let (one, other) = (
            UdpSocket::bind("127.0.0.1:0").unwrap(),
            UdpSocket::bind("127.0.0.1:0").unwrap(),
        );
        note(one.as_raw_fd(), peer(1));
        assert_eq!(true_peer(one.as_raw_fd()), Some(peer(1)));
        copy(one.as_raw_fd(), other.as_raw_fd());
        assert_eq!(true_peer(other.as_raw_fd()), None);
        forget(one.as_raw_fd());
        assert_eq!(true_peer(one.as_raw_fd()), None);
    }

    #[test]
    fn numbers_out_of_range_are_nobodys() {
        for fd in [-1, c_int::MIN, c_int::MAX, (CHUNKS * CHUNK_SLOTS) as c_int] {
            note(fd, peer(1));
            copy(0, fd);
            forget(fd);
            assert_eq!(true_peer(fd), None);
        }
    }

    #[test]
    fn a_slot_whose_writer_was_lost_in_a_fork_reads_as_empty_and_can_be_written_again() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let fd = stream.as_raw_fd();
        note(fd, peer(1));
        slot(fd).unwrap().lock();
        assert_eq!(true_peer(fd), None);
        note(fd, peer(2));
        assert_eq!(true_peer(fd), Some(peer(2)));
    }

    #[test]
    fn readers_never_see_half_of_an_entry() {
        let slot: &'static Slot = &Box::leak(Box::new(Chunk(std::array::from_fn(|_| Slot {
            sequence: AtomicU32::new(0),
            port_and_family: AtomicU32::new(0),
            cookie: AtomicU64::new(0),
            high: AtomicU64::new(0),
            low: AtomicU64::new(0),
        }))))
        .0[0];
        let writer = std::thread::spawn(move || {
            for round in 1..=200_000_u32 {
                let ip = Ipv6Addr::from_bits(u128::from(round) << 64 | u128::from(round));
                let peer = SocketAddr::new(ip.into(), round as u16);
                slot.write(Some(Entry {
                    cookie: round.into(),
                    peer,
                    is_asked: round % 2 == 0,
                }));
            }
        });
        while !writer.is_finished() {
            if let Some(entry) = slot.read() {
                let (port_and_family, high, low) = pack(entry.peer);
                assert_eq!((high, low), (entry.cookie, entry.cookie));
                assert_eq!(port_and_family as u16, entry.cookie as u16);
                assert_eq!(entry.is_asked, entry.cookie % 2 == 0);
            }
        }
        writer.join().unwrap();
    }
}
