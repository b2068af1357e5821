//! accept(): removes the preface from a connection that the own site's gateway delivers, before the
//! application sees it, and finds out who is really at the other end.
//!
//! A delivery proves that it belongs to this job, and is answered with a proof of ours: only then does the
//! gateway send what the other end has sent. A connection from the gateway's host that has sent nothing yet
//! may belong to anybody there. A non-blocking listener sets it aside, and no call waits for it. A blocking
//! listener may have been polled, so that its program expects a connection: it waits for silent ones, less
//! each time, and then hands them out as native. Connections from anywhere else are left alone, byte for
//! byte.

use crate::address::{self, Sockaddr};
use crate::aside::{self, Look};
use crate::context::{Context, context_for};
use crate::report::{self, Matter};
use crate::sys::{self, Errno};
use crate::table;
use causeway_wire::preface::{Claim, Decoded, MAX_BYTES};
use causeway_wire::{Preface, Sender};
use libc::c_int;
use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What to do with an accepted socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accepted {
    /// Hand it out with the address that the kernel gave.
    Native,
    /// Hand it out with this address.
    From(Sockaddr),
    /// It has been closed or set aside; accept the next one.
    Dropped,
}

/// What a call of accept() must do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Ask the kernel.
    Kernel,
    /// Hand out this socket, with this address.
    Socket(c_int, Sockaddr),
    /// Report an aborted connection: the connection that existed is closed, and waiting for the next could
    /// take for ever.
    Aborted,
}

/// How long a blocking listener waits for a preface. The gateway's host may be busy; a peer that is silent
/// for this long, or until it closes, was not the gateway, and the next one gets half as long. A delivery
/// doubles the time again.
static PATIENCE_MS: AtomicU64 = AtomicU64::new(LONGEST_MS);
const LONGEST_MS: u64 = 5000;
const SHORTEST_MS: u64 = 20;

/// Judges a socket that accept() on `listener` has just returned. `peer` is the peer that the kernel reports.
pub fn accepted(listener: c_int, fd: c_int, peer: Option<SocketAddr>) -> Accepted {
    let Some(peer) = peer.filter(|peer| address::is_of_network(*peer)) else {
        return Accepted::Native;
    };
    let Some(context) = context_for(peer) else {
        return Accepted::Native;
    };
    if !context.here.delivers_from(peer) {
        return natively(context, peer);
    }
    let judged = judge(context, fd, peer);
    if judged != Err(Refusal::Silent) && judged != Err(Refusal::Ended) {
        return act_on(context, fd, peer, judged);
    }
    if sys::is_nonblocking(listener) == Ok(false) {
        return wait(context, fd, peer);
    }
    match judged {
        Err(Refusal::Silent) => aside::put(listener, fd, now_ms()),
        _ => sys::close(fd),
    }
    Accepted::Dropped
}

/// Waits for a preface, for a blocking listener. A connection that sends none, or has ended, is handed out as
/// native.
fn wait(context: &Context, fd: c_int, peer: SocketAddr) -> Accepted {
    let patience = PATIENCE_MS.load(Ordering::Relaxed);
    let deadline = Instant::now() + Duration::from_millis(patience);
    let mut judged = judge(context, fd, peer);
    while judged == Err(Refusal::Silent) && sys::wait(fd, libc::POLLIN, deadline) == Ok(true) {
        judged = judge(context, fd, peer);
    }
    PATIENCE_MS.store(patience_after(&judged, patience), Ordering::Relaxed);
    match judged {
        Err(Refusal::Silent | Refusal::Ended) => {
            let _ = sys::set_option::<c_int>(fd, libc::SOL_SOCKET, libc::SO_RCVLOWAT, 1);
            natively(context, peer)
        }
        judged => act_on(context, fd, peer, judged),
    }
}

fn patience_after(judged: &Result<SocketAddr, Refusal>, patience_ms: u64) -> u64 {
    match judged {
        Ok(_) => (patience_ms * 2).min(LONGEST_MS),
        Err(Refusal::Silent | Refusal::Ended) => (patience_ms / 2).max(SHORTEST_MS),
        // Anybody can send something that is not a delivery.
        Err(_) => patience_ms,
    }
}

