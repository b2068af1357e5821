//! What a run prints about itself before it begins.

use super::distribution::Share;
use super::is_set;
use super::sites::Chosen;
use super::typed::Typed;
use causeway_host::say;
use causeway_launchers::launcher::Launcher;
use causeway_mpis::{environment, versions};
use std::ffi::OsString;
use std::process::Command;

/// Says which of two ways to run over several sites is used, and names the other.
fn tell_way(launcher: &Launcher, sites: &[String]) {
    if sites.len() > 1 {
        say::error(format_args!(
            "causeway: one {} {} over {}, since a launcher is named (--own-mpi or --at: each site's own MPI and fast network)",
            launcher.mpi.name(),
            launcher.version,
            sites.join(", ")
        ));
    }
}

pub(super) fn tell_left_alone(launcher: &Launcher, facts: &environment::Facts<'_>) {
    for name in environment::left_alone(launcher.mpi, facts, is_set) {
        say::error(format_args!("causeway: {name} keeps the value that you have set"));
    }
}

/// The line for a user of an untested version.
pub(super) fn untested(launcher: &Launcher) -> String {
    let (name, version) = (launcher.mpi.name(), &launcher.version);
    if let Some(what) = versions::fault(launcher.mpi, version) {
        return format!(
            "{name} {version} {what}, even without Causeway (docs/settings.md): it runs without tuning, which --tune-untested \
             sets all the same; better use another version"
        );
    }
    format!(
        "{name} {version} was not tested with Causeway (tested: {}): it runs without tuning; test it here with \
         'causeway check --mpi {} --data', or set --tune-untested to tune it anyway",
        versions::seen(launcher.mpi),
        launcher.path.display()
    )
}

pub(super) fn tell(
    launcher: &Launcher,
    shares: &[Share],
    environment: &[(&'static str, OsString)],
    command: &Command,
) {
    say::error(format_args!(
        "causeway: {} is {} {}",
        launcher.path.display(),
        launcher.mpi.name(),
        launcher.version
    ));
    for Share { site, node, ranks } in shares {
        say::error(format_args!(
            "causeway: site {site}: node {} ({}): up to {ranks} ranks",
            node.name, node.address
        ));
    }
    for (name, value) in environment
        .iter()
        .filter(|(name, _)| *name != causeway_wire::env::TOKEN)
    {
        say::error(format_args!("causeway: {name}={}", value.to_string_lossy()));
    }
    let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy()).collect();
    say::error(format_args!(
        "causeway: {} {}",
        launcher.path.display(),
        words.join(" ")
    ));
}

/// Names options and variables that the launcher does not get, because with them it would not start the
/// processes, or not where they are wanted.
fn tell_replaced(left_out: &[String], variables: &[&str]) {
    let all: Vec<&str> = left_out
        .iter()
        .map(String::as_str)
        .chain(variables.iter().copied())
        .collect();
    if !all.is_empty() {
        say::error(format_args!(
            "causeway: left out: {}; the gateways start a job's processes, each by its site's remote_shell, on the hosts that --sites \
             or the launcher's command line names",
            all.join(", ")
        ));
    }
}

/// What every run prints about itself before it begins.
pub(super) fn tell_before(redirects: bool, typed: &Typed, left_out: &[String], chosen: &Chosen) {
    if redirects {
        tell_way(&typed.launcher, &chosen.names());
    }
    tell_replaced(left_out, &typed.replaced());
    tell_full(&chosen.shares);
}

/// Reports that ranks share slots: hydra starts more ranks than there are slots without a warning.
fn tell_full(shares: &[Share]) {
    let full = |share: &&Share| share.ranks > share.node.slots;
    if shares.iter().any(|share| full(&share)) {
        let sum = |of: fn(&Share) -> u32| shares.iter().map(of).fold(0, u32::saturating_add);
        say::error(format_args!(
            "causeway: {} ranks share the {} slots of their nodes",
            sum(|share| share.ranks),
            sum(|share| share.node.slots)
        ));
    }
}
