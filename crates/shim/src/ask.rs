//! Asks the gateways of several sites which of them is this node's: where sites have the same private addresses,
//! the node's own ones do not tell, and nothing that differs between sites may travel in the environment.
//!
//! All are asked at once; the first that answers to this job's token is on the node's network, as the others are
//! not: their sites' addresses lead nowhere here, or to this site's own hosts.

use crate::address::Sockaddr;
use crate::sys::{self, Errno};
use causeway_wire::question::{self, Answer, MAX_ANSWER_BYTES};
use causeway_wire::{Site, Token};
use libc::c_int;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// A gateway of the site answers within milliseconds.
const DEADLINE: Duration = Duration::from_secs(3);

/// One question under way; its socket is closed with it.
struct Asked {
    fd: c_int,
    bytes: [u8; MAX_ANSWER_BYTES],
    filled: usize,
    is_sent: bool,
}

impl Drop for Asked {
    fn drop(&mut self) {
        sys::close(self.fd);
    }
}

/// The site among the candidates that this node is in; `None` when no gateway says so in time.
pub fn which<'a>(candidates: &[&'a Site], token: Token) -> Option<&'a Site> {
    let question = question::encode(token);
    let mut gateways: Vec<SocketAddr> = candidates
        .iter()
        .flat_map(|site| site.gateways.iter().copied())
        .collect();
    gateways.sort();
    gateways.dedup();
    let mut asked: Vec<Asked> = gateways.into_iter().filter_map(begin).collect();
    let deadline = Instant::now() + DEADLINE;
    while !asked.is_empty() {
        let wanted: Vec<(c_int, libc::c_short)> = asked
            .iter()
            .map(|one| (one.fd, if one.is_sent { libc::POLLIN } else { libc::POLLOUT }))
            .collect();
        let ready = sys::wait_any(&wanted, deadline).ok()?;
        // The deadline.
        if ready.is_empty() {
            return None;
        }
        for at in ready.into_iter().rev() {
            match proceed(&mut asked[at], &question) {
                Ok(None) => {}
                Ok(Some(name)) => {
                    let named = candidates.iter().find(|site| site.name == name);
                    if let Some(site) = named {
                        return Some(site);
                    }
                    drop(asked.remove(at));
                }
                Err(()) => drop(asked.remove(at)),
            }
        }
    }
    None
}

fn begin(gateway: SocketAddr) -> Option<Asked> {
    let fd = sys::tcp_socket(gateway.is_ipv4()).ok()?;
    let asked = Asked {
        fd,
        bytes: [0; MAX_ANSWER_BYTES],
        filled: 0,
        is_sent: false,
    };
    match sys::connect(fd, &Sockaddr::from(gateway)) {
        Ok(()) | Err(Errno(libc::EINPROGRESS)) => Some(asked),
        Err(_) => None,
    }
}

/// Sends the question or reads of the answer. An error is the end of this one.
fn proceed(asked: &mut Asked, question: &[u8]) -> Result<Option<String>, ()> {
    if !asked.is_sent {
        // It fits the empty buffer of a new connection, or there is none.
        asked.is_sent = sys::send(asked.fd, question) == Ok(question.len());
        return if asked.is_sent { Ok(None) } else { Err(()) };
    }
    match sys::receive(asked.fd, &mut asked.bytes[asked.filled..]) {
        Ok(0) => return Err(()),
        Ok(more) => asked.filled += more,
        Err(Errno(libc::EAGAIN)) => {}
        Err(_) => return Err(()),
    }
    match Answer::decode(&asked.bytes[..asked.filled]) {
        Answer::Incomplete => Ok(None),
        Answer::Site(name) => Ok(Some(name.to_owned())),
        Answer::Nonsense => Err(()),
    }
}
