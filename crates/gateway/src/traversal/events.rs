//! What other owners report, as far as it concerns paths between gateways.

use crate::base::{Base, Bundle};
use crate::keys::PeerIndex;
use crate::membership::event::MembershipEvent;
use crate::traversal::Traversal;
use crate::traversal::alive::{self, ask_whether_alive, on_alive};
use crate::traversal::relay::client::PATIENCE;
use crate::tunnels::event::TunnelsEvent;
use crate::tunnels::pair::Pair;
use std::time::Duration;

impl Traversal {
    /// Acts on what has happened to tunnels.
    pub(crate) fn on_tunnels(&mut self, base: &mut Base<'_>, event: TunnelsEvent) {
        match event {
            TunnelsEvent::Begun { .. } => {}
            TunnelsEvent::Ended { peer, pause, .. } => {
                self.lose_relay(base, peer);
                self.seek_all(base, peer, pause.max(PATIENCE));
            }
            TunnelsEvent::LaneUp { peer, lane } => self.on_lane_up(base, peer, lane),
            TunnelsEvent::Met { peer } => self.on_met(base, peer),
            TunnelsEvent::MetAtRelay { peer, number } => self.seek_succeeded(peer, number),
            TunnelsEvent::Introduced { peer, has_lane } => self.on_introduced(peer, has_lane),
            TunnelsEvent::LaneLost {
                peer,
                number,
                through,
            } => {
                let introduced = is_introduced(base, peer);
                self.meet_again(base, peer, introduced);
                self.seek_again(base, peer, number, through.as_ref());
            }
            TunnelsEvent::Down { peer, relayed } => {
                if let Some(why) = relayed {
                    self.search_mut(peer).why_no_relay = why;
                }
                self.lose_relay(base, peer);
            }
            TunnelsEvent::Wanted { peer, pause } => self.meet_again(base, peer, pause.is_zero()),
            TunnelsEvent::MoreWanted { peer } => self.seek_all(base, peer, Duration::ZERO),
            TunnelsEvent::Doubted { peer } => ask_whether_alive(base, peer),
            TunnelsEvent::DialFailed { peer, number, why } => {
                if !self.punch_failed(base, peer, number, &why) {
                    let mut connecting = base.tunnels.connecting();
                    connecting.dial_later(base.driver, peer, number, &why);
                }
            }
            TunnelsEvent::RelayVisitFailed { visit, dialled, why } => {
                self.relay_visit_failed(base, &visit, dialled, &why)
            }
            TunnelsEvent::Ticket { ticket, socket, from } => {
                if !self.on_ticket(base, ticket, socket) {
                    let why = "it shows a ticket that was never given, was used, or is good no more";
                    base.refuse("relay-ticket", from.ip(), why);
                }
            }
            TunnelsEvent::Datagram { bytes, from } => self.on_datagram(base, &bytes, from),
        }
    }

    /// Acts on what the broker reports about sites.
    pub(crate) fn on_membership(&mut self, base: &mut Base<'_>, event: MembershipEvent) {
        match event {
            MembershipEvent::PeerKnown { peer, is_new } => {
                if is_new {
                    self.seek_all(base, peer, PATIENCE);
                }
                self.on_peer_known(base, peer);
            }
            MembershipEvent::PeerGone { peer } => {
                self.forget_meeting(peer);
                self.end_splices_of(base, peer);
            }
            MembershipEvent::BrokerFound(broker) => self.on_broker_found(broker),
            MembershipEvent::Message(message) if message.kind == alive::KIND => on_alive(base, &message),
            MembershipEvent::Message(message) => self.on_broker_message(base, &message),
        }
    }
}

/// Whether the gateway of a peer has said who it is on the present tunnel.
fn is_introduced(base: &Base<'_>, peer: PeerIndex) -> bool {
    let site = base.site_at(peer);
    base.tunnels
        .pairs()
        .of(site)
        .is_some_and(Pair::has_introduced_itself)
}
