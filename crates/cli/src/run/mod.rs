//! `causeway run -- mpirun ...`: the user's own launcher, told how to start and connect its processes at all
//! sites.
//!
//! It asks the gateway for a job, finds out which MPI the launcher belongs to, writes a host list, sets the
//! environment and then only waits. It starts no daemon itself (see `remote`) and carries no byte of the
//! program.

mod allocations;
pub mod apart;
mod arguments;
mod child;
mod coallocation;
pub mod collectives;
mod directory;
mod distribution;
mod error;
pub mod files;
pub mod gateways;
mod groups;
mod job;
pub mod launcher;
pub mod leftovers;
mod mode;
pub mod own;
mod patience;
pub mod phase;
mod placed;
mod programs;
pub mod rewrite;
pub mod rules;
pub mod script;
mod sites;
mod telling;
pub mod tuning;
mod typed;
pub mod via;

use crate::place::Weighing;
use crate::preload::{SHIM, UCX, unsayable};
use crate::say;
use arguments::{extra_arguments, not_for_ranks, of_the_job, of_the_system};
use causeway_control::{JobReply, Plan, Sites};
use causeway_mpis::command_line::CommandLine;
use causeway_mpis::eager::Eager;
use causeway_mpis::environment::Ip;
use causeway_mpis::{Mpi, environment, versions};
use coallocation::{Begun, Held};
use directory::RunDirectory;
use error::RunError;
use job::{gateway_status, start_job};
use launcher::Launcher;
use mode::Mode;
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use patience::Patience;
use phase::Phase;
use rewrite::Libraries;
use rules::RULES;
use sites::Chosen;
use std::ffi::OsString;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;
use telling::{tell, tell_before, tell_left_alone, untested};
use typed::Typed;

/// Status for whatever the user has to put right before anything is started.
const WRONG_USE: u8 = 2;

/// Status where the sites' allocations did not begin at the same time, or a submitted job could not begin in
/// time.
pub const NO_COMMON_START: u8 = 3;

/// Status for `causeway carry` where a gateway was away and nothing has begun: EX_TEMPFAIL of sysexits.
pub const AWAY: u8 = 75;

/// How long allocations may take to begin, where nothing else is said.
const WAIT: Duration = Duration::from_secs(6 * 3600);

/// Status where a site, its allocation or a node's part of the job was lost.
pub const LOST: u8 = 4;

/// Characters of a job's name.
const MAX_NAME: usize = 200;

