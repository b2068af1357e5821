//! Lanes between two members of a grid that cannot be dialled: both send at the same time, which opens both
//! firewalls and NATs. Over UDP, one of them then dials over QUIC (`quic`) through the hole; over TCP, what
//! they send makes a connection (`opening`), on which the same one begins TLS. `rounds` decides what is done
//! at what time, `over_udp` and `over_tcp` do it, `message` has the messages.
//!
//! ```text
//!                  1. from where am I seen?           ┌────────┐
//!   gateway A ──────────────────────────────────────> │ broker │ <──────── gateway B
//!       │      2. A is here, knock there (HTTPS) ───> └────────┘ ───>          │
//!       └────── 3. knocks from both ─── 4. the one that sorts first speaks ────┘
//! ```
//! UDP and TCP each have rounds of their own; the one that did not work last time gives the other a head
//! start.
//!
//! The broker is needed only for this: an established lane outlives it. The certificates of the lane prove
//! who is at the far end.

mod message;
mod opening;
mod over_tcp;
mod over_udp;
mod rounds;

use crate::base::{Base, Bundle};
use crate::keys::{LaneKey, LaneNumber, PeerIndex};
use crate::traversal::Traversal;
use crate::tunnels::origin::Way;
use crate::tunnels::peers::reach::connectable;
use message::{KIND, TCP_KIND};

use crate::config::Transport;
use crate::tunnels::pair::Pair;
use crate::tunnels::peers::dial::REDIAL;
use causeway_broker::api::Message;
use causeway_broker::reflection::Id;
use message::{Key, Punch};
use opening::Opening;
use rounds::{Action, Meeting};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

/// The beginning of every reason for having no lane.
const NEITHER: &str = "neither gateway can be dialled";

/// How long to wait before the other protocol is tried as well: if UDP is let through at all, a lane over it
/// is up within half a second after its round begins.
const HEAD_START: Duration = Duration::from_secs(2);

/// The far gateways that can neither be dialled nor dial this one.
#[derive(Default)]
pub(crate) struct Meetings {
    /// Meetings, by peer and protocol.
    by_peer: BTreeMap<(PeerIndex, Way), Meeting>,
    /// Sockets of the rounds over TCP that are in progress.
    openings: BTreeMap<PeerIndex, Opening>,
    /// How each peer was last met.
    served: BTreeMap<PeerIndex, Way>,
    /// The broker's address, once it was found; nothing begins before that.
    broker: Option<SocketAddr>,
    /// The question to the broker that is in progress.
    asked: Option<Id>,
    /// The address at which the broker sees this gateway's UDP socket.
    mapped: Option<SocketAddr>,
}

impl Meetings {
    fn of(&mut self, index: PeerIndex) -> impl Iterator<Item = (Way, &mut Meeting)> {
        let both = self
            .by_peer
            .range_mut((index, Way::ALL[0])..=(index, Way::ALL[1]));
        both.map(|((_, way), meeting)| (*way, meeting))
    }

    /// How much later this protocol is tried than the one that worked last.
    fn head_start(&self, index: PeerIndex, way: Way) -> Duration {
        let has_udp = self.by_peer.contains_key(&(index, Way::Udp));
        match (self.served.get(&index), way) {
            (Some(served), _) if *served != way => HEAD_START,
            (None, Way::Tcp) if has_udp => HEAD_START,
            _ => Duration::ZERO,
        }
    }
}

impl Traversal {
    fn meeting(&mut self, index: PeerIndex, way: Way) -> Option<&mut Meeting> {
        self.meetings.by_peer.get_mut(&(index, way))
    }

    /// Whether only punching brings a lane to this peer.
    fn meets(&self, index: PeerIndex) -> bool {
        let mut ways = Way::ALL.into_iter();
        ways.any(|way| self.meetings.by_peer.contains_key(&(index, way)))
    }

