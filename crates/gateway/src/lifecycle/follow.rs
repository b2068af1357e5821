//! What a worker does after an earlier one was killed: it goes on with what `takeup` has found, or begins
//! anew.

use crate::base::Base;
use crate::commands::KeptCommands;
use crate::commands::starter::KeptStarter;
use crate::flow::Flow;
use crate::inherited::InheritError;
use crate::lifecycle::state::State;
use crate::link::Left;
use crate::membership::kept::KeptMembership;
use crate::site::kept::KeptSite;
use crate::traversal::KeptTraversal;
use crate::tunnels::departure::KeptTunnels;
use std::collections::HashMap;

/// Reports what has ended together with the previous worker, and looks after the processes that it had
/// started.
pub(crate) fn follow(flow: &mut Flow<'_>, left: &Left, starters: Vec<KeptStarter>) {
    let Left {
        end,
        streams,
        jobs,
        begins_clean,
    } = *left;
    let ended = end.ended();
    let lost = match (streams, jobs) {
        (0, 0) => "it had no stream and no job".to_owned(),
        _ => format!("{streams} streams and {jobs} jobs ended with it"),
    };
    flow.driver.say(format_args!(
        "its worker, process {}, {ended}; {lost}; a new one serves",
        ended.process
    ));
    if begins_clean {
        flow.driver
            .say("that was the third fault within ten seconds: the new worker takes nothing up");
    }
    let (commands, mut context) = flow.commands_and_context();
    commands.follow(&mut context, starters);
}

/// Reports that the streams of a killed worker go on here.
pub(crate) fn tell_of_taking_up(flow: &Flow<'_>, left: &Left) {
    let ended = left.end.ended();
    flow.driver.say(format_args!(
        "its worker, process {}, {ended}; a new one goes on with its {} streams and {} jobs",
        ended.process,
        flow.site.legs().len(),
        flow.membership.jobs().len(),
    ));
}

/// Gives a new gateway the state that was taken up. `owners`: see [`KeptTunnels`].
pub(crate) fn go_on(
    flow: &mut Flow<'_>,
    kept: State,
    owners: HashMap<usize, u64>,
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
    let kept_tunnels = KeptTunnels { peers, pairs, owners };
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

fn inherit_tunnels(base: &mut Base<'_>, kept: KeptTunnels) -> Result<(), InheritError> {
    let is_member = base.membership.session().is_some();
    base.tunnels.inherit(base.driver, kept, is_member)?;
    for pair in base.tunnels.pairs().keys() {
        // What is accepted, and the nodes, may have changed with the configuration.
        base.membership.greet(base.driver, base.tunnels, pair);
    }
    Ok(())
}
