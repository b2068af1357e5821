//! The causeway command.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod audit;
mod bare_environment;
mod bench;
mod broker;
mod check;
mod collectives;
mod connect;
mod describe;
mod gateway;
mod grid;
mod join;
mod lab;
mod ping;
mod place;
mod probe;
mod profile;
mod queue;
mod rendezvous;
mod report;
mod resources;
mod run;
mod sink;
mod status;
mod tune;
mod up;
mod version;

use clap::{CommandFactory, Parser, Subcommand};
use std::process::ExitCode;

use version::VERSION;

/// One MPI job across many clusters.
#[derive(Parser)]
#[command(name = "causeway", version = VERSION)]
struct Cli {
    #[command(subcommand)]
    command: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Make a grid of several sites through ssh, and run a first job on it.
    Up(up::Args),
    /// Take away what 'causeway up' has made.
    Down(up::DownArgs),
    /// Run an MPI launcher over the sites of the grid.
    Run(run::Args),
    /// Fetch what a job has left whose --fetch failed, or was broken off.
    Fetch(run::fetch::Args),
    /// Queue a run and return: the gateway carries it on.
    Submit(Box<queue::submit::Args>),
    /// Show submitted jobs.
    Jobs(queue::show::Args),
    /// Print what a submitted job has printed.
    Output(queue::output::Args),
    /// Wait until a submitted job has ended, and end with its status.
    Wait(queue::wait::Args),
    /// Cancel a submitted job.
    Cancel(queue::cancel::Args),
    /// Serve this site; runs on its head node.
    Gateway(gateway::GatewayArgs),
    /// Run the broker of a grid, which tells its sites about each other.
    Broker(broker::BrokerArgs),
    /// Make a grid, and manage its members and tokens.
    #[command(subcommand)]
    Grid(grid::Task),
    /// Show the state of this host's gateway: sites, tunnels, jobs.
    Status(status::Args),
    /// Show what other sites did at this site, and which of their requests it refused.
    Audit(audit::Args),
    /// Check everything that jobs over sites need, and say how to fix what is wrong.
    Check(check::Args),
    /// Explain which algorithm each collective operation gets, and why.
    #[command(subcommand)]
    Collectives(collectives::Task),
    /// Show which sites the groups of a job's profile get.
    Place(place::Args),
    /// Measure round trips through the tunnel to another site.
    Ping(ping::Args),
    /// Measure the paths to other sites.
    Probe(probe::Args),
    /// Measure the grid and its MPIs, or an emulated grid, against the physical limit.
    #[command(subcommand)]
    Bench(bench::Task),
    /// Make one HTML page from the results of causeway bench.
    Report(report::Args),
    /// Check the profile of a job, and print it in its other form, TOML or QCG's XML.
    Profile(profile::Args),
    /// Show what the grid has: sites, nodes and links, as a table, JSON, DOT or Flux's JGF.
    Resources(resources::Args),
    /// Show how to tune this host and its MPIs for the path to other sites, and apply it.
    Tune(tune::Args),
    /// Connect standard input and output to a port at another site, for ssh's ProxyCommand.
    Connect(connect::Args),
    /// Run an emulated grid on this machine.
    #[command(subcommand)]
    Lab(lab::Task),
    /// Describe these commands to a shell or to man.
    #[command(subcommand)]
    Describe(describe::Task),
    /// Say what this node has; called by resources --measure.
    #[command(hide = true)]
    LookAtNode(causeway_run::resources::node::Args),
    /// Do a part of causeway up or down on this host.
    #[command(hide = true, subcommand)]
    UpPart(up::part::Part),
    /// Stand in for ssh under an MPI launcher.
    #[command(hide = true, disable_help_flag = true)]
    Agent(causeway_remote::agent::Args),
    /// Start a process on a node of this site; called by its gateway.
    #[command(hide = true)]
    StartNode(causeway_remote::start_node::Args),
    /// Send messages or keep a link busy, as a rank that a launcher started; called by bench.
    #[command(hide = true, subcommand)]
    BenchPart(bench::part::Part),
    /// Read standard input to its end and print the number of bytes; called by a gateway.
    #[command(hide = true)]
    Sink,
    /// Ask the site's batch system for the nodes of an allocation; called by a gateway.
    #[command(hide = true)]
    AskBatch(causeway_run::batch::ask::Args),
    /// Get and hold an allocation of the site's batch system for a run; called by a gateway.
    #[command(hide = true)]
    Holder(causeway_run::batch::holder::Args),
    /// Hold an allocation from its first node; called by the allocation's script.
    #[command(hide = true)]
    Hold(causeway_run::batch::hold::Args),
    /// Give an allocation back; called by a holder or a gateway.
    #[command(hide = true)]
    ReleaseAllocation(causeway_run::batch::release::Args),
    /// Run a submitted job to its end; called by a gateway.
    #[command(hide = true)]
    Carry(causeway_run::queue::carry::Args),
    /// Let sites that each run their own MPI find each other, on this host alone; for tests.
    #[command(hide = true)]
    Rendezvous(rendezvous::Args),
    /// Start an MPI program the way this site does; called by run --own-mpi.
    #[command(hide = true)]
    StartProgram(causeway_run::own::program::Args),
    /// Run one command for an agent; called by start-node.
    #[command(hide = true)]
    NodeExec(causeway_remote::node_exec::Args),
}

