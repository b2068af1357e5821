//! What gateways of other sites say.

use crate::base::base;
use crate::gateway::Gateway;
use crate::membership::jobs::{Job, Origin};
use crate::traversal::relay::client::Invitation;
use crate::traversal::relay::selection::Offer;
use crate::tunnels::lane::LaneEnd;
use crate::tunnels::message::GatewayToGateway;
use causeway_control::MAX_WEIGHT;
use causeway_wire::Token;

impl Gateway {
    /// What another gateway says.
    pub(crate) fn on_message(&mut self, pair_key: usize, bytes: &[u8]) -> Result<(), LaneEnd> {
        let Some(site) = self.tunnels.pairs.get(pair_key).map(|pair| pair.site.clone()) else {
            return Ok(());
        };
        let parse = |token: &str| {
            token
                .parse::<Token>()
                .map_err(|error| LaneEnd::Refused(error.to_string()))
        };
        match GatewayToGateway::decode(bytes).map_err(LaneEnd::Refused)? {
            GatewayToGateway::Site(info) => {
                self.membership
                    .check_claims(&site, &info)
                    .and_then(|()| self.membership.directory.learn(&site, info))
                    .map_err(|why| LaneEnd::Refused(format!("site {site} {why}")))?;
                if let Some(pair) = self.tunnels.pairs.get_mut(pair_key) {
                    pair.introduced = true;
                    let peer = pair.peer;
                    self.tunnels.dial_succeeded(peer);
                }
            }
            GatewayToGateway::JobStart {
                token,
                name,
                weight,
                plain,
                transparent,
            } => {
                let weight = weight.clamp(1, MAX_WEIGHT);
                let (from, origin) = (site.clone(), Origin::Site(site));
                let mut job = Job::new(name, weight, origin, Default::default());
                job.plain = plain;
                job.transparent = transparent;
                match self.membership.jobs.learn(parse(&token)?, job) {
                    Ok(()) => {
                        let links = self.tunnels.own_links();
                        self.tunnels.tell(
                            &mut self.driver,
                            pair_key,
                            GatewayToGateway::JobKnown { token, links },
                        );
                    }
                    Err(why) => self.driver.log.refuse("job", format_args!("site {from}"), why),
                }
            }
            GatewayToGateway::JobKnown { token, links } => {
                self.tunnels.learn_links(&mut self.driver, &site, links);
                if let Some(command) = self.membership.jobs.confirmed(&parse(&token)?, &site) {
                    self.job_confirmed(command);
                }
            }
            GatewayToGateway::JobEnd { token } => {
                let token = parse(&token)?;
                if self.membership.jobs.of_site(&site).contains(&token) {
                    self.end_job(&token);
                }
            }
            GatewayToGateway::RelayAsk { to, id } => {
                self.traversal.on_relay_ask(&mut base!(self), pair_key, &to, id)
            }
            GatewayToGateway::RelayOffer {
                carried,
                beyond_microseconds,
            } => self.traversal.on_relay_offer(
                &mut base!(self),
                &site,
                Offer::new(carried, beyond_microseconds),
            ),
            GatewayToGateway::RelayNo { id, why } => {
                self.traversal.on_relay_no(&mut base!(self), &site, id, &why)
            }
            GatewayToGateway::RelayCannot { meeting, why } => {
                self.traversal
                    .on_relay_cannot(&mut base!(self), &site, meeting, &why)
            }
            GatewayToGateway::RelayGo {
                id,
                ticket,
                address,
                beyond_microseconds,
            } => {
                let invitation = Invitation {
                    id,
                    ticket,
                    address,
                    beyond_microseconds,
                };
                self.traversal.on_relay_go(&mut base!(self), &site, &invitation);
            }
            GatewayToGateway::RelayCome {
                meeting: id,
                from,
                ticket,
                address,
                beyond_microseconds,
            } => {
                let invitation = Invitation {
                    id,
                    ticket,
                    address,
                    beyond_microseconds,
                };
                self.traversal
                    .on_relay_come(&mut base!(self), pair_key, &site, &from, &invitation);
            }
            GatewayToGateway::Lossy {} => self.tunnels.on_lossy(&mut self.driver, pair_key),
            GatewayToGateway::Ping { number } => self.on_ping(pair_key, number),
            GatewayToGateway::Pong {
                number,
                unix_microseconds,
                version,
            } => self.on_pong(&site, number, unix_microseconds, version),
            GatewayToGateway::Unknown => {}
            // Should the same process come back after all, it shall not find a tunnel to resume.
            GatewayToGateway::Leaving {} => {
                self.tunnels
                    .end_pair(&mut self.driver, pair_key, &LaneEnd::Left, true)
            }
        }
        Ok(())
    }
}
