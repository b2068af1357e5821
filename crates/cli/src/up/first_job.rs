//! The first job over the sites of a new grid: with one MPI, if all sites have the same, and otherwise as one
//! world of each site's own MPI.

use super::Site;
use super::choose;
use super::facts::Found;
use super::host::PATIENCE;
use super::install::programs;
use super::steps::{self, Work, causeway, tell};
use causeway_host::{quoted, say};
use causeway_mpis::Mpi;
use causeway_run::meant::{Asked, IDLE, Nodes, Run, SiteCommand, Start};
use causeway_run::mode::Mode;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::time::Duration;

/// How long a job may take, including the wait for nodes of batch systems.
const RUNS_WITHIN: Duration = Duration::from_secs(420);

/// For how long a job asks batch systems for nodes, and how long it waits for them.
const NODES_FOR: Duration = Duration::from_secs(120);
const NODES_WITHIN: Duration = Duration::from_secs(300);

/// The arguments of the ping-pong: messages of one byte, and how many.
const PINGPONG: [&str; 5] = ["pingpong", "--sizes", "1", "--count", "20"];

/// Open MPI runs for root only if it is told to, and at other sites it has the environment of a login.
const AS_ROOT: &str = "export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1; ";

/// Runs one rank at each site, and measures the path to each other site.
///
/// # Errors
/// A job fails.
pub fn run(work: &Work, sites: &[Site]) -> Result<(), String> {
    let Some((first, others)) = sites.split_first() else {
        return Ok(());
    };
    match Jobs::of(sites) {
        Ok(jobs) => jobs.run(work, first, sites)?,
        Err(why) => {
            say::output(format_args!("No first job was run: {why}")).map_err(|_| String::new())?;
        }
    }
    // Only after the job, because gateways fill a new lane for a moment to see what it carries.
    for other in others {
        let words = ["ping", &other.host.site, "--count", "5", "--interval", "0.2"];
        work.say(&first.host.site, &format!("causeway {}", words.join(" ")))?;
        tell(&causeway(first, &words, "", PATIENCE)?)?;
    }
    Ok(())
}

/// Runs a command of Causeway, and prints that it does.
fn said_by(work: &Work, site: &Site, words: &[String]) -> Result<String, String> {
    let shown: Vec<String> = words.iter().map(quoted).collect();
    work.say(&site.host.site, &format!("causeway {}", shown.join(" ")))?;
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    causeway(site, &words, "", RUNS_WITHIN).map_err(|why| explained(&why))
}

/// Explains a failure: compute nodes may have another home directory than their head node.
fn explained(why: &str) -> String {
    match why.contains(&format!("{}/", programs(""))) && why.contains("No such file or directory") {
        true => format!(
            "{why}; a node of that site does not share the home directory of its head node. Put Causeway at a path that all \
             nodes share, and join the site by hand there (docs/install.md, 'causeway gateway --join')"
        ),
        false => why.to_owned(),
    }
}

/// Commands of Causeway, without its name.
#[derive(Debug, PartialEq, Eq)]
struct Jobs {
    /// Prints the name of each rank's node, if all sites have the same MPI.
    hello: Option<Vec<String>>,
    pingpong: Vec<String>,
}

impl Jobs {
    fn run(&self, work: &Work, first: &Site, sites: &[Site]) -> Result<(), String> {
        if let Some(hello) = &self.hello {
            tell(&said_by(work, first, hello)?)?;
        }
        let said = said_by(work, first, &self.pingpong)?;
        match round_trip(&said) {
            Some(milliseconds) => tell(&beside_the_network(first, sites, milliseconds)?),
            None => tell(&said),
        }
    }