fn main() -> ExitCode {
    bare_environment::complete();
    if let Some(words) = causeway_remote::agent::called_by_name() {
        return causeway_remote::agent::main(causeway_remote::agent::Args { words });
    }
    if let Some(called) = causeway_run::script::called_by_name() {
        return causeway_run::script::call(&called);
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(said) => return version::main(&said),
    };
    causeway_run::via::know();
    match cli.command {
        Task::Up(args) => up::main(&args),
        Task::Down(args) => up::down(&args),
        Task::UpPart(part) => up::part::main(&part),
        Task::Run(args) => run::main(&args),
        Task::Fetch(args) => run::fetch::main(&args),
        Task::Submit(args) => queue::submit::main(&args),
        Task::Jobs(args) => queue::show::main(&args),
        Task::Output(args) => queue::output::main(&args),
        Task::Wait(args) => queue::wait::main(&args),
        Task::Cancel(args) => queue::cancel::main(&args),
        Task::Gateway(args) => gateway::gateway(args),
        Task::Broker(args) => broker::main(args),
        Task::Grid(task) => grid::main(task),
        Task::Status(args) => status::main(args),
        Task::Audit(args) => audit::main(args),
        Task::Check(args) => check::main(args),
        Task::Collectives(task) => collectives::main(task),
        Task::Place(args) => place::main(&args),
        Task::Ping(args) => ping::main(args),
        Task::Probe(args) => probe::main(args),
        Task::Bench(task) => causeway_bench::running::main(task.read()),
        Task::Report(args) => report::main(&args),
        Task::Profile(args) => profile::main(&args),
        Task::Resources(args) => resources::main(&args),
        Task::LookAtNode(args) => causeway_run::resources::node::main(&args),
        Task::Tune(args) => tune::main(&args),
        Task::BenchPart(part) => bench::part::main(&part),
        Task::Connect(args) => connect::main(args),
        Task::Lab(task) => lab::main(task),
        Task::Describe(task) => describe::main(task, Cli::command()),
        Task::Agent(args) => causeway_remote::agent::main(args),
        Task::StartNode(args) => causeway_remote::start_node::main(args),
        Task::Sink => sink::main(),
        Task::AskBatch(args) => causeway_run::batch::ask::main(&args),
        Task::Holder(args) => causeway_run::batch::holder::main(&args),
        Task::Hold(args) => causeway_run::batch::hold::main(&args),
        Task::ReleaseAllocation(args) => causeway_run::batch::release::main(&args),
        Task::Carry(args) => causeway_run::queue::carry::main(&args),
        Task::Rendezvous(args) => rendezvous::main(&args),
        Task::StartProgram(args) => causeway_run::own::program::main(&args),
        Task::NodeExec(args) => causeway_remote::node_exec::main(args),
    }
}
