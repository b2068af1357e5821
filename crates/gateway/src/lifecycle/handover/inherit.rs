//! The successor's part: becomes the gateway whose state it was given.
//!
//! Where it fails, the process ends, and with it the streams and jobs it was to go on with. So whatever can
//! be refused is refused by the predecessor; what is left are mistakes in these programs and damaged states.

use super::state::State;
use crate::base::Base;
use crate::commands::KeptCommands;
use crate::config::Config;
use crate::flow::Flow;
use crate::inherited::{InheritError, descriptor};
use crate::link::KeptKeeper;
use crate::membership::kept::KeptMembership;
use crate::site::kept::KeptSite;
use crate::sys::process;
use crate::traversal::KeptTraversal;
use crate::tunnels::departure::KeptTunnels;
use causeway_control::{HandedOver, Reply};
use causeway_memory::Block;
use std::collections::HashMap;
use std::fs::File;
use std::os::fd::RawFd;

/// What the predecessor has left in the file with this descriptor.
pub(crate) fn read(config: &Config, number: RawFd) -> Result<State<'static>, InheritError> {
    let file = File::from(descriptor(number)?);
    let state = State::read(&file).map_err(|error| InheritError::State(number, error))?;
    if state.site != config.site {
        let text = format!("is of site {}", config.site);
        return Err(InheritError::Configuration(text));
    }
    Ok(state)
}

/// What the keeper needs of the state in the file with this descriptor, which it leaves to its worker.
pub(crate) fn read_keeper(number: RawFd) -> Result<KeptKeeper, InheritError> {
    let copy = process::duplicate(number).map_err(|error| InheritError::Descriptor(number, error))?;
    State::read_keeper(&copy.into()).map_err(|error| InheritError::State(number, error))
}

/// Puts it in the place of the nothing that a new gateway has, and answers who had asked for it.
pub(crate) fn take_over(flow: &mut Flow<'_>, kept: State<'static>) -> Result<(), InheritError> {
    go_on(flow, kept, HashMap::new())?;
    let stayed = flow.driver.link.as_mut().and_then(|link| link.stayed.take());
    let (driver, membership) = (&flow.driver, &flow.membership);
    let (streams, jobs) = (flow.site.legs().len(), membership.jobs().len());
    let reply = match stayed {
        Some(why) => {
            driver.say(format_args!("goes on itself: {why}"));
            Reply::Error(why)
        }
        None => {
            driver.say(format_args!(
                "goes on as {} (process {}) with {streams} streams and {jobs} jobs",
                driver.program.display(),
                driver.process(),
            ));
            Reply::HandedOver(HandedOver {
                site: driver.config.site.clone(),
                streams,
                jobs,
            })
        }
    };
    let (commands, mut context) = flow.commands_and_context();
    commands.answer_hand_over(&mut context, &reply);
    Ok(())
}

/// Puts it in the place of the nothing that a new gateway has. `graves` is the memory of lanes that were not
/// closed in order: see [`KeptTunnels`].
pub(crate) fn go_on(
    flow: &mut Flow<'_>,
    kept: State<'static>,
    graves: HashMap<usize, (u64, Vec<Block>)>,
) -> Result<(), InheritError> {
    flow.driver.generations = kept.generations;
    flow.driver.log.inherit(kept.refused);
    let kept_membership = KeptMembership {
        virtual_subnets: kept.virtual_subnets,
        others: kept.others,
        unrecorded: kept.unrecorded,
        jobs: kept.jobs,
    };
    flow.membership.inherit(flow.driver, kept_membership)?;
    let (peers, pairs) = (kept.peers, kept.pairs);
    let kept_tunnels = KeptTunnels { peers, pairs, graves };
    inherit_tunnels(&mut flow.base(), kept_tunnels)?;
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
    let kept_commands = KeptCommands {
        starters: kept.starters,
        commands: kept.commands,
    };
    commands.inherit(&mut context, kept_commands)?;
    Ok(())
}

fn inherit_tunnels(base: &mut Base<'_>, kept: KeptTunnels<'static>) -> Result<(), InheritError> {
    let is_member = base.membership.session().is_some();
    base.tunnels.inherit(base.driver, kept, is_member)?;
    for pair in base.tunnels.pairs().keys() {
        // What is accepted, and the nodes, may have changed with the configuration.
        base.membership.greet(base.driver, base.tunnels, pair);
    }
    Ok(())
}
