//! Sends messages back and forth over TCP, without an MPI, to see what the path gives by itself. Also keeps a
//! link busy beside other measurements.
//!
//! Two ranks of a launcher: the first connects, sends and waits busily; the other sends back what arrives.
//!
//! A connection begins with a proof of each rank that it knows the job's token, so that nobody else who finds
//! the port, or listens there first, is taken for a rank: a nonce of 16 bytes each way, then a tag of 8 bytes
//! over both ([`causeway_wire::proof`]). Each series is preceded by its head: the size and the number of
//! messages, eight bytes each, little-endian.

use causeway_mpis::names::RANKS;
use causeway_wire::Token;
use causeway_wire::proof::{TAG_BYTES, same, tag};
use std::io::{Error, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// How long to wait for the other rank, which may be started a little later.
const START: Duration = Duration::from_secs(20);
const AGAIN: Duration = Duration::from_millis(10);

/// Rounds before the clock counts; they also tell how long one takes.
const WARM_UP: u64 = 5;

/// Rounds that a median needs, however long they take.
const LEAST: u64 = 5;

/// The longest message. A peer that asks for a longer one is not one of our ranks.
const MOST_BYTES: u64 = 1 << 30;

/// Makes each proof different, so that an old one cannot be used again.
const NONCE_BYTES: usize = 16;

/// How long a peer may take to prove something; after this, it makes way for the next one.
const PROOF_COMES: Duration = Duration::from_secs(1);

/// The size of one write of a flow.
const FLOW_BYTES: usize = 256 << 10;

/// Names what is measured.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Sizes of messages in bytes, each at least 1.
    pub sizes: Vec<u64>,
    /// Rounds of each size, at most.
    pub count: u32,
    /// Time after which fewer rounds suffice.
    pub seconds: f64,
    /// Silence before each round.
    pub idle: Duration,
}

/// The number that a launcher has given this process; `None` if none has started it.
pub fn rank() -> Option<u32> {
    let value = RANKS.iter().find_map(|name| std::env::var(name).ok());
    value?.parse().ok()
}

/// Keeps this process on one core: the first or the last of the host. The nodes of an emulated grid share
/// its cores, and two that wait busily on one of them would measure its time slices.
///
/// # Errors
/// The system refuses.
pub fn stay_on_core(is_first: bool) -> Result<(), Error> {
    // Among all cores of the host, because a launcher may have bound this process to one of them.
    let cores = nix::unistd::sysconf(nix::unistd::SysconfVar::_NPROCESSORS_CONF)?.unwrap_or(1);
    let last = usize::try_from(cores).unwrap_or(1).max(1) - 1;
    let mut set = nix::sched::CpuSet::new();
    set.set(if is_first { 0 } else { last })?;
    Ok(nix::sched::sched_setaffinity(
        nix::unistd::Pid::from_raw(0),
        &set,
    )?)
}

/// Measures the sizes in turn; `each` receives the one-way times of a size, in microseconds: half of each
/// round trip.
///
/// # Errors
/// The connection ended or broke.
pub fn measure(stream: &TcpStream, plan: &Plan, mut each: impl FnMut(u64, &[f64])) -> Result<(), Error> {
    stream.set_nonblocking(true)?;
    for &size in &plan.sizes {
        let warm = series(stream, size, WARM_UP, Duration::ZERO)?;
        let round = warm.last().map_or(0.0, |one_way| one_way * 2.0 / 1e6);
        let fitting = (plan.seconds / round.max(1e-9)) as u64;
        let count = u64::from(plan.count);
        let rounds = fitting.clamp(LEAST.min(count), count);
        each(size, &series(stream, size, rounds, plan.idle)?);
    }
    Ok(())
}

