//! The description of a run. `causeway run` reads it once from what was typed; submitted jobs, the launchers
//! of a script, a profile's placement and the first job of `causeway up` make one, too.

use super::groups::Groups;
use super::mode::Mode;
use crate::batch::allocations::Allocations;
use crate::place::Weighing;
use causeway_units::{TIME, plain};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

/// How long to wait for nodes, unless the user says otherwise.
const WAIT: Duration = Duration::from_secs(6 * 3600);

/// How long nodes of one site wait for those of another, unless the user says otherwise.
pub const IDLE: Duration = Duration::from_secs(300);

/// Sites with their ranks, in the order of the ranks: either each has a number, or none has.
pub type Shares = Vec<(String, Option<u32>)>;

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// How the run's processes reach other sites.
    pub mode: Mode,
    /// What starts the run's processes.
    pub start: Start,
    /// The sites that the run may use; `None`: all.
    pub sites: Option<Shares>,
    /// Where the run's nodes come from.
    pub nodes: Nodes,
    /// How long the run may wait for its nodes; `None`: the default.
    pub wait: Option<Duration>,
    /// When the run stops waiting, as a time since 1970: a submitted job may have waited already.
    pub wait_until: Option<Duration>,
    /// The profile that is placed before anything starts.
    pub profile: Option<Profile>,
    /// Groups of ranks, for which the program can ask.
    pub groups: Groups,
    /// How collective operations work.
    pub collectives: Collectives,
    /// Whether the MPI is set up for the link.
    pub tuning: Tuning,
    /// The run's share of busy tunnels.
    pub weight: u32,
    /// The files that are sent to the nodes, and those that are fetched.
    pub files: FilesWanted,
    /// Whether the run prints what it does.
    pub is_verbose: bool,
    /// The file in which the run reports its phase.
    pub report: Option<PathBuf>,
}

/// What starts the processes of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Start {
    /// A launcher with its arguments, over all sites.
    Launcher(Vec<OsString>),
    /// A command for each site, in the order of the ranks.
    Commands(Vec<SiteCommand>),
    /// A program with its arguments, which each site starts with its own MPI.
    Program(Vec<OsString>),
    /// A program with its arguments that starts MPI itself.
    Script(Vec<OsString>),
    /// Whatever the profile names.
    Profile,
}

/// A command for the sh of a site.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SiteCommand {
    /// The site.
    pub site: String,
    /// The text that `sh -c` gets.
    pub text: String,
}

/// Where the nodes of a run come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Nodes {
    /// From the sites' lists, or from the allocation in which the run starts.
    Listed,
    /// From allocations that the user has obtained.
    Allocated(Allocations),
    /// From allocations that the run requests, all at the same time.
    Asked(Asked),
}

/// What a run requests from the batch systems.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// How long the run needs the nodes.
    pub time: Duration,
    /// How long nodes of one site wait for those of another.
    pub idle: Duration,
    /// Options for the batch systems of sites.
    pub options: BTreeMap<String, Vec<String>>,
}

/// A profile, and what makes one placement of it better than another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// The profile's file.
    pub file: PathBuf,
    /// See [`Weighing`].
    pub weighing: Weighing,
}

/// Files of a job, for sites whose homes are separate.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FilesWanted {
    /// The paths to send to the nodes: `[SITE:]PATH[=NAME]`.
    pub send: Vec<PathBuf>,
    /// Whether everything is sent, and no copies of it stay there for later jobs.
    pub send_anew: bool,
    /// Patterns of what is fetched.
    pub fetch: Vec<String>,
}

/// How collective operations work.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Collectives {
    /// Whether the operations are left to the MPI.
    pub are_left_alone: bool,
    /// The file of rules that choose their algorithms.
    pub rules: Option<PathBuf>,
    /// Whether reductions combine in rank order.
    pub keep_bits: bool,
}

/// Whether the MPI is set up for the link.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Tuning {
    /// Only if its version was tested.
    #[default]
    Tested,
    /// Whatever its version.
    Any,
    /// Not at all.
    None,
}

impl Run {
    /// A run that starts this over all sites, with all options at their defaults.
    pub fn new(mode: Mode, start: Start) -> Run {
        Run {
            mode,
            start,
            sites: None,
            nodes: Nodes::Listed,
            wait: None,
            wait_until: None,
            profile: None,
            groups: Groups::None,
            collectives: Collectives::default(),
            tuning: Tuning::default(),
            weight: 1,
            files: FilesWanted::default(),
            is_verbose: false,
            report: None,
        }
    }

    /// How long the run may wait for its nodes.
    pub fn wait(&self) -> Duration {
        self.wait.unwrap_or(WAIT)
    }

    /// The allocations that the user has obtained.
    pub fn allocations(&self) -> Allocations {
        match &self.nodes {
            Nodes::Allocated(allocations) => allocations.clone(),
            Nodes::Listed | Nodes::Asked(_) => Allocations::new(),
        }
    }

