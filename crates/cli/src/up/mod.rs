//! `causeway up` and `causeway down`: from nothing to a grid of several sites and a first job, and back, from
//! any host with Causeway that reaches the sites' head nodes by ssh.
//!
//! Each step is one command on one host, which is printed as a user would type it. `install` copies the
//! programs. `facts` and `reach` run on a host to find things out, `meet` asks all hosts whom they can reach,
//! and `choose` makes a plan from the answers. `first_job` runs over the new grid.

mod accept;
mod choose;
mod down;
mod facts;
mod first_job;
mod host;
mod install;
mod kept;
mod meet;
pub mod part;
mod ports;
mod reach;
mod remove;
mod steps;

use causeway_host::{quoted, say};
use causeway_wire::shown::Line;
use choose::{Joins, Looked};
pub use down::{DownArgs, down};
use facts::Facts;
use host::{Host, PATIENCE};
use install::{FirstLook, Installation, Installations};
use ports::Ports;
use std::collections::BTreeSet;
use std::io::IsTerminal;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;
use steps::{Step, Work};

/// If a clock differs from this host's by more than this, certificates seem invalid.
const CLOCK_SECONDS: u64 = 240;

/// Make a grid of these sites, and run a first job on it.
#[derive(clap::Args)]
pub struct Args {
    /// Each site's name, and its head node as ssh takes it, such as rennes=ada@login.rennes.example. A dot
    /// (nancy=.) stands for this host.
    #[arg(required = true, value_name = "SITE=[USER@]HOST", value_parser = pair)]
    sites: Vec<(String, String)>,
    /// The site on whose head node the broker runs [default: the first that all others reach].
    #[arg(long, value_name = "SITE")]
    broker: Option<String>,
    /// The grid's name.
    #[arg(long, value_name = "NAME", default_value = "grid")]
    grid: String,
    /// Addresses of a site's nodes, such as rennes=10.1.0.0/24 [default: the head node's inner network].
    #[arg(long, value_name = "SITE=CIDR", value_parser = pair)]
    subnet: Vec<(String, String)>,
    /// A compute node of a site and its number of processes, such as rennes=node-1:4; once for each node
    /// [default: those of the site's batch system, or else the head node].
    #[arg(long, value_name = "SITE=NAME[=ADDRESS][:SLOTS]", value_parser = pair)]
    node: Vec<(String, String)>,
    /// The web proxy through which a site gets out, such as nancy=proxy.nancy.example:3128.
    #[arg(long, value_name = "SITE=URL", value_parser = pair)]
    proxy: Vec<(String, String)>,
    /// File on a site's head node with the line USER:PASSWORD for the proxy.
    #[arg(long, value_name = "SITE=FILE", value_parser = pair, requires = "proxy")]
    proxy_credentials: Vec<(String, String)>,
    /// A tar of Causeway for head nodes with another processor than this host's, such as
    /// causeway-0.1.0-linux-aarch64.tar.gz.
    #[arg(long, value_name = "FILE")]
    tar: Vec<PathBuf>,
    /// Do not ask before changing anything.
    #[arg(long, short)]
    yes: bool,
    /// Show what would be done. To look at the hosts, Causeway is copied there, and removed again.
    #[arg(long)]
    dry_run: bool,
}

fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((site, rest)) if causeway_wire::grid::is_site_name(site) && !rest.is_empty() => {
            Ok((site.to_owned(), rest.to_owned()))
        }
        _ => Err("is not SITE=..., where SITE is the name of a site".to_owned()),
    }
}

/// A site that is being set up.
struct Site {
    host: Host,
    home: String,
    /// The directory with the programs.
    directory: String,
    /// The command there.
    causeway: String,
    facts: Facts,
}

/// Makes the grid; the status is 0 once the first job has succeeded.
pub fn main(args: &Args) -> ExitCode {
    match up(args) {
        Ok(status) => status,
        Err(why) => {
            say::error(format_args!("causeway up: {why}"));
            ExitCode::FAILURE
        }
    }
}

