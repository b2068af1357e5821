//! What a launcher gets beside its tables: options that only a command line can give, and the variables that
//! differ from job to job.

use super::command_line::CommandLine;
use super::distribution::Wish;
use super::launcher::Launcher;
use crate::preload::{ASAN_OPTIONS, asan_options};
use causeway_control::JobReply;
use causeway_mpis::Mpi;
use std::ffi::OsString;
use std::net::IpAddr;
use std::path::Path;

/// Returns the options that only a command line can give; they go before the user's own.
pub(super) fn extra_arguments(
    launcher: &Launcher,
    line: &CommandLine,
    wish: &Wish,
    own_address: Option<(String, IpAddr)>,
    host_file: Option<&Path>,
) -> Vec<OsString> {
    let mut extra = Vec::new();
    if line.starts_nothing {
        return extra;
    }
    // hydra's proxies call mpiexec back under its host name unless told otherwise, and names need not be
    // known at other sites. Intel's takes an address from an interface alone; its proxies do without one of
    // that name.
    if !line.names_own_host
        && let Some((interface, address)) = own_address
    {
        match launcher.mpi {
            Mpi::Mpich => extra.extend(["-localhost".into(), address.to_string().into()]),
            Mpi::Intel => extra.extend(["-iface".into(), interface.into()]),
            Mpi::OpenMpi4 | Mpi::OpenMpi5 => {}
        }
    }
    // Intel's variable for a host file takes names alone and fills each host with as many ranks as it has
    // cores.
    if let (Mpi::Intel, Some(hosts)) = (launcher.mpi, host_file) {
        extra.extend(["-machinefile".into(), hosts.into()]);
    }
    if let (Wish::PerSite(sites), [None]) = (wish, &line.ranks[..]) {
        let total: u32 = sites.iter().map(|(_, ranks)| ranks).sum();
        extra.extend(["-n".into(), total.to_string().into()]);
    }
    extra
}

/// The variables that differ from job to job.
pub(super) fn of_the_job(
    launcher: &Launcher,
    job: &JobReply,
    redirects: bool,
    preload: OsString,
    word: &OsString,
) -> Vec<(&'static str, OsString)> {
    let mut set = vec![
        (causeway_wire::env::TOKEN, job.token.clone().into()),
        (crate::remote::agent::PATH_ENV, launcher.directory().into()),
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
    // A launcher given by its path, from a virtual environment say, finds its other parts in PATH.
    if word.as_encoded_bytes().contains(&b'/') {
        set.push(("PATH", Launcher::search_path(&launcher.path)));
    }
    set
}