    /// The broker has reported where a peer can be dialled, if anywhere.
    pub(in crate::traversal) fn on_peer_known(&mut self, base: &mut Base<'_>, index: PeerIndex) {
        let now = base.now();
        let site = base.site_at(index).to_owned();
        let closed = base.config().public.is_empty() && !base.tunnels.peers()[index].is_public();
        if !closed {
            return self.forget_meeting(index);
        }
        if self.meets(index) {
            return;
        }
        let ways = Way::ALL.into_iter().filter(|way| match way {
            Way::Udp => base.tunnels.ways().has_udp(),
            Way::Tcp => base.config().transport != Transport::Quic,
        });
        let ways: Vec<Way> = ways.collect();
        let names: Vec<String> = ways.iter().map(Way::to_string).collect();
        let why = format!("{NEITHER}; punching a way over {}", names.join(" and "));
        base.tunnels.connecting().set_why_not_reached(index, &why);
        let was_up = base.tunnels.pairs().of(&site).map(Pair::is_up);
        let dials = base.config().site < site;
        let meetings = &mut self.meetings;
        for way in ways {
            let mut key = Key::default();
            // Without random numbers every handshake fails, and reports that.
            if getrandom::fill(&mut key).is_err() {
                return;
            }
            let mut meeting = Meeting::new(way, key, dials);
            match was_up {
                Some(true) => {}
                // Streams wait for this lane, because this gateway was handed over to another program.
                Some(false) => meeting.begin_after(Duration::ZERO, now),
                None => meeting.begin(meetings.head_start(index, way), now),
            }
            meetings.by_peer.insert((index, way), meeting);
        }
    }

    pub(in crate::traversal) fn forget_meeting(&mut self, index: PeerIndex) {
        let meetings = &mut self.meetings;
        meetings.by_peer.retain(|(other, _), _| *other != index);
        meetings.openings.remove(&index);
        meetings.served.remove(&index);
    }

    /// The broker answers from this address.
    pub(in crate::traversal) fn on_broker_found(&mut self, broker: SocketAddr) {
        let broker = SocketAddr::new(broker.ip().to_canonical(), broker.port());
        self.meetings.broker = Some(broker);
    }

    /// A peer has no lane, or its only one is silent. `introduced`: it has once had a lane, and said who it
    /// is.
    pub(in crate::traversal) fn meet_again(
        &mut self,
        base: &mut Base<'_>,
        index: PeerIndex,
        introduced: bool,
    ) {
        let now = base.now();
        let meetings = &mut self.meetings;
        for way in Way::ALL {
            let head_start = meetings.head_start(index, way);
            if let Some(meeting) = meetings.by_peer.get_mut(&(index, way)) {
                meeting.on_lost(introduced, head_start, now);
            }
        }
    }

    /// A lane is up. Lanes through a relay are not what the two gateways are meeting for.
    pub(in crate::traversal) fn on_lane_up(&mut self, base: &mut Base<'_>, peer: PeerIndex, lane: LaneKey) {
        let Some(way) = base.tunnels.ways().protocol_of_direct(lane) else {
            return;
        };
        let punched = self.punched(peer, way);
        base.tunnels.connecting().mark_punched(lane, punched);
        self.on_met(base, peer);
        self.tell_offer_soon(base);
    }

    /// The handshake of a lane has succeeded, whichever side began it.
    pub(in crate::traversal) fn on_met(&mut self, base: &mut Base<'_>, index: PeerIndex) {
        let meetings = &mut self.meetings;
        meetings.of(index).for_each(|(_, meeting)| meeting.on_met());
        meetings.openings.remove(&index);
        let now = base.now();
        if self.missing_lane(base, index).is_some()
            && let Some(meeting) = self.meeting(index, Way::Tcp)
        {
            meeting.begin_after(REDIAL, now);
        }
    }

    /// A lane to a peer that is met is up: returns how it came about, unless it uses a relay.
    fn punched(&mut self, index: PeerIndex, way: Way) -> Option<Way> {
        let meetings = &mut self.meetings;
        meetings.by_peer.get(&(index, way))?;
        meetings.served.insert(index, way);
        Some(way)
    }

    /// The far gateway has said who it is.
    pub(in crate::traversal) fn on_met_well(&mut self, index: PeerIndex) {
        let meetings = self.meetings.of(index);
        meetings.for_each(|(_, meeting)| meeting.on_introduced());
    }

