//! accept(): takes the preface off a connection that the own site's gateway delivers, before the application
//! sees it, and finds out who is really there.
//!
//! Connections from anywhere else are left alone, byte for byte.

use crate::address::{self, Sockaddr};
use crate::context::{Context, context_for};
use crate::report::{self, Matter};
use crate::sys::{self, Errno};
use crate::table;
use causeway_wire::Preface;
use causeway_wire::preface::{Decoded, MAX_BYTES};
use libc::c_int;
use std::fmt;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// The gateway sends the preface right behind the handshake; a second is ages on a LAN.
const PREFACE_DEADLINE: Duration = Duration::from_secs(1);

/// What to do with an accepted socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accepted {
    /// Hand it out with the address the kernel gave.
    Native,
    /// Hand it out with this address.
    From(Sockaddr),
    /// It has been closed; accept the next one.
    Dropped,
}

/// Looks at a socket that accept() has just returned. `peer` is what the kernel says of it.
pub fn accepted(fd: c_int, peer: Option<SocketAddr>) -> Accepted {
    let Some(peer) = peer.filter(|peer| address::is_of_network(*peer)) else {
        return Accepted::Native;
    };
    let Some(context) = context_for(peer) else {
        return Accepted::Native;
    };
    let native = || {
        let shown = context.shown(peer).map(Sockaddr::from);
        shown.map_or(Accepted::Native, Accepted::From)
    };
    if !context.here.delivers_from(peer) {
        return native();
    }
    let judged = read_preface(fd).and_then(|preface| check(context, &preface, peer));
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
        Err(Refusal::NotAPreface) => native(),
        Err(refusal) => {
            sys::close(fd);
            // The gateway gave the attempt up: nothing is wrong here.
            if refusal != Refusal::Ended {
                let which = context
                    .here
                    .gateways
                    .iter()
                    .position(|gateway| gateway.is_ipv4() == peer.is_ipv4());
                let line = format_args!("connection delivered from {peer} closed: {refusal}");
                report::once(Matter::BadDelivery, which.unwrap_or(0), line);
            }
            Accepted::Dropped
        }
    }
}

/// The true source, as the socket shows it.
fn check(context: &Context, preface: &Preface, peer: SocketAddr) -> Result<SocketAddr, Refusal> {
    if !preface.token.matches(&context.token) {
        return Err(Refusal::OtherJob);
    }
    address::in_family_of(preface.source, peer).ok_or(Refusal::OtherFamily)
}

/// Why a delivered connection is not handed out as one.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Refusal {
    /// The connection is another process's of the gateway's host, and native. Nothing was taken from the
    /// stream.
    NotAPreface,
    /// Closed or reset before the preface was complete.
    Ended,
    /// The preface was not there in time.
    Late,
    /// It starts like one and goes on like none.
    Broken(String),
    /// The token is not this job's.
    OtherJob,
    /// The source is an IPv6 address and this an IPv4 socket.
    OtherFamily,
    /// The kernel failed to read it.
    Unreadable(Errno),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::NotAPreface => f.write_str("not a preface"),
            Refusal::Ended => f.write_str("it ended before its preface did"),
            Refusal::Late => f.write_str("no preface within 1 s"),
            Refusal::Broken(why) => write!(f, "broken preface: {why}"),
            Refusal::OtherJob => f.write_str("its token is that of another job"),
            Refusal::OtherFamily => f.write_str("its source is IPv6, the listening socket IPv4"),
            Refusal::Unreadable(errno) => write!(f, "reading the preface: {}", errno.text()),
        }
    }
}

/// Reads exactly the preface. It only peeks until the preface is complete, so that a stream without one stays
/// whole.
fn read_preface(fd: c_int) -> Result<Preface, Refusal> {
    let deadline = Instant::now() + PREFACE_DEADLINE;
    let mut bytes = [0; MAX_BYTES];
    let mut mark = LowWaterMark { fd, original: None };
    let mut waited_for = 1;
    loop {
        let have = match sys::peek(fd, &mut bytes) {
            Ok(0) | Err(Errno(libc::ECONNRESET)) => return Err(Refusal::Ended),
            Ok(have) if have < waited_for => return Err(Refusal::Ended),
            Ok(have) => have,
            Err(Errno(libc::EAGAIN)) => 0,
            Err(errno) => return Err(Refusal::Unreadable(errno)),
        };
        let needed = match decode(&bytes[..have])? {
            Decoded::Complete { preface, length } => {
                return take(fd, &mut bytes[..length]).map(|()| preface);
            }
            Decoded::Question { .. } => return Err(Refusal::Broken("it is a question".to_owned())),
            // With nothing there yet, one byte is enough to tell a short native greeting from a preface.
            Decoded::Incomplete { .. } if have == 0 => 1,
            Decoded::Incomplete { needed } => mark.raise(needed),
        };
        match sys::wait(fd, libc::POLLIN, deadline) {
            Ok(true) => waited_for = needed,
            Ok(false) => return Err(Refusal::Late),
            Err(errno) => return Err(Refusal::Unreadable(errno)),
        }
    }
}

fn decode(bytes: &[u8]) -> Result<Decoded, Refusal> {
    Preface::decode(bytes).map_err(|error| match error {
        causeway_wire::PrefaceError::Signature => Refusal::NotAPreface,
        other => Refusal::Broken(other.to_string()),
    })
}

/// Takes bytes that have been peeked at off the stream.
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

/// SO_RCVLOWAT, which makes poll wait for the rest of what has been peeked at; put back when done.
struct LowWaterMark {
    fd: c_int,
    original: Option<c_int>,
}

impl LowWaterMark {
    fn raise(&mut self, bytes: usize) -> usize {
        if self.original.is_none() {
            self.original = sys::option(self.fd, libc::SOL_SOCKET, libc::SO_RCVLOWAT).ok();
        }
        let _ = sys::set_option(self.fd, libc::SOL_SOCKET, libc::SO_RCVLOWAT, bytes as c_int);
        bytes
    }
}

impl Drop for LowWaterMark {
    fn drop(&mut self) {
        if let Some(original) = self.original {
            let _ = sys::set_option(self.fd, libc::SOL_SOCKET, libc::SO_RCVLOWAT, original);
        }
    }
}
