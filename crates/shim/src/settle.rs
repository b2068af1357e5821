//! The outcome of a connect() that does not block.
//!
//! Such a call returns EINPROGRESS; the program waits until the socket is writable and asks for SO_ERROR,
//! calls connect() again or asks for the peer. Our socket is writable at once, since the gateway has accepted
//! it. So the answer is given when the program asks: the gateway sends the verdict as urgent data, which is
//! not part of the stream, and the program's call waits for it, in most cases for a round trip to the
//! destination. A program that does not ask still reads nothing but its own data, and a refusal reaches it as
//! a reset.
//!
//! MPI libraries connect only to sockets that listen. Waiting would cost them a round trip for each peer, so
//! their connections succeed at once and ask for no verdict.

use crate::context::context;
use crate::fault::Fault;
use crate::route::{Route, Way, route};
use crate::sys::{self, Errno};
use crate::table;
use causeway_wire::{Reason, Verdict};
use libc::c_int;
use std::ffi::CStr;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// The longest wait in a call that must not block. The refusal of a host is known after a round trip, and
/// that a host does not exist after 3 s, when its gateway's kernel has given up.
const PATIENCE: Duration = Duration::from_secs(4);

/// The beginnings of the file names of MPI libraries and of their transports. Causeway's own libraries above
/// MPI, which wait for their peer's greeting anyway, are included.
const MPI_LIBRARIES: &[&[u8]] = &[
    b"libcauseway_",
    b"libmpi",
    b"libopen-",
    b"mca_",
    b"libprrte",
    b"libpmix",
    b"libfabric",
    b"libtcp-fi",
    b"libucs",
    b"libuct",
    b"libucp",
    b"libucm",
];

/// The bytes of the gateway's proof, which connect() itself has read.
const PROOF: u64 = causeway_wire::preface::ANSWER_BYTES as u64;

/// The outcome of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settled {
    /// The outcome was never open, or has been reported already.
    Native,
    /// The destination has accepted; this is reported once.
    Connected,
    /// The destination has not accepted; the socket can connect again.
    Failed(Errno),
    /// The answer takes longer than a call may wait.
    Later,
}

/// Whether the call that returns to this address came from an MPI.
pub fn is_mpi(caller: usize) -> bool {
    // SAFETY: zeroes are a valid Dl_info, and dladdr can fill it in from any address.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: as above.
    let found = unsafe { libc::dladdr(std::ptr::without_provenance(caller), &raw mut info) };
    if found == 0 || info.dli_fname.is_null() {
        return false;
    }
    // SAFETY: this is the loader's own string, which lives as long as the library.
    let path = unsafe { CStr::from_ptr(info.dli_fname) }.to_bytes();
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    MPI_LIBRARIES.iter().any(|library| name.starts_with(library))
}

/// Whether a socket can get the verdict outside its stream: it cannot if it reads urgent data in line.
pub fn can_be_told(fd: c_int) -> bool {
    sys::option::<c_int>(fd, libc::SOL_SOCKET, libc::SO_OOBINLINE) == Ok(0)
}

/// Waits for the verdict on a connection, if there will be one.
pub fn settle(fd: c_int) -> Settled {
    let Some(destination) = table::asked(fd) else {
        return Settled::Native;
    };
    match verdict(fd, Instant::now() + PATIENCE) {
        Ok(None) => Settled::Later,
        Ok(Some(Verdict::Connected)) => {
            table::note(fd, destination);
            Settled::Connected
        }
        Ok(Some(Verdict::Failed(reason))) => failed(fd, destination, |way| Fault::Verdict(way, reason)),
        Err(why) => failed(fd, destination, |way| Fault::Unclear(way, why)),
    }
}

/// Reports what errno cannot say about a failure, and restores the socket.
fn failed<'a>(fd: c_int, destination: SocketAddr, fault: impl FnOnce(Way<'a>) -> Fault<'a>) -> Settled {
    table::forget(fd);
    sys::dissolve(fd);
    let context = context();
    let way = context.and_then(|context| match route(context, destination) {
        Route::Gateway(way) => Some((context, way)),
        Route::Native | Route::NoGateway(_) => None,
    });
    let Some((context, way)) = way else {
        return Settled::Failed(Errno(libc::ECONNREFUSED));
    };
    let fault = fault(way);
    fault.report(context, destination);
    Settled::Failed(fault.errno())
}