    /// The lane that was begun through the hole did not come up; false if none was begun.
    pub(in crate::traversal) fn punch_failed(
        &mut self,
        base: &mut Base<'_>,
        index: PeerIndex,
        lane: LaneNumber,
        why: &str,
    ) -> bool {
        let now = base.now();
        let way = match (base.config().transport, lane) {
            (Transport::Quic, _) | (Transport::Auto, LaneNumber::QUIC) => Way::Udp,
            _ => Way::Tcp,
        };
        let dialled = self
            .meeting(index, way)
            .is_some_and(|meeting| meeting.on_dial_failed(why, now));
        if dialled {
            self.no_meeting(base, index);
        }
        dialled
    }

    fn no_meeting(&mut self, base: &mut Base<'_>, index: PeerIndex) {
        if base.tunnels.ways().has_lane(index) {
            return;
        }
        let meetings = &mut self.meetings;
        let reasons = meetings
            .of(index)
            .filter(|(_, meeting)| !meeting.trouble.is_empty());
        let reasons = reasons.map(|(way, meeting)| format!("over {way} failed: {}", meeting.trouble));
        let reasons: Vec<String> = reasons.collect();
        let why = format!("{NEITHER}; punching a way {}; trying again", reasons.join("; "));
        if base.tunnels.connecting().set_why_not_reached(index, &why) {
            let site = base.site_at(index);
            base.say(format_args!("no lane to {site}: {why}"));
        }
    }

    /// When the next meeting is due.
    pub(in crate::traversal) fn meetings_deadline(&self) -> Option<Instant> {
        let meetings = &self.meetings;
        meetings.broker?;
        meetings.by_peer.values().filter_map(Meeting::deadline).min()
    }

    /// Acts on the meetings that are due.
    pub(in crate::traversal) fn look_after_meetings(&mut self, base: &mut Base<'_>) {
        let now = base.now();
        if base.driver.leaving || self.meetings_deadline().is_none_or(|at| at > now) {
            return;
        }
        let due = self.meetings.by_peer.iter();
        let due = due.filter(|(_, meeting)| meeting.deadline().is_some_and(|at| at <= now));
        let due: Vec<(PeerIndex, Way)> = due.map(|(key, _)| *key).collect();
        for (index, way) in due {
            let is_well = base.tunnels.ways().has_lane(index)
                && (way == Way::Udp || self.missing_lane(base, index).is_none());
            self.with_meeting(base, index, way, |meeting, out| {
                match is_well && meeting.is_resting() {
                    true => meeting.on_met(),
                    false => meeting.on_time(now, out),
                }
            });
        }
    }

    fn with_meeting(
        &mut self,
        base: &mut Base<'_>,
        index: PeerIndex,
        way: Way,
        act: impl FnOnce(&mut Meeting, &mut Vec<Action>),
    ) {
        let mut actions = Vec::new();
        if let Some(meeting) = self.meeting(index, way) {
            act(meeting, &mut actions);
        }
        for action in actions {
            self.act(base, index, way, action);
        }
        let in_round = |meeting: &mut Meeting| meeting.is_in_round();
        if way == Way::Tcp && !self.meeting(index, way).is_some_and(in_round) {
            self.meetings.openings.remove(&index);
        }
    }

    fn act(&mut self, base: &mut Base<'_>, index: PeerIndex, way: Way, action: Action) {
        match (action, way) {
            (Action::Locate, _) => {
                let located = match way {
                    Way::Udp => self.locate(base),
                    Way::Tcp => self.open(base, index),
                };
                if let Err(error) = located {
                    let (now, why) = (base.now(), format!("ask the broker over {way}: {error}"));
                    self.with_meeting(base, index, way, |meeting, out| {
                        meeting.on_locating_failed(why, now, out);
                    });
                }
            }
            (Action::Call { answers }, _) => self.call(base, index, way, answers),
            (Action::Knock { to, key }, Way::Udp) => {
                // If this socket cannot send there, another address may work.
                let knock = message::knock(key);
                let _ = base.tunnels.connecting().say_datagram(to, &knock);
            }
            (Action::Knock { to, .. }, Way::Tcp) => self.knock_over_tcp(base, index, to),
            (Action::Dial { at }, Way::Udp) => {
                base.tunnels.connecting().dial_over_udp(base.driver, index, at)
            }
            // Whoever holds the connection begins it.
            (Action::Dial { .. }, Way::Tcp) => {}
            (Action::Failed, _) => self.no_meeting(base, index),
        }
    }