/// Run an MPI launcher over the sites of the grid.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Sites to use, with or without the ranks of each: rennes=2,nancy=2 or rennes,nancy [default: all].
    #[arg(long, value_name = "SITE[=RANKS],...")]
    pub sites: Option<String>,
    /// Use nodes of an allocation that the site's batch system has given: rennes:1234, once for each site.
    /// Without it, an allocation in which causeway run itself runs is used (docs/batch.md).
    #[arg(long, value_name = "SITE:ID")]
    pub alloc: Vec<String>,
    /// Get allocations of the batch systems of all sites of --sites at the same time, each for so long, run,
    /// and give them back (docs/batch.md).
    #[arg(long, value_name = "TIME", value_parser = causeway_units::time, requires = "sites")]
    pub time: Option<Duration>,
    /// Give up if the allocations of --time, or a submitted job, have not begun after so long [default: 6h].
    #[arg(long, value_name = "TIME", value_parser = causeway_units::time)]
    pub wait: Option<Duration>,
    /// Give all nodes back if those of one site have waited for the others for so long, and ask again.
    #[arg(long, value_name = "TIME", value_parser = causeway_units::time, default_value = "5min", requires = "time")]
    pub idle: Duration,
    /// Give a site's batch system options for the allocation, such as rennes:'--partition=fast --account=p7'.
    /// The site says which it allows.
    #[arg(long, value_name = "SITE:OPTIONS", requires = "time")]
    pub batch: Vec<String>,
    /// Start everything the same way, but let ranks connect directly. The sites need a route to each other.
    #[arg(long)]
    pub direct: bool,
    /// Run without the shim, for example for statically linked programs. The routers of all sites must hand
    /// connections to the gateways (docs/transparent.md).
    #[arg(long)]
    pub transparent: bool,
    /// Leave collective operations to the MPI (docs/collectives.md).
    #[arg(long)]
    pub no_collectives: bool,
    /// Profile that names groups of ranks, which the program can query (docs/topology.md, docs/profile.md).
    #[arg(long, value_name = "FILE")]
    pub groups: Option<PathBuf>,
    /// Place the groups of a job's profile on sites, and run the profile's command or program there, for the
    /// profile's time. A command given here takes the place of the profile's (docs/profile.md).
    #[arg(long, value_name = "FILE")]
    pub profile: Option<PathBuf>,
    #[command(flatten)]
    pub weighing: Weighing,
    /// The group of each range of ranks, by a placement.
    #[arg(skip)]
    pub placed: Option<String>,
    /// Rules that choose the algorithms of collective operations (docs/collectives.md).
    #[arg(long, value_name = "FILE")]
    pub collectives: Option<PathBuf>,
    /// Combine in rank order in reductions, so that the result has the same bits wherever the ranks run.
    /// Takes longer (docs/collectives.md).
    #[arg(long)]
    pub same_bits: bool,
    /// This job's share of busy tunnels: a job of weight 3 gets three times the bytes of one of weight 1.
    #[arg(long, value_name = "1..100", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub weight: u32,
    /// Apply all settings of tested MPI versions to one that was not tested with Causeway
    /// (docs/settings.md).
    #[arg(long)]
    pub tune_untested: bool,
    /// Keep the MPI's own limits and collective operations, to see what tuning gains.
    #[arg(long)]
    pub no_tune: bool,
    /// Print which MPI was found, where its ranks run and which environment variables are set.
    #[arg(long, short)]
    pub verbose: bool,
    /// Run COMMAND at SITE, where it starts that site's own MPI. Give this option once for each site, in rank
    /// order (docs/own-mpi.md).
    #[arg(long, num_args = 2, value_names = ["SITE", "COMMAND"])]
    pub at: Vec<String>,
    /// Let each site start a program with its own MPI, with as many ranks as --sites or a placement says:
    /// --own-mpi --sites rennes=32,nancy=16 -- ./app (docs/own-mpi.md).
    #[arg(long)]
    pub own_mpi: bool,
    /// Run a script, or any other program, that starts MPI by itself: each launcher that it finds in PATH
    /// runs over the sites, by these options (docs/scripts.md).
    #[arg(long)]
    pub script: bool,
    #[command(flatten)]
    pub files: files::Wanted,
    /// Write to this file how far the run is; causeway carry passes this.
    #[arg(long, hide = true, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// When a submitted job gives up, in seconds since 1970; causeway carry passes this.
    #[arg(long, hide = true, value_name = "SECONDS")]
    pub wait_until: Option<u64>,
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
    // Whatever kills the process that carries this run, the run ends.
    if args.report.is_some() {
        let _ = set_pdeathsig(Signal::SIGKILL);
    }
    let is_ignored = args.wait.is_some() && args.time.is_none() && args.report.is_none();
    if is_ignored && args.profile.is_none() {
        say::error(format_args!("causeway: {}", RunError::WaitWithoutTime));
        return ExitCode::from(WRONG_USE);
    }
    match carried_out(&args) {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            say::error(format_args!("causeway: {error}"));
            if error.may_pass() {
                let line = error.to_string();
                phase::report(args.report.as_deref(), &Phase::Away { line });
            }
            ExitCode::from(match error {
                _ if args.report.is_some() && error.may_pass() => AWAY,
                RunError::NoCommonStart(_) => NO_COMMON_START,
                RunError::HolderGone(_) | RunError::Child(child::ChildError::Lost(_)) => LOST,
                _ => WRONG_USE,
            })
        }
    }
}

