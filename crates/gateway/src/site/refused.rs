//! Connections that failed, whose processes were told so beside the stream.
//!
//! A process that asks is told the reason, and has finished with its socket. One that does not ask must see a
//! reset, as if nothing had been told. But a reset discards everything that has not been read, including the
//! reason, and how long a process takes to ask depends on its host. So the reset comes once the process has
//! sent something, because it then believes that it is connected, or a long time after the reason.

use crate::base::{Base, Bundle};
use crate::site::SiteSide;
use crate::sys::timers::SiteDeadline;
use causeway_wire::{Reason, Verdict};
use mio::net::TcpStream;
use socket2::SockRef;
use std::collections::VecDeque;
use std::io::ErrorKind;
use std::time::{Duration, Instant};

/// The time that a process has to ask. Processes that wait for a connection ask as soon as there is news of
/// it, but their host may be busy: if this time is too short, they get a reset instead of the reason. If it
/// is too long, it costs a file, and a process that reads without having asked waits for all of it.
const TO_ASK: Duration = Duration::from_secs(30);

/// How often each socket is checked. A process that sends without having asked gets its reset within this
/// time.
const LOOK: Duration = Duration::from_millis(500);

/// Most of these sockets: each takes a file of the gateway. If more connections are refused in that time, the
/// oldest is reset at once.
const MOST: usize = 1024;

/// The share of the gateway's files that these sockets may take.
const SHARE: usize = 16;

/// See the module.
pub(super) struct Refused {
    sockets: VecDeque<(Instant, TcpStream)>,
    most: usize,
}

impl Refused {
    /// Makes the queue for a process that may have `files` files open.
    pub(super) fn new(files: usize) -> Refused {
        Refused {
            sockets: VecDeque::new(),
            most: (files / SHARE).clamp(1, MOST),
        }
    }
}

impl SiteSide {
    /// Tells a process why its connection failed, and resets it later. The socket is registered nowhere.
    pub(super) fn refuse_beside(&mut self, base: &mut Base<'_>, socket: TcpStream, reason: Reason) {
        let verdict = Verdict::Failed(reason);
        // One byte fits into the empty buffer of a fresh socket; a shim that is gone needs no answer.
        let _ = SockRef::from(&socket).send_out_of_band(&[verdict.code()]);
        // Makes any kind of close a reset.
        let _ = SockRef::from(&socket).set_linger(Some(Duration::ZERO));
        let Refused { sockets, most } = &mut self.refused;
        if sockets.len() >= *most {
            sockets.pop_front();
        }
        if sockets.is_empty() {
            base.set_deadline(LOOK, SiteDeadline::Refused);
        }
        sockets.push_back((base.driver.now + TO_ASK, socket));
    }

    /// Resets the connections whose processes have sent something or closed their end, or whose time is over.
    pub(super) fn on_refused_deadline(&mut self, base: &mut Base<'_>) {
        let now = base.driver.now;
        let sockets = &mut self.refused.sockets;
        sockets.retain(|(due, socket)| now < *due && is_silent(socket));
        if !sockets.is_empty() {
            base.set_deadline(LOOK, SiteDeadline::Refused);
        }
    }
}

/// Whether nothing has arrived, not even the end.
fn is_silent(socket: &TcpStream) -> bool {
    let looked = socket.peek(&mut [0]);
    looked.is_err_and(|why| matches!(why.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted))
}
