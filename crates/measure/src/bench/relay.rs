//! A perfect copy, which shows what this host can reach: relays that only read from one loopback socket and
//! write to the next. Two of them in a row do what two gateways cannot avoid.

use nix::time::{ClockId, clock_gettime};
use std::io::{Error, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::thread::JoinHandle;
use std::time::Duration;

/// Size of a read. Larger ones do not copy faster here; smaller ones call the kernel more often.
const BUFFER_BYTES: usize = 256 << 10;

/// Relays in a row, with one thread for each and one direction.
pub struct Relays(Vec<JoinHandle<Result<Duration, Error>>>);

/// A chain of `relays` relays: its entry, its exit, and the relays.
///
/// # Errors
/// There are no sockets.
pub fn chain(relays: usize) -> Result<(TcpStream, TcpStream, Relays), Error> {
    let (entry, mut end) = pair()?;
    let mut threads = Vec::new();
    for _ in 0..relays {
        let (next, next_end) = pair()?;
        let from = std::mem::replace(&mut end, next_end);
        threads.push(std::thread::spawn(move || copy(&from, &next)));
    }
    Ok((entry, end, Relays(threads)))
}

impl Relays {
    /// CPU seconds that all of them have used, once the entry is closed and everything has come out.
    ///
    /// # Errors
    /// A relay failed.
    pub fn cpu_seconds(self) -> Result<f64, Error> {
        let mut sum = 0.0;
        for thread in self.0 {
            let spent = thread.join().map_err(|_| Error::other("a relay panicked"))?;
            sum += spent?.as_secs_f64();
        }
        Ok(sum)
    }
}

/// CPU time that this thread has used, at the end of what `from` delivers.
pub fn copy(mut from: &TcpStream, mut to: &TcpStream) -> Result<Duration, Error> {
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        match from.read(&mut buffer)? {
            0 => break,
            count => to.write_all(&buffer[..count])?,
        }
    }
    to.shutdown(Shutdown::Write)?;
    Ok(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)?.into())
}

fn pair() -> Result<(TcpStream, TcpStream), Error> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let near = TcpStream::connect(listener.local_addr()?)?;
    let (far, _) = listener.accept()?;
    for end in [&near, &far] {
        end.set_nodelay(true)?;
    }
    Ok((near, far))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_in_comes_out_and_the_end_follows_it() {
        let (mut entry, mut exit, relays) = chain(2).unwrap();
        let sent: Vec<u8> = (0..1_000_000_u32).map(|at| (at % 251) as u8).collect();
        let mut got = Vec::new();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                entry.write_all(&sent).unwrap();
                entry.shutdown(Shutdown::Write).unwrap();
            });
            exit.read_to_end(&mut got).unwrap();
        });
        assert!(got == sent);
        assert!(relays.cpu_seconds().unwrap() > 0.0);
    }
}