/// Decides whether a call of accept() gets one of the connections that were set aside, or must ask the
/// kernel. `has_dropped` says whether the call has already closed one, or set one aside.
pub fn next(listener: c_int, has_dropped: bool, flags: c_int) -> Next {
    // If nothing is set aside, there is no need to ask any gateway which site this is.
    let context = if aside::is_empty() {
        None
    } else {
        crate::context::context()
    };
    let found =
        context.and_then(|context| aside::find(listener, now_ms(), |fd, is_late| look(context, fd, is_late)));
    if let Some((fd, address)) = found {
        sys::set_flags(fd, flags);
        return Next::Socket(fd, address);
    }
    let blocks = || sys::is_nonblocking(listener) == Ok(false);
    let is_ready = || sys::wait(listener, libc::POLLIN, Instant::now()) == Ok(true);
    if has_dropped && blocks() && !is_ready() {
        return Next::Aborted;
    }
    Next::Kernel
}

/// Checks a connection again that was set aside.
fn look(context: &Context, fd: c_int, is_late: bool) -> Look<(c_int, Sockaddr)> {
    let Ok(peer) = sys::peer_name(fd) else {
        sys::close(fd);
        return Look::Gone;
    };
    let judged = match judge(context, fd, peer) {
        Err(Refusal::Silent) if is_late => Err(Refusal::Late),
        Err(Refusal::Silent) => return Look::Stays,
        judged => judged,
    };
    match act_on(context, fd, peer, judged) {
        Accepted::From(source) => Look::Found((fd, source)),
        Accepted::Native => Look::Found((fd, Sockaddr::from(peer))),
        Accepted::Dropped => Look::Gone,
    }
}

/// Acts on the judgement, and reports it.
fn act_on(context: &Context, fd: c_int, peer: SocketAddr, judged: Result<SocketAddr, Refusal>) -> Accepted {
    if context.debug {
        match &judged {
            Ok(source) => report::debug(format_args!("accept from {peer}: delivered, from {source}")),
            Err(refusal) => report::debug(format_args!("accept from {peer}: {refusal}")),
        }
    }
    match judged {
        Ok(source) => {
            table::note(fd, source);
            Accepted::From(Sockaddr::from(source))
        }
        Err(Refusal::NotAPreface) => natively(context, peer),
        Err(refusal) => {
            // The gateway has given the attempt up: nothing is wrong here.
            if refusal != Refusal::Ended {
                let which = context
                    .here
                    .gateways
                    .iter()
                    .position(|gateway| gateway.is_ipv4() == peer.is_ipv4());
                let line = format_args!("connection delivered from {peer} closed: {refusal}");
                report::once(Matter::BadDelivery, which.unwrap_or(0), line);
            }
            sys::close(fd);
            Accepted::Dropped
        }
    }
}

fn natively(context: &Context, peer: SocketAddr) -> Accepted {
    let shown = context.shown(peer).map(Sockaddr::from);
    shown.map_or(Accepted::Native, Accepted::From)
}

/// Reads the preface, if it has come, and answers it.
fn judge(context: &Context, fd: c_int, peer: SocketAddr) -> Result<SocketAddr, Refusal> {
    let claim = read_preface(fd)?;
    let preface = claim
        .proven(Sender::Gateway, &context.token)
        .ok_or(Refusal::OtherJob)?;
    let source = shown_source(&preface, peer)?;
    if !is_for(context, &preface, fd) {
        return Err(Refusal::ForAnother(preface.destination));
    }
    if !context.takes_deliveries() {
        return Err(Refusal::NoRank);
    }
    // Nothing was sent before, so the answer fits into the buffer.
    match sys::send(fd, &claim.answer(Sender::Process, &context.token)) {
        Ok(causeway_wire::preface::ANSWER_BYTES) => Ok(source),
        _ => Err(Refusal::Ended),
    }
}

/// The true source, in the form that the socket shows.
fn shown_source(preface: &Preface, peer: SocketAddr) -> Result<SocketAddr, Refusal> {
    address::in_family_of(preface.source, peer).ok_or(Refusal::OtherFamily)
}

/// Whether it was this socket to which the gateway connected. A process that gets a delivery meant for
/// another one could pass the preface on to that one, and pass its answer back.
fn is_for(context: &Context, preface: &Preface, fd: c_int) -> bool {
    let destination = context.real(preface.destination).unwrap_or(preface.destination);
    sys::local_name(fd).is_ok_and(|own| {
        own.port() == destination.port() && own.ip().to_canonical() == destination.ip().to_canonical()
    })
}

/// Milliseconds of a clock that never goes back.
fn now_ms() -> u64 {
    sys::monotonic_ms()
}

