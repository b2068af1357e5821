//! Messages to and fro over TCP, without an MPI: what the section `plain` starts.

use super::relay;
use clap::Subcommand;
use std::fmt::Write as _;
use std::io::{Error, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Whoever is connected to may be started a little later.
const START: Duration = Duration::from_secs(10);
const AGAIN: Duration = Duration::from_millis(10);

/// Rounds before the clock counts.
const WARM_UP: u32 = 20;

/// A part, one connection long.
#[derive(Debug, Subcommand)]
pub enum Byte {
    /// A rank of two: the first sends a message, waits busily until it is back, and so on; the other sends
    /// back what arrives.
    Rank {
        /// Where the other listens.
        port: u16,
        /// HOST:PORT that the first connects to.
        to: String,
        /// Round trips.
        #[arg(long, default_value_t = 1000)]
        count: u32,
        /// Bytes of a message.
        #[arg(long, default_value_t = 1)]
        size: usize,
        /// Milliseconds before each round trip.
        #[arg(long, default_value_t = 0)]
        idle: u64,
        /// Where to write half of each, in microseconds.
        file: PathBuf,
    },
    /// Copies both ways; sleeps meanwhile, as gateways do.
    Relay {
        /// Where to listen.
        port: u16,
        /// HOST:PORT to which it passes bytes on.
        to: String,
    },
}

/// What a launcher tells a rank.
const RANK: &str = "OMPI_COMM_WORLD_RANK";

/// See [`Byte`].
///
/// # Errors
/// No connection, or no file.
pub fn main(part: &Byte) -> Result<(), Error> {
    match part {
        Byte::Relay { port, to } => {
            let near = accept(*port)?;
            pass_on(&near, &connect(to)?)
        }
        Byte::Rank {
            port,
            to,
            count,
            size,
            idle,
            file,
        } => match std::env::var(RANK).as_deref() {
            Ok("0") => std::fs::write(
                file,
                ping(&connect(to)?, *count, *size, Duration::from_millis(*idle))?,
            ),
            Ok(_) => echo(&accept(*port)?, *size),
            Err(_) => Err(Error::other(format!(
                "{RANK} is not set: start this by a launcher"
            ))),
        },
    }
}

fn echo(stream: &TcpStream, size: usize) -> Result<(), Error> {
    stream.set_nonblocking(true)?;
    let mut message = vec![0; size];
    while take(stream, &mut message)? {
        give(stream, &message)?;
    }
    Ok(())
}

/// Rows as the MPI ping-pong writes them.
fn ping(stream: &TcpStream, count: u32, size: usize, idle: Duration) -> Result<String, Error> {
    stream.set_nonblocking(true)?;
    let mut message = vec![1; size];
    let mut rows = "size_bytes,iteration,one_way_us\n".to_owned();
    for round in 0..WARM_UP + count {
        std::thread::sleep(idle);
        let began = Instant::now();
        give(stream, &message)?;
        if !take(stream, &mut message)? {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        let one_way = began.elapsed().as_secs_f64() * 1e6 / 2.0;
        if let Some(iteration) = round.checked_sub(WARM_UP) {
            let _ = writeln!(rows, "{size},{iteration},{one_way:.3}");
        }
    }
    Ok(rows)
}

/// False at the end of what arrives.
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

/// Passes bytes on in both directions until both ends have ended.
fn pass_on(near: &TcpStream, far: &TcpStream) -> Result<(), Error> {
    std::thread::scope(|scope| {
        let back = scope.spawn(|| relay::copy(far, near));
        relay::copy(near, far)?;
        back.join().map_err(|_| Error::other("a relay panicked"))??;
        Ok(())
    })
}

fn accept(port: u16) -> Result<TcpStream, Error> {
    let (stream, _) = TcpListener::bind((Ipv4Addr::UNSPECIFIED, port))?.accept()?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

fn connect(to: &str) -> Result<TcpStream, Error> {
    let end = Instant::now() + START;
    loop {
        match TcpStream::connect(to) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Err(error) if Instant::now() > end => return Err(error),
            Err(_) => std::thread::sleep(AGAIN),
        }
    }
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
    fn a_message_comes_back_through_a_relay_as_often_as_it_is_sent() {
        let ((near, entry), (exit, far)) = (pair(), pair());
        let rows = std::thread::scope(|scope| {
            scope.spawn(|| pass_on(&entry, &exit).unwrap());
            scope.spawn(|| echo(&far, 100_000).unwrap());
            let rows = ping(&near, 3, 100_000, Duration::ZERO).unwrap();
            near.shutdown(std::net::Shutdown::Write).unwrap();
            far.shutdown(std::net::Shutdown::Write).unwrap();
            rows
        });
        assert_eq!(rows.lines().count(), 4, "{rows}");
        assert!(rows.lines().last().unwrap().starts_with("100000,2,"), "{rows}");
    }
}
