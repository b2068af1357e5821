//! The reasons why a run does not begin. Each is one line for the user and says what to do.

use super::child::ChildError;
use super::distribution::DistributionError;
use super::groups::GroupsError;
use crate::batch::allocations::AllocError;
use causeway_control::ControlError;
use causeway_launchers::launcher::LauncherError;
use causeway_wire::grid::GridError;
use std::io;
use std::path::PathBuf;

/// See the module.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Rules for collectives that cannot be used.
    #[error("--collectives: {0}")]
    Rules(#[from] super::rules::RulesError),
    /// Two options, and why they exclude each other.
    #[error("{0} and {1} exclude each other: {2}")]
    Apart(&'static str, &'static str, &'static str),
    /// `--at` without a site and a command.
    #[error("--at takes a site and a command: --at rennes 'mpirun -n 4 ./app'")]
    NoAt,
    /// A site without a command.
    #[error("--at {0}: the command is empty")]
    NoCommandAt(String),
    /// A site with two commands.
    #[error("--at names site {0} twice; give each site one command")]
    TwiceAt(String),
    /// `--own-mpi` without ranks for each site.
    #[error(
        "--own-mpi needs the sites with their ranks, and a program: --own-mpi --sites rennes=32,nancy=16 -- ./app"
    )]
    NoShares,
    /// `--own-mpi` with a launcher instead of a program.
    #[error(
        "--own-mpi needs a program, which each site starts with its own launcher; leave out {0}: --own-mpi --sites rennes=32,nancy=16 -- ./app"
    )]
    OwnLauncher(String),
    /// A command that runs in a component of a heterogeneous allocation, but does not tell srun which one.
    #[error(
        "site {0}: srun in its command of --at does not say in which component of its heterogeneous allocation to start: \
         add --het-group={1}"
    )]
    Component(String, String),
    /// The ranks of the sites could not meet.
    #[error("let the ranks of the sites meet: {0}")]
    Rendezvous(String),
    /// This host's system could not start a thread.
    #[error("start a thread: {0}")]
    Threads(io::Error),
    /// A program that belongs to another MPI than its launcher.
    #[error(
        "{0} is built with {1}, but the launcher belongs to {2}: each rank would be a job of its own; use the launcher of the program's MPI"
    )]
    OtherMpi(String, &'static str, &'static str),
    /// A file of programs that cannot be used.
    #[error("{0}")]
    Programs(#[from] causeway_launchers::programs::ProgramsError),
    /// There is nothing to run.
    #[error("nothing to run: type 'causeway run -- mpirun -n 4 ./app'")]
    NoCommand,
    /// A launcher that cannot be used.
    #[error("{0}")]
    Launcher(#[from] LauncherError),
    /// The gateway cannot be asked.
    #[error("{0}")]
    Control(#[from] ControlError),
    /// A map of the grid that no process could read.
    #[error("this job's processes cannot use the gateway's map of the grid: {0}")]
    Map(#[from] GridError),
    /// More ranks were requested than there are slots.
    #[error("{0}")]
    Distribution(#[from] DistributionError),
    /// A job's profile that cannot be used.
    #[error("{0}")]
    Groups(#[from] GroupsError),
    /// mpirun could not be started or guarded.
    #[error("{0}")]
    Child(#[from] ChildError),
    /// Causeway's own path cannot be found.
    #[error("find causeway's own path: {0}")]
    Own(io::Error),
    /// Causeway's path is one that launchers and the loader would split.
    #[error(
        "causeway lies at {}, and {what} is in that path: the loader and MPI's launchers take it for several; install it below a \
         directory whose path has none, at the same path on every node", own.display()
    )]
    Unsayable {
        /// Causeway's path.
        own: PathBuf,
        /// What the path contains, at which they would split it.
        what: &'static str,
    },
    /// A library to preload is missing.
    #[error("the preload library {} is missing; build it with 'make build'", .0.display())]
    NoLibrary(PathBuf),
    /// Signals cannot be blocked.
    #[error("hold signals back: {0}")]
    Signals(io::Error),
    /// The run's directory cannot be used.
    #[error("make the run's directory: {0}")]
    Directory(io::Error),
    /// The value of `--sites` is not understood.
    #[error("--sites {0:?}: {1}; write rennes=2,nancy=2 or rennes,nancy")]
    Sites(String, &'static str),
    /// The grid has no site of this name.
    #[error("there is no site {0:?}; the grid has {1}")]
    UnknownSite(String, String),
    /// No node has this name.
    #[error("no site of the grid has a node {0}; 'causeway status' shows the nodes of each site")]
    UnknownHost(String),
    /// A node is named with a user's name before it.
    #[error(
        "the hosts name {0}: leave out the user's name; gateways start the processes, each as the user whose gateway it is"
    )]
    UserAtHost(String),
    /// A site's gateway cannot be reached.
    #[error("site {0} cannot be used: {1}{2}")]
    Unreachable(String, String, &'static str),
    /// A site's router does not pass connections to its gateway.
    #[error(
        "--transparent: the gateway of {0} takes no connections from its router; set 'transparent' in [listen] there, and apply what \
         'causeway gateway --print-nft' prints"
    )]
    NotTransparent(String),
    /// A site has virtual addresses, and without the shim nobody translates them.
    #[error(
        "without the shim (--direct, --transparent), jobs cannot use the virtual addresses of site {0}, which it has because another site has \
         the same real ones; leave it out (--sites), or run without that option"
    )]
    Virtual(String),
    /// A node must be named in the host list, but several sites have a node with that name.
    #[error(
        "the host list must name node {0}, since it cannot hold an IPv6 address, but sites {1} each have a node of that name; rename it in \
         the configuration of one of their gateways, or leave these sites out (--sites)"
    )]
    SameName(String, String),
    /// A site offers no slot.
    #[error(
        "no node of {0} offers a slot; if a batch system has its nodes, ask for them with --sites SITE=RANKS \
         --time 1h, or name an allocation with --alloc SITE:ID; else see 'nodes' in the configuration of \
         the gateway there"
    )]
    NoNodes(String),
    /// The counts contradict each other.
    #[error("--sites asks for {0} ranks, but the command line starts {1}")]
    Count(u32, u32),
    /// The counts of several programs cannot be guessed.
    #[error("--sites with ranks and several programs: give each program its own -n")]
    Uncounted,
    /// The sites have no version of IP in common.
    #[error(
        "all sites of a job need a common version of IP, but {0} has only IPv6 addresses and {1} only IPv4 addresses; add subnets \
         and nodes of the other version to the configuration of one of their gateways, or leave a site out (--sites)"
    )]
    NoCommonIp(String, String),
    /// The launcher's own connections use IPv4, but a site has only IPv6.
    #[error(
        "{0}'s launcher speaks only IPv4, but site {1} has only IPv6 addresses; give the site IPv4 ones, leave it out (--sites), or use Open MPI"
    )]
    Ipv4Launcher(&'static str, String),
    /// An allocation of a site that the job does not use.
    #[error("--alloc names {0}, which is not among the job's sites (--sites, --at)")]
    AllocElsewhere(String),
    /// An allocation that cannot be used.
    #[error("{0}")]
    Alloc(#[from] AllocError),
    /// Figures or prices for a placement were given without a profile.
    #[error("--worth, --price and --start-later are for the placement of a job's profile: --profile FILE")]
    NothingToWeigh,
    /// `--time` was given without ranks.
    #[error("--time needs the ranks of each site: --sites rennes=16,nancy=8 --time 1h")]
    TimeWithoutRanks,
    /// `--at` and `--sites` were given together, which has no effect without an allocation.
    #[error("--at takes its own sites: leave out --sites, or add --time to get allocations of these sites")]
    AtSites,
    /// Allocations of other sites than those of `--at`.
    #[error("--sites and --at must name the same sites: {0} is in one of them")]
    AtOtherSites(String),
    /// The value of `--batch` is malformed, or is for a site that does not take part.
    #[error(
        "--batch {0}: name one of the job's sites, and options: --batch rennes:'--partition=fast --account=p7'"
    )]
    BatchOptions(String),
    /// A site does not give an allocation.
    #[error("{0} gives no allocation: {1}; what other sites have given goes back")]
    NotGiven(String, String),
    /// Nobody would know that the program has begun, because that cannot be written.
    #[error("write down that the program begins: {0}")]
    Report(io::Error),
    /// The job's files cannot be sent or fetched.
    #[error("{0}")]
    Files(String),
    /// The gateway on another host of the site cannot be asked.
    #[error(
        "no gateway runs here, and the one on {0} ({1}) cannot be asked: {2}; 'ssh {0} causeway status' must work without a password from here"
    )]
    Via(String, String, String),
    /// `--wait` has no effect on this run.
    #[error("--wait is for allocations: add --time, or queue the run with 'causeway submit'")]
    WaitWithoutTime,
    /// The profile has mistakes, or cannot be placed.
    #[error("--profile: {0}")]
    Profile(String),
    /// The profile names neither a command nor a program.
    #[error("--profile: {} says nothing to run: add command = \"mpirun ./app\" or program = \"./app\"", .0.display())]
    NothingInProfile(PathBuf),
    /// A command in `[start]` has not started a gateway.
    #[error("start the gateway of {0} by '{1}' ([start] of gateway.toml): {2}")]
    GatewayNotStarted(String, String, String),
    /// What held a site's allocation was gone before the program began.
    #[error(
        "{0} gives no allocation: its holder, its gateway or the tunnel to it is gone; what other sites have given goes back"
    )]
    HolderGone(String),
    /// The allocations had no common start.
    #[error("the allocations did not begin at the same time: {0}; all are given back")]
    NoCommonStart(String),
    /// `--sites` was given, and the user's arguments name hosts as well.
    #[error("--sites cannot be used with hosts on the launcher's command line")]
    Hosts,
}

impl RunError {
    /// Whether the reason is that a gateway could not be reached, so that a later run may get further.
    pub fn may_pass(&self) -> bool {
        match self {
            RunError::Control(error) => {
                matches!(error, ControlError::NoGateway { .. } | ControlError::Io { .. })
            }
            RunError::Report(_)
            | RunError::Unreachable(..)
            | RunError::HolderGone(_)
            | RunError::GatewayNotStarted(..) => true,
            _ => false,
        }
    }
}
