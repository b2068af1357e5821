//! `causeway gateway`.

use crate::join::JoinArgs;
use causeway_control::{self as control, ControlError, HandedOver, Reply, Request};
use causeway_gateway::nft::Rules;
use causeway_gateway::{Config, GatewayError, Keeper, STATE_VERSION, ports};
use causeway_host::background::Service;
use causeway_host::processes::leave_session;
use causeway_host::say;
use causeway_run::queue::carry;
use causeway_run::{batch, via};
use clap::Args;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

/// Serve this site; runs on its head node.
#[derive(Args)]
pub struct GatewayArgs {
    /// Configuration. configs/gateway.toml in the sources shows every key [default:
    /// ~/.config/causeway/gateway.toml].
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    join: JoinArgs,
    /// Hand the running gateway's streams and jobs over to this program, which replaces it, and return.
    #[arg(long)]
    drain: bool,
    /// Serve in the background, even after the terminal closes: as a service of your systemd, if that starts
    /// with the host. The command returns once the gateway serves, and prints where its log is.
    #[arg(long, conflicts_with_all = ["drain", "print_nft", "inherit"])]
    background: bool,
    /// Leave the terminal's session; --background passes this to the gateway that it starts.
    #[arg(long, hide = true)]
    own_session: bool,
    /// Print the nft rules by which this host, as the site's router, hands connections to its gateway, and
    /// the commands that go with them. The gateway must be running. Applies nothing (docs/transparent.md).
    #[arg(long, conflicts_with_all = ["drain", "join"])]
    print_nft: bool,
    /// Continue from the state in this descriptor; a gateway passes this to its successor in a hand-over.
    #[arg(long, hide = true, value_name = "DESCRIPTOR", conflicts_with = "drain")]
    inherit: Option<i32>,
}

/// Runs a gateway until it is told to stop, or hands the running one over to this program.
pub fn gateway(args: GatewayArgs) -> ExitCode {
    let file = match args
        .config
        .map_or_else(causeway_host::user_directories::gateway_config, Ok)
    {
        Ok(file) => file,
        Err(error) => return refused(&error),
    };
    let has_joined = match args.join.join(&file) {
        Ok(done) => {
            done.iter()
                .for_each(|line| say::error(format_args!("causeway gateway: {line}")));
            !done.is_empty()
        }
        Err(error) => return refused(&error),
    };
    if !file.exists() {
        return refused(&NotThere(&file));
    }
    let config = match Config::load(&file) {
        Ok(config) => config,
        Err(mistakes) => {
            say::error(mistakes);
            return ExitCode::from(2);
        }
    };
    if args.print_nft {
        return print_nft(&config);
    }
    if let Some(batch) = &config.batch {
        batch::release::sweep(&batch.intents);
    }
    carry::sweep(&config.site);
    // A running gateway continues with the membership that this host has now.
    let runs = || std::os::unix::net::UnixStream::connect(&config.control).is_ok();
    if args.drain || has_joined && runs() {
        return drain(&file, &config);
    }
    if args.background {
        return in_background(&file, &config);
    }
    if args.own_session
        && let Err(error) = leave_session()
    {
        return refused(&error);
    }
    if args.inherit.is_none()
        && let Err(error) = ports::check(&config.delivery_ports)
    {
        return refused(&error);
    }
    match serve(config, &file, args.inherit) {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            say::error(format_args!("causeway gateway: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// Serves, and writes down where commands find it: commands in other environments, and runs on the site's
/// nodes, which may get there through the batch system.
fn serve(config: Config, file: &Path, inherited: Option<i32>) -> Result<u8, GatewayError> {
    let (control, has_batch) = (config.control.clone(), config.batch.is_some());
    let keeper = Keeper::begin(config, inherited)?;
    let announced = via::announce(file, &control);
    if let (Err(error), true) = (&announced, has_batch) {
        say::error(format_args!(
            "causeway gateway: 'causeway run' on the site's nodes will not find this gateway: write beside {}: {error}",
            file.display()
        ));
    }
    keeper.keep()
}

fn in_background(file: &Path, config: &Config) -> ExitCode {
    let service = Service {
        command: "gateway",
        of: &config.site,
        config: file,
        socket: &config.control,
        shown_by: "causeway status",
    };
    service.start()
}

/// The first command of a new user is often this one.
#[derive(Debug, thiserror::Error)]
#[error(
    "{} does not exist; 'causeway gateway --join TOKEN --subnet CIDR --node NAME:SLOTS' joins a grid and writes it (whoever \
     runs the grid gives you the token); --config names another file",
    .0.display()
)]
struct NotThere<'a>(&'a Path);

/// Something has to be changed before a gateway can start.
fn refused(error: &dyn std::fmt::Display) -> ExitCode {
    say::error(format_args!("causeway gateway: {error}"));
    ExitCode::from(2)
}

/// Prints the rules. It asks the running gateway, because only that one knows the other sites' subnets.
fn print_nft(config: &Config) -> ExitCode {
    let fail = |error: &dyn std::fmt::Display| {
        say::error(format_args!("causeway gateway --print-nft: {error}"));
        ExitCode::FAILURE
    };
    let status = match control::ask(&config.control, &Request::Status {}) {
        Ok((Reply::Status(status), _)) => status,
        Ok((other, _)) => return fail(&ControlError::Answer(format!("{other:?}"))),
        Err(error) => return fail(&error),
    };
    match Rules::new(config, &status) {
        Ok(rules) => say::result(rules),
        Err(error) => fail(&error),
    }
}

/// Has the running gateway continue as this program.
fn drain(file: &Path, config: &Config) -> ExitCode {
    let began = Instant::now();
    let fail = |error: &dyn std::fmt::Display| {
        say::error(format_args!("causeway gateway --drain: {error}"));
        ExitCode::FAILURE
    };
    let (program, file) = match (std::env::current_exe(), std::path::absolute(file)) {
        (Ok(program), Ok(file)) => (program, file),
        (Err(error), _) | (_, Err(error)) => return fail(&error),
    };
    match ask(config, &program, file) {
        Ok(HandedOver { site, streams, jobs }) => say::result(format_args!(
            "gateway of {site} handed {streams} streams and {jobs} jobs to {} in {} ms",
            program.display(),
            began.elapsed().as_millis()
        )),
        Err(error) => fail(&error),
    }
}

/// The answer comes from the successor, or from the old gateway, which continues if there is no successor.
fn ask(config: &Config, program: &Path, file: PathBuf) -> Result<HandedOver, ControlError> {
    let request = Request::HandOver {
        state_version: STATE_VERSION,
        program: program.to_owned(),
        config: file,
    };
    match control::ask(&config.control, &request)? {
        (Reply::HandedOver(handed), _) => Ok(handed),
        (other, _) => Err(ControlError::Answer(format!("{other:?}"))),
    }
}
