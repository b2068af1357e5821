//! `causeway run -- mpirun ...`: the user's own launcher, told how to start and connect its processes at all
//! sites.
//!
//! It asks the gateway for a job, finds out which MPI the launcher belongs to, writes a host list, sets the
//! environment and then only waits. It starts no daemon itself (see `remote`) and carries no byte of the
//! program.

mod arguments;
mod child;
pub mod collectives;
mod command_line;
mod directory;
mod distribution;
pub mod environment;
mod error;
mod groups;
mod job;
pub mod launcher;
mod options;
pub mod own;
mod patience;
mod programs;
mod rewrite;
pub mod rules;
mod sites;
mod telling;
pub mod tuning;
pub mod versions;

use crate::preload::{SHIM, UCX};
use crate::remote::parts::{self, Expected};
use crate::say;
use arguments::{extra_arguments, of_the_job};
use causeway_control::JobReply;
use command_line::CommandLine;
use directory::RunDirectory;
use distribution::Wish;
use error::RunError;
use job::{gateway_status, start_job};
use launcher::{Launcher, Mpi};
use patience::Patience;
use programs::Programs;
use rewrite::{Libraries, rewrite};
use rules::RULES;
use sites::Chosen;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use telling::{tell, tell_full, tell_left_alone, tell_replaced, tell_way, untested};

/// Status for whatever the user has to put right before anything is started.
const WRONG_USE: u8 = 2;

/// Characters of a job's name.
const MAX_NAME: usize = 200;

/// See the module.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Sites to use, with or without ranks for each: rennes=2,nancy=2 or rennes,nancy [default: all sites].
    #[arg(long, value_name = "SITE[=RANKS],...")]
    pub sites: Option<String>,
    /// Start everything the same way, but leave connections alone. The sites must reach each other natively.
    #[arg(long)]
    pub direct: bool,
    /// Leave the shim out, as for statically linked programs: the routers of all sites hand connections to
    /// the gateways (docs/transparent.md).
    #[arg(long, conflicts_with = "direct")]
    pub transparent: bool,
    /// Leave collective operations to the MPI (docs/collectives.md).
    #[arg(long)]
    pub no_collectives: bool,
    /// Profile that names groups of ranks. The program can ask for them (docs/topology.md).
    #[arg(long, value_name = "FILE", conflicts_with_all = ["direct", "transparent", "no_collectives"])]
    pub groups: Option<PathBuf>,
    /// Rules that say which algorithms collective operations get (docs/collectives.md).
    #[arg(long, value_name = "FILE", conflicts_with_all = ["no_collectives", "direct", "transparent"])]
    pub collectives: Option<PathBuf>,
    /// Combine in the order of ranks in reductions: the same ranks give the same bits at whatever sites they
    /// are. Takes longer (docs/collectives.md).
    #[arg(long, conflicts_with_all = ["no_collectives", "direct", "transparent"])]
    pub same_bits: bool,
    /// Share of busy tunnels beside other jobs: a job of weight 3 gets three times the bytes of one of weight
    /// 1.
    #[arg(long, value_name = "1..100", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub weight: u32,
    /// Give an MPI version that was not tested with Causeway all that a tested one gets (docs/settings.md).
    #[arg(long, conflicts_with = "direct")]
    pub tune_untested: bool,
    /// Leave the MPI's limits and its collective operations as they come, to see what tuning gives.
    #[arg(long, conflicts_with_all = ["direct", "tune_untested", "collectives", "groups", "same_bits"])]
    pub no_tune: bool,
    /// Print which MPI was found, where its ranks go and what its environment gets.
    #[arg(long, short)]
    pub verbose: bool,
    /// Start COMMAND at SITE, where it starts that site's own MPI; given once for each site, in the order of
    /// ranks (docs/own-mpi.md).
    #[arg(long, num_args = 2, value_names = ["SITE", "COMMAND"], conflicts_with_all = [
        "sites", "direct", "transparent", "groups", "collectives", "same_bits", "tune_untested", "no_tune",
        "command",
    ])]
    pub at: Vec<String>,
    /// Have each site start its own MPI's job of a program, with these many ranks: --own-mpi --sites
    /// rennes=32,nancy=16 -- ./app (docs/own-mpi.md).
    #[arg(long, requires = "sites", conflicts_with_all = [
        "at", "direct", "transparent", "groups", "collectives", "same_bits", "tune_untested", "no_tune",
    ])]
    pub own_mpi: bool,
    /// The launcher and its arguments, as you would type them without causeway.
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "mpirun ..."
    )]
    pub command: Vec<OsString>,
}