fn series(stream: &TcpStream, size: u64, rounds: u64, idle: Duration) -> Result<Vec<f64>, Error> {
    let mut message = vec![1; message_bytes(size)?];
    let mut head = [0; 16];
    head[..8].copy_from_slice(&size.to_le_bytes());
    head[8..].copy_from_slice(&rounds.to_le_bytes());
    give(stream, &head)?;
    let mut times = Vec::new();
    for _ in 0..rounds {
        if !idle.is_zero() {
            std::thread::sleep(idle);
        }
        let began = Instant::now();
        give(stream, &message)?;
        if !take(stream, &mut message)? {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        times.push(began.elapsed().as_secs_f64() * 1e6 / 2.0);
    }
    Ok(times)
}

/// Sends back what arrives, until the other end has ended.
///
/// # Errors
/// The connection broke, or what arrives is not a series.
pub fn send_back(stream: &TcpStream) -> Result<(), Error> {
    stream.set_nonblocking(true)?;
    let mut head = [0; 16];
    while take(stream, &mut head)? {
        let [size, rounds] = [0, 8].map(|at| {
            let bytes = head[at..].iter().take(8).enumerate();
            bytes.fold(0, |sum, (i, &byte)| sum | u64::from(byte) << (8 * i))
        });
        let mut message = vec![0; message_bytes(size)?];
        for _ in 0..rounds {
            if !take(stream, &mut message)? {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            give(stream, &message)?;
        }
    }
    Ok(())
}

fn message_bytes(size: u64) -> Result<usize, Error> {
    let fits = (1..=MOST_BYTES).contains(&size);
    let bytes = usize::try_from(size).ok().filter(|_| fits);
    bytes.ok_or_else(|| {
        Error::other(format!(
            "messages of {size} bytes are not sent: 1 to {MOST_BYTES}"
        ))
    })
}

/// Sends over `flows` connections as fast as possible, until one of them ends.
///
/// # Errors
/// No connection could be opened, or one broke.
pub fn flood(to: &str, token: &Token, flows: usize) -> Result<(), Error> {
    let streams: Result<Vec<_>, _> = (0..flows).map(|_| connect(to, token)).collect();
    let buffer = vec![0x5a; FLOW_BYTES];
    std::thread::scope(|scope| {
        for stream in streams? {
            let buffer = &buffer;
            scope.spawn(move || while (&stream).write_all(buffer).is_ok() {});
        }
        Ok(())
    })
}

/// Reads from `flows` connections until they end; calls `all_there` when each has begun.
///
/// # Errors
/// This process cannot listen at the port.
pub fn drain(port: u16, token: &Token, flows: usize, all_there: impl FnOnce()) -> Result<(), Error> {
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, port))?;
    std::thread::scope(|scope| {
        for _ in 0..flows {
            let mut stream = next_with(&listener, token)?;
            scope.spawn(move || std::io::copy(&mut stream, &mut std::io::sink()));
        }
        all_there();
        Ok(())
    })
}

