//! Prefaces that arrive after the end of a handshake, as on a busy host: a listener that does not wait would
//! not see them, and is knocked at; one that waits and has answered is not.

use crate::common::{Grid, accept_silently, cross, pattern, wait_for};
use causeway_wire::{Sender, Verdict};
use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread::JoinHandle;

/// A host that is busy when a stream is delivered may take longer to answer than a gateway waits.
const TRIES: usize = 5;

/// A listener whose queue is full, so that a connection request is lost and sent again after a second, and a
/// stream to it.
struct Busy {
    listener: TcpListener,
    near: JoinHandle<Result<TcpStream, Verdict>>,
    _first: TcpStream,
}

impl Busy {
    fn start(grid: &'static Grid) -> Busy {
        let listener = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
        listener.bind(&grid.address(2, 1, 0).into()).unwrap();
        // Linux allows one more than it is told.
        listener.listen(0).unwrap();
        let listener = TcpListener::from(listener);
        let address = listener.local_addr().unwrap();
        let first = TcpStream::connect(address).unwrap();
        let near = std::thread::spawn(move || grid.connect(address));
        wait_for("a connection request without an answer", || is_asked(address));
        Busy {
            listener,
            near,
            _first: first,
        }
    }

    /// Accepts the connections that have filled the queue, then the stream; returns this end of the stream,
    /// and what it is to hear.
    fn take(&self, grid: &Grid) -> (TcpStream, [u8; 8]) {
        drop(self.listener.accept().unwrap());
        let (far, claim) = accept_silently(&self.listener);
        assert!(claim.proven(Sender::Gateway, &grid.token).is_some());
        (far, claim.answer(Sender::Process, &grid.token))
    }

    fn is_knocked_at(&self) -> bool {
        self.listener.set_nonblocking(true).unwrap();
        self.listener.accept().is_ok()
    }
}

/// Whether the kernel has an unanswered connection request to this address of IPv4 (proc_net_tcp).
fn is_asked(address: SocketAddr) -> bool {
    let SocketAddr::V4(address) = address else {
        return false;
    };
    let (ip, port) = (u32::from_ne_bytes(address.ip().octets()), address.port());
    let asked = format!("{ip:08X}:{port:04X} 02 ");
    std::fs::read_to_string("/proc/net/tcp").unwrap().contains(&asked)
}

#[test]
fn a_listener_that_has_not_seen_a_late_preface_is_knocked_at_and_one_that_has_answered_is_not() {
    let grid: &'static Grid = Box::leak(Box::new(Grid::start()));
    for _ in 0..TRIES {
        let (answers, waits) = (Busy::start(grid), Busy::start(grid));
        let (mut early, answer) = answers.take(grid);
        early.write_all(&answer).unwrap();
        // The later of the two: if this one is knocked at, the other one has been, too.
        let (mut late, answer) = waits.take(grid);
        wait_for("a knock", || waits.is_knocked_at());
        late.write_all(&answer).unwrap();
        let is_knocked_at = answers.is_knocked_at();
        for (busy, far) in [(answers, early), (waits, late)] {
            let near = busy.near.join().unwrap().unwrap();
            cross(&near, &far, &pattern(1, 10_000));
            cross(&far, &near, &pattern(2, 10_000));
        }
        if !is_knocked_at {
            return;
        }
    }
    panic!("each of {TRIES} listeners that answered at once was knocked at");
}
