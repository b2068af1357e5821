//! The programs that the section `plain` starts: the two ends of a ping-pong over TCP without an MPI, and
//! relays that only copy.

use super::relay;
use causeway_bench::tcp::{Plan, accept, connect, measure, rank, send_back};
use causeway_wire::Token;
use clap::Subcommand;
use std::fmt::Write as _;
use std::io::Error;
use std::net::TcpStream;
use std::path::PathBuf;
use std::time::Duration;

/// These run on emulated grids of their own, where nobody else connects.
const KEY: Token = Token([0; 16]);

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
        size: u64,
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

/// See [`Byte`].
///
/// # Errors
/// There is no connection, or no file.
pub fn main(part: &Byte) -> Result<(), Error> {
    match part {
        Byte::Relay { port, to } => {
            let near = accept(*port, &KEY)?;
            pass_on(&near, &connect(to, &KEY)?)
        }
        Byte::Rank {
            port,
            to,
            count,
            size,
            idle,
            file,
        } => match rank() {
            Some(0) => {
                let plan = Plan {
                    sizes: vec![*size],
                    count: *count,
                    seconds: f64::INFINITY,
                    idle: Duration::from_millis(*idle),
                };
                std::fs::write(file, rows(&connect(to, &KEY)?, &plan)?)
            }
            Some(_) => send_back(&accept(*port, &KEY)?),
            None => Err(Error::other("no launcher has set a rank: start this by mpirun")),
        },
    }
}

/// Rows in the form that the MPI ping-pong writes.
fn rows(stream: &TcpStream, plan: &Plan) -> Result<String, Error> {
    let mut rows = "size_bytes,iteration,one_way_us\n".to_owned();
    measure(stream, plan, |size, times| {
        for (iteration, one_way) in times.iter().enumerate() {
            let _ = writeln!(rows, "{size},{iteration},{one_way:.3}");
        }
    })?;
    Ok(rows)
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, TcpListener};

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (near, listener.accept().unwrap().0)
    }

    #[test]
    fn a_message_comes_back_through_a_relay_as_often_as_it_is_sent() {
        let ((near, entry), (exit, far)) = (pair(), pair());
        let plan = Plan {
            sizes: vec![100_000],
            count: 3,
            seconds: f64::INFINITY,
            idle: Duration::ZERO,
        };
        let rows = std::thread::scope(|scope| {
            scope.spawn(|| pass_on(&entry, &exit).unwrap());
            scope.spawn(|| send_back(&far).unwrap());
            let rows = rows(&near, &plan).unwrap();
            near.shutdown(std::net::Shutdown::Write).unwrap();
            far.shutdown(std::net::Shutdown::Write).unwrap();
            rows
        });
        assert_eq!(rows.lines().count(), 4, "{rows}");
        assert!(rows.lines().last().unwrap().starts_with("100000,2,"), "{rows}");
    }
}
