//! `causeway run --at SITE COMMAND ...`: runs one program over sites that each have their own MPI.
//!
//! ```text
//!   run -- rendezvous <----------------- native rank 0 of each site (mpi/world/rendezvous)
//!    |--- node-exec -- sh -c COMMAND     at the own site
//!    `=== gateways === start-node -- node-exec -- sh -c COMMAND     at each other one
//! ```
//! Read `supervisor` first: what an event means for the other sites. `command` defines what a site's command
//! gets, `site` handles its stream, and through `rendezvous` the ranks learn about each other.

mod command;
mod events;
mod lines;
pub mod program;
mod site;
mod supervisor;

use super::allocations::Allocations;
use super::error::RunError;
use super::files;
use super::meant::{Run, SiteCommand, Start};
use super::phase;
use super::pipeline::{self, Job};
use super::sites::{self, own_address};
use super::{collectives, groups};
use causeway_batch::component;
use causeway_control::{Plan, SiteMpi, Sites};
use causeway_host::say;
use causeway_mpis::names::WORLD;
use causeway_mpis::preload::{SHIM, UCX};
use causeway_remote::frame::Request as Spawned;
use causeway_rendezvous::{Meeting, Origins, Server};
use causeway_wire::Token;
use command::Facts;
pub use command::refuse_launcher;
use events::{Event, Events};
use site::Site;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use supervisor::{Ended, Order, Supervisor};

/// Runs the commands to their end; the status is that of the first site that fails.
///
/// # Errors
/// What keeps the run from beginning.
pub fn run(run: &Run, own: &Path) -> Result<u8, RunError> {
    let (commands, ranks) = asked(run, own)?;
    let preloads = preloads(own, !run.collectives.are_left_alone)?;
    let names: Vec<String> = commands.iter().map(|command| command.site.clone()).collect();
    let takes_part = |site: &str| names.iter().any(|name| name == site);
    let (known, reserved) = pipeline::reserve(run, (&names, false), takes_part)?;
    let plan = Plan {
        sites: names.clone(),
        ranks: ranks.iter().sum(),
        allocations: reserved.allocations.clone(),
    };
    let nodes = nodes(&known, &commands, &plan.allocations)?;
    let begun = Job::start(run, plan, reserved)?;
    let job = &begun.reply;
    let files = files::send(&run.files, &job.token, &known.site, &all_nodes(&known, &names))?;
    // This must precede this run's own threads, which inherit the mask.
    let signals = events::hold_signals().map_err(RunError::Signals)?;
    let (server, rendezvous) = open(&known, &job.token, &names).map_err(RunError::Rendezvous)?;
    let events = Events::new();
    events
        .hear(signals, &begun.connection, server)
        .map_err(RunError::Threads)?;
    let collectives = collectives_variables(run, &known, &names, &ranks)?;
    let directory = files::directory(files.as_ref());
    let facts = Facts {
        directory: &directory,
        token: &job.token,
        grid: &job.grid,
        rendezvous,
        preloads: &preloads,
        collectives: &collectives,
    };
    let mut supervisor = Supervisor::new(&names, &ranks, run.is_verbose);
    tell(run, &commands, &nodes, &facts);
    let mut started = Vec::new();
    phase::report_running(run.report.as_deref()).map_err(RunError::Report)?;
    for (number, (command, node)) in commands.iter().zip(&nodes).enumerate() {
        let host = match node {
            Some(node) => Host::Node(node),
            None => Host::Here(own, &known.mpi),
        };
        let site = start(command, &host, &facts, number, commands.len() == 1, &events);
        match site {
            Ok(site) => started.push(Some(site)),
            Err(reason) => {
                started.push(None);
                supervisor.on_ended(number, Ended::Failed(reason), std::time::Instant::now());
            }
        }
    }
    let status = follow(&mut supervisor, &events, &mut started);
    begun.finish(status, files, &mut || events.asked_to_end())
}

/// Warns about commands that the sites' sh may not understand.
fn warn_of_bash(commands: &[SiteCommand]) {
    for command in commands {
        if let Some(word) = command.word_of_bash() {
            say::error(format_args!(
                "causeway: {}: sh runs the command of --at, and may not know {word}; bash -c '...' does",
                command.site
            ));
        }
    }
}

