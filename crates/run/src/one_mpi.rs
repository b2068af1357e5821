//! One MPI over all sites: the user's own launcher, which is told how to start and connect its processes
//! there.
//!
//! This module finds out to which MPI the launcher belongs, writes a host list, sets the environment and then
//! only waits. It does not start any daemon itself (see `remote`), and carries no byte of the program.

use super::arguments::{extra_arguments, job_variables, not_for_ranks, system_variables};
use super::child;
use super::directory::RunDirectory;
use super::error::RunError;
use super::job::gateway_status;
use super::meant::{Run, Tuning};
use super::mode::Mode;
use super::patience::Patience;
use super::pipeline::{self, Job, Reserved};
use super::rules::{self, RULES};
use super::sites::{self, Chosen};
use super::telling::{tell, tell_before, tell_left_alone, untested};
use super::tuning;
use super::typed::Typed;
use super::{allocations, collectives, files, groups, is_set, phase};
use causeway_control::Sites;
use causeway_host::say;
use causeway_launchers::launcher::Launcher;
use causeway_launchers::rewrite::Libraries;
use causeway_mpis::command_line::CommandLine;
use causeway_mpis::eager::Eager;
use causeway_mpis::environment::Ip;
use causeway_mpis::preload::{SHIM, UCX};
use causeway_mpis::{Mpi, environment, versions};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs the launcher to its end, and returns its status.
///
/// # Errors
/// What keeps the run from beginning.
pub fn run(run: &Run, command: &[OsString], own: &Path) -> Result<u8, RunError> {
    let rules = rules::asked(own, run.collectives.rules.as_deref())?;
    let wanted = run.named_sites();
    let mut typed = Typed::read(command, wanted.is_some())?;
    let launcher = typed.launcher.clone();
    // If the user names hosts, these decide which sites take part.
    let wanted = { wanted.as_deref() }.filter(|_| run.sites.is_some() || !typed.line.names_hosts);
    let redirects = run.mode.has_shim();
    let preloads = preloads(own, launcher.mpi, redirects)?;
    let (known, reserved) = reserve(run, wanted, &typed.line)?;
    let (chosen, ip) = agree(run.mode, wanted, &known, &launcher, &typed.line)?;
    let is_allocated = !reserved.allocations.is_empty();
    let plan = sites::plan(&known, &chosen, &typed.line, reserved.allocations.clone());
    let started = Job::start(run, plan, reserved)?;
    let job = &started.reply;
    let files = files::send_to_chosen(&run.files, job, &known.site, chosen.nodes())?;
    let (is_tuned, eager) = tuned(run, &launcher, &chosen)?;
    let sites = chosen.names();
    let groups = groups::value_for_run(&run.groups, &known, &sites, chosen.wish.ranks())?;
    let places = RankPlaces::new(sites.len(), is_tuned, groups.is_some());
    let (hierarchical, collectives) = libraries(run, own, &launcher, &places)?;
    // A signal from here on would leave the directory behind, so signals wait until there is a launcher to
    // which they can be passed on.
    let signals =
        child::hold_signals(Patience::with(launcher.mpi, typed.words)).map_err(RunError::Signals)?;
    let directory = RunDirectory::create(own).map_err(RunError::Directory)?;
    let host_file = typed.host_file(&directory, &chosen.shares)?;
    let facts = environment::Facts {
        causeway: own,
        agent: &directory.agent(),
        host_file: host_file.as_deref(),
        ip,
        two_netmods: launcher.two_netmods,
        eager,
    };
    let (first, last) = (&preloads[..], &collectives[..]);
    let libraries = Libraries { first, last };
    let mut environment = variables(&typed, &facts);
    environment.push(not_for_ranks(&typed, &facts));
    environment.extend(system_variables(&typed));
    let crossed = hierarchical.then_some(&sites[..]);
    environment.extend(collectives_variables(run, &known, crossed, groups, rules));
    let preload = libraries.around(std::env::var_os("LD_PRELOAD").as_deref());
    environment.extend(job_variables(&launcher, job, redirects, preload, typed.word));
    let words = typed.rewritten(&libraries, &directory)?;
    let address = sites::own_address(&known, redirects);
    let extra = extra_arguments(&typed, &chosen.wish, address, host_file.as_deref());
    let mut command = typed.command(extra, words.words, &environment);
    prepare_launcher(&mut command, is_allocated, files.as_ref());
    tell_before(redirects && run.is_verbose, &typed, &words.left_out, &chosen);
    if run.is_verbose {
        tell(&launcher, &chosen.shares, &environment, &command);
        tell_left_alone(&launcher, &facts);
    }
    phase::report_running(run.report.as_deref()).map_err(RunError::Report)?;
    let expected = typed.expected(&known.site, &chosen);
    let ended = child::run(command, &started.connection, directory.path(), signals, expected)?;
    let mut asked = files::coming::signals().map_err(RunError::Signals)?;
    started.finish(ended.status()?, files, &mut asked)
}

/// Asks about the sites, and reserves what this run gets of them.
fn reserve(
    run: &Run,
    wanted: Option<&[(String, Option<u32>)]>,
    line: &CommandLine,
) -> Result<(Sites, Reserved), RunError> {
    let names = sites::names(wanted);
    let takes_part = |site: &str| wanted.is_none() || names.iter().any(|name| name == site);
    pipeline::reserve(run, (&names, line.starts_nothing), takes_part)
}