/// Why a delivered connection is not handed out as a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Refusal {
    /// The connection is native, from another process of the gateway's host. Nothing was read from the
    /// stream.
    NotAPreface,
    /// The preface has not come, or not all of it.
    Silent,
    /// The connection was closed or reset before the preface was complete.
    Ended,
    /// The preface did not come in time.
    Late,
    /// The bytes begin like a preface, but are not one.
    Broken(String),
    /// The token is not this job's.
    OtherJob,
    /// The source is an IPv6 address, but this is an IPv4 socket.
    OtherFamily,
    /// The gateway has sent the connection to another address.
    ForAnother(SocketAddr),
    /// Each site has an MPI of its own, and this process is not a rank.
    NoRank,
    /// The kernel failed to read the preface.
    Unreadable(Errno),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::NotAPreface => f.write_str("not a preface"),
            Refusal::Silent => f.write_str("set aside until its preface is there"),
            Refusal::Ended => f.write_str("it ended before its preface did"),
            Refusal::Late => write!(f, "no preface within {} s", aside::PATIENCE_MS / 1000),
            Refusal::Broken(why) => write!(f, "broken preface: {why}"),
            Refusal::OtherJob => f.write_str("its token is that of another job"),
            Refusal::OtherFamily => f.write_str("its source is IPv6, the listening socket IPv4"),
            Refusal::ForAnother(destination) => {
                write!(
                    f,
                    "it was delivered to {destination}, and somebody has passed it on"
                )
            }
            Refusal::NoRank => f.write_str(
                "it comes from another site; where each site runs its own MPI, only ranks accept those",
            ),
            Refusal::Unreadable(errno) => write!(f, "reading the preface: {}", errno.text()),
        }
    }
}

/// Reads exactly the preface from the stream. It only peeks until the preface is complete, so that a stream
/// without one remains whole.
fn read_preface(fd: c_int) -> Result<Claim, Refusal> {
    let mut bytes = [0; MAX_BYTES];
    let have = match sys::peek(fd, &mut bytes) {
        Ok(0) | Err(Errno(libc::ECONNRESET)) => return Err(Refusal::Ended),
        Ok(have) => have,
        Err(Errno(libc::EAGAIN)) => return Err(Refusal::Silent),
        Err(errno) => return Err(Refusal::Unreadable(errno)),
    };
    match decode(&bytes[..have])? {
        Decoded::Complete { claim, length } => {
            // Any wait for the rest of the preface is over.
            let _ = sys::set_option::<c_int>(fd, libc::SOL_SOCKET, libc::SO_RCVLOWAT, 1);
            take(fd, &mut bytes[..length]).map(|()| claim)
        }
        Decoded::Question { .. } => Err(Refusal::Broken("it is a question".to_owned())),
        Decoded::Incomplete { needed } => {
            // With this, poll() waits for more than the bytes that were peeked at.
            let _ = sys::set_option(fd, libc::SOL_SOCKET, libc::SO_RCVLOWAT, needed as c_int);
            let ended = sys::peek(fd, &mut bytes) == Ok(have) && sys::has_ended(fd);
            Err(if ended { Refusal::Ended } else { Refusal::Silent })
        }
    }
}

fn decode(bytes: &[u8]) -> Result<Decoded, Refusal> {
    Preface::decode(bytes).map_err(|error| match error {
        causeway_wire::PrefaceError::Signature => Refusal::NotAPreface,
        other => Refusal::Broken(other.to_string()),
    })
}

/// Reads bytes from the stream that were peeked at.
fn take(fd: c_int, bytes: &mut [u8]) -> Result<(), Refusal> {
    let mut have = 0;
    while have < bytes.len() {
        match sys::receive(fd, &mut bytes[have..]) {
            Ok(0) => return Err(Refusal::Ended),
            Ok(more) => have += more,
            Err(errno) => return Err(Refusal::Unreadable(errno)),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_but_a_gateway_makes_a_listener_that_blocks_more_patient() {
        let after = |judged| patience_after(&judged, 1000);
        assert_eq!(after(Ok(SocketAddr::from(([10, 2, 0, 9], 1)))), 2000);
        for no_gateway in [Refusal::Silent, Refusal::Ended] {
            assert_eq!(after(Err(no_gateway)), 500);
        }
        for said in [
            Refusal::NotAPreface,
            Refusal::OtherJob,
            Refusal::Broken(String::new()),
        ] {
            assert_eq!(after(Err(said)), 1000);
        }
        let ended = || Err(Refusal::Ended);
        assert_eq!(
            (0..100).fold(LONGEST_MS, |ms, _| patience_after(&ended(), ms)),
            SHORTEST_MS
        );
    }
}