fn carried_out(args: &Args) -> Result<u8, RunError> {
    apart::check(args)?;
    files::check(&args.files)?;
    if args.script {
        let _via = via::open()?;
        return script::run(args);
    }
    if args.profile.is_none() && !args.weighing.is_usual() {
        return Err(RunError::NothingToWeigh);
    }
    let _via = via::open()?;
    let args = match &args.profile {
        Some(file) => placed::placed(args.clone(), file)?,
        None => args.clone(),
    };
    match Mode::of(&args) {
        Mode::OwnMpis => own::run(&args),
        mode => run(&args, mode),
    }
}

/// Checks what can be checked without the gateway, so that mistakes show when a job is submitted.
///
/// # Errors
/// What is wrong with the command line.
pub fn check(args: &Args) -> Result<(), RunError> {
    apart::check(args)?;
    if args.script {
        return script::check(args);
    }
    if let Some(file) = &args.profile {
        return placed::check(args, file);
    }
    coallocation::check(args)?;
    files::check(&args.files)?;
    let wanted = allocations::sites(args)?;
    if Mode::of(args) == Mode::OwnMpis {
        return own::check(args);
    }
    let own = std::env::current_exe().map_err(RunError::Own)?;
    rules::asked(&own, args.collectives.as_deref())?;
    Typed::read(&args.command, wanted.is_some()).map(drop)
}

impl Args {
    /// How long it may wait for its nodes.
    pub fn wait(&self) -> Duration {
        self.wait.unwrap_or(WAIT)
    }
}

