//! Asks the gateways of several sites which of the sites is this node's: if sites have the same private
//! addresses, the node's own addresses do not tell. Only a process that no gateway has started asks, such as
//! a rank on mpirun's host or under a batch system: the environment of the others tells them.
//!
//! All gateways are asked at once. The own site's gateway is on the node's network; the addresses of the
//! others lead nowhere here, or to hosts of this site, which anybody may use. So an answer counts only if it
//! proves the job's token, and only for a site whose gateway has the address that was asked: so nobody can
//! present another gateway's answer as its own. If two sites prove themselves, one of them is not what it
//! claims: then neither is believed.

use crate::address::Sockaddr;
use crate::sys::{self, Errno};
use causeway_wire::question::{Answer, MAX_ANSWER_BYTES, Question};
use causeway_wire::{Site, Token};
use libc::c_int;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// How long the gateways may take; one of the own site answers within milliseconds.
const DEADLINE: Duration = Duration::from_secs(3);

/// How long to wait for a second proof after the first one: the site's own gateway answers sooner than
/// others.
const CONTRADICTION: Duration = Duration::from_millis(50);

/// How long one attempt to connect may take; then the connection is begun anew. The kernel resends a lost SYN
/// only after a second, see `connect`.
const ATTEMPT: Duration = Duration::from_millis(300);

/// A question that has not been answered; its socket is closed with it.
struct Asked {
    gateway: SocketAddr,
    fd: c_int,
    begun: Instant,
    bytes: [u8; MAX_ANSWER_BYTES],
    filled: usize,
    is_sent: bool,
}

impl Drop for Asked {
    fn drop(&mut self) {
        sys::close(self.fd);
    }
}

/// The candidate that is this node's site; `None` if no gateway proves this in time, or gateways of two sites
/// do.
pub fn which<'a>(candidates: &[&'a Site], token: &Token) -> Option<&'a Site> {
    let question = Question::new(token, sys::random().ok()?);
    let mut gateways: Vec<SocketAddr> = candidates
        .iter()
        .flat_map(|site| site.gateways.iter().copied())
        .collect();
    gateways.sort();
    gateways.dedup();
    let mut asked: Vec<Asked> = gateways.into_iter().filter_map(begin).collect();
    let mut deadline = Instant::now() + DEADLINE;
    let mut proven: Option<&Site> = None;
    while !asked.is_empty() && Instant::now() < deadline {
        let wanted: Vec<(c_int, libc::c_short)> = asked
            .iter()
            .map(|one| (one.fd, if one.is_sent { libc::POLLIN } else { libc::POLLOUT }))
            .collect();
        let ready = sys::wait_any(&wanted, next_attempt(&asked).min(deadline)).ok()?;
        if ready.is_empty() {
            asked = asked.into_iter().filter_map(begin_anew).collect();
        }
        for at in ready.into_iter().rev() {
            let heard = proceed(&mut asked[at], &question, token);
            if let Ok(Some(name)) = &heard {
                let gateway = asked[at].gateway;
                let has_gateway = |site: &&&Site| site.name == *name && site.gateways.contains(&gateway);
                match (proven, candidates.iter().find(has_gateway)) {
                    (Some(other), Some(site)) if other.name != site.name => return None,
                    (None, Some(site)) => {
                        proven = Some(site);
                        deadline = deadline.min(Instant::now() + CONTRADICTION);
                    }
                    _ => {}
                }
            }
            if !matches!(heard, Ok(None)) {
                drop(asked.remove(at));
            }
        }
    }
    proven
}

fn begin(gateway: SocketAddr) -> Option<Asked> {
    let fd = sys::tcp_socket(gateway.is_ipv4()).ok()?;
    let asked = Asked {
        gateway,
        fd,
        begun: Instant::now(),
        bytes: [0; MAX_ANSWER_BYTES],
        filled: 0,
        is_sent: false,
    };
    match sys::connect(fd, &Sockaddr::from(gateway)) {
        Ok(()) | Err(Errno(libc::EINPROGRESS)) => Some(asked),
        Err(_) => None,
    }
}

/// Returns when the first attempt to connect is over; if there is none, a time far ahead.
fn next_attempt(asked: &[Asked]) -> Instant {
    let connecting = asked.iter().filter(|one| !one.is_sent);
    let ends = connecting.map(|one| one.begun + ATTEMPT).min();
    ends.unwrap_or_else(|| Instant::now() + DEADLINE)
}

fn begin_anew(asked: Asked) -> Option<Asked> {
    if asked.is_sent || asked.begun.elapsed() < ATTEMPT {
        return Some(asked);
    }
    begin(asked.gateway)
}

/// Sends the question, or reads more of the answer. An error ends this question.
fn proceed(asked: &mut Asked, question: &Question, token: &Token) -> Result<Option<String>, ()> {
    if !asked.is_sent {
        // The question fits into the empty buffer of a new connection, or there is no connection.
        let bytes = question.encode();
        asked.is_sent = sys::send(asked.fd, &bytes) == Ok(bytes.len());
        return if asked.is_sent { Ok(None) } else { Err(()) };
    }
    match sys::receive(asked.fd, &mut asked.bytes[asked.filled..]) {
        Ok(0) => return Err(()),
        Ok(more) => asked.filled += more,
        Err(Errno(libc::EAGAIN)) => {}
        Err(_) => return Err(()),
    }
    match question.read_answer(token, &asked.bytes[..asked.filled]) {
        Answer::Incomplete => Ok(None),
        Answer::Site(name) => Ok(Some(name.to_owned())),
        Answer::Nonsense => Err(()),
    }
}
