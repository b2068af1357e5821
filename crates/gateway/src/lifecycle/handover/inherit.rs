//! The successor's part: becomes the gateway whose state it was given.
//!
//! Where it fails, the process ends, and with it the streams and jobs it was to go on with. So whatever can
//! be refused is refused by the predecessor; what is left are mistakes in these programs and damaged states.

use super::state::State;
use crate::base::Base;
use crate::config::Config;
use crate::flow::Flow;
use crate::inherited::{InheritError, descriptor};
use crate::keys::PairKey;
use crate::listeners::KeptListeners;
use crate::listeners::Listeners;
use crate::membership::consent::acceptance;
use crate::membership::jobs::Jobs;
use crate::site::kept::KeptSite;
use crate::traversal::KeptTraversal;
use crate::tunnels::departure::KeptTunnels;
use crate::tunnels::message::GatewayToGateway;
use causeway_control::{HandedOver, Reply, SiteInfo};
use causeway_wire::Cidr;
use mio::net::{TcpListener, UnixListener};
use std::fs::File;
use std::os::fd::RawFd;

/// What the predecessor has left in the file with this descriptor, and its listeners.
pub(crate) fn read(config: &Config, number: RawFd) -> Result<(State<'static>, Listeners), InheritError> {
    let file = File::from(descriptor(number)?);
    let state = State::read(&file).map_err(|error| InheritError::State(number, error))?;
    if state.site != config.site {
        let text = format!("is of site {}", config.site);
        return Err(InheritError::Configuration(text));
    }
    let listeners = inherit_listeners(&state.listeners, config)?;
    Ok((state, listeners))
}

/// Puts it in the place of the nothing that a new gateway has.
pub(crate) fn take_over(flow: &mut Flow<'_>, kept: State<'static>) -> Result<(), InheritError> {
    flow.driver.generations = kept.generations;
    flow.driver.log.inherit(kept.refused);
    flow.membership.inherit(Jobs::inherit(kept.jobs), kept.unrecorded);
    inherit_directory(&mut flow.base(), &kept.virtual_subnets, kept.others)?;
    let (peers, pairs) = (kept.peers, kept.pairs);
    inherit_tunnels(&mut flow.base(), KeptTunnels { peers, pairs })?;
    let (site, mut base) = flow.site_and_base();
    let kept_site = KeptSite {
        streams_opened: kept.streams_opened,
        streams_peak: kept.streams_peak,
        next_delivery_port: kept.next_delivery_port,
        legs: kept.legs,
        intakes: kept.intakes,
    };
    site.inherit(&mut base, kept_site)?;
    let (commands, mut context) = flow.commands_and_context();
    let (traversal, mut base) = context.traversal_and_base();
    let (carried_bytes, splices) = (kept.carried_bytes, kept.splices);
    let carried = KeptTraversal {
        carried_bytes,
        splices,
    };
    traversal.inherit(&mut base, carried)?;
    commands.inherit_commands(&mut context, kept.commands)?;
    commands.inherit_starters(&mut context, kept.starters);
    let (driver, membership) = (&flow.driver, &flow.membership);
    let (streams, jobs) = (flow.site.legs().len(), membership.jobs().len());
    driver.say(format_args!(
        "goes on as {} (process {}) with {streams} streams and {jobs} jobs",
        driver.program.display(),
        std::process::id(),
    ));
    let reply = Reply::HandedOver(HandedOver {
        site: driver.config.site.clone(),
        streams,
        jobs,
    });
    let (commands, mut context) = flow.commands_and_context();
    commands.answer_hand_over(&mut context, &reply);
    Ok(())
}

fn inherit_directory(
    base: &mut Base<'_>,
    virtual_subnets: &[String],
    others: Vec<SiteInfo>,
) -> Result<(), InheritError> {
    // Those that jobs know, whatever the configuration wishes now.
    let ranges: Result<Vec<Cidr>, _> = virtual_subnets.iter().map(|text| text.parse()).collect();
    let subnets = &base.driver.config.subnets;
    let fit = |ranges: &Vec<Cidr>| {
        let mut pairs = ranges.iter().zip(subnets);
        ranges.is_empty()
            || ranges.len() == subnets.len() && pairs.all(|(range, real)| range.is_of_size(real))
    };
    let Some(ranges) = ranges.ok().filter(fit) else {
        return Err(InheritError::Contradiction(
            "virtual subnets are not of this site's size",
        ));
    };
    let directory = base.membership.directory_mut();
    directory.take_virtual_subnets(&base.driver.config, &ranges);
    for info in others {
        let site = info.name.clone();
        if let Err(why) = directory.learn(&site, info) {
            base.driver.say(format_args!("site {site} {why}"));
        }
    }
    Ok(())
}

fn inherit_tunnels(base: &mut Base<'_>, kept: KeptTunnels<'static>) -> Result<(), InheritError> {
    let is_member = base.membership.session().is_some();
    base.tunnels.inherit(base.driver, kept, is_member)?;
    let pairs = { base.tunnels.pairs().iter() }.map(|(key, pair)| (key, pair.site().to_owned()));
    let pairs: Vec<(PairKey, String)> = pairs.collect();
    for (key, site) in pairs {
        // It may have changed with the configuration.
        let accepts = GatewayToGateway::Accepts(acceptance(&base.driver.config, &site));
        base.tunnels.pairs_mut().tell(base.driver, key, accepts);
    }
    if base.membership.awaits_addresses(base.driver) {
        return Ok(());
    }
    let own = base.membership.directory().own().clone();
    for key in base.tunnels.pairs().keys() {
        // Its nodes may have changed with the configuration.
        base.tunnels
            .pairs_mut()
            .tell(base.driver, key, GatewayToGateway::Site(own.clone()));
    }
    Ok(())
}

fn inherit_listeners(kept: &KeptListeners, config: &Config) -> Result<Listeners, InheritError> {
    let same = (kept.lan.len(), kept.wan.is_some());
    let same_local = (kept.metrics.is_some(), kept.transparent.is_some());
    if same != (config.lan.len(), config.wan.is_some())
        || same_local != (config.metrics.is_some(), config.transparent.is_some())
    {
        let text = "listens elsewhere".to_owned();
        return Err(InheritError::Configuration(text));
    }
    let tcp = |number| Ok::<_, InheritError>(TcpListener::from_std(descriptor(number)?.into()));
    Ok(Listeners {
        lan: kept.lan.iter().copied().map(tcp).collect::<Result<_, _>>()?,
        wan: kept.wan.map(tcp).transpose()?,
        control: UnixListener::from_std(descriptor(kept.control)?.into()),
        metrics: kept.metrics.map(tcp).transpose()?,
        transparent: kept.transparent.map(tcp).transpose()?,
        pending: false,
    })
}