    /// One rank at each site.
    fn of(sites: &[Site]) -> Result<Jobs, String> {
        let batches = sites.iter().filter(|site| site.facts.batch.is_some()).count();
        let has_batch = match batches {
            0 => false,
            all if all == sites.len() => true,
            _ => return Err("some sites have a batch system and others have none".to_owned()),
        };
        let found = shared_launcher(sites);
        let with = |mode, start| {
            let shares = sites.iter().map(|site| (site.host.site.clone(), Some(1)));
            let mut run = Run::new(mode, start);
            run.sites = (mode == Mode::Shim || has_batch).then(|| shares.collect());
            if has_batch {
                let (time, idle, options) = (NODES_FOR, IDLE, BTreeMap::new());
                run.nodes = Nodes::Asked(Asked { time, idle, options });
                run.wait = Some(NODES_WITHIN);
            }
            words(&run)
        };
        let Some(found) = found else {
            let commands = sites.iter().enumerate().map(|(number, site)| {
                let (site, text) = (site.host.site.clone(), at(site, number == 0)?);
                Ok(SiteCommand { site, text })
            });
            let commands = commands.collect::<Result<_, String>>()?;
            return Ok(Jobs {
                hello: None,
                pingpong: with(Mode::OwnMpis, Start::Commands(commands)),
            });
        };
        let ranks = sites.len().to_string();
        let over_all = |program: &[&str]| {
            let launcher = [&found.word, "-n", &ranks];
            let all = launcher.iter().chain(program);
            with(Mode::Shim, Start::Launcher(all.map(OsString::from).collect()))
        };
        let program: Vec<&str> = found.program.iter().map(String::as_str).chain(PINGPONG).collect();
        Ok(Jobs {
            hello: Some(over_all(Mpi::hello(&found.mpi))),
            pingpong: over_all(&program),
        })
    }
}

/// A command of Causeway, without its name.
fn words(run: &Run) -> Vec<String> {
    let words = run.words().into_iter();
    let words = words.map(|word| word.to_string_lossy().into_owned());
    std::iter::once("run".to_owned()).chain(words).collect()
}

/// The launcher of one MPI for all sites. Its daemons and ranks find Causeway at the same path on all hosts.
pub fn shared_launcher(sites: &[Site]) -> Option<&Found> {
    let first = sites.first().map(|site| &site.directory);
    let is_same = sites.iter().all(|site| Some(&site.directory) == first);
    choose::launcher(sites.iter().map(|site| &site.facts)).filter(|_| is_same)
}

/// The command that starts a rank of the site's own MPI.
fn at(site: &Site, is_here: bool) -> Result<String, String> {
    let found = site.facts.launchers.first().ok_or_else(|| {
        format!(
            "{} has no launcher of an MPI in PATH; load the MPI's module in a start-up file of the login shell",
            site.host.site
        )
    })?;
    let root = if site.facts.is_root && !is_here {
        AS_ROOT
    } else {
        ""
    };
    let words = [found.word.as_str(), "-n", "1"].map(str::to_owned);
    let words: Vec<String> = [&words, found.program.as_slice(), &PINGPONG.map(str::to_owned)].concat();
    let words: Vec<String> = words.iter().map(quoted).collect();
    Ok(format!("{root}{}", words.join(" ")))
}

/// The median round trip in milliseconds, from the program's row of one-way times.
fn round_trip(said: &str) -> Option<f64> {
    let row = said
        .lines()
        .find_map(|line| line.strip_prefix("bench: pingpong 1 "))?;
    let mut times: Vec<f64> = row.split(' ').filter_map(|time| time.parse().ok()).collect();
    times.sort_by(f64::total_cmp);
    let median = times.get(times.len() / 2)?;
    Some(median * 2.0 / 1000.0)
}

/// Compares a round trip of the MPI with the shortest that the gateways have seen.
fn beside_the_network(first: &Site, sites: &[Site], milliseconds: f64) -> Result<String, String> {
    let last = sites.last().map_or("", |site| site.host.site.as_str());
    let status = steps::status(first)?;
    let tunnel = status.tunnels.iter().find(|tunnel| tunnel.site == last);
    let network = tunnel.map_or(0, |tunnel| tunnel.rtt_microseconds);
    let network = match network {
        0 => String::new(),
        least => format!(
            "; the least that the kernel has seen of the network is {:.1} ms",
            f64::from(least) / 1000.0
        ),
    };
    Ok(format!(
        "a message of 1 byte and its answer, {} - {last}: {milliseconds:.1} ms{network}",
        first.host.site
    ))
}

#[cfg(test)]
#[path = "first_job_tests.rs"]
mod tests;
