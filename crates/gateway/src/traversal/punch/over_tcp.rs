//! What a round over TCP does: opens a port, connects from it, and begins a lane on what comes up.

use super::opening::{BROKER, Opening, SLOTS};
use crate::gateway::Gateway;
use crate::sys::token::Class;
use crate::tunnels::origin::Way;
use mio::Token;
use std::io;
use std::net::SocketAddr;

/// Sites with which a way over TCP is punched at a time: with ten sockets each these are a third of the files that a user has by default. A round that
/// leads somewhere takes a moment, and the next ones come soon.
const OPENINGS: usize = 32;

impl Gateway {
    /// The first lane over TCP that is still to be punched by this gateway, once one serves.
    pub(super) fn missing_lane(&self, index: usize) -> Option<usize> {
        let site = &self.tunnels.peers[index].site;
        let served = self.traversal.meetings.served.get(&index);
        if served != Some(&Way::Tcp) || self.driver.config.site > *site || !self.tunnels.has_lane(index) {
            return None;
        }
        let pair = self.tunnels.pair_of(site)?;
        let is_well = |lane: &usize| {
            let known = pair.lanes[*lane].and_then(|key| self.tunnels.lanes.get(key));
            known.is_some_and(|known| known.through.is_none()) && !pair.tunnel.is_silent(*lane)
        };
        (0..self.tunnels.lanes_wanted(&self.driver, index)).find(|lane| !is_well(lane))
    }

    /// Takes a port for a round over TCP, and asks the broker from where it sees that.
    pub(super) fn open(&mut self, index: usize) -> io::Result<()> {
        let meetings = &mut self.traversal.meetings;
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
        let dials = self.driver.config.site < self.tunnels.peers[index].site;
        let opening = Opening::begin(broker, dials, self.driver.registry(), opening_token(index))?;
        meetings.openings.insert(index, opening);
        Ok(())
    }

    pub(super) fn knock_over_tcp(&mut self, index: usize, to: SocketAddr) {
        if let Some(opening) = self.traversal.meetings.openings.get_mut(&index) {
            opening.knock(to, self.driver.registry(), opening_token(index));
        }
    }

    /// One of the sockets of a round over TCP reports something.
    pub(crate) fn on_opening(&mut self, key: usize) {
        let (index, slot, now) = (key / SLOTS, key % SLOTS, self.driver.now);
        let Some(opening) = self.traversal.meetings.openings.get_mut(&index) else {
            return;
        };
        if slot == BROKER {
            return match opening.on_broker() {
                Ok(false) => {}
                Ok(true) => {
                    self.with_meeting(index, Way::Tcp, |meeting, out| meeting.on_located(now, out));
                }
                Err(error) => {
                    let why = format!("ask the broker over TCP from where it sees this gateway: {error}");
                    self.with_meeting(index, Way::Tcp, |meeting, out| {
                        meeting.on_locating_failed(why, now, out);
                    });
                }
            };
        }
        let Some((socket, to)) = opening.on_attempt(slot, self.driver.registry()) else {
            return;
        };
        let mut out = Vec::new();
        if let Some(meeting) = self.meeting(index, Way::Tcp) {
            meeting.on_knock(to, &mut out);
        }
        if out.is_empty() {
            // The far gateway speaks first, and is a stranger until then.
            return self.tunnels.on_tcp_gateway(&mut self.driver, socket, to);
        }
        self.traversal.meetings.openings.remove(&index);
        let site = self.tunnels.peers[index].site.clone();
        let lane = self.missing_lane(index).unwrap_or(0);
        match self.tunnels.tcp_carrier(&mut self.driver, socket, Some(&site)) {
            Ok(carrier) => {
                self.tunnels
                    .begin_handshake(&mut self.driver, carrier, to, Some((index, lane)), None)
            }
            Err(error) => self.tunnels.dial_failed(index, lane, &error.to_string()),
        }
    }
}

fn opening_token(index: usize) -> impl Fn(usize) -> Token {
    move |slot| Class::Opening.token(index * SLOTS + slot)
}