/// Runs the launcher; the status is the launcher's, 2 when the command line or the grid does not allow it.
pub fn main(args: Args) -> ExitCode {
    let ran = if args.at.is_empty() && !args.own_mpi {
        run(&args)
    } else {
        own::run(&args)
    };
    match ran {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            say::error(format_args!("causeway: {error}"));
            ExitCode::from(WRONG_USE)
        }
    }
}

fn run(args: &Args) -> Result<u8, RunError> {
    let (word, words) = args.command.split_first().ok_or(RunError::NoCommand)?;
    let own = std::env::current_exe().map_err(RunError::Own)?;
    let rules = args.collectives.as_deref();
    let rules = rules.map(|file| rules::rules(&own, file)).transpose()?;
    let launcher = Launcher::find(word)?;
    // Whether connections are the shim's to redirect.
    let redirects = !args.direct && !args.transparent;
    let preloads = preloads(&own, launcher.mpi, redirects)?;
    let mut programs = Programs::read(launcher.mpi, words)?;
    let file = programs.as_ref().map(Programs::words);
    let mut line = CommandLine::parse(launcher.mpi, words, file.as_deref());
    line.names_hosts |=
        args.sites.is_none() && environment::hosts(launcher.mpi).iter().any(|name| is_set(name));
    let plan = sites::plan(args.sites.as_deref(), &line);
    let (mut job, connection) = start_job(args, plan)?;
    if !redirects {
        sites::name_own_hosts_as_they_are(&mut job);
    }
    let (chosen, ip) = agree(args, &job, &launcher, &line)?;
    // The baseline of comparisons is the MPI as it comes.
    let status = (!args.direct).then(gateway_status).transpose()?;
    let ranks = chosen.shares.iter().map(|share| share.ranks).sum();
    let is_known = args.tune_untested || versions::known(launcher.mpi, &launcher.version).is_some();
    let is_tuned = is_known && !args.no_tune;
    let eager = { status.filter(|_| is_tuned) }.and_then(|status| tuning::eager(&status, ranks));
    let sites: Vec<String> = chosen.sites.iter().map(|site| site.name.clone()).collect();
    let groups = groups_of(args, &job, &sites, &chosen.wish)?;
    let places = RankPlaces::new(sites.len(), is_tuned, groups.is_some());
    let (hierarchical, collectives) = libraries(args, &own, &launcher, &places)?;
    // A signal from here on would leave the directory behind, so it waits until there is a launcher to pass
    // it on to.
    let signals = child::hold_signals(Patience::with(launcher.mpi, words)).map_err(RunError::Signals)?;
    let directory = RunDirectory::create(&own).map_err(RunError::Directory)?;
    let chooses_hosts = !line.names_hosts && !line.starts_nothing;
    let hosts = chooses_hosts.then(|| directory.write_hosts(launcher.mpi, &chosen.shares));
    let host_file = hosts.transpose().map_err(RunError::Directory)?;
    let facts = environment::Facts {
        causeway: &own,
        agent: &directory.agent(),
        host_file: host_file.as_deref(),
        ip,
        two_netmods: launcher.two_netmods,
        eager,
    };
    let replaced: Vec<&str> = replaced(launcher.mpi, chooses_hosts);
    let is_kept = |name: &str| is_set(name) && !replaced.contains(&name);
    let mut environment = environment::settings(launcher.mpi, &facts, is_kept);
    let crossed = hierarchical.then_some(&sites[..]);
    environment.extend(of_collectives(args, &job, crossed, groups, rules));
    let preload = environment::preload(&preloads, std::env::var_os("LD_PRELOAD").as_deref(), &collectives);
    environment.extend(of_the_job(&launcher, &job, redirects, preload, word));
    let libraries = Libraries {
        first: &preloads,
        last: &collectives,
    };
    let (words, left_out) = rewritten(launcher.mpi, words, programs.as_mut(), &libraries, &directory)?;
    let mut command = Command::new(&launcher.path);
    let own_address = sites::own_address(&job, redirects);
    let extra = extra_arguments(&launcher, &line, &chosen.wish, own_address, host_file.as_deref());
    command.args(extra).args(words);
    if redirects {
        tell_way(&launcher, &sites);
    }
    tell_replaced(&left_out, &replaced);
    tell_full(&chosen.shares);
    if args.verbose {
        tell(&launcher, &chosen.shares, &environment, &command);
        tell_left_alone(&launcher, &facts);
    }
    for name in replaced.into_iter().chain([causeway_wire::env::SITE]) {
        command.env_remove(name);
    }
    command.envs(environment);
    if launcher.mpi.is_open_mpi() {
        command.env(parts::PIPE_ENV, parts::pipe(directory.path()));
    }
    let expected = match line.numbers_hosts {
        true => Expected::default(),
        false => expected(&launcher, &job.site, &chosen),
    };
    let ended = child::run(command, connection, directory.path(), signals, expected)?;
    match (ended.status, ended.missing.is_empty()) {
        (0, false) => Err(RunError::Missing(ended.missing.join(", "))),
        (status, _) => Ok(status),
    }
}