    /// Tells the far gateway where to find this one.
    fn call(&mut self, base: &mut Base<'_>, index: PeerIndex, way: Way, answers: bool) {
        let Some(grid) = base.membership.session() else {
            return;
        };
        let meetings = &self.meetings;
        let opening = meetings.openings.get(&index);
        let (kind, mapped, port) = match way {
            Way::Udp => {
                let bound = base.tunnels.ways().udp_address();
                (KIND, meetings.mapped, bound)
            }
            Way::Tcp => {
                let bound = opening.and_then(Opening::local_address);
                (TCP_KIND, opening.and_then(|opening| opening.mapped), bound)
            }
        };
        let meeting = meetings.by_peer.get(&(index, way));
        let Some((meeting, mapped)) = meeting.zip(mapped) else {
            return;
        };
        let local = port
            .map(|bound| self.local_addresses(base, bound))
            .unwrap_or_default();
        let key = (way == Way::Udp).then_some(meeting.key);
        let punch = Punch::new(answers, key, mapped, &local);
        if let Ok(body) = punch.encode() {
            // If the client is busy, the round ends without an answer, and the next one asks again.
            let _ = grid.client.send(base.site_at(index), kind, &body);
        }
    }

    /// The address of a socket inside this site; addresses on a host's own loopback are useless to others.
    fn local_addresses(&self, base: &Base<'_>, bound: SocketAddr) -> Vec<SocketAddr> {
        let known: Vec<IpAddr> = match bound.ip().is_unspecified() {
            true => base.config().lan.iter().map(SocketAddr::ip).collect(),
            false => vec![bound.ip()],
        };
        let others = known
            .into_iter()
            .filter(|ip| !ip.is_loopback() && !ip.is_unspecified());
        others.map(|ip| SocketAddr::new(ip, bound.port())).collect()
    }

    /// Another gateway has sent a message through the broker.
    pub(in crate::traversal) fn on_broker_message(&mut self, base: &mut Base<'_>, message: &Message) {
        if [KIND, TCP_KIND].contains(&&*message.kind) {
            self.on_punch(base, message);
        }
    }

    /// A far gateway says where to find it. The broker vouches for that.
    fn on_punch(&mut self, base: &mut Base<'_>, message: &Message) {
        let now = base.now();
        let Some(index) = base.tunnels.peers().of(&message.from) else {
            return;
        };
        let way = match message.kind == TCP_KIND {
            true => Way::Tcp,
            false => Way::Udp,
        };
        let punch = match Punch::decode(&message.body) {
            Ok(punch) if punch.key().is_some() || way == Way::Tcp => punch,
            other => {
                let why = other.err().unwrap_or_else(|| "it has no key".into());
                let text = format!("a message about punching that is not understood: {why}");
                return base.refuse("punch", &message.from, text);
            }
        };
        let key = punch.key().unwrap_or_default();
        let seen = base.membership.session().and_then(|grid| grid.observed);
        if !base.tunnels.connecting().may_ask(index, now) {
            let text = "it asked too often to have a way punched";
            return base.refuse("punch-rate", &message.from, text);
        }
        if let Some(why) = punch.claims_to_be_elsewhere(message.seen) {
            return base.refuse("punch-address", &message.from, why);
        }
        let own = match way {
            Way::Udp => self.meetings.mapped.or(seen),
            Way::Tcp => seen,
        };
        let addresses = own.map_or_else(Vec::new, |own| {
            connectable(&punch.addresses(), punch.mapped, own, &base.config().subnets)
        });
        self.with_meeting(base, index, way, |meeting, out| {
            meeting.on_call(key, addresses, punch.answers, now, out);
        });
    }
}