fn up(args: &Args) -> Result<ExitCode, String> {
    check(args)?;
    let began = Instant::now();
    let installations = Installations::find(&args.tar)?;
    let connections = host::connections().map_err(|error| format!("make a directory for ssh: {error}"))?;
    let hosts = args.sites.iter().map(|(site, destination)| Host {
        site: site.clone(),
        destination: destination.clone(),
        connections: connections.path().to_owned(),
    });
    // All hosts are looked at before anything is copied to one.
    let looked = hosts.map(|host| {
        let first = install::look(&host, &installations)?;
        let suited = installations.suited(&first);
        let suited = suited.map_err(|why| format!("{}: {why}", host.site))?;
        Ok((suited, first, host))
    });
    let looked = looked.collect::<Result<Vec<_>, String>>()?;
    let mut sites = Vec::new();
    let mut work = Work::new(args.dry_run);
    for (installation, first, host) in looked {
        sites.push(prepared(&mut work, installation, &first, host)?);
    }
    let plan = Plan::make(args, &sites)?;
    plan.tell(&sites)?;
    if args.dry_run {
        return Ok(say::result("Nothing was changed."));
    }
    // From here on, 'causeway down' has something to remove.
    kept::keep(&args.sites)?;
    if !plan.steps.is_empty() && !args.yes && !confirmed()? {
        return Ok(say::result(
            "Nothing was done, but for the copies of Causeway; 'causeway down' removes them.",
        ));
    }
    for site in &sites {
        install::link(&site.host, &site.home, &site.causeway)?;
    }
    plan.carry_out(&work, &sites)?;
    steps::wait_for_tunnels(&work, &sites)?;
    first_job::run(&work, &sites)?;
    say::output(format_args!(
        "\n{} sites are one grid, {:.0} s after the first step. Next, on the head node of {}:\n\n    export \
         PATH=$HOME/.local/bin:$PATH\n    causeway status\n    {}\n\n'causeway down' \
         takes all of it away again.",
        sites.len(),
        began.elapsed().as_secs_f64(),
        sites[0].host.site,
        next_run(args, &sites)
    ))
    .map_or_else(Ok, |()| Ok(ExitCode::SUCCESS))
}

/// Finds mistakes that are visible before any host is asked.
fn check(args: &Args) -> Result<(), String> {
    let names: BTreeSet<&str> = args.sites.iter().map(|(site, _)| site.as_str()).collect();
    if names.len() != args.sites.len() {
        return Err("a site is named twice".to_owned());
    }
    let broker = args.broker.iter().map(|site| ("broker", site));
    let subnets = args.subnet.iter().map(|(site, _)| ("subnet", site));
    let nodes = args.node.iter().map(|(site, _)| ("node", site));
    let proxies = args.proxy.iter().map(|(site, _)| ("proxy", site));
    let credentials = args.proxy_credentials.iter();
    let credentials = credentials.map(|(site, _)| ("proxy-credentials", site));
    let all = broker.chain(subnets).chain(nodes);
    let mut all = all.chain(proxies).chain(credentials);
    if let Some((option, site)) = all.find(|(_, site)| !names.contains(site.as_str())) {
        return Err(format!(
            "--{option} names {site}, which is not one of the sites given"
        ));
    }
    Ok(())
}

/// Puts Causeway on a head node, and has it report what it finds there.
fn prepared(
    work: &mut Work,
    installation: &Installation,
    first: &FirstLook,
    host: Host,
) -> Result<Site, String> {
    let lasting = installation.directory(&first.home);
    let is_there = installation.is_there(&host, &lasting)?;
    let directory = match work.is_dry && !is_there {
        false => lasting.clone(),
        true => work.passing_directory(&host)?,
    };
    if !is_there {
        let line = installation.line(&host, &lasting);
        work.say(&host.site, &line)?;
        installation.put(&host, &directory)?;
    }
    let causeway = installation.command(&directory);
    let said = host.run(&format!("{} up-part look", quoted(&causeway)), b"", PATIENCE);
    let said = said.map_err(|why| explained(&why))?;
    let facts: Facts = serde_json::from_str(said.trim())
        .map_err(|error| format!("{}: its Causeway's answer is not understood: {error}", host.site))?;
    let facts = facts.checked().map_err(|why| format!("{}: {why}", host.site))?;
    Ok(Site {
        host,
        home: first.home.clone(),
        directory,
        causeway,
        facts,
    })
}