/// What starts at each site, and the ranks of each, if they are known.
fn asked(run: &Run, own: &Path) -> Result<(Vec<SiteCommand>, Vec<u32>), RunError> {
    let allocations = run.allocations();
    let component = |site: &str| component(allocations.get(site)?);
    match &run.start {
        Start::Commands(commands) => {
            for command in commands {
                if let Some(component) = component(&command.site).filter(|_| command.lacks_component()) {
                    return Err(RunError::Component(command.site.clone(), component.to_owned()));
                }
            }
            Ok((commands.clone(), Vec::new()))
        }
        Start::Program(program) => {
            let options = |site: &str| {
                let verbose = if run.is_verbose { " --verbose" } else { "" };
                let component = component(site).map(|component| format!(" --component {component}"));
                format!("{verbose}{}", component.unwrap_or_default())
            };
            command::program_commands(own, run.sites.as_deref().unwrap_or_default(), program, options)
        }
        Start::Launcher(_) | Start::Script(_) | Start::Profile => Err(RunError::NoShares),
    }
}

/// Handles events until the run is over.
fn follow(supervisor: &mut Supervisor, events: &Events, started: &mut [Option<Site>]) -> u8 {
    loop {
        while let Some(order) = supervisor.poll_order() {
            match order {
                Order::Say(line) => say::error(format_args!("causeway: {line}")),
                Order::Interrupt(site) => drop(started[site].as_ref().map(Site::interrupt)),
                Order::End(site) => drop(started[site].as_ref().map(Site::end)),
            }
        }
        if let Some(status) = supervisor.status() {
            return status;
        }
        let event = events.next(supervisor.deadline());
        let now = std::time::Instant::now();
        match event {
            None => {}
            Some(Event::Rendezvous(event)) => supervisor.on_rendezvous(event, now),
            Some(Event::RendezvousFailed(error)) => supervisor.on_rendezvous_failed(&error, now),
            Some(Event::Ended(site, how)) => {
                if let Some(site) = started[site].as_mut() {
                    site.collect();
                }
                supervisor.on_ended(site, how, now);
            }
            Some(Event::Signal(signal)) => supervisor.on_signal(signal, now),
            Some(Event::GatewayGone) => supervisor.on_gateway_gone(now),
        }
        supervisor.on_time(now);
    }
}

/// The libraries to preload: the shim, the cure for MPICH over UCX, which hangs in MPI_Finalize within a site
/// as well, the libraries of collectives if they are wanted, and below them the world libraries. A library
/// that does not fit a process's MPI passes calls on.
fn preloads(own: &Path, with_collectives: bool) -> Result<Vec<PathBuf>, RunError> {
    pipeline::check_path(own)?;
    let beside = |name: &str| own.with_file_name(name);
    let always = [SHIM, UCX].map(beside);
    let mut world = Vec::new();
    for (above, name) in WORLD {
        let above = with_collectives.then(|| beside(above));
        let both = above.into_iter().chain([beside(name)]);
        world.extend(both.filter(|path| path.is_file()));
    }
    let missing = always.iter().find(|path| !path.is_file()).cloned();
    let none = world.is_empty().then(|| beside(WORLD[0].1));
    match missing.or(none) {
        Some(missing) => Err(RunError::NoLibrary(missing)),
        None => Ok(always.into_iter().chain(world).collect()),
    }
}

/// Variables for the library of collectives: the links between these sites, and the user's settings on this
/// host, because rank 0, which reads them, may be at another site.
fn collectives_variables(
    run: &Run,
    known: &Sites,
    sites: &[String],
    ranks: &[u32],
) -> Result<Vec<(String, String)>, RunError> {
    if run.collectives.are_left_alone {
        return Ok(Vec::new());
    }
    let ranks = (!ranks.is_empty()).then(|| ranks.iter().sum());
    let groups = groups::value_for_run(&run.groups, known, sites, ranks)?;
    let links = collectives::settings(&known.links, sites).into_iter();
    let open = links.filter(|(name, _)| !collectives::is_set(name));
    let open = open.map(|(name, value)| (name.to_owned(), value));
    // Some variables may not be UTF-8; none of those is for the library.
    let own = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let own = own.filter(|(name, _)| name.starts_with(collectives::FAMILY));
    let groups = groups.map(|groups| (groups::VARIABLE.to_owned(), groups));
    Ok(open.chain(own).chain(groups).collect())
}

/// The node on which each command starts: the first one of the site's allocation, or of those that the site
/// lists. `None` at the own site without an allocation: that command starts here.
fn nodes(
    known: &Sites,
    commands: &[SiteCommand],
    allocations: &Allocations,
) -> Result<Vec<Option<String>>, RunError> {
    let node = |command: &SiteCommand| {
        let site = sites::usable_site(known, &command.site)?;
        if site.name == known.site && !allocations.contains_key(&site.name) {
            return Ok(None);
        }
        // Only the site itself knows the nodes of an allocation by their names.
        let is_allocated = allocations.contains_key(&site.name);
        let first = site.nodes.first().map(|node| match is_allocated {
            true => Some(node.address.to_string()),
            false => Some(node.name.clone()),
        });
        first.ok_or_else(|| RunError::NoNodes(site.name.clone()))
    };
    commands.iter().map(node).collect()
}

