//! Hands messages about relays to the part that needs them: that of a relay's user, or that of a relay.

use super::client::Invitation;
use super::selection::Offer;
use crate::base::Base;
use crate::keys::PairKey;
use crate::traversal::Traversal;
use crate::tunnels::message::GatewayToGateway;

impl Traversal {
    /// Acts on a message about relays from the gateway of `site`; ignores others.
    pub(crate) fn on_relay_message(
        &mut self,
        base: &mut Base<'_>,
        pair_key: PairKey,
        site: &str,
        message: GatewayToGateway,
    ) {
        match message {
            GatewayToGateway::RelayAsk { to, id } => self.on_relay_ask(base, pair_key, &to, id),
            GatewayToGateway::RelayOffer {
                carried,
                beyond_microseconds,
            } => self.on_relay_offer(base, site, Offer::new(carried, beyond_microseconds)),
            GatewayToGateway::RelayNo { id, why } => self.on_relay_no(base, site, id, why),
            GatewayToGateway::RelayCannot { meeting, why } => self.on_relay_cannot(base, site, meeting, why),
            GatewayToGateway::RelayGo {
                id,
                ticket,
                beyond_microseconds,
            } => {
                let invitation = Invitation {
                    id,
                    ticket,
                    beyond_microseconds,
                };
                self.on_relay_go(base, site, &invitation);
            }
            GatewayToGateway::RelayCome {
                meeting: id,
                from,
                ticket,
                beyond_microseconds,
            } => {
                let invitation = Invitation {
                    id,
                    ticket,
                    beyond_microseconds,
                };
                self.on_relay_come(base, pair_key, site, &from, &invitation);
            }
            _ => {}
        }
    }
}
