//! Lanes between two members of a grid neither of which can be dialled: both send at the same time, which opens both firewalls and NATs, and one of
//! them dials over QUIC (`quic`) through the hole. `rounds` decides what is done when, `message` is what is said.
//!
//! ```text
//!                  1. from where am I seen? (UDP)     ┌────────┐
//!   gateway A ──────────────────────────────────────> │ broker │ <──────── gateway B
//!       │      2. A is here, knock there (HTTPS) ───> └────────┘ ───>          │
//!       └─────── 3. knocks from both ─── 4. QUIC from the one that sorts first ┘
//! ```
//! The broker is needed for that only: a lane that stands outlives it. Who is at the far end, the certificates under the lane tell.

mod message;
mod rounds;

pub(crate) use message::{KIND, KNOCK};

use crate::config::Transport;
use crate::gateway::Gateway;
use crate::lanes::QUIC_LANE;
use causeway_broker::api::Message;
use causeway_broker::reflection::{self, Id};
use message::{Key, Punch};
use rounds::{Action, Meeting};
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

/// Begins every reason for there being no lane.
const NEITHER: &str = "neither gateway can be dialled";

/// The far gateways that neither can be dialled nor can dial.
#[derive(Default)]
pub(crate) struct Meetings {
    /// By their places among the peers.
    by_peer: BTreeMap<usize, Meeting>,
    /// Where the broker was found; nothing begins before that.
    broker: Option<SocketAddr>,
    /// The question to it that is under way.
    asked: Option<Id>,
    /// Where it sees this gateway's UDP socket.
    mapped: Option<SocketAddr>,
    /// It was said why there are none.
    said_off: bool,
}

impl Gateway {
    fn meeting(&mut self, index: usize) -> Option<&mut Meeting> {
        self.grid.as_mut()?.meetings.by_peer.get_mut(&index)
    }

    /// Only punching brings a lane to this peer.
    pub(crate) fn meets(&self, index: usize) -> bool {
        let grid = self.grid.as_ref();
        grid.is_some_and(|grid| grid.meetings.by_peer.contains_key(&index))
    }

    /// The broker tells where a peer can be dialled, if at all.
    pub(crate) fn on_peer_known(&mut self, index: usize) {
        let now = self.now;
        let site = self.config.peers[index].site.clone();
        let closed = self.config.public.is_empty() && self.contacts[index].addresses.is_empty();
        if !closed || self.quic.is_none() {
            self.forget_meeting(index);
            if closed {
                self.say_off(index);
            }
            return;
        }
        let mut key = Key::default();
        // Without random numbers every handshake fails, and says so.
        if self.meets(index) || getrandom::fill(&mut key).is_err() {
            return;
        }
        let mut meeting = Meeting::new(key, self.config.site < site);
        match self.pair_of(&site) {
            Some(pair) if pair.is_up() => {}
            // Streams wait for it: this gateway was handed over to another program.
            Some(_) => meeting.begin_after(Duration::ZERO, now),
            None => meeting.begin(now),
        }
        self.contacts[index].trouble = format!("{NEITHER}; punching a way over UDP");
        if let Some(grid) = &mut self.grid {
            grid.meetings.by_peer.insert(index, meeting);
        }
    }

    fn say_off(&mut self, index: usize) {
        let why = match self.config.transport {
            Transport::Tcp => {
                "transport = \"tcp\" in [grid] keeps lanes from UDP, over which a way could be punched"
            }
            _ => "there is no UDP socket, over which a way could be punched",
        };
        self.contacts[index].trouble = format!("{NEITHER}, and {why}");
        let site = &self.config.peers[index].site;
        if let Some(grid) = &mut self.grid
            && !std::mem::replace(&mut grid.meetings.said_off, true)
        {
            self.report
                .say(format_args!("no lane to {site}: {NEITHER}, and {why}"));
        }
    }

    pub(crate) fn forget_meeting(&mut self, index: usize) {
        if let Some(grid) = &mut self.grid {
            grid.meetings.by_peer.remove(&index);
        }
    }

    /// The broker answers from there.
    pub(crate) fn on_broker_found(&mut self, broker: SocketAddr) {
        if let Some(grid) = &mut self.grid {
            let broker = SocketAddr::new(broker.ip().to_canonical(), broker.port());
            grid.meetings.broker = Some(broker);
        }
    }