/// The user's variables that the launcher is not to see.
fn replaced(mpi: Mpi, chooses_hosts: bool) -> Vec<&'static str> {
    let hosts = environment::hosts(mpi).iter().filter(|_| chooses_hosts);
    let all = environment::starters(mpi).iter().chain(hosts).copied();
    all.filter(|name| is_set(name)).collect()
}

/// The user's words for the launcher, and the options that it does not get.
fn rewritten(
    mpi: Mpi,
    words: &[OsString],
    programs: Option<&mut Programs>,
    libraries: &Libraries,
    directory: &RunDirectory,
) -> Result<(Vec<OsString>, Vec<String>), RunError> {
    let mut rewritten = rewrite(mpi, words, libraries);
    if let Some(programs) = programs {
        let (left_out, has_changed) = programs.rewrite(mpi, libraries);
        rewritten.left_out.extend(left_out);
        if has_changed {
            let file = directory.write_programs(programs).map_err(RunError::Directory)?;
            rewritten.words = Programs::naming(mpi, rewritten.words, &file);
        }
    }
    Ok((rewritten.words, rewritten.left_out))
}

/// The other sites at which the launcher is to start something, with all names of the nodes that have ranks.
fn expected(launcher: &Launcher, own_site: &str, chosen: &Chosen) -> Expected {
    let others = chosen.sites.iter().filter(|site| site.name != own_site);
    let nodes = |site: &str| {
        let shares = chosen.shares.iter().filter(|share| share.site == site);
        let names = shares.flat_map(|share| [share.node.name.clone(), share.node.address.to_string()]);
        names.collect()
    };
    Expected {
        sites: others
            .map(|site| (site.name.clone(), nodes(&site.name)))
            .collect(),
        leaves_ends: !launcher.mpi.is_open_mpi(),
    }
}

