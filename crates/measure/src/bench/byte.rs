//! One byte to and fro over TCP, without an MPI: directly, or through relays that only copy. What gateways add has to be compared with what these do.

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
    /// Sends back what arrives; waits busily, as ranks do.
    Echo {
        /// Where to listen.
        port: u16,
    },
    /// Copies both ways; sleeps meanwhile, as gateways do.
    Relay {
        /// Where to listen.
        port: u16,
        /// HOST:PORT of whom to pass it on to.
        to: String,
    },
    /// Sends a byte, waits busily until it is back, and so on.
    Ping {
        /// HOST:PORT.
        to: String,
        /// Round trips.
        #[arg(long, default_value_t = 1000)]
        count: u32,
        /// Where to write half of each, in microseconds.
        file: PathBuf,
    },
}

/// See [`Byte`].
///
/// # Errors
/// No connection, or no file.
pub fn main(part: &Byte) -> Result<(), Error> {
    match part {
        Byte::Echo { port } => echo(&accept(*port)?),
        Byte::Relay { port, to } => {
            let near = accept(*port)?;
            pass_on(&near, &connect(to)?)
        }
        Byte::Ping { to, count, file } => std::fs::write(file, ping(&connect(to)?, *count)?),
    }
}

fn echo(mut stream: &TcpStream) -> Result<(), Error> {
    stream.set_nonblocking(true)?;
    while read_one(stream)? {
        stream.write_all(&[1])?;
    }
    Ok(())
}

/// Rows as the MPI ping-pong writes them.
fn ping(mut stream: &TcpStream, count: u32) -> Result<String, Error> {
    stream.set_nonblocking(true)?;
    let mut rows = "size_bytes,iteration,one_way_us\n".to_owned();
    for round in 0..WARM_UP + count {
        let began = Instant::now();
        stream.write_all(&[1])?;
        if !read_one(stream)? {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        let one_way = began.elapsed().as_secs_f64() * 1e6 / 2.0;
        if let Some(iteration) = round.checked_sub(WARM_UP) {
            let _ = writeln!(rows, "1,{iteration},{one_way:.3}");
        }
    }
    Ok(rows)
}

/// False at the end of what arrives.
fn read_one(mut stream: &TcpStream) -> Result<bool, Error> {
    loop {
        match stream.read(&mut [0]) {
            Ok(count) => return Ok(count > 0),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
}

/// Until both ends have ended.
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
    fn a_byte_comes_back_through_a_relay_as_often_as_it_is_sent() {
        let ((near, entry), (exit, far)) = (pair(), pair());
        let rows = std::thread::scope(|scope| {
            scope.spawn(|| pass_on(&entry, &exit).unwrap());
            scope.spawn(|| echo(&far).unwrap());
            let rows = ping(&near, 3).unwrap();
            near.shutdown(std::net::Shutdown::Write).unwrap();
            far.shutdown(std::net::Shutdown::Write).unwrap();
            rows
        });
        assert_eq!(rows.lines().count(), 4, "{rows}");
        assert!(rows.lines().last().unwrap().starts_with("1,2,"), "{rows}");
    }
}