    /// A peer has no lane, or its only one is silent. `introduced`: it once had, and said who it is.
    pub(crate) fn meet_again(&mut self, index: usize, introduced: bool) {
        let now = self.now;
        if let Some(meeting) = self.meeting(index) {
            meeting.on_lost(introduced, now);
        }
    }

    /// The handshake of a lane is through, at either side.
    pub(crate) fn on_met(&mut self, index: usize) {
        if let Some(meeting) = self.meeting(index) {
            meeting.on_met();
        }
    }

    /// The far gateway has said who it is.
    pub(crate) fn on_met_well(&mut self, index: usize) {
        if let Some(meeting) = self.meeting(index) {
            meeting.on_introduced();
        }
    }

    /// The lane that was dialled through the hole did not come up; false where none was.
    pub(crate) fn punch_failed(&mut self, index: usize, why: &str) -> bool {
        let now = self.now;
        let dialled = self
            .meeting(index)
            .is_some_and(|meeting| meeting.on_dial_failed(now));
        if dialled {
            self.no_meeting(index, why);
        }
        dialled
    }

    fn no_meeting(&mut self, index: usize, why: &str) {
        let trouble = format!("{NEITHER}; punching a way over UDP failed: {why}; trying again");
        let contact = &mut self.contacts[index];
        if contact.trouble != trouble {
            let site = &self.config.peers[index].site;
            self.report.say(format_args!("no lane to {site}: {trouble}"));
            contact.trouble = trouble;
        }
    }

    /// When a meeting wants to be looked at next.
    pub(crate) fn meetings_deadline(&self) -> Option<Instant> {
        let meetings = &self.grid.as_ref()?.meetings;
        meetings.broker?;
        meetings.by_peer.values().filter_map(Meeting::deadline).min()
    }

    /// Lets time pass for the meetings that wait for it.
    pub(crate) fn look_after_meetings(&mut self) {
        let now = self.now;
        if self.leaving || self.meetings_deadline().is_none_or(|at| at > now) {
            return;
        }
        let Some(grid) = &self.grid else { return };
        let due = grid.meetings.by_peer.iter();
        let due = due.filter(|(_, meeting)| meeting.deadline().is_some_and(|at| at <= now));
        let due: Vec<usize> = due.map(|(index, _)| *index).collect();
        for index in due {
            let is_well = self.has_lane(index);
            self.with_meeting(index, |meeting, out| match is_well && meeting.is_resting() {
                true => meeting.on_met(),
                false => meeting.on_time(now, out),
            });
        }
    }

    /// A lane is up, and not silent.
    /// A lane of the two gateways' own: a relay's serves until there is one.
    pub(crate) fn has_lane(&self, index: usize) -> bool {
        let pair = self.tunnels.get(&self.config.peers[index].site);
        pair.is_some_and(|pair| self.has_direct_lane(*pair))
    }

    fn with_meeting(&mut self, index: usize, act: impl FnOnce(&mut Meeting, &mut Vec<Action>)) {
        let mut actions = Vec::new();
        if let Some(meeting) = self.meeting(index) {
            act(meeting, &mut actions);
        }
        for action in actions {
            self.act(index, action);
        }
    }

    fn act(&mut self, index: usize, action: Action) {
        match action {
            Action::Locate => {
                if let Err(error) = self.locate() {
                    let (now, why) = (self.now, format!("ask the broker over UDP: {error}"));
                    self.with_meeting(index, |meeting, out| meeting.on_locating_failed(why, now, out));
                }
            }
            Action::Call { answers } => self.call(index, answers),
            Action::Knock { to, key } => {
                // Where this socket cannot send, another address may serve.
                let _ = self.say_over_udp(to, &message::knock(key));
            }
            Action::Dial { at } => self.dial_punched(index, at),
            Action::Failed(why) => self.no_meeting(index, &why),
        }
    }

    fn say_over_udp(&self, to: SocketAddr, datagram: &[u8]) -> io::Result<()> {
        match &self.quic {
            Some(quic) => quic.say(to, datagram),
            None => Ok(()),
        }
    }