fn run(args: &Args, mode: Mode) -> Result<u8, RunError> {
    let own = std::env::current_exe().map_err(RunError::Own)?;
    let rules = rules::asked(&own, args.collectives.as_deref())?;
    let wanted = allocations::sites(args)?;
    let mut typed = Typed::read(&args.command, wanted.is_some())?;
    let launcher = typed.launcher.clone();
    // Where the user names hosts, they say which sites.
    let wanted = { wanted.as_deref() }.filter(|_| args.sites.is_some() || !typed.line.names_hosts);
    let redirects = mode.has_shim();
    let preloads = preloads(&own, launcher.mpi, redirects)?;
    let (known, allocations, coallocated) = coallocation::known(args, mode, wanted, &typed.line)?;
    let (chosen, ip) = agree(mode, wanted, &known, &launcher, &typed.line)?;
    let plan = sites::plan(&known, &chosen, &typed.line, allocations);
    let is_allocated = coallocated.is_some() || !plan.allocations.is_empty();
    let (job, connection, held) = started(args, mode, plan, coallocated)?;
    let files = files::of_run(&args.files, &job, &known.site, chosen.nodes())?;
    let (is_tuned, eager) = tuned(args, mode, &launcher, &chosen)?;
    let sites = chosen.names();
    let groups = groups::of_run(args, &known, &sites, chosen.wish.ranks())?;
    let places = RankPlaces::new(sites.len(), is_tuned, groups.is_some());
    let (hierarchical, collectives) = libraries((args, mode), &own, &launcher, &places)?;
    // A signal from here on would leave the directory behind, so it waits until there is a launcher to pass
    // it on to.
    let signals =
        child::hold_signals(Patience::with(launcher.mpi, typed.words)).map_err(RunError::Signals)?;
    let directory = RunDirectory::create(&own).map_err(RunError::Directory)?;
    let host_file = typed.host_file(&directory, &chosen.shares)?;
    let facts = environment::Facts {
        causeway: &own,
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
    environment.extend(of_the_system(&typed));
    let crossed = hierarchical.then_some(&sites[..]);
    environment.extend(of_collectives(args, &known, crossed, groups, rules));
    let preload = libraries.around(std::env::var_os("LD_PRELOAD").as_deref());
    environment.extend(of_the_job(&launcher, &job, redirects, preload, typed.word));
    let words = typed.rewritten(&libraries, &directory)?;
    let address = sites::own_address(&known, redirects);
    let extra = extra_arguments(&typed, &chosen.wish, address, host_file.as_deref());
    let mut command = typed.command(extra, words.words, &environment);
    settle(&mut command, is_allocated, files.as_ref());
    tell_before(redirects && args.verbose, &typed, &words.left_out, &chosen);
    if args.verbose {
        tell(&launcher, &chosen.shares, &environment, &command);
        tell_left_alone(&launcher, &facts);
    }
    phase::report_running(args.report.as_deref()).map_err(RunError::Report)?;
    let expected = typed.expected(&known.site, &chosen);
    let ended = child::run(command, &connection, directory.path(), signals, expected)?;
    fetched(files.as_ref(), held.status_after(ended.status()?))
}

/// Fetches what is to be fetched after a job with this status; a signal breaks it off.
fn fetched(files: Option<&files::Files>, status: u8) -> Result<u8, RunError> {
    let mut asked = files::coming::signals().map_err(RunError::Signals)?;
    files::fetched(files, status, &mut asked)
}

/// Takes a launcher out of this shell's allocation, and puts it where the job's files are.
fn settle(command: &mut Command, is_allocated: bool, files: Option<&files::Files>) {
    if is_allocated {
        allocations::leave(command);
    }
    if let Some(files) = files {
        files.enter(command);
    }
}

/// The job, its connection, and the allocations that it has for itself.
fn started(
    args: &Args,
    mode: Mode,
    plan: Plan,
    coallocated: Option<Begun>,
) -> Result<(JobReply, UnixStream, Held), RunError> {
    match coallocated {
        Some(begun) => Ok((begun.job, begun.connection, begun.held)),
        None => start_job(args, mode, plan).map(|(job, connection)| (job, connection, Held::default())),
    }
}

/// The variables of the MPI's tables, but for those that the user has set and may set.
fn variables(typed: &Typed, facts: &environment::Facts) -> Vec<(&'static str, OsString)> {
    let replaced = typed.replaced();
    environment::settings(typed.mpi(), facts, |name| {
        is_set(name) && !replaced.contains(&name)
    })
}

/// Whether the MPI gets what makes it faster, and its eager limits.
fn tuned(
    args: &Args,
    mode: Mode,
    launcher: &Launcher,
    chosen: &Chosen,
) -> Result<(bool, Option<Eager>), RunError> {
    // The baseline of comparisons is the MPI as it comes.
    let status = mode.passes_gateways().then(gateway_status).transpose()?;
    let ranks = chosen.shares.iter().map(|share| share.ranks).sum();
    let is_known = args.tune_untested || versions::known(launcher.mpi, &launcher.version).is_some();
    let is_tuned = is_known && !args.no_tune;
    let status = status.filter(|_| is_tuned);
    Ok((is_tuned, status.and_then(|status| tuning::eager(&status, ranks))))
}

/// The sites that take part, all checks passed, and the addresses by which processes reach each other.
fn agree<'a>(
    mode: Mode,
    wanted: Option<&str>,
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

/// Variables for the library of collectives: the links between these sites, where it crosses between them,
/// and what the user asks of it.
fn of_collectives(
    args: &Args,
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
    (args, mode): (&Args, Mode),
    own: &Path,
    launcher: &Launcher,
    ranks: &RankPlaces,
) -> Result<(bool, Vec<PathBuf>), RunError> {
    let (is_tuned, has_groups) = (ranks.is_tuned, ranks.has_groups);
    // The shim tells a process its site, this library the program its site and its group. On one site there
    // is nothing else to do but for keeping an order.
    let wants_library = has_groups || args.same_bits || args.collectives.is_some();
    let hierarchical =
        mode.has_shim() && !args.no_collectives && (wants_library || (ranks.sites != 1 && is_tuned));
    if mode.passes_gateways() && !args.no_tune && !is_tuned {
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
/// `--direct`, too, where it hangs and errs as often.
fn preloads(own: &Path, mpi: Mpi, redirects: bool) -> Result<Vec<PathBuf>, RunError> {
    if let Some(what) = unsayable(own) {
        let own = own.to_owned();
        return Err(RunError::Unsayable { own, what });
    }
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