/// Reads a message; false if nothing more arrives.
fn take(mut stream: &TcpStream, message: &mut [u8]) -> Result<bool, Error> {
    let mut got = 0;
    while got < message.len() {
        match stream.read(&mut message[got..]) {
            Ok(0) => return Ok(false),
            Ok(count) => got += count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

fn give(mut stream: &TcpStream, message: &[u8]) -> Result<(), Error> {
    let mut sent = 0;
    while sent < message.len() {
        match stream.write(&message[sent..]) {
            Ok(count) => sent += count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Waits on `port` for a connection from a rank that knows the token.
///
/// # Errors
/// This process cannot listen at the port.
pub fn accept(port: u16, token: &Token) -> Result<TcpStream, Error> {
    next_with(&TcpListener::bind((Ipv4Addr::UNSPECIFIED, port))?, token)
}

fn next_with(listener: &TcpListener, token: &Token) -> Result<TcpStream, Error> {
    loop {
        let (stream, _) = listener.accept()?;
        if prove(&stream, token, End::Accepts, PROOF_COMES).is_ok() {
            return Ok(stream);
        }
    }
}

/// Connects to HOST:PORT, and tries again for a while if nobody listens yet.
///
/// # Errors
/// Nobody listens in time, or the listener does not know the token.
pub fn connect(to: &str, token: &Token) -> Result<TcpStream, Error> {
    let end = Instant::now() + START;
    loop {
        match TcpStream::connect(to) {
            Ok(stream) => {
                let left = end.saturating_duration_since(Instant::now()).max(PROOF_COMES);
                let proved = prove(&stream, token, End::Connects, left);
                let failed = |error: Error| Error::new(error.kind(), format!("the rank at {to}: {error}"));
                return proved.map_err(failed).map(|()| stream);
            }
            Err(error) if Instant::now() > end => {
                return Err(Error::new(error.kind(), format!("connect to {to}: {error}")));
            }
            Err(_) => std::thread::sleep(AGAIN),
        }
    }
}

/// Which end of a connection makes a proof, so that no proof can be sent back as one's own.
#[derive(Clone, Copy)]
enum End {
    Connects,
    Accepts,
}

impl End {
    fn other(self) -> End {
        match self {
            End::Connects => End::Accepts,
            End::Accepts => End::Connects,
        }
    }
}

/// Proves to the other end that this one knows the token, and has the other prove it, too.
fn prove(mut stream: &TcpStream, token: &Token, end: End, patience: Duration) -> Result<(), Error> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(patience))?;
    let (mut own, mut others) = ([0; NONCE_BYTES], [0; NONCE_BYTES]);
    getrandom::fill(&mut own).map_err(Error::other)?;
    stream.write_all(&own)?;
    stream.read_exact(&mut others)?;
    let proof = |end: End, own: &[u8], others: &[u8]| {
        let name: &[u8] = match end {
            End::Connects => b"bench connects",
            End::Accepts => b"bench accepts",
        };
        tag(token, &[name, own, others])
    };
    stream.write_all(&proof(end, &own, &others))?;
    let mut heard = [0; TAG_BYTES];
    stream.read_exact(&mut heard)?;
    if !same(&heard, &proof(end.other(), &others, &own)) {
        let why = "what is there does not know the job's token";
        return Err(Error::new(ErrorKind::PermissionDenied, why));
    }
    stream.set_read_timeout(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (near, listener.accept().unwrap().0)
    }

    #[test]
    fn every_size_comes_back_as_often_as_it_is_sent() {
        let (near, far) = pair();
        let plan = Plan {
            sizes: vec![1, 100_000],
            count: 7,
            seconds: 100.0,
            idle: Duration::ZERO,
        };
        let mut seen = Vec::new();
        std::thread::scope(|scope| {
            scope.spawn(|| send_back(&far).unwrap());
            measure(&near, &plan, |size, times| seen.push((size, times.len()))).unwrap();
            near.shutdown(std::net::Shutdown::Write).unwrap();
        });
        assert_eq!(seen, [(1, 7), (100_000, 7)]);
    }

    #[test]
    fn whoever_does_not_know_the_token_is_not_taken_for_a_rank_at_either_end() {
        let (ours, others) = (Token([7; 16]), Token([8; 16]));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let to = listener.local_addr().unwrap().to_string();
        let _silent = TcpStream::connect(&to).unwrap();
        let echo = TcpStream::connect(&to).unwrap();
        std::thread::scope(|scope| {
            // Sends back whatever it receives, including the proof.
            scope.spawn(|| std::io::copy(&mut &echo, &mut &echo));
            let stranger = scope.spawn(|| connect(&to, &others).unwrap_err());
            let rank = scope.spawn(|| connect(&to, &ours).unwrap());
            let taken = next_with(&listener, &ours).unwrap();
            assert_eq!(
                taken.peer_addr().unwrap(),
                rank.join().unwrap().local_addr().unwrap()
            );
            // The stranger may arrive after the rank, and then finds nobody.
            drop((taken, listener));
            stranger.join().unwrap();
        });
    }

    #[test]
    fn a_head_that_asks_for_too_much_is_refused() {
        let (near, far) = pair();
        (&near).write_all(&[0xff; 16]).unwrap();
        assert!(send_back(&far).unwrap_err().to_string().contains("not sent"));
    }
}