/// The sites that take part, all checks passed, and the addresses by which processes reach each other.
fn agree<'a>(
    args: &Args,
    job: &'a JobReply,
    launcher: &Launcher,
    line: &CommandLine,
) -> Result<(Chosen<'a>, sites::Ip), RunError> {
    let redirects = !args.direct && !args.transparent;
    let chosen = sites::choose(job, args.sites.as_deref(), line)?;
    if args.transparent {
        sites::check_transparent(job, &chosen)?;
    }
    if !redirects {
        sites::check_real(&chosen)?;
    }
    sites::check_names(job, &chosen)?;
    let ip = sites::common_ip(job, launcher.mpi, &chosen.sites)?;
    Ok((chosen, ip))
}

/// Variables for the library of collectives: the links between these sites, where it crosses between them,
/// and what the user asks of it.
fn of_collectives(
    args: &Args,
    job: &JobReply,
    hierarchical: Option<&[String]>,
    groups: Option<String>,
    rules: Option<String>,
) -> Vec<(&'static str, OsString)> {
    let mut environment = Vec::new();
    if let Some(sites) = hierarchical {
        let settings = collectives::settings(&job.links, sites).into_iter();
        let open = settings.filter(|(name, _)| !collectives::is_set(name));
        environment.extend(open.map(|(name, value)| (name, value.into())));
    }
    environment.extend(groups.map(|groups| (groups::VARIABLE, groups.into())));
    if args.same_bits {
        environment.push((collectives::SAME_BITS, "1".into()));
    }
    // Rank 0, which reads them, may be at a site where there is no such file.
    if let Some(rules) = rules {
        let all = rules::with_rules(std::env::var_os(RULES), &rules);
        environment.push((RULES, all));
    }
    environment
}

/// Whether the user has set a variable.
fn is_set(name: &str) -> bool {
    std::env::var_os(name).is_some()
}

/// What decides whether ranks need the library above MPI.
struct RankPlaces {
    /// Sites that take part.
    sites: usize,
    /// The MPI's version was tested, or the user wants it set up all the same.
    is_tuned: bool,
    /// The ranks have groups, by the job's profile.
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
/// and for the user's wishes.
fn libraries(
    args: &Args,
    own: &Path,
    launcher: &Launcher,
    ranks: &RankPlaces,
) -> Result<(bool, Vec<PathBuf>), RunError> {
    let (is_tuned, has_groups) = (ranks.is_tuned, ranks.has_groups);
    let redirects = !args.direct && !args.transparent;
    // The shim tells a process its site, this library the program its site and its group. On one site there
    // is nothing else to do but for keeping an order.
    let wants_library = has_groups || args.same_bits || args.collectives.is_some();
    let hierarchical = redirects && !args.no_collectives && (wants_library || (ranks.sites != 1 && is_tuned));
    if !args.direct && !args.no_tune && !is_tuned {
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

/// The groups of the job's profile, for the environment of its ranks. Where the user names hosts, any site
/// may take part.
fn groups_of(args: &Args, job: &JobReply, sites: &[String], wish: &Wish) -> Result<Option<String>, RunError> {
    let Some(file) = &args.groups else {
        return Ok(None);
    };
    let any: Vec<String> = job.sites.iter().map(|site| site.name.clone()).collect();
    let sites = if sites.is_empty() { &any } else { sites };
    let ranks = match wish {
        Wish::Total(ranks) => Some(*ranks),
        Wish::PerSite(sites) => Some(sites.iter().map(|(_, ranks)| ranks).sum()),
        Wish::Everything => None,
    };
    Ok(Some(groups::load(file, groups::Job { sites, ranks })?))
}

/// Lists Causeway's libraries for the processes of the job. The cure for MPICH over UCX is needed with
/// `--direct`, too, where it hangs and errs as often.
fn preloads(own: &Path, mpi: Mpi, redirects: bool) -> Result<Vec<PathBuf>, RunError> {
    let wanted = [(SHIM, redirects), (UCX, mpi == Mpi::Mpich)];
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
