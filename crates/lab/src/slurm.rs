//! A site whose nodes belong to Slurm: munged on all, slurmctld on the head node, slurmd on the compute
//! nodes, which accept no ssh. All are Debian's own; they are processes of the nodes, and end with them.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Instant;

use nix::unistd::{User, geteuid};

use crate::daemons::{DEADLINE, Daemons};
use crate::error::LabError;
use crate::mounts::{SLURM_CONF, STATE_IN_NODE};
use crate::plan::{Plan, Role, SitePlan};
use crate::scenario::Batch;
use crate::signals::Signals;
use crate::state::LabState;

/// The daemons' name in messages, and the directory of their files.
pub(crate) const DAEMONS: Daemons = Daemons {
    title: "Slurm",
    place: "slurm",
};

/// Writes what the daemons of all sites of Slurm read, before the nodes exist.
///
/// # Errors
/// Those of the file system.
pub(crate) fn write_files(plan: &Plan, dir: &Path) -> io::Result<()> {
    for site in slurm_sites(plan) {
        let own = DAEMONS.place(dir, &site.site.name);
        fs::create_dir_all(&own)?;
        let mut random = [0; 128];
        getrandom::fill(&mut random).map_err(io::Error::other)?;
        let key = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o400)
            .open(own.join("munge.key"));
        key?.write_all(&random)?;
        let text = configuration(site, &user()?);
        for node in &site.nodes {
            fs::write(dir.join("nodes").join(&node.name).join(SLURM_CONF), &text)?;
        }
    }
    Ok(())
}

/// Starts the daemons of all sites of Slurm, and waits until their nodes are idle.
///
/// # Errors
/// A daemon does not start, or a node does not become idle in time.
pub(crate) fn start(state: &LabState, plan: &Plan, signals: &Signals) -> Result<(), LabError> {
    let limit = (Instant::now() + DEADLINE, signals);
    for site in slurm_sites(plan) {
        // The controller first, because the nodes register with it.
        for node in &site.nodes {
            let daemon = match node.role {
                Role::Head => "slurmctld -i".to_owned(),
                Role::Compute => format!("slurmd -N {}", node.name),
            };
            DAEMONS.run(state, node, &format!("{} && {daemon}", munge(site)), limit)?;
        }
    }
    for site in slurm_sites(plan) {
        let wanted = site.nodes.len() - 1;
        let script = format!("[ \"$(sinfo --noheader --states=idle --format=%D)\" = {wanted} ]");
        DAEMONS.await_nodes(state, site, (&script, "slurmctld.log"), limit)?;
    }
    Ok(())
}

fn slurm_sites(plan: &Plan) -> impl Iterator<Item = &SitePlan> {
    plan.sites.iter().filter(|site| site.site.batch == Batch::Slurm)
}

fn user() -> io::Result<String> {
    let user = User::from_uid(geteuid())?;
    Ok(user
        .ok_or_else(|| io::Error::other("this user has no name"))?
        .name)
}

/// Slurm's configuration for the lab: its nodes have no cgroups of their own, and share the host's
/// processors. Timeouts are short, so that tests see what follows them.
fn configuration(site: &SitePlan, user: &str) -> String {
    let head = site.nodes.first().map(|node| (&node.name, node.lan));
    let (head, address) = head.map_or_else(Default::default, |(name, lan)| (name.clone(), lan.to_string()));
    let logs = format!("{STATE_IN_NODE}/slurm/{}", site.site.name);
    let mut text = format!(
        "ClusterName={}\nSlurmctldHost={head}({address})\nSlurmUser={user}\nSlurmdUser={user}\n\
         AuthType=auth/munge\nCredType=cred/munge\nAuthInfo=socket=/run/munge/munge.socket.2\n\
         StateSaveLocation=/run/slurm\nSlurmdSpoolDir=/run/slurm\n\
         SlurmctldPidFile=/run/slurm/slurmctld.pid\nSlurmdPidFile=/run/slurm/slurmd.pid\n\
         SlurmctldLogFile={logs}/slurmctld.log\nSlurmdLogFile={logs}/slurmd.%n.log\n\
         ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nSwitchType=switch/none\nMpiDefault=none\n\
         SlurmdParameters=config_overrides\nSelectType=select/cons_tres\nSelectTypeParameters=CR_Core\n\
         SchedulerType=sched/backfill\n\
         SchedulerParameters=bf_interval=1,sched_min_interval=100000,batch_sched_delay=0\n\
         AccountingStorageType=accounting_storage/none\nJobAcctGatherType=jobacct_gather/none\n\
         JobCompType=jobcomp/none\nReturnToService=2\nSlurmdTimeout=10\nSlurmctldTimeout=10\nMessageTimeout=5\n\
         KillWait=2\nInactiveLimit=0\nMinJobAge=60\n",
        site.site.name
    );
    let compute = site.nodes.iter().filter(|node| node.role == Role::Compute);
    for node in compute {
        text += &format!(
            "NodeName={} NodeAddr={} CPUs={}\n",
            node.name, node.lan, site.site.slots
        );
    }
    text + "PartitionName=all Nodes=ALL Default=YES MaxTime=2:00:00 State=UP\n"
}

/// munged demands a key of its own, in a directory to which others cannot write.
fn munge(site: &SitePlan) -> String {
    format!(
        "mkdir -m 755 /run/munge /run/slurm && \
         install -m 400 {STATE_IN_NODE}/slurm/{}/munge.key /run/munge/key && \
         munged --key-file=/run/munge/key --socket=/run/munge/munge.socket.2 --pid-file=/run/munge/pid \
         --log-file=/run/munge/log --seed-file=/run/munge/seed",
        site.site.name
    )
}