    /// Asks the broker from where it sees the UDP socket.
    fn locate(&mut self) -> io::Result<()> {
        let Some(meetings) = self.grid.as_mut().map(|grid| &mut grid.meetings) else {
            return Ok(());
        };
        let Some(broker) = meetings.broker else {
            return Ok(());
        };
        let id = match meetings.asked {
            Some(id) => id,
            None => {
                let mut id = Id::default();
                getrandom::fill(&mut id).map_err(io::Error::other)?;
                *meetings.asked.insert(id)
            }
        };
        self.say_over_udp(broker, &reflection::question(id))
    }

    /// An answer to that, by its first byte.
    pub(crate) fn on_reflection(&mut self, datagram: &[u8]) {
        let now = self.now;
        let Some((id, mapped)) = reflection::answered(datagram) else {
            return;
        };
        let Some(meetings) = self.grid.as_mut().map(|grid| &mut grid.meetings) else {
            return;
        };
        if meetings.asked != Some(id) {
            return;
        }
        (meetings.asked, meetings.mapped) = (None, Some(mapped));
        let all: Vec<usize> = meetings.by_peer.keys().copied().collect();
        for index in all {
            self.with_meeting(index, |meeting, out| meeting.on_located(now, out));
        }
    }

    /// Tells the far gateway where this one is.
    fn call(&mut self, index: usize, answers: bool) {
        let local = self.local_addresses();
        let Some(grid) = &self.grid else { return };
        let meeting = grid.meetings.by_peer.get(&index);
        let Some((meeting, mapped)) = meeting.zip(grid.meetings.mapped) else {
            return;
        };
        let punch = Punch::new(answers, meeting.key, mapped, &local);
        if let Ok(body) = punch.encode() {
            // Busy: the round ends without an answer, and the next one asks again.
            let _ = grid.client.send(&self.config.peers[index].site, KIND, &body);
        }
    }

    /// Where the UDP socket is inside this site; a host's own loopback says nothing to others.
    fn local_addresses(&self) -> Vec<SocketAddr> {
        let Some(bound) = self.quic.as_ref().and_then(|quic| quic.local_address()) else {
            return Vec::new();
        };
        let known: Vec<IpAddr> = match bound.ip().is_unspecified() {
            true => self.config.lan.iter().map(SocketAddr::ip).collect(),
            false => vec![bound.ip()],
        };
        let others = known
            .into_iter()
            .filter(|ip| !ip.is_loopback() && !ip.is_unspecified());
        others.map(|ip| SocketAddr::new(ip, bound.port())).collect()
    }

    /// A far gateway says where it is. The broker answers for who that is.
    pub(crate) fn on_punch(&mut self, message: &Message) {
        let now = self.now;
        let Some(index) = self.peer_of(&message.from) else {
            return;
        };
        let punch = match Punch::decode(&message.body) {
            Ok(punch) => punch,
            Err(why) => {
                let text = format!("a message about punching that is not understood: {why}");
                return self.report.refuse("punch", &message.from, text);
            }
        };
        if let Some(key) = punch.key() {
            let addresses = punch.addresses();
            self.with_meeting(index, |meeting, out| {
                meeting.on_call(key, addresses, punch.answers, now, out);
            });
        }
    }

    /// A knock, by its first byte.
    pub(crate) fn on_knock(&mut self, datagram: &[u8], from: SocketAddr) {
        let Some((key, grid)) = message::knocked(datagram).zip(self.grid.as_ref()) else {
            return;
        };
        let mut meetings = grid.meetings.by_peer.iter();
        let whose = meetings.find(|(_, meeting)| meeting.key == key);
        if let Some(index) = whose.map(|(index, _)| *index) {
            let from = SocketAddr::new(from.ip().to_canonical(), from.port());
            self.with_meeting(index, |meeting, out| meeting.on_knock(from, out));
        }
    }

    fn dial_punched(&mut self, index: usize, address: SocketAddr) {
        let lane = match self.config.transport {
            Transport::Quic => 0,
            _ => QUIC_LANE,
        };
        let site = self.config.peers[index].site.clone();
        match self.dial_quic(&site, address) {
            Ok(carrier) => self.begin_handshake(carrier, address, Some((index, lane)), None),
            Err(error) => self.dial_failed(index, lane, &format!("connect to {address}: {error}")),
        }
    }
}
