//! What owners tell, handed to those whom it concerns.

use crate::base::base;
use crate::commands::command_context;
use crate::commands::event::CommandsEvent;
use crate::gateway::Gateway;
use crate::keys::{LaneNumber, LegKey, PeerIndex};
use crate::membership::event::MembershipEvent;
use crate::traversal::relay::client::PATIENCE;
use crate::tunnels::event::TunnelsEvent;
use crate::tunnels::origin::Through;
use crate::tunnels::pair::Pair;
use causeway_control::Reply;
use causeway_wire::TextError;
use std::time::Duration;

impl Gateway {
    /// Runs one step of the loop, and hands on what it has led to before anything else is looked at. Every
    /// step is run by this, so that nobody acts on a state that others have not heard of yet.
    pub(crate) fn step<T>(&mut self, step: impl FnOnce(&mut Gateway) -> T) -> T {
        let result = step(self);
        self.settle();
        result
    }

    /// Acts on the owners' events until there are no more.
    fn settle(&mut self) {
        loop {
            if let Some(event) = self.tunnels.poll_event() {
                self.on_tunnels(event);
            } else if let Some(event) = self.membership.poll_event() {
                self.on_membership(event);
            } else if let Some(event) = self.commands.poll_event() {
                self.on_commands(event);
            } else {
                return;
            }
        }
    }

    fn on_commands(&mut self, event: CommandsEvent) {
        match event {
            CommandsEvent::HandOver {
                command,
                state_version,
                program,
                config,
            } => {
                let considered =
                    self.lifecycle
                        .consider_successor(&self.driver, state_version, program, config);
                let considered = considered.map_err(TextError::of);
                self.commands
                    .on_successor(&mut command_context!(self), command, considered);
            }
        }
    }

    /// A program that asked for the gateway has been looked at.
    pub(crate) fn on_vetted(&mut self) {
        if let Err(refusal) = self.lifecycle.on_vetted(&self.driver.config) {
            let reply = Reply::Error(refusal.to_string());
            self.commands
                .answer_hand_over(&mut command_context!(self), &reply);
        }
    }

    fn on_membership(&mut self, event: MembershipEvent) {
        match event {
            MembershipEvent::PeerKnown { peer, is_new } => {
                if is_new {
                    self.traversal.seek_all(&mut base!(self), peer, PATIENCE);
                }
                self.traversal.on_peer_known(&mut base!(self), peer);
            }
            MembershipEvent::PeerGone { peer } => self.traversal.forget_meeting(peer),
            MembershipEvent::BrokerFound(broker) => self.traversal.on_broker_found(broker),
            MembershipEvent::Message(message) => self.traversal.on_broker_message(&mut base!(self), &message),
        }
    }

    fn on_tunnels(&mut self, event: TunnelsEvent) {
        match event {
            TunnelsEvent::Begun { pair } => self.membership.greet(&mut self.driver, &mut self.tunnels, pair),
            TunnelsEvent::Ended {
                peer,
                site,
                legs,
                why,
                pause,
            } => {
                self.on_tunnel_ended(peer, &site, legs, &why);
                self.traversal
                    .seek_all(&mut base!(self), peer, pause.max(PATIENCE));
            }
            TunnelsEvent::LaneUp { peer, lane } => self.traversal.on_lane_up(&mut base!(self), peer, lane),
            TunnelsEvent::Met { peer } => self.traversal.on_met(&mut base!(self), peer),
            TunnelsEvent::MetAtRelay { peer, number } => self.traversal.seek_succeeded(peer, number),
            TunnelsEvent::Introduced { peer, has_lane } => self.traversal.on_introduced(peer, has_lane),
            TunnelsEvent::LaneLost {
                peer,
                number,
                through,
            } => {
                self.on_lane_lost(peer, number, through.as_ref());
            }
            TunnelsEvent::Down { peer, relayed } => {
                if let Some(trouble) = relayed {
                    self.traversal.search_mut(peer).trouble = trouble;
                }
                self.traversal.lose_relay(&mut base!(self), peer);
            }
            TunnelsEvent::Wanted { peer, pause } => {
                self.traversal.meet_again(&mut base!(self), peer, pause.is_zero())
            }
            TunnelsEvent::MoreWanted { peer } => {
                self.traversal.seek_all(&mut base!(self), peer, Duration::ZERO)
            }
            TunnelsEvent::DialFailed { peer, number, why } => {
                if !self.traversal.punch_failed(&mut base!(self), peer, number, &why) {
                    self.tunnels
                        .connecting()
                        .dial_later(&mut self.driver, peer, number, &why);
                }
            }
            TunnelsEvent::ErrandFailed { errand, dialled, why } => {
                self.traversal
                    .errand_failed(&mut base!(self), &errand, dialled, &why)
            }
            TunnelsEvent::Ticket { ticket, socket, from } => {
                if !self.traversal.on_ticket(&mut base!(self), ticket, socket) {
                    let why = "it shows a ticket that was never given, was used, or is good no more";
                    self.driver.log.refuse("relay-ticket", from.ip(), why);
                }
            }
            TunnelsEvent::Datagram { bytes, from } => {
                self.traversal.on_datagram(&mut base!(self), &bytes, from)
            }
        }
    }

    /// A tunnel is over, and with it what it carried.
    fn on_tunnel_ended(&mut self, peer: PeerIndex, site: &str, legs: Vec<LegKey>, why: &str) {
        self.site.abort(&mut base!(self), legs);
        self.commands.on_site_gone(&mut command_context!(self), site, why);
        self.traversal.lose_relay(&mut base!(self), peer);
    }

    fn on_lane_lost(&mut self, peer: PeerIndex, number: LaneNumber, through: Option<&Through>) {
        let known = self.tunnels.pairs().of(self.tunnels.peers()[peer].site());
        let introduced = known.is_some_and(Pair::is_introduced);
        self.traversal.meet_again(&mut base!(self), peer, introduced);
        self.traversal.seek_again(&mut base!(self), peer, number, through);
    }
}
