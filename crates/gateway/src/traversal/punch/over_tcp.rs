//! What a round over TCP does: opens a port, connects from it, and begins a lane on what comes up.

use super::opening::{BROKER, Opening, SLOTS};
use crate::base::{Base, Bundle};
use crate::keys::{LaneNumber, PeerIndex};
use crate::sys::source::Class;
use crate::traversal::Traversal;
use crate::tunnels::origin::Way;
use mio::Token;
use std::io;
use std::net::SocketAddr;

/// Most sites with which a hole is punched over TCP at a time: with ten sockets each, they use a third of the
/// files that a user has by default. A round that succeeds takes a moment, and the next ones come soon.
const OPENINGS: usize = 32;

impl Traversal {
    /// The first lane over TCP that this gateway still has to punch, after one has come up.
    pub(super) fn missing_lane(&self, base: &Base<'_>, index: PeerIndex) -> Option<LaneNumber> {
        let site = base.site_at(index);
        let served = self.meetings.served.get(&index);
        if served != Some(&Way::Tcp) || *base.config().site > *site || !base.tunnels.ways().has_lane(index) {
            return None;
        }
        base.tunnels.ways().first_missing(base.driver, index)
    }

    /// Reserves a port for a round over TCP, and asks the broker at which address it sees the port.
    pub(super) fn open(&mut self, base: &mut Base<'_>, index: PeerIndex) -> io::Result<()> {
        let meetings = &mut self.meetings;
        let Some(broker) = meetings
            .broker
            .filter(|_| !meetings.openings.contains_key(&index))
        else {
            return Ok(());
        };
        if meetings.openings.len() >= OPENINGS {
            let why = format!("ways to {OPENINGS} sites are being punched already");
            return Err(io::Error::other(why));
        }
        let dials = *base.config().site < *base.site_at(index);
        let opening = Opening::begin(broker, dials, base.registry(), opening_token(index))?;
        meetings.openings.insert(index, opening);
        Ok(())
    }

    pub(super) fn knock_over_tcp(&mut self, base: &mut Base<'_>, index: PeerIndex, to: SocketAddr) {
        if let Some(opening) = self.meetings.openings.get_mut(&index) {
            opening.knock(to, base.registry(), opening_token(index));
        }
    }

    /// One of the sockets of a round over TCP reports something.
    pub(in crate::traversal) fn on_opening(&mut self, base: &mut Base<'_>, key: usize) {
        let (index, slot, now) = (PeerIndex(key / SLOTS), key % SLOTS, base.now());
        let Some(opening) = self.meetings.openings.get_mut(&index) else {
            return;
        };
        if slot == BROKER {
            return match opening.on_broker() {
                Ok(false) => {}
                Ok(true) => {
                    self.with_meeting(base, index, Way::Tcp, |meeting, out| meeting.on_located(now, out));
                }
                Err(error) => {
                    let why = format!("ask the broker over TCP from where it sees this gateway: {error}");
                    self.with_meeting(base, index, Way::Tcp, |meeting, out| {
                        meeting.on_locating_failed(why, now, out);
                    });
                }
            };
        }
        let Some((socket, to)) = opening.on_attempt(slot, base.registry()) else {
            return;
        };
        let mut out = Vec::new();
        if let Some(meeting) = self.meeting(index, Way::Tcp) {
            meeting.on_knock(to, &mut out);
        }
        if out.is_empty() {
            // The far gateway speaks first, and is a stranger until then.
            return base.tunnels.connecting().accept(base.driver, socket, to);
        }
        self.meetings.openings.remove(&index);
        let lane = self.missing_lane(base, index).unwrap_or(LaneNumber(0));
        let mut connecting = base.tunnels.connecting();
        connecting.begin_over_tcp(base.driver, socket, to, (index, lane));
    }
}

fn opening_token(index: PeerIndex) -> impl Fn(usize) -> Token {
    move |slot| Class::Opening.token(index.0 * SLOTS + slot)
}
