//! What the gateways of other sites say.

use crate::base::Bundle;
use crate::commands::{CommandContext, Commands};
use crate::keys::PairKey;
use crate::membership::consent;
use crate::membership::jobs::{Job, Origin};
use crate::tunnels::lanes::lane::LaneEnd;
use crate::tunnels::message::{GatewayToGateway, JobRefusal};
use crate::tunnels::roster::Word;
use causeway_control::MAX_WEIGHT;
use causeway_control::audit::AuditEvent;
use causeway_wire::Token;
use causeway_wire::grid::is_site_name;

/// Longer messages take so much time to read that nobody may send many of them. Only one kind is ever that
/// long: the description of a site with hundreds of nodes.
const LONG: usize = 64 << 10;

impl Commands {
    /// Acts on what another gateway says.
    pub(crate) fn on_message(
        &mut self,
        context: &mut CommandContext<'_>,
        pair_key: PairKey,
        bytes: &[u8],
    ) -> Result<(), LaneEnd> {
        let pair = context.tunnels.pairs().get(pair_key);
        let Some(site) = pair.map(|pair| pair.site().to_owned()) else {
            return Ok(());
        };
        if bytes.len() > LONG
            && let Some(index) = context.tunnels.peers().of(&site)
            && !context
                .tunnels
                .connecting()
                .may_say_at_length(index, context.driver.now)
        {
            let why = format!("it says more than {LONG} bytes at once too often");
            return Err(LaneEnd::Refused(why));
        }
        match GatewayToGateway::decode(bytes).map_err(|why| LaneEnd::Refused(why.into()))? {
            own @ (GatewayToGateway::Accepts(_)
            | GatewayToGateway::Site(_)
            | GatewayToGateway::Records { .. }) => {
                return context
                    .membership
                    .on_message(context.driver, context.tunnels, pair_key, own);
            }
            job @ (GatewayToGateway::JobStart { .. }
            | GatewayToGateway::JobKnown { .. }
            | GatewayToGateway::JobRefused { .. }
            | GatewayToGateway::JobEnd { .. }) => self.on_job_message(context, pair_key, &site, job)?,
            relay @ (GatewayToGateway::RelayAsk { .. }
            | GatewayToGateway::RelayOffer { .. }
            | GatewayToGateway::RelayNo { .. }
            | GatewayToGateway::RelayCannot { .. }
            | GatewayToGateway::RelayGo { .. }
            | GatewayToGateway::RelayCome { .. }) => {
                let (traversal, mut base) = context.traversal_and_base();
                traversal.on_relay_message(&mut base, pair_key, &site, relay);
            }
            GatewayToGateway::Lossy {} => hear(context, pair_key, Word::Lossy),
            GatewayToGateway::Ping { number } => self.on_ping(context, pair_key, number),
            GatewayToGateway::Pong {
                number,
                unix_microseconds,
                version,
            } => self.on_pong(context, &site, number, unix_microseconds, version),
            GatewayToGateway::AllocationAsk { number, id } => {
                self.on_allocation_ask(context, (pair_key, &site), number, id);
            }
            GatewayToGateway::AllocationIs { number, nodes, why } => {
                self.on_allocation(context, &site, number, nodes, why);
            }
            GatewayToGateway::Unknown => {}
            GatewayToGateway::Leaving {} => hear(context, pair_key, Word::Leaving),
        }
        Ok(())
    }

    /// Acts on what another gateway says about a job.
    fn on_job_message(
        &mut self,
        context: &mut CommandContext<'_>,
        pair_key: PairKey,
        site: &str,
        message: GatewayToGateway,
    ) -> Result<(), LaneEnd> {
        match message {
            GatewayToGateway::JobStart {
                token,
                name,
                weight,
                bare,
                transparent,
                lingers,
                sites,
                user,
                allocations,
            } => {
                let weight = weight.clamp(1, MAX_WEIGHT);
                let mut job = Job::new(name, weight, Origin::Site(site.to_owned()), Default::default());
                job.bare = bare;
                job.lingers = bare && lingers;
                job.transparent = transparent;
                job.user = user;
                job.told = { sites.into_iter() }.filter(|site| is_site_name(site)).collect();
                let token = (parse_token(&token)?, token);
                let allocated = self.allocate_for(context, site, &mut job, allocations);
                learn_job(context, pair_key, site, token, (job, allocated));
            }
            GatewayToGateway::JobRefused { token, why } => {
                let token = parse_token(&token)?;
                if let Some(command) = context.membership.jobs_mut().refused(&token, site, why) {
                    self.job_confirmed(context, command);
                }
            }
            GatewayToGateway::JobKnown { token, links } => {
                hear(context, pair_key, Word::Links(links));
                if let Some(command) = context
                    .membership
                    .jobs_mut()
                    .confirmed(&parse_token(&token)?, site)
                {
                    self.job_confirmed(context, command);
                }
            }
            GatewayToGateway::JobEnd { token } => {
                let token = parse_token(&token)?;
                if context.jobs().is_of(&token, site) {
                    self.end_job(context, &token);
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// Passes on a message that concerns the tunnel.
fn hear(context: &mut CommandContext<'_>, pair: PairKey, word: Word) {
    context.tunnels.roster().hear(context.driver, pair, word);
}

fn parse_token(token: &str) -> Result<Token, LaneEnd> {
    let parsed = token.parse::<Token>();
    parsed.map_err(|error| LaneEnd::Refused(error.to_string()))
}

/// A job of another site has started, with this token. It is known here only if this site takes part in it.
fn learn_job(
    context: &mut CommandContext<'_>,
    pair_key: PairKey,
    site: &str,
    (token, text): (Token, String),
    (job, allocated): (Job, Result<(), JobRefusal>),
) {
    let CommandContext {
        driver,
        tunnels,
        membership,
        ..
    } = context;
    let mut entry = driver.audit.entry(AuditEvent::Refused);
    site.clone_into(&mut entry.site);
    (entry.job, entry.user, entry.name) = (token.hint(), job.user.clone(), job.name.clone());
    // The job is announced again when more sites take part: what was found out about its allocation then
    // counts.
    let why_not_allocated = allocated.err().filter(|_| !membership.jobs().knows(&token));
    let learnt = match consent::why_not(&driver.config, &job).or(why_not_allocated) {
        Some(why) => Err((why, why.in_log().to_owned())),
        None => {
            { membership.jobs_mut().learn(token, job) }.map_err(|error| (JobRefusal::Bounds, error.into()))
        }
    };
    let answer = match learnt {
        Ok(()) => GatewayToGateway::JobKnown {
            token: text,
            links: tunnels.ways().own_links(),
        },
        Err((why, said)) => {
            let kind = match why {
                JobRefusal::Bounds => "job",
                JobRefusal::Jobs
                | JobRefusal::ConnectFrom
                | JobRefusal::ClearText
                | JobRefusal::NoPartner
                | JobRefusal::NoAllocation
                | JobRefusal::Unsaid => "not-accepted",
            };
            consent::refuse(driver, kind, entry, said);
            GatewayToGateway::JobRefused { token: text, why }
        }
    };
    tunnels.pairs_mut().tell(driver, pair_key, answer);
}