/// Removes a launcher from this shell's allocation, and has it start where the job's files are.
fn prepare_launcher(command: &mut Command, is_allocated: bool, files: Option<&files::Files>) {
    if is_allocated {
        allocations::leave(command);
    }
    if let Some(files) = files {
        files.enter(command);
    }
}

/// The variables of the MPI's tables, except those that the user may set and has set.
fn variables(typed: &Typed, facts: &environment::Facts) -> Vec<(&'static str, OsString)> {
    let replaced = typed.replaced();
    environment::settings(typed.mpi(), facts, |name| {
        is_set(name) && !replaced.contains(&name)
    })
}

/// Whether the MPI gets the settings that make it faster, and its eager limits.
fn tuned(run: &Run, launcher: &Launcher, chosen: &Chosen) -> Result<(bool, Option<Eager>), RunError> {
    // The baseline of comparisons is the MPI without any settings.
    let status = run.mode.passes_gateways().then(gateway_status).transpose()?;
    let ranks = chosen.shares.iter().map(|share| share.ranks).sum();
    let is_tuned = match run.tuning {
        Tuning::Tested => versions::known(launcher.mpi, &launcher.version).is_some(),
        Tuning::Any => true,
        Tuning::None => false,
    };
    let status = status.filter(|_| is_tuned);
    Ok((is_tuned, status.and_then(|status| tuning::eager(&status, ranks))))
}

/// The sites that take part, once all checks have passed, and the addresses by which processes reach each
/// other.
fn agree<'a>(
    mode: Mode,
    wanted: Option<&[(String, Option<u32>)]>,
    known: &'a Sites,
    launcher: &Launcher,
    line: &CommandLine,
) -> Result<(Chosen<'a>, Ip), RunError> {
    let chosen = sites::choose(known, wanted, line)?;
    if mode == Mode::Transparent {
        sites::check_transparent(known, &chosen)?;
    }
    if !mode.has_shim() {
        sites::check_real(&chosen)?;
    }
    sites::check_names(known, &chosen)?;
    let ip = sites::common_ip(known, launcher.mpi, &chosen.sites)?;
    Ok((chosen, ip))
}

/// Variables for the library of collectives: the links between these sites, if collectives cross between them
/// once, and the user's settings.
fn collectives_variables(
    run: &Run,
    known: &Sites,
    hierarchical: Option<&[String]>,
    groups: Option<String>,
    rules: Option<String>,
) -> Vec<(&'static str, OsString)> {
    let mut environment = Vec::new();
    if let Some(sites) = hierarchical {
        let settings = collectives::settings(&known.links, sites).into_iter();
        let open = settings.filter(|(name, _)| !collectives::is_set(name));
        environment.extend(open.map(|(name, value)| (name, value.into())));
    }
    environment.extend(groups.map(|groups| (groups::VARIABLE, groups.into())));
    if run.collectives.keep_bits {
        environment.push((collectives::SAME_BITS, "1".into()));
    }
    // Rank 0, which reads the rules, may be at a site that does not have the file.
    if let Some(rules) = rules {
        let all = rules::with_rules(std::env::var_os(RULES), &rules);
        environment.push((RULES, all));
    }
    environment
}

/// Facts that decide whether ranks need the library above MPI.
struct RankPlaces {
    /// How many sites take part.
    sites: usize,
    /// Whether the MPI's version was tested, or the user wants it set up all the same.
    is_tuned: bool,
    /// Whether the ranks have groups, from the job's profile.
    has_groups: bool,
}

impl RankPlaces {
    fn new(sites: usize, is_tuned: bool, has_groups: bool) -> RankPlaces {
        RankPlaces {
            sites,
            is_tuned,
            has_groups,
        }
    }
}

/// Decides whether collectives cross between sites once, and finds the libraries that are preloaded for that
/// and for the user's options.
fn libraries(
    run: &Run,
    own: &Path,
    launcher: &Launcher,
    ranks: &RankPlaces,
) -> Result<(bool, Vec<PathBuf>), RunError> {
    let (is_tuned, has_groups) = (ranks.is_tuned, ranks.has_groups);
    // The shim tells a process its site, and this library tells the program its site and its group. On one
    // site the library's only other task is to keep an order.
    let wanted = &run.collectives;
    let wants_library = has_groups || wanted.keep_bits || wanted.rules.is_some();
    let hierarchical =
        run.mode.has_shim() && !wanted.are_left_alone && (wants_library || (ranks.sites != 1 && is_tuned));
    if run.mode.passes_gateways() && run.tuning != Tuning::None && !is_tuned {
        say::error(format_args!("causeway: {}", untested(launcher)));
    }
    let collectives = match hierarchical {
        true => collectives::libraries(own, launcher.mpi),
        false => Vec::new(),
    };
    if has_groups && collectives.is_empty() {
        return Err(RunError::NoLibrary(collectives::wanted(own, launcher.mpi)));
    }
    Ok((hierarchical, collectives))
}

/// Lists Causeway's libraries for the processes of the job. The cure for MPICH over UCX is needed with
/// `--direct`, too, because it hangs and fails just as often there.
fn preloads(own: &Path, mpi: Mpi, redirects: bool) -> Result<Vec<PathBuf>, RunError> {
    pipeline::check_path(own)?;
    let wanted = [(SHIM, redirects), (UCX, mpi.row().needs_ucx_cure)];
    let wanted = wanted.into_iter().filter(|(_, wanted)| *wanted);
    wanted
        .map(|(name, _)| {
            let library = own.with_file_name(name);
            if library.is_file() {
                Ok(library)
            } else {
                Err(RunError::NoLibrary(library))
            }
        })
        .collect()
}
