//! What gateways of other sites say.

use crate::commands::{Below, Commands};
use crate::membership::jobs::{Job, Origin};
use crate::traversal::relay::client::Invitation;
use crate::traversal::relay::selection::Offer;
use crate::tunnels::lane::LaneEnd;
use crate::tunnels::message::GatewayToGateway;
use causeway_control::MAX_WEIGHT;
use causeway_wire::Token;

impl Commands {
    /// What another gateway says.
    pub(crate) fn on_message(
        &mut self,
        below: &mut Below<'_>,
        pair_key: usize,
        bytes: &[u8],
    ) -> Result<(), LaneEnd> {
        let Some(site) = below
            .base
            .tunnels
            .pairs
            .get(pair_key)
            .map(|pair| pair.site.clone())
        else {
            return Ok(());
        };
        let parse = |token: &str| {
            token
                .parse::<Token>()
                .map_err(|error| LaneEnd::Refused(error.to_string()))
        };
        match GatewayToGateway::decode(bytes).map_err(LaneEnd::Refused)? {
            GatewayToGateway::Site(info) => {
                below
                    .base
                    .membership
                    .check_claims(&site, &info)
                    .and_then(|()| below.base.membership.directory.learn(&site, info))
                    .map_err(|why| LaneEnd::Refused(format!("site {site} {why}")))?;
                if let Some(pair) = below.base.tunnels.pairs.get_mut(pair_key) {
                    pair.introduced = true;
                    let peer = pair.peer;
                    below.base.tunnels.dial_succeeded(peer);
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
                match below.base.membership.jobs.learn(parse(&token)?, job) {
                    Ok(()) => {
                        let links = below.base.tunnels.own_links();
                        below.base.tunnels.tell(
                            below.base.driver,
                            pair_key,
                            GatewayToGateway::JobKnown { token, links },
                        );
                    }
                    Err(why) => below
                        .base
                        .driver
                        .log
                        .refuse("job", format_args!("site {from}"), why),
                }
            }
            GatewayToGateway::JobKnown { token, links } => {
                below.base.tunnels.learn_links(below.base.driver, &site, links);
                if let Some(command) = below.base.membership.jobs.confirmed(&parse(&token)?, &site) {
                    self.job_confirmed(below, command);
                }
            }
            GatewayToGateway::JobEnd { token } => {
                let token = parse(&token)?;
                if below.base.membership.jobs.of_site(&site).contains(&token) {
                    self.end_job(below, &token);
                }
            }
            GatewayToGateway::RelayAsk { to, id } => {
                below.traversal.on_relay_ask(&mut below.base, pair_key, &to, id)
            }
            GatewayToGateway::RelayOffer {
                carried,
                beyond_microseconds,
            } => below.traversal.on_relay_offer(
                &mut below.base,
                &site,
                Offer::new(carried, beyond_microseconds),
            ),
            GatewayToGateway::RelayNo { id, why } => {
                below.traversal.on_relay_no(&mut below.base, &site, id, &why)
            }
            GatewayToGateway::RelayCannot { meeting, why } => {
                below
                    .traversal
                    .on_relay_cannot(&mut below.base, &site, meeting, &why)
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
                below.traversal.on_relay_go(&mut below.base, &site, &invitation);
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
                below
                    .traversal
                    .on_relay_come(&mut below.base, pair_key, &site, &from, &invitation);
            }
            GatewayToGateway::Lossy {} => below.base.tunnels.on_lossy(below.base.driver, pair_key),
            GatewayToGateway::Ping { number } => self.on_ping(below, pair_key, number),
            GatewayToGateway::Pong {
                number,
                unix_microseconds,
                version,
            } => self.on_pong(below, &site, number, unix_microseconds, version),
            GatewayToGateway::Unknown => {}
            // Should the same process come back after all, it shall not find a tunnel to resume.
            GatewayToGateway::Leaving {} => {
                below
                    .base
                    .tunnels
                    .end_pair(below.base.driver, pair_key, &LaneEnd::Left, true)
            }
        }
        Ok(())
    }
}