    /// Whether the run requests nodes from the sites' batch systems.
    pub fn asks_for_nodes(&self) -> bool {
        matches!(self.nodes, Nodes::Asked(_))
    }

    /// The sites to use: those that are named, or those of the user's allocations.
    pub fn named_sites(&self) -> Option<Shares> {
        let allocated_sites = || match &self.nodes {
            Nodes::Allocated(all) => Some(all.keys().map(|site| (site.clone(), None)).collect()),
            Nodes::Listed | Nodes::Asked(_) => None,
        };
        self.sites.clone().or_else(allocated_sites)
    }

    /// The arguments of `causeway run` that describe this run, which has not been placed yet.
    pub fn words(&self) -> Vec<OsString> {
        let mut words = self.options();
        match &self.start {
            Start::Launcher(command) | Start::Program(command) | Start::Script(command) => {
                words.push("--".into());
                words.extend(command.iter().cloned());
            }
            Start::Commands(commands) => {
                for SiteCommand { site, text } in commands {
                    words.extend(["--at", site, text].map(OsString::from));
                }
            }
            Start::Profile => {}
        }
        words
    }

    /// The same, without what starts the processes.
    pub fn options(&self) -> Vec<OsString> {
        let mut words = Words(Vec::new());
        words.option("--sites", self.sites.as_deref().map(shown));
        self.add_nodes(&mut words);
        words.option("--wait", self.wait.map(time));
        words.option(
            "--wait-until",
            self.wait_until.map(|until| until.as_secs().to_string()),
        );
        self.add_way(&mut words);
        if let Some(Profile { file, weighing }) = &self.profile {
            words.option("--profile", Some(file));
            words.option("--worth", weighing.worth.as_ref());
            words.all("--price", weighing.price.iter().map(price));
            words.flag("--start-later", weighing.start_later);
        }
        if let Groups::File(file) = &self.groups {
            words.option("--groups", Some(file));
        }
        words.flag("--no-collectives", self.collectives.are_left_alone);
        words.option("--collectives", self.collectives.rules.as_ref());
        words.flag("--same-bits", self.collectives.keep_bits);
        words.flag("--tune-untested", self.tuning == Tuning::Any);
        words.flag("--no-tune", self.tuning == Tuning::None);
        words.option("--weight", (self.weight != 1).then(|| self.weight.to_string()));
        words.all("--send", self.files.send.iter());
        words.flag("--send-anew", self.files.send_anew);
        words.all("--fetch", self.files.fetch.iter());
        words.flag("--verbose", self.is_verbose);
        words.option("--report", self.report.as_ref());
        words.0
    }

    fn add_nodes(&self, words: &mut Words) {
        match &self.nodes {
            Nodes::Listed => {}
            Nodes::Allocated(all) => {
                words.all("--alloc", all.iter().map(|(site, id)| format!("{site}:{id}")));
            }
            Nodes::Asked(asked) => {
                words.option("--time", Some(time(asked.time)));
                words.option("--idle", (asked.idle != IDLE).then(|| time(asked.idle)));
                let options = asked.options.iter();
                words.all(
                    "--batch",
                    options.map(|(site, all)| format!("{site}:{}", all.join(" "))),
                );
            }
        }
    }

    fn add_way(&self, words: &mut Words) {
        words.flag("--direct", self.mode == Mode::Direct);
        words.flag("--transparent", self.mode == Mode::Transparent);
        let starts_commands = matches!(self.start, Start::Commands(_));
        words.flag("--own-mpi", self.mode == Mode::OwnMpis && !starts_commands);
        words.flag("--script", matches!(self.start, Start::Script(_)));
    }
}

/// The arguments of a command.
struct Words(Vec<OsString>);

impl Words {
    fn option(&mut self, name: &str, value: Option<impl Into<OsString>>) {
        self.all(name, value);
    }

    fn all(&mut self, name: &str, values: impl IntoIterator<Item = impl Into<OsString>>) {
        for value in values.into_iter().map(Into::into) {
            // After a blank, the value would be read as another option.
            match value.as_encoded_bytes().starts_with(b"-") {
                true => self.0.push([name.into(), value].join(OsStr::new("="))),
                false => self.0.extend([name.into(), value]),
            }
        }
    }

    fn flag(&mut self, name: &str, is_set: bool) {
        self.0.extend(is_set.then(|| name.into()));
    }
}

/// The value of `--sites`.
pub fn shown(shares: &[(String, Option<u32>)]) -> String {
    let share = |(site, ranks): &(String, Option<u32>)| match ranks {
        Some(ranks) => format!("{site}={ranks}"),
        None => site.clone(),
    };
    shares.iter().map(share).collect::<Vec<_>>().join(",")
}

fn time(time: Duration) -> String {
    TIME.show(time.as_secs())
}

/// Formats a site's price, which is in millionths.
fn price((site, price): &(String, u64)) -> String {
    format!("{site}={}", plain(*price, 1_000_000).unwrap_or_default())
}