/// The verdict; `None` if it has not come by the deadline.
fn verdict(fd: c_int, deadline: Instant) -> Result<Option<Verdict>, &'static str> {
    const CLOSED: &str = "it closed the connection without a verdict";
    let mut had_ended = false;
    loop {
        // Data may arrive between two checks. So the received bytes are counted before the check for the end,
        // which counts as one byte, and both come before the check for the verdict, which precedes all other
        // bytes.
        let received = sys::received_bytes(fd);
        let (has_data, has_ended) = match sys::peek(fd, &mut [0]) {
            Ok(count) => (count > 0, count == 0),
            Err(Errno(libc::EAGAIN | libc::EINTR)) => (false, false),
            Err(_) => return Err(CLOSED),
        };
        match sys::receive_urgent(fd) {
            Ok(Some(code)) => {
                let unknown = Verdict::Failed(Reason::Protocol);
                return Ok(Some(Verdict::from_code(code).unwrap_or(unknown)));
            }
            Ok(None) => {}
            Err(_) => return Err(CLOSED),
        }
        // In this case the verdict was read through another descriptor. An emulator does not report how much
        // was received.
        if has_data || received > PROOF + u64::from(has_ended) {
            return Ok(Some(Verdict::Connected));
        }
        if has_ended && had_ended {
            return Err(CLOSED);
        }
        had_ended = has_ended;
        let news = libc::POLLPRI | libc::POLLIN | libc::POLLRDHUP;
        match sys::wait(fd, news, deadline) {
            Ok(true) => {}
            Ok(false) => return Ok(None),
            Err(_) => return Err(CLOSED),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;

    fn urgent(stream: &TcpStream, code: u8) {
        // SAFETY: this is one live byte.
        let sent = unsafe { libc::send(stream.as_raw_fd(), (&raw const code).cast(), 1, libc::MSG_OOB) };
        assert_eq!(sent, 1);
    }

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut process = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut gateway = listener.accept().unwrap().0;
        gateway.write_all(&[0; PROOF as usize]).unwrap();
        process.read_exact(&mut [0; PROOF as usize]).unwrap();
        (process, gateway)
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(10)
    }

    #[test]
    fn a_verdict_stands_beside_the_stream_whether_it_is_asked_for_or_not() {
        for asks in [true, false] {
            let (mut process, mut gateway) = pair();
            urgent(&gateway, 0);
            gateway.write_all(b"data").unwrap();
            if asks {
                assert_eq!(verdict(process.as_raw_fd(), soon()), Ok(Some(Verdict::Connected)));
                // The verdict may be asked for again, for example through a duplicate of the socket.
                assert_eq!(verdict(process.as_raw_fd(), soon()), Ok(Some(Verdict::Connected)));
            }
            let mut read = [0; 4];
            process.read_exact(&mut read).unwrap();
            assert_eq!(&read, b"data");
        }
    }

    #[test]
    fn a_refusal_is_known_also_where_the_gateway_has_closed() {
        let (process, gateway) = pair();
        urgent(&gateway, Reason::Refused as u8);
        drop(gateway);
        let refused = Ok(Some(Verdict::Failed(Reason::Refused)));
        assert_eq!(verdict(process.as_raw_fd(), soon()), refused);
        let (process, gateway) = pair();
        drop(gateway);
        assert!(verdict(process.as_raw_fd(), soon()).is_err());
        let (process, _gateway) = pair();
        assert_eq!(verdict(process.as_raw_fd(), Instant::now()), Ok(None));
    }

    #[test]
    fn a_refusal_that_comes_while_it_is_looked_for_is_no_success() {
        for _ in 0..3000 {
            let (process, gateway) = pair();
            let teller = std::thread::spawn(move || urgent(&gateway, Reason::Refused as u8));
            let refused = Ok(Some(Verdict::Failed(Reason::Refused)));
            assert_eq!(verdict(process.as_raw_fd(), soon()), refused);
            teller.join().unwrap();
        }
    }

    #[test]
    fn what_no_mpi_has_called_is_the_programs_own() {
        assert!(!is_mpi(soon as fn() -> Instant as usize));
        assert!(!is_mpi(0));
        assert!(!is_mpi(libc::malloc as *const () as usize));
    }
}
