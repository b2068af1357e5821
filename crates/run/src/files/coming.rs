//! Reads what a host sends back; prints a line now and then about how much has come, and stops when a signal
//! comes.

use super::progress::{FIRST, THEN};
use crate::child::ENDING;
use causeway_host::say;
use causeway_service::signals::heeded;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigmaskHow, Signal, sigprocmask};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use std::io::{self, ErrorKind, Read};
use std::os::fd::AsFd;
use std::time::Instant;

/// How often signals are checked while nothing comes, in milliseconds.
const LOOK_EVERY: u16 = 200;

/// Returns the signal that asks the program to end, once one has come.
pub type Asked<'a> = &'a mut dyn FnMut() -> Option<Signal>;

/// Blocks the signals that end a program. The returned function returns the next one that has come.
///
/// # Errors
/// Those of sigprocmask(2) and signalfd(2). It must be called while the process has one thread.
pub fn signals() -> io::Result<impl FnMut() -> Option<Signal>> {
    let ending = heeded(ENDING);
    sigprocmask(SigmaskHow::SIG_BLOCK, Some(&ending), None)?;
    let arriving = SignalFd::with_flags(&ending, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?;
    Ok(move || {
        let come = arriving.read_signal().ok()??;
        Signal::try_from(come.ssi_signo as i32).ok()
    })
}

/// The output of a host.
pub(super) struct Coming<'a, R> {
    from: R,
    site: &'a str,
    asked: Asked<'a>,
    bytes: u64,
    began: Instant,
    next_line: Instant,
    broken_off: Option<Signal>,
}

impl<'a, R: Read + AsFd> Coming<'a, R> {
    pub(super) fn new(from: R, site: &'a str, asked: Asked<'a>) -> Coming<'a, R> {
        let began = Instant::now();
        Coming {
            from,
            site,
            asked,
            bytes: 0,
            began,
            next_line: began + FIRST,
            broken_off: None,
        }
    }

    /// The signal that has stopped the reading, if there was one.
    pub(super) fn broken_off(&self) -> Option<Signal> {
        self.broken_off
    }
}

impl<R: Read + AsFd> Read for Coming<'_, R> {
    /// Waits for bytes.
    ///
    /// # Errors
    /// `ConnectionAborted` once a signal has asked the program to end; those of poll(2) and read(2).
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            self.broken_off = self.broken_off.or_else(|| (self.asked)());
            if let Some(signal) = self.broken_off {
                let text = format!("broken off by {signal}");
                return Err(io::Error::new(ErrorKind::ConnectionAborted, text));
            }
            let now = Instant::now();
            if now >= self.next_line {
                self.next_line = now + THEN;
                say::error(line(self.site, self.bytes, self.began.elapsed().as_secs_f64()));
            }
            let mut wait = [PollFd::new(self.from.as_fd(), PollFlags::POLLIN)];
            match poll(&mut wait, PollTimeout::from(LOOK_EVERY)) {
                Ok(0) | Err(Errno::EINTR) => {}
                Ok(_) => {
                    let count = self.from.read(buffer)?;
                    self.bytes += count as u64;
                    return Ok(count);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}

fn line(site: &str, bytes: u64, seconds: f64) -> String {
    let (megabytes, rate) = (bytes / 1_000_000, bytes as f64 / 1e6 / seconds.max(1e-3));
    format!("causeway: --fetch: {megabytes} MB of {site} have come, {rate:.1} MB/s")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{PipeReader, Write, pipe};

    #[test]
    fn a_signal_breaks_off_what_never_comes_and_every_read_after_it() {
        let (from, mut to) = pipe().unwrap();
        to.write_all(b"some").unwrap();
        let mut looks = 0;
        let mut asked = || {
            looks += 1;
            (looks == 3).then_some(Signal::SIGINT)
        };
        let mut coming = Coming::<PipeReader>::new(from, "nancy", &mut asked);
        let mut buffer = [0; 16];
        assert_eq!(coming.read(&mut buffer).unwrap(), 4);
        for _ in 0..2 {
            let error = coming.read(&mut buffer).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ConnectionAborted);
            assert_eq!(error.to_string(), "broken off by SIGINT");
        }
        assert_eq!(coming.broken_off(), Some(Signal::SIGINT));
    }

    #[test]
    fn a_line_says_how_much_has_come_and_how_fast() {
        let text = "causeway: --fetch: 25 MB of nancy have come, 5.0 MB/s";
        assert_eq!(line("nancy", 25_000_001, 5.0), text);
    }
}
