//! What a launcher gets besides its tables: options that only a command line can give, and the variables that
//! differ from job to job.

use super::distribution::Wish;
use super::is_set;
use super::typed::Typed;
use causeway_control::JobReply;
use causeway_launchers::launcher::Launcher;
use causeway_mpis::environment::{self, Facts};
use causeway_mpis::preload::{ASAN_OPTIONS, asan_options};
use causeway_mpis::{OwnHost, system_file};
use std::ffi::OsString;
use std::net::IpAddr;
use std::path::Path;

/// Returns the options that only a command line can give; they precede the user's own.
pub(super) fn extra_arguments(
    typed: &Typed,
    wish: &Wish,
    own_address: Option<(String, IpAddr)>,
    host_file: Option<&Path>,
) -> Vec<OsString> {
    let (launcher, line) = (&typed.launcher, &typed.line);
    let mut extra = Vec::new();
    if line.starts_nothing {
        return extra;
    }
    let row = launcher.mpi.row();
    // hydra's proxies call mpiexec back by its host name unless told otherwise, and other sites may not know
    // that name.
    if !line.names_own_host
        && let Some((interface, address)) = own_address
    {
        match row.own_host {
            OwnHost::Address(option) => extra.extend([option.into(), address.to_string().into()]),
            OwnHost::Interface(option) => extra.extend([option.into(), interface.into()]),
            OwnHost::Untold => {}
        }
    }
    extra.extend(row.attached_option.map(OsString::from));
    if let (Some(option), Some(hosts)) = (row.host_list_option, host_file) {
        extra.extend([option.into(), hosts.into()]);
    }
    if let (Wish::PerSite(sites), [None]) = (wish, &line.ranks[..]) {
        let total: u32 = sites.iter().map(|(_, ranks)| ranks).sum();
        extra.extend(["-n".into(), total.to_string().into()]);
    }
    extra
}

/// The variable that undoes what this host's distribution has set for all users.
pub(super) fn system_variables(typed: &Typed) -> Option<(&'static str, OsString)> {
    let file = std::fs::read_to_string(system_file::OPEN_MPI).unwrap_or_default();
    system_file::taken_back(typed.mpi(), &file, typed.words, is_set)
}

/// The variable that lists what ranks must not inherit from the launcher.
pub(super) fn not_for_ranks(typed: &Typed, facts: &Facts) -> (&'static str, OsString) {
    let replaced = typed.replaced();
    let is_the_users = |name: &str| is_set(name) && !replaced.contains(&name);
    let names = environment::not_for_ranks(typed.mpi(), facts, is_the_users);
    (causeway_wire::env::NOT_FOR_RANKS, names.into())
}

/// The variables that differ from job to job.
pub(super) fn job_variables(
    launcher: &Launcher,
    job: &JobReply,
    redirects: bool,
    preload: OsString,
    word: &OsString,
) -> Vec<(&'static str, OsString)> {
    let mut set = vec![
        (causeway_wire::env::TOKEN, job.token.clone().into()),
        (causeway_remote::agent::PATH_ENV, launcher.directory().into()),
    ];
    if redirects {
        set.push((causeway_wire::env::GRID, job.grid.clone().into()));
    }
    if !preload.is_empty() {
        set.push(("LD_PRELOAD", preload));
        let present = std::env::var_os(ASAN_OPTIONS);
        let options = asan_options(present.as_deref());
        set.extend(options.map(|options| (ASAN_OPTIONS, options)));
    }
    // A launcher that is given by its path, as in a virtual environment, finds its other parts in PATH.
    if word.as_encoded_bytes().contains(&b'/') {
        set.push(("PATH", Launcher::search_path(&launcher.path)));
    }
    set
}
