//! `causeway release-allocation`: gives an allocation back, and does not stop until the batch system reports
//! that the allocation is gone. It outlives the gateway that started it, and everything else.

use super::commands::Batch;
use super::intent::{Intent, abandoned};
use causeway_batch::release::{Release, Step};
use causeway_host::say;
use std::fs::{self, File};
use std::io::{self, PipeWriter, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

/// The pauses between polls: the first one is short, since users watch; a controller that does not answer is
/// polled rarely.
const SOON: Duration = Duration::from_millis(300);
const SELDOM: Duration = Duration::from_secs(30);

/// How long to go on asking a controller that does not answer: after this long, it has forgotten the
/// allocation, whose time is over by then.
const GIVES_UP: Duration = Duration::from_secs(7 * 24 * 3600);

/// See the module.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Start this command for each of the intents in a directory that nobody looks after.
    #[arg(long)]
    all: bool,
    /// The intent, or with --all their directory. An intent's lock is this process's standard output. It
    /// begins when its standard input ends.
    intent: PathBuf,
}

/// The byte that is written to the command's input once the batch system has answered the request: from then
/// on, no request is in flight.
pub const ANSWERED: &[u8] = b"answered";

/// Starts this command in a session of its own, and passes it the intent's lock. When the returned pipe is
/// closed, which happens however this process ends, the command gives the intent's allocation back.
///
/// # Errors
/// Those of starting a process.
pub fn start(intent: &Path, lock: File) -> io::Result<PipeWriter> {
    let mut command = Command::new(std::env::current_exe()?);
    let (input, waits) = io::pipe()?;
    command
        .arg("release-allocation")
        .arg(intent)
        .stdin(input)
        .stdout(lock);
    // SAFETY: setsid is one system call; nothing is allocated or locked between fork and exec.
    unsafe {
        command.pre_exec(|| Ok(nix::unistd::setsid().map(drop)?));
    }
    command.spawn()?;
    Ok(waits)
}

/// Has all allocations given back that dead holders have left. A separate process starts those that do it, so
/// that this one need not reap them.
pub fn sweep(directory: &Path) {
    if !directory.exists() {
        return;
    }
    let own = std::env::current_exe();
    let swept = own.and_then(|own| {
        Command::new(own)
            .args(["release-allocation", "--all"])
            .arg(directory)
            .status()
    });
    if let Err(error) = swept {
        say::error(format_args!(
            "causeway: look for allocations in {}: {error}",
            directory.display()
        ));
    }
}

fn start_all(directory: &Path) {
    for (intent, lock) in abandoned(directory) {
        if let Err(error) = start(&intent, lock) {
            say::error(format_args!("causeway: give back {}: {error}", intent.display()));
        }
    }
}

/// Runs until the allocation is gone.
pub fn main(args: &Args) -> ExitCode {
    super::unblock_signals();
    if args.all {
        start_all(&args.intent);
        return ExitCode::SUCCESS;
    }
    let mut input = Vec::new();
    let _ = io::stdin().lock().read_to_end(&mut input);
    let is_answered = input == ANSWERED;
    // If the intent could not be written, nothing was requested.
    if fs::metadata(&args.intent).is_ok_and(|found| found.len() == 0) {
        let _ = fs::remove_file(&args.intent);
        return ExitCode::SUCCESS;
    }
    let (intent, batch) = match Intent::read(&args.intent) {
        Ok(read) => read,
        Err(error) => {
            say::error(format_args!("causeway: {}: {error}", args.intent.display()));
            return ExitCode::FAILURE;
        }
    };
    if !give_back(&batch, &intent.name, is_answered) {
        say::error(format_args!(
            "causeway: allocation {} may still be there: its batch system has not answered for {GIVES_UP:?}; look for it by \
             this name",
            intent.name
        ));
        return ExitCode::FAILURE;
    }
    // What the intent says is no longer true now.
    let _ = fs::remove_file(&args.intent);
    ExitCode::SUCCESS
}

/// Gives the allocation with this name back; false if the batch system does not answer for too long.
fn give_back(batch: &Batch, name: &str, is_answered: bool) -> bool {
    let began = Instant::now();
    let mut release = Release::new(name, is_answered);
    let mut pause = SOON;
    while began.elapsed() < GIVES_UP {
        let look = batch.run(&batch.system.list_words(), "");
        let look = look.map(|said| batch.system.listed(&said.output));
        match release.on_look(look.as_deref().ok(), began.elapsed()) {
            Step::Done => {
                let forget = batch.system.forget_words(name);
                let _ = forget.map(|words| batch.run(&words, ""));
                return true;
            }
            Step::Cancel(ids) => {
                let _ = batch.run(&batch.system.cancel_words(&ids), "");
            }
            Step::Wait => {}
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(SELDOM);
    }
    false
}
