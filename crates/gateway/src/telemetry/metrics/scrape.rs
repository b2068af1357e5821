//! One reader of the metrics: its request, its answer, and how it ends.

use super::http::{self, Wanted};
use mio::net::TcpStream;
use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;

/// A scraper's request has some hundred bytes.
const REQUEST_BYTES: usize = 8 * 1024;

/// Most bytes that a client may go on sending after its request.
const IGNORED_BYTES: usize = 64 * 1024;

pub(crate) struct Scrape {
    pub(super) socket: TcpStream,
    pub(super) peer: SocketAddr,
    pub(super) generation: u64,
    pub(super) stage: Stage,
}

pub(super) enum Stage {
    /// The part of the request that has arrived.
    Reading(Vec<u8>),
    /// The answer, and how much of it the kernel has taken.
    Answering(Vec<u8>, usize),
    /// The answer is sent; discards up to this many further bytes, because a socket that is closed with
    /// unread input sends a reset, which may overtake the answer.
    Ending(usize),
}

/// The outcome of using what the kernel has for a connection.
pub(super) enum Step {
    Waits,
    Asks(Wanted),
    Done,
}

impl Scrape {
    pub(super) fn advance(&mut self) -> io::Result<Step> {
        loop {
            match self.advance_once() {
                Ok(Some(step)) => return Ok(step),
                Ok(None) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Step::Waits),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Makes one system call; `None` if another one may do more.
    fn advance_once(&mut self) -> io::Result<Option<Step>> {
        match &mut self.stage {
            Stage::Reading(request) => {
                let mut bytes = [0; REQUEST_BYTES];
                let count = self.socket.read(&mut bytes[..REQUEST_BYTES - request.len()])?;
                request.extend_from_slice(&bytes[..count]);
                Ok(match http::wanted(request) {
                    Some(wanted) => Some(Step::Asks(wanted)),
                    None if request.len() == REQUEST_BYTES => {
                        Some(Step::Asks(Wanted::Nothing("the request is longer than 8 KiB")))
                    }
                    None if count == 0 => Some(Step::Done),
                    None => None,
                })
            }
            Stage::Answering(answer, written) => {
                *written += self.socket.write(&answer[*written..])?;
                if *written == answer.len() {
                    self.socket.shutdown(std::net::Shutdown::Write)?;
                    self.stage = Stage::Ending(IGNORED_BYTES);
                }
                Ok(None)
            }
            Stage::Ending(left) => {
                let mut bytes = [0; REQUEST_BYTES];
                let count = self.socket.read(&mut bytes)?;
                *left = left.saturating_sub(count);
                Ok((count == 0 || *left == 0).then_some(Step::Done))
            }
        }
    }
}
