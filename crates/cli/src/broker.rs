//! `causeway broker`.

use crate::grid::default_directory;
use causeway_broker::new_grid::CONFIG_FILE;
use causeway_broker::{Broker, BrokerConfig, Options};
use causeway_host::background::Service;
use causeway_host::processes::leave_session;
use causeway_host::say;
use causeway_host::user_directories::NoHome;
use causeway_service::signals::heeded;
use causeway_wire::TextError;
use clap::Args;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::Signal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::mpsc;

/// Run the broker of a grid, which tells its sites about each other.
#[derive(Args)]
pub struct BrokerArgs {
    /// Configuration written by 'causeway grid create' [default: ~/.local/share/causeway/grid/broker.toml].
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Serve in the background, even after the terminal closes: as a service of your systemd, if that starts
    /// with the host. The command returns once the broker serves, and prints where its log is.
    #[arg(long)]
    background: bool,
    /// Leave the terminal's session; --background passes this to the broker that it starts.
    #[arg(long, hide = true)]
    own_session: bool,
}

/// Runs a broker until it is told to stop.
pub fn main(args: BrokerArgs) -> ExitCode {
    let usual = || Ok(default_directory()?.join(CONFIG_FILE));
    let file = args.config.map_or_else(usual, Ok);
    let read = file
        .map_err(|error: NoHome| format!("causeway broker: {error}"))
        .and_then(|file| match BrokerConfig::load(&file) {
            Ok(config) => Ok((file, config)),
            Err(mistakes) => Err(mistakes.to_string()),
        });
    let (file, config) = match read {
        Ok(read) => read,
        Err(mistakes) => {
            say::error(mistakes);
            return ExitCode::from(2);
        }
    };
    if args.background {
        let service = Service {
            command: "broker",
            of: &config.grid,
            config: &file,
            socket: &config.socket(),
            shown_by: "causeway grid list",
        };
        return service.start();
    }
    if args.own_session
        && let Err(error) = leave_session()
    {
        say::error(format_args!("causeway broker: {error}"));
        return ExitCode::FAILURE;
    }
    match run(&config) {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            say::error(format_args!("causeway broker: {reason}"));
            ExitCode::FAILURE
        }
    }
}

fn run(config: &BrokerConfig) -> Result<(), TextError> {
    // A thousand gateways have more than the usual 1024 descriptors.
    if let Ok((_, hard)) = getrlimit(Resource::RLIMIT_NOFILE) {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
    // Before there are threads, which would otherwise get the signals. SIGHUP comes at the end of the
    // terminal.
    let ends = heeded(&[Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP]);
    let mut blocked = ends;
    // A limit on the size of files then makes the write fail, as a full disk does.
    blocked.add(Signal::SIGXFSZ);
    blocked
        .thread_block()
        .map_err(|error| format!("block signals: {error}"))?;
    let broker = Broker::start(config, Options::default()).map_err(|error| error.to_string())?;
    let listens: Vec<String> = broker.addresses().iter().map(ToString::to_string).collect();
    say::error(format_args!(
        "causeway broker: grid {} at {}, commands at {}",
        config.grid,
        listens.join(", "),
        config.socket().display()
    ));
    let (told, end) = mpsc::channel();
    let failed = told.clone();
    broker.when_it_fails(move |reason| drop(failed.send(Err(reason))));
    std::thread::spawn(move || {
        let signal = ends.wait();
        told.send(signal.map_err(|error| format!("wait for a signal: {error}")))
    });
    // The thread that waits for a signal keeps its end of the channel.
    let ended = end.recv().map_err(|error| error.to_string())?;
    let done = ended.map(|signal| say::error(format_args!("causeway broker: stops at {signal}")));
    broker.stop();
    Ok(done?)
}