/// All nodes of these sites: each site's own launcher chooses among them.
fn all_nodes(known: &Sites, names: &[String]) -> Vec<(String, String)> {
    let used = known.sites.iter().filter(|site| names.contains(&site.name));
    let mut nodes = Vec::new();
    for (site, info) in used.filter_map(|site| Some((site, site.info.as_ref()?))) {
        let names = info.nodes.iter().map(sites::launchers_name);
        nodes.extend(names.map(|node| (site.name.clone(), node)));
    }
    nodes
}

/// Listens where ranks of all sites can connect; returns the listening server, and its address in the grid.
fn open(known: &Sites, token: &str, names: &[String]) -> Result<(Server, SocketAddr), String> {
    let addresses = own_address(known, false).zip(own_address(known, true));
    let ((_, real), (_, in_grid)) = addresses.ok_or_else(|| {
        let site = &known.site;
        format!("no address of this host is in a subnet of site {site}; add one in the configuration of its gateway, or run this on another host")
    })?;
    let listen = || {
        let listener = TcpListener::bind((real, 0))?;
        let port = listener.local_addr()?.port();
        let mut number = [0; 8];
        getrandom::fill(&mut number).map_err(std::io::Error::other)?;
        Ok::<_, std::io::Error>((listener, port, u64::from_le_bytes(number)))
    };
    let (listener, port, number) = listen().map_err(|error| format!("listen on {real}: {error}"))?;
    let token: Token = token
        .parse()
        .map_err(|error| format!("the gateway's token: {error}"))?;
    let meeting = Meeting::new(names, number);
    let origins = sites::own_site(known).map(|own| Origins {
        own,
        sites: sites::known_by_name(known, names),
        host: in_grid,
    });
    let server = Server::new(listener, meeting, token, origins);
    let server = server.map_err(|error| format!("listen on {real}: {error}"))?;
    Ok((server, SocketAddr::new(in_grid, port)))
}

/// Where a command starts.
enum Host<'a> {
    /// The command starts on this host, by this program, as the own site's configuration says.
    Here(&'a Path, &'a SiteMpi),
    /// The command starts on a node of another site.
    Node(&'a str),
}

/// Starts one command, whose end will be an event.
fn start(
    command: &SiteCommand,
    host: &Host,
    facts: &Facts,
    number: usize,
    is_alone: bool,
    events: &Events,
) -> Result<Site, String> {
    let is_here = matches!(host, Host::Here(..));
    let present = |name: &str| is_here.then(|| std::env::var_os(name)).flatten();
    let environment = command::environment(command, facts, present).into_iter();
    let request = Spawned {
        command: command::line(&command.text, facts.directory).into(),
        environment: environment.map(|(name, value)| (name, value.into())).collect(),
        path: Vec::new(),
        is_of_site: true,
    };
    let site = match host {
        Host::Node(node) => Site::far(facts.token, node),
        Host::Here(own, mpi) => Site::here(own, &command.site, mpi),
    };
    let site = site.map_err(|error| error.to_string())?;
    let begun = site.begin(request, number == 0, is_alone, events.on_ended(number));
    begun.map_err(|error| format!("start its command: {error}"))?;
    Ok(site)
}

fn tell(run: &Run, commands: &[SiteCommand], nodes: &[Option<String>], facts: &Facts) {
    let sites: Vec<&str> = commands.iter().map(|command| command.site.as_str()).collect();
    let sites = sites.join(", ");
    if matches!(run.start, Start::Program(_)) {
        say::error(format_args!(
            "causeway: each of {sites} starts its own MPI, because of --own-mpi (without it: one MPI over all sites)"
        ));
    }
    warn_of_bash(commands);
    if !run.is_verbose {
        return;
    }
    say::error(format_args!(
        "causeway: the ranks of {sites} meet at {}",
        facts.rendezvous
    ));
    for (SiteCommand { site, text }, node) in commands.iter().zip(nodes) {
        let host = { node.as_ref() }.map_or("this host".to_owned(), |node| format!("node {node}"));
        say::error(format_args!("causeway: site {site}: on {host}: {text}"));
    }
}
