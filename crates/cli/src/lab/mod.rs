//! `causeway lab`: an emulated grid with a gateway at each site. The library crates/lab knows nothing of
//! gateways; this is where the two meet.

mod bench;
mod gateways;
mod supervise;

use causeway_host::failure::Failure;
use causeway_host::say;
use causeway_lab::wan::LinkChange;
use causeway_lab::{Answer, LabError, LabState, NodeCommand, Overrides, Request, Scenario, down_all};
use causeway_run::leftovers;
use causeway_units as units;
use causeway_wire::TextError;
use clap::{Args, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{ExitCode, ExitStatus};
use std::time::Duration;

/// Run an emulated grid on this machine.
#[derive(Subcommand)]
pub enum Task {
    /// Start a grid, run a command on the first site's head node, stop the grid.
    Run(RunArgs),
    /// Start a grid in the background.
    Up(UpArgs),
    /// Stop a grid.
    Down(DownArgs),
    /// List the running grids.
    List {
        /// Print all that is known about them as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Run a command on a node.
    Exec(ExecArgs),
    /// Change the link between two sites while the grid runs.
    Link(LinkArgs),
    /// Measure the emulator itself: round trip, rate, CPU. Takes about twenty seconds per scenario.
    Bench(bench::BenchArgs),
}

/// What to start.
#[derive(Args)]
pub struct Shape {
    /// A scenario that comes with Causeway, or a file.
    #[arg(help = scenarios())]
    scenario: String,
    /// Number of compute nodes: N at every site, or rennes=8,nancy=8.
    #[arg(long, value_name = "N|SITE=N,...", value_parser = parse_nodes)]
    nodes: Option<Nodes>,
    /// Processes per compute node.
    #[arg(long, value_name = "N")]
    slots: Option<u32>,
    /// Whether the sites' LANs have an IP route to each other.
    #[arg(long, value_name = "BOOL")]
    routed: Option<bool>,
    /// Congestion control algorithm of every node, such as cubic or bbr.
    #[arg(long, value_name = "NAME")]
    congestion_control: Option<String>,
    /// Name of this grid [default: the scenario's]. Two grids at a time need different names.
    #[arg(long)]
    name: Option<String>,
    /// A line for the grid table of every gateway's configuration, such as 'lanes = 1'; may be given
    /// several times.
    #[arg(long, value_name = "KEY = VALUE")]
    grid: Vec<String>,
    /// Start no gateways.
    #[arg(long)]
    no_gateways: bool,
    /// Keep the gateways' logs in this directory, one file per site.
    #[arg(long, value_name = "DIR")]
    logs: Option<PathBuf>,
}

/// Start a grid, run a command on the first site's head node, stop the grid.
#[derive(Args)]
pub struct RunArgs {
    #[command(flatten)]
    shape: Shape,
    /// The command and its arguments.
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

/// Start a grid in the background.
#[derive(Args)]
pub struct UpArgs {
    #[command(flatten)]
    shape: Shape,
    /// Stay in the foreground until Ctrl-C or `causeway lab down`.
    #[arg(long)]
    foreground: bool,
}

/// Stop a grid.
#[derive(Args)]
pub struct DownArgs {
    /// Name of the grid; may be left out if only one runs.
    name: Option<String>,
    /// Stop all grids of this user, and remove what killed ones left behind.
    #[arg(long, conflicts_with = "name")]
    all: bool,
}

/// Run a command on a node.
#[derive(Args)]
pub struct ExecArgs {
    /// Which grid, when several run.
    #[arg(long)]
    lab: Option<String>,
    /// Node, such as rennes-1, rennes-head or rennes-router.
    node: String,
    /// The command and its arguments [default: a shell].
    #[arg(last = true)]
    command: Vec<OsString>,
}

/// Change the link between two sites while the grid runs.
#[derive(Args)]
pub struct LinkArgs {
    /// Which grid, when several run.
    #[arg(long)]
    lab: Option<String>,
    /// One site.
    a: String,
    /// The other.
    b: String,
    /// Round-trip time, such as 40ms.
    #[arg(long, value_parser = units::delay)]
    rtt: Option<Duration>,
    /// Rate, such as 100Mbit/s.
    #[arg(long, value_parser = units::rate)]
    rate: Option<u64>,
    /// Queue, such as 2MB.
    #[arg(long, value_parser = units::size)]
    queue: Option<u64>,
    /// Loss, such as 0.1%.
    #[arg(long, value_parser = units::loss)]
    loss: Option<f64>,
    /// Cut the link.
    #[arg(long, conflicts_with = "up")]
    down: bool,
    /// Restore the link.
    #[arg(long)]
    up: bool,
}

fn scenarios() -> String {
    format!(
        "A scenario that comes with Causeway ({}), or a file",
        Scenario::names().join(", ")
    )
}

type Nodes = Vec<(Option<String>, u32)>;

/// Carries out a lab command.
pub fn main(task: Task) -> ExitCode {
    let result = match task {
        Task::Run(args) => supervise::run(&args.shape, &args.command),
        Task::Up(args) if args.foreground => supervise::foreground(&args.shape),
        Task::Up(args) => supervise::background(&args.shape),
        Task::Down(args) => down(&args),
        Task::List { json } => list(json),
        Task::Exec(args) => exec(args),
        Task::Link(args) => link(&args),
        Task::Bench(args) => bench::main(&args),
    };
    result.unwrap_or_else(|failure| {
        say::error(format_args!("causeway lab: {}", failure.text));
        ExitCode::from(failure.code)
    })
}

/// Why the lab failed, with all causes. A signal ends a command of the lab as it ends any other.
fn failed(error: LabError) -> Failure {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(&error);
    while let Some(cause) = source {
        text += &format!(": {cause}");
        source = cause.source();
    }
    match error {
        LabError::Signal(number) => Failure {
            text,
            code: code_of(number),
        },
        _ => Failure::new(text),
    }
}

/// The status that shells report for a program which a signal has ended.
fn code_of(signal: i32) -> u8 {
    u8::try_from(128 + signal).unwrap_or(1)
}

impl Shape {
    fn scenario(&self) -> Result<Scenario, Failure> {
        let scenario = Scenario::find(&self.scenario).map_err(Failure::usage)?;
        let overrides = Overrides {
            nodes: self.nodes.clone().unwrap_or_default(),
            slots: self.slots,
            routed: self.routed,
            congestion_control: self.congestion_control.clone(),
        };
        scenario.with(&overrides).map_err(Failure::usage)
    }
}

fn parse_nodes(text: &str) -> Result<Nodes, TextError> {
    let number = |text: &str| {
        text.parse::<u32>()
            .map_err(|_| format!("{text:?} is not a number of nodes"))
    };
    text.split(',')
        .map(|part| match part.split_once('=') {
            Some((site, nodes)) => Ok((Some(site.to_owned()), number(nodes)?)),
            None => Ok((None, number(part)?)),
        })
        .collect()
}

fn down(args: &DownArgs) -> Result<ExitCode, Failure> {
    if !args.all {
        LabState::open(args.name.as_deref())
            .and_then(|lab| lab.down())
            .map_err(failed)?;
        return Ok(ExitCode::SUCCESS);
    }
    leftovers::sweep();
    for name in down_all().map_err(failed)? {
        if let Err(status) = say::output(format_args!("{name} is down")) {
            return Ok(status);
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn list(json: bool) -> Result<ExitCode, Failure> {
    let labs = LabState::list();
    if json {
        let text = serde_json::to_string_pretty(&labs).map_err(Failure::new)?;
        return Ok(say::result(text));
    }
    let mut lines = Vec::new();
    for lab in labs {
        lines.push(format!("{}  (supervisor {})", lab.name, lab.supervisor));
        for node in &lab.nodes {
            let wan = node
                .wan
                .map(|address| format!("  reachable from other sites at {address}"));
            lines.push(format!(
                "  {:<16} {:<16}{}",
                node.name,
                node.lan.to_string(),
                wan.unwrap_or_default()
            ));
        }
    }
    Ok(match lines.is_empty() {
        true => {
            say::error("causeway lab: no grid runs; 'causeway lab up rennes-nancy' starts one");
            ExitCode::SUCCESS
        }
        false => say::result(lines.join("\n")),
    })
}

fn exec(args: ExecArgs) -> Result<ExitCode, Failure> {
    let lab = LabState::open(args.lab.as_deref()).map_err(failed)?;
    let shell = || vec![std::env::var_os("SHELL").unwrap_or_else(|| "/bin/sh".into())];
    let command = NodeCommand {
        env: gateways::environment(),
        node: args.node,
        argv: if args.command.is_empty() {
            shell()
        } else {
            args.command
        },
        ..NodeCommand::default()
    };
    Ok(exit_code(lab.exec(command).map_err(failed)?))
}

fn link(args: &LinkArgs) -> Result<ExitCode, Failure> {
    let change = LinkChange {
        rtt: args.rtt,
        rate_bits_per_second: args.rate,
        queue_bytes: args.queue,
        loss: args.loss,
        up: if args.down {
            Some(false)
        } else {
            args.up.then_some(true)
        },
    };
    let lab = LabState::open(args.lab.as_deref()).map_err(failed)?;
    let request = Request::Link {
        between: [args.a.clone(), args.b.clone()],
        change,
    };
    match lab.ask(&request).map_err(failed)? {
        Answer::Link(spec) => {
            let state = if spec.up { "up" } else { "down" };
            Ok(say::result(format_args!(
                "{} - {}: rtt {:?}, rate {} bit/s, queue {} B, loss {} %, {state}",
                args.a,
                args.b,
                spec.rtt,
                spec.rate_bits_per_second,
                spec.queue_bytes,
                spec.loss * 100.0
            )))
        }
        Answer::Refused(why) => Err(Failure::usage(why)),
        other => Err(Failure::new(format!("unexpected answer {other:?}"))),
    }
}

/// The status of a command as shells report it: 128 + signal for a command that a signal ended.
fn exit_code(status: ExitStatus) -> ExitCode {
    use std::os::unix::process::ExitStatusExt;
    let code = status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal));
    ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}
