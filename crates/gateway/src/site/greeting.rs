//! How a delivery begins: the process that it is for proves that it belongs to the job, before it receives a
//! byte.
//!
//! A non-blocking listener checks for a connection once, when the kernel reports one. A preface that has not
//! arrived by then would never be seen. The kernel sends it with the end of the handshake (`deliver`). If
//! that was impossible, another connection to the same listener, on which nothing is sent, makes the listener
//! check again: a knock. A blocking listener would hand the knock to its program, and some programs end when
//! a peer connects, sends nothing and closes (hydra: pmodels/mpich#3520). But a blocking listener answers the
//! preface soon, so only listeners that have not answered are knocked at.

use crate::base::{Base, Bundle};
use crate::keys::LegKey;
use crate::site::SiteSide;
use crate::site::leg::Leg;
use crate::site::socket::Socket;
use crate::site::streams::FAREWELL;
use crate::sys::socket::path_info;
use crate::sys::timers::SiteDeadline;
use causeway_wire::Reason;
use mio::net::TcpStream;
use std::collections::VecDeque;
use std::io::ErrorKind;
use std::time::{Duration, Instant};

/// The kernel delays the end of a handshake by at least 40 ms.
const LATE: Duration = Duration::from_millis(20);

/// How long a blocking listener may take to answer a late preface, on a busy host.
const ANSWERS: Duration = Duration::from_millis(100);

/// A lost segment is sent again after 200 ms.
const LOST: Duration = Duration::from_millis(300);

/// How long a knock stays open: by then, a program that polls its listener in a loop has seen it.
const KNOCK: Duration = Duration::from_secs(1);

/// Most knocks at a time; with one more, the oldest ends.
const MOST_KNOCKS: usize = 64;

/// Connections that exist only to be noticed.
#[derive(Default)]
pub(crate) struct Knocks(VecDeque<(Instant, TcpStream)>);

impl SiteSide {
    /// A preface has just been sent.
    pub(in crate::site) fn begin_greeting(&mut self, base: &mut Base<'_>, key: LegKey) {
        let Some(leg) = self.legs.get_mut(key) else {
            return;
        };
        leg.greets_late |= leg.begun.elapsed() > LATE;
        let within = if leg.greets_late { ANSWERS } else { LOST };
        base.set_deadline(within, SiteDeadline::Greeting(key, leg.generation));
        self.on_greeting(base, key, false);
    }

    /// The same for a preface that another worker may have sent.
    pub(in crate::site) fn continue_greeting(&self, base: &mut Base<'_>, key: LegKey) {
        if let Some(leg) = self.legs.get(key).filter(|leg| leg.is_greeting()) {
            base.set_deadline(ANSWERS, SiteDeadline::Greeting(key, leg.generation));
        }
    }

    /// Reads a process's answer, after which the process may have reset the connection.
    pub(in crate::site) fn on_greeting(&mut self, base: &mut Base<'_>, key: LegKey, has_failed: bool) {
        let Some(leg) = self.legs.get_mut(key) else {
            return;
        };
        match leg.hear_answer() {
            Ok(false) if !has_failed => {}
            Ok(false) => self.break_leg(base, key, Reason::Reset),
            Ok(true) if leg.is_last => {
                let _ = leg.flush();
                leg.socket.reset_on_close();
                self.drop_leg(base, key);
            }
            Ok(true) if has_failed => self.on_reset_by_process(base, key),
            Ok(true) => {
                // What followed the answer was reported together with it.
                leg.readable = true;
                self.flow(base, key);
            }
            Err(error) => {
                if error.kind() == ErrorKind::InvalidData
                    && let Ok(peer) = leg.socket.stream().peer_addr()
                {
                    base.refuse(
                        "no-proof",
                        peer.ip(),
                        "what listens there does not know the job's token",
                    );
                }
                self.break_leg(base, key, Reason::Reset);
            }
        }
    }

    /// Checks whether the preface arrived too late, or was lost on its way.
    pub(in crate::site) fn on_greeting_deadline(
        &mut self,
        base: &mut Base<'_>,
        key: LegKey,
        generation: u64,
    ) {
        let greets = |leg: &&Leg| leg.generation == generation && leg.is_greeting();
        if self.legs.get(key).filter(greets).is_none() {
            return;
        }
        // The answer may have arrived while this worker had no time to read it.
        self.on_greeting(base, key, false);
        let Some(leg) = self.legs.get(key).filter(greets) else {
            return;
        };
        if leg.is_last {
            leg.socket.reset_on_close();
            self.drop_leg(base, key);
        } else if leg.greets_late || has_lost(&leg.socket) {
            self.knock(base, key);
        }
    }

    /// The far side has reset a stream before the process has proved itself. The process still gets what was
    /// sent before the reset.
    pub(in crate::site) fn postpone_reset(&mut self, base: &mut Base<'_>, key: LegKey) {
        let Some(leg) = self.legs.get_mut(key) else {
            return;
        };
        leg.is_last = true;
        let (generation, id) = (leg.generation, leg.id);
        if let Some(pair) = base.tunnels.pair_mut(leg.pair) {
            pair.part_leg(id);
        }
        base.set_deadline(FAREWELL, SiteDeadline::Greeting(key, generation));
    }

    fn knock(&mut self, base: &mut Base<'_>, key: LegKey) {
        let socket = self.legs.get(key).map(|leg| leg.socket.stream());
        let Some(Ok(destination)) = socket.map(TcpStream::peer_addr) else {
            return;
        };
        if let Ok(socket) = self.ports.connect(&base.driver.config.lan, destination) {
            if self.knocks.0.len() >= MOST_KNOCKS {
                self.knocks.0.pop_front();
            }
            self.knocks.0.push_back((base.now() + KNOCK, socket));
            base.set_deadline(KNOCK, SiteDeadline::Knocks);
        }
    }

    /// Ends the knocks that have been open long enough.
    pub(in crate::site) fn on_knocks_deadline(&mut self, base: &Base<'_>) {
        let now = base.now();
        self.knocks.0.retain(|(end, _)| *end > now);
    }
}

/// Whether segments of a connection were sent again.
fn has_lost(socket: &Socket) -> bool {
    path_info(socket).is_ok_and(|info| info.retransmits > 0)
}
