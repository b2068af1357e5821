//! `causeway release-allocation`: gives an allocation back, and goes on until the batch system says that it
//! is gone. It outlives the gateway that started it, and whatever else has ended.

use super::commands::Batch;
use super::intent::{Intent, abandoned};
use crate::say;
use causeway_batch::release::{Release, Step};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// The pauses between looks: the first comes soon, since users watch; a controller that is away is asked
/// rarely.
const SOON: Duration = Duration::from_millis(300);
const SELDOM: Duration = Duration::from_secs(30);

/// A controller that is away for longer has forgotten the allocation, whose time is over by then.
const GIVES_UP: Duration = Duration::from_secs(7 * 24 * 3600);

/// See the module.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The batch system has answered the request.
    #[arg(long)]
    answered: bool,
    /// The intent, whose lock is this process's standard input.
    intent: PathBuf,
}

/// Starts this command in a session of its own, with the intent's lock.
///
/// # Errors
/// Those of starting a process.
pub fn start(intent: &Path, lock: File, is_answered: bool) -> io::Result<()> {
    let mut command = Command::new(std::env::current_exe()?);
    let answered = is_answered.then(|| OsString::from("--answered"));
    command
        .arg("release-allocation")
        .args(answered)
        .arg(intent)
        .stdin(lock)
        .stdout(Stdio::null());
    // SAFETY: setsid is one system call; nothing is allocated or locked between fork and exec.
    unsafe {
        command.pre_exec(|| Ok(nix::unistd::setsid().map(drop)?));
    }
    command.spawn().map(drop)
}

/// Has everything given back that holders have left which are gone.
pub fn sweep(directory: &Path) {
    for (intent, lock) in abandoned(directory) {
        if let Err(error) = start(&intent, lock, false) {
            say::error(format_args!("causeway: give back {}: {error}", intent.display()));
        }
    }
}

/// Runs until it is gone.
pub fn main(args: &Args) -> ExitCode {
    super::unblock_signals();
    let (intent, batch) = match Intent::read(&args.intent) {
        Ok(read) => read,
        Err(error) => {
            say::error(format_args!("causeway: {}: {error}", args.intent.display()));
            return ExitCode::FAILURE;
        }
    };
    if !give_back(&batch, &intent.name, args.answered) {
        say::error(format_args!(
            "causeway: allocation {} may still be there: its batch system has not answered for {GIVES_UP:?}; look for it by \
             this name",
            intent.name
        ));
        return ExitCode::FAILURE;
    }
    // Whatever remains of it says what is not so any more.
    let _ = fs::remove_file(&args.intent);
    ExitCode::SUCCESS
}

/// Gives back what has this name; false where the batch system is away for too long.
fn give_back(batch: &Batch, name: &str, is_answered: bool) -> bool {
    let began = Instant::now();
    let mut release = Release::new(name, is_answered);
    let mut pause = SOON;
    while began.elapsed() < GIVES_UP {
        let look = batch.run(&batch.system.list_words(), "");
        let look = look.map(|said| batch.system.listed(&said.output));
        match release.on_look(look.as_deref().ok(), began.elapsed()) {
            Step::Done => return true,
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