fn explained(why: &str) -> String {
    match why.contains("GLIBC_") {
        true => format!(
            "{why}; its system is older than the one that this Causeway was built on: use the tar that 'make dist' makes"
        ),
        false => why.to_owned(),
    }
}

/// The command for a first program of the user's. It must ask for nodes if they belong to batch systems.
fn next_run(args: &Args, sites: &[Site]) -> String {
    let names: Vec<&str> = sites.iter().map(|site| site.host.site.as_str()).collect();
    let is_listed = |name: &str| args.node.iter().any(|(site, _)| site == name);
    let mut batch_sites = sites.iter().filter(|site| site.facts.batch.is_some());
    let (time, is_asked) = match batch_sites.all(|site| is_listed(&site.host.site)) {
        true => ("", false),
        false => (" --time 1h", true),
    };
    let shares: Vec<String> = names.iter().map(|name| format!("{name}=32")).collect();
    let (shares, ranks) = (shares.join(","), 32 * names.len());
    match (first_job::shared_launcher(sites), is_asked) {
        (None, _) => format!("causeway run --own-mpi --sites {shares}{time} -- ./app"),
        (Some(found), true) => {
            format!(
                "causeway run --sites {shares}{time} -- {} -n {ranks} ./app",
                found.word
            )
        }
        (Some(found), false) => format!("causeway run -- {} -n {ranks} ./app", found.word),
    }
}

/// The steps that still have to be taken.
struct Plan {
    steps: Vec<Step>,
}

impl Plan {
    fn make(args: &Args, sites: &[Site]) -> Result<Plan, String> {
        for site in sites {
            check_facts(args, site)?;
        }
        let looked: Vec<Looked> = sites.iter().map(|site| looked(args, site)).collect();
        let claims = sites
            .iter()
            .filter_map(|site| Some((&site.host.site[..], site.facts.grid.as_deref()?)));
        let claimed = choose::claimed(&claims.collect::<Vec<_>>(), args.broker.as_deref())?;
        let (broker, mut steps) =
            match { sites.iter() }.find(|site| claimed.as_ref() == Some(&site.host.site)) {
                Some(there) => {
                    let starts = (!there.facts.broker_runs).then(|| Step::broker(&there.host.site));
                    (there.host.site.clone(), starts.into_iter().collect::<Vec<_>>())
                }
                None => {
                    let reached = meet::reached(args, sites, |ports| ports.broker)?;
                    let (broker, ip) = choose::broker(&looked, &reached, args.broker.as_deref())?;
                    let at = { sites.iter() }
                        .find(|site| site.host.site == broker)
                        .map_or(Ports::USUAL, |site| site.facts.ports);
                    let at = SocketAddr::new(ip, at.broker);
                    let steps = vec![Step::grid(&broker, &args.grid, at), Step::broker(&broker)];
                    (broker, steps)
                }
            };
        let names: Vec<String> = sites.iter().map(|site| site.host.site.clone()).collect();
        if sites.iter().any(|site| site.facts.site.is_none()) {
            let reached = meet::reached(args, sites, |ports| ports.wan)?;
            for (site, joins) in sites.iter().zip(choose::joins(&looked, &reached)?) {
                let joins: Joins = joins;
                if site.facts.site.is_none() {
                    steps.push(Step::join(&site.host.site, &broker, joins.words(&names)));
                }
            }
        }
        for site in sites.iter().filter(|site| site.facts.site.is_some()) {
            let missing = not_accepted(site, &names);
            if !missing.is_empty() {
                steps.push(Step::accept(&site.host.site, &missing));
            }
            // This lets the gateway adopt what it now accepts, or continue as the program that was just
            // installed.
            if site.facts.gateway_runs && (site.facts.gateway_is_other || !missing.is_empty()) {
                steps.push(Step::drain(&site.host.site));
            }
        }
        let stopped = sites
            .iter()
            .filter(|site| site.facts.site.is_some() && !site.facts.gateway_runs);
        steps.extend(stopped.map(|site| Step::gateway(&site.host.site)));
        Ok(Plan { steps })
    }

