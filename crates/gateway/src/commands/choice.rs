//! What a command is told, so that it can choose the sites of a job.

use crate::base::Bundle;
use crate::commands::CommandContext;
use crate::membership::participants::why_without;
use causeway_control::{BatchAccess, Sites};

/// The sites as a user who chooses among them sees them: one that would take no part in a job counts as
/// unreachable.
pub(super) fn sites_for_jobs(context: &CommandContext<'_>) -> Sites {
    let config = context.config();
    let mut sites = context.view().sites();
    for site in sites.iter_mut().filter(|site| site.unreachable.is_none()) {
        let pair = context.tunnels.pairs().of(&site.name);
        let refusal = pair.and_then(|pair| why_without(config, pair, false));
        site.unreachable = refusal.map(|why| why.for_user(&config.site, &site.name));
    }
    Sites {
        site: config.site.clone(),
        sites,
        links: context.tunnels.ways().links(context.driver),
        mpi: config.mpi.clone(),
        allocated_by: { config.batch.as_ref() }.map(|batch| batch.system.own_allocation().to_owned()),
        batch: config.batch.as_ref().map(|batch| BatchAccess {
            system: batch.system.to_string(),
            conf: batch.conf.clone(),
        }),
        start: config.start.clone(),
    }
}