    fn tell(&self, sites: &[Site]) -> Result<(), String> {
        let mut text = String::from("\n");
        for site in sites {
            // A head node must not be able to add lines to what its user agrees to.
            text += &format!("{}: {}\n", site.host.site, Line(site.facts.described()));
        }
        for site in sites {
            if let Some(grid) = &site.facts.grid {
                text += &format!(
                    "{0} says that it has the broker of grid {grid} already. Whoever has {0} decides who is in the grid.\n",
                    site.host.site
                );
            }
        }
        text += "\n";
        if self.steps.is_empty() {
            text += "All sites are in the grid, and their gateways run.";
        } else {
            text += "This will be done, as you on each host:\n\n";
            for step in &self.steps {
                text += &format!("    {}$ {}\n", step.site, step.shown());
            }
            let names: Vec<&str> = sites.iter().map(|site| site.host.site.as_str()).collect();
            text += &format!(
                "\nJobs that a user of the grid starts at one of {} may then run programs at the others, as you there\n\
                 (docs/security-officer.md says how to give them an account of their own).",
                names.join(", ")
            );
        }
        say::output(text).map_err(|_| "standard output has gone".to_owned())
    }

    fn carry_out(&self, work: &Work, sites: &[Site]) -> Result<(), String> {
        say::output("").map_err(|_| "standard output has gone".to_owned())?;
        self.steps.iter().try_for_each(|step| work.carry_out(step, sites))
    }
}

/// The sites among these whose jobs a site does not run yet.
fn not_accepted(site: &Site, names: &[String]) -> Vec<String> {
    let accepts = |name: &&String| {
        let mut all = site.facts.accepts.iter();
        all.any(|one| one == *name || one == causeway_wire::grid::ALL_SITES)
    };
    let others = names.iter().filter(|name| **name != site.host.site);
    others.filter(|name| !accepts(name)).cloned().collect()
}

fn looked(args: &Args, site: &Site) -> Looked {
    let values_for_site = |all: &[(String, String)]| -> Vec<String> {
        let own = all.iter().filter(|(name, _)| *name == site.host.site);
        own.map(|(_, value)| value.clone()).collect()
    };
    Looked {
        site: site.host.site.clone(),
        facts: site.facts.clone(),
        subnets: values_for_site(&args.subnet),
        nodes: values_for_site(&args.node),
        proxy: meet::proxy_words(args, &site.host.site),
    }
}

fn check_facts(args: &Args, site: &Site) -> Result<(), String> {
    let (name, facts) = (&site.host.site, &site.facts);
    if let Some(other) = facts.site.as_ref().filter(|other| *other != name) {
        return Err(format!(
            "{}: its Causeway is already set up as site {other}: use that name, or 'causeway down' first",
            site.host.destination
        ));
    }
    if let Some(other) = facts.grid.as_ref().filter(|other| **other != args.grid) {
        return Err(format!(
            "{name}: its head node already has the broker of grid {other}: add --grid {other}, or 'causeway down' first"
        ));
    }
    let own = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let apart = own.map_or(0, |own| own.as_secs().abs_diff(facts.clock));
    if apart > CLOCK_SECONDS {
        return Err(format!(
            "{name}: its clock is {apart} s away from this host's, and certificates would not be valid there: set the clocks"
        ));
    }
    Ok(())
}

fn confirmed() -> Result<bool, String> {
    if !std::io::stdin().is_terminal() {
        return Err("nobody is there to be asked; --yes goes on without a question".to_owned());
    }
    say::error("\nGo on? [y/N]");
    let mut answer = String::new();
    let read = std::io::stdin().read_line(&mut answer);
    read.map_err(|error| format!("read the answer: {error}"))?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
