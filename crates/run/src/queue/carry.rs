//! `causeway carry`: runs a submitted job to its end. It outlives the gateway that started it. A run that
//! ends before its program has begun, because a gateway could not be reached, is tried again.

use super::kept::Writer;
use super::store::{self, CANCELED, End, Job, Submitted, now};
use crate::batch::unblock_signals;
use crate::phase::Phase;
use crate::{AWAY, NO_COMMON_START};
use crate::{WRONG_USE, gateways};
use causeway_host::lock::Lock;
use causeway_host::processes::leave_session;
use causeway_host::say;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io::{self, PipeReader, Read};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

/// The pause before a gateway that could not be reached is tried again, at first and at most.
const SOON: Duration = Duration::from_secs(1);
const SELDOM: Duration = Duration::from_secs(60);

/// How often a run, and the file that asks to cancel it, are checked.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// How long a cancelled run may take to end by itself before it is told again, and before it is killed.
const TOLD_AGAIN: Duration = Duration::from_secs(10);
const KILLED: Duration = Duration::from_secs(40);

/// How long another process may hold a job's lock to inspect it.
const LOOKED_AT: Duration = Duration::from_secs(2);

/// Most parts of output that wait to be written, each of 64 kB at most.
const MOST_PARTS: usize = 16;

/// How long processes that a run has started may keep its output open after its end.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// See the module.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Start this command for each of the jobs in a directory that nobody carries and that were given to this
    /// site's gateway.
    #[arg(long, value_name = "SITE")]
    all: Option<String>,
    /// The directory of the job, or with --all of all jobs.
    directory: PathBuf,
}

/// Runs a job to its end, or starts a process that does.
pub fn main(args: &Args) -> ExitCode {
    unblock_signals();
    if let Some(site) = &args.all {
        start_all(&args.directory, site);
        return ExitCode::SUCCESS;
    }
    // The program may be replaced while jobs wait: the path that it has now will also be that of its
    // successor.
    let own = match std::env::current_exe() {
        Ok(own) => own,
        Err(error) => {
            say::error(format_args!(
                "causeway: carry a job: find causeway's own path: {error}"
            ));
            return ExitCode::FAILURE;
        }
    };
    // This fails if the process was started as the leader of a group: then it has a session of its own
    // already.
    let _ = leave_session();
    let id = args
        .directory
        .file_name()
        .and_then(|name| name.to_str()?.parse().ok());
    let job = Job {
        id: id.unwrap_or_default(),
        directory: args.directory.clone(),
    };
    let carried = lock(&job).and_then(|lock| match lock {
        // Another process carries the job.
        None => Ok(()),
        Some(_lock) => carry(&job, &own),
    });
    match carried {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say::error(format_args!(
                "causeway: carry job {}: {error}",
                args.directory.display()
            ));
            ExitCode::FAILURE
        }
    }
}

/// Takes the job's lock, which commands that inspect a job hold for a moment.
fn lock(job: &Job) -> io::Result<Option<Lock>> {
    let until = Instant::now() + LOOKED_AT;
    loop {
        let lock = job.lock()?;
        if lock.is_some() || Instant::now() >= until {
            return Ok(lock);
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// Resumes the jobs of this site that a gateway finds when it starts.
pub fn sweep(site: &str) {
    if let Ok(place) = store::place() {
        start_all(&place, site);
    }
}

fn start_all(place: &Path, site: &str) {
    let is_of_site = |job: &Job| job.submitted().is_ok_and(|submitted| submitted.site == site);
    let is_left = |job: &Job| job.end().is_none() && job.lock().is_ok_and(|lock| lock.is_some());
    for job in { store::all(place).into_iter() }.filter(|job| is_of_site(job) && is_left(job)) {
        let started = std::env::current_exe().and_then(|own| {
            let mut command = Command::new(own);
            command.arg("carry").arg(&job.directory).current_dir("/");
            command.stdin(Stdio::null()).stdout(Stdio::null()).spawn()
        });
        if let Err(error) = started {
            say::error(format_args!("causeway: carry job {}: {error}", job.id));
        }
    }
}

fn carry(job: &Job, own: &Path) -> io::Result<()> {
    if job.end().is_some() {
        return Ok(());
    }
    let submitted = job.submitted()?;
    let mut output = Writer::resume(&job.directory)?;
    let end = match job.phase() {
        // The program began under a process that was then killed: nobody knows how far it got.
        Some(Phase::Running { .. }) => End::lost(job),
        _ => try_until_it_ends(job, own, &submitted, &mut output),
    };
    // The record of the job's end is more important than the last of its output.
    if job.set_end(&with_losses(&end, &output)).is_ok() {
        return Ok(());
    }
    output.make_room();
    let mut pause = SOON;
    while let Err(error) = job.set_end(&with_losses(&end, &output)) {
        if !job.directory.exists() {
            return Err(error);
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(SELDOM);
    }
    Ok(())
}

/// The end, with a note about what is missing in the output.
fn with_losses(end: &End, output: &Writer) -> End {
    let lost = { output.lost.as_ref() }
        .map(|(bytes, error)| format!("{bytes} bytes of its output could not be written: {error}"));
    let all: Vec<String> = end.why.clone().into_iter().chain(lost).collect();
    End {
        why: (!all.is_empty()).then(|| all.join("; ")),
        ..end.clone()
    }
}

/// How an attempt has ended.
enum Attempt {
    Ended(u8),
    /// A gateway could not be reached.
    Away(String),
}

fn try_until_it_ends(job: &Job, own: &Path, submitted: &Submitted, output: &mut Writer) -> End {
    let end = |is_canceled, status, why| End {
        is_canceled,
        status,
        at: now(),
        why,
    };
    let until = submitted.at.saturating_add(submitted.wait_seconds);
    let mut pause = SOON;
    let mut last = "its gateway does not run".to_owned();
    loop {
        if job.is_to_be_canceled() {
            return end(true, CANCELED, None);
        }
        if now() >= until {
            let why = format!("it could not begin within {} s: {last}", submitted.wait_seconds);
            return end(false, NO_COMMON_START, Some(why));
        }
        if serves(&submitted.control) {
            match attempt(job, own, submitted, output) {
                Ok(Attempt::Ended(status)) => return end(job.is_to_be_canceled(), status, None),
                Ok(Attempt::Away(why)) => last = why,
                Err(error) => return end(false, WRONG_USE, Some(format!("start it: {error}"))),
            }
        }
        wait_for(job, pause);
        pause = (pause * 2).min(SELDOM);
    }
}

/// Whether the gateway serves commands, or could be started.
fn serves(control: &Path) -> bool {
    UnixStream::connect(control).is_ok() || gateways::start_own(control).unwrap_or(false)
}

/// Waits for `pause`, or until the job must be cancelled.
fn wait_for(job: &Job, pause: Duration) {
    let until = Instant::now() + pause;
    while Instant::now() < until && !job.is_to_be_canceled() {
        std::thread::sleep(LOOK_EVERY);
    }
}

fn attempt(job: &Job, own: &Path, submitted: &Submitted, output: &mut Writer) -> io::Result<Attempt> {
    let _ = std::fs::remove_file(job.phase_file());
    let (reader, writer) = io::pipe()?;
    let until = submitted.at.saturating_add(submitted.wait_seconds);
    let mut command = Command::new(own);
    command.arg("run").arg("--report").arg(job.phase_file());
    command.arg(format!("--wait-until={until}")).args(job.words()?);
    // The allocation of the shell that submitted the job belongs to that shell alone.
    let variables = job.environment()?.into_iter();
    let variables = variables.filter(|(name, _)| !causeway_batch::is_of_a_process(name));
    command
        .env_clear()
        .envs(variables)
        .env(causeway_control::SOCKET_ENV, &submitted.control)
        .current_dir(&submitted.directory)
        .stdin(Stdio::null())
        .stdout(writer.try_clone()?)
        .stderr(writer);
    let child = match command.spawn() {
        Ok(child) => child,
        // The program is just being replaced by another version.
        Err(error) if !own.is_file() => return Ok(Attempt::Away(format!("run {}: {error}", own.display()))),
        Err(error) => {
            let text = format!(
                "run {} in {}: {error}",
                own.display(),
                submitted.directory.display()
            );
            return Err(io::Error::new(error.kind(), text));
        }
    };
    // The write ends are then the child's alone.
    drop(command);
    let status = follow(job, child, read_all(reader)?, output)?;
    let status = match (status.code(), status.signal()) {
        (Some(code), _) => u8::try_from(code).unwrap_or(u8::MAX),
        (None, signal) => 128_u8.saturating_add(u8::try_from(signal.unwrap_or_default()).unwrap_or_default()),
    };
    // A full disk, on which no phase can be written, must not end a job that can wait.
    Ok(match job.phase() {
        _ if job.is_to_be_canceled() => Attempt::Ended(status),
        Some(Phase::Away { line }) => Attempt::Away(line),
        Some(Phase::Running { .. }) => Attempt::Ended(status),
        _ if status == AWAY => Attempt::Away("a gateway was away, or the disk full".to_owned()),
        _ => Attempt::Ended(status),
    })
}

/// Reads what the run prints, and what the processes print that it has started.
fn read_all(mut reader: PipeReader) -> io::Result<Receiver<Vec<u8>>> {
    // A disk that is slower than the program slows the program down.
    let (sender, parts) = sync_channel(MOST_PARTS);
    let thread = std::thread::Builder::new().name("output".to_owned());
    thread.spawn(move || {
        let mut bytes = vec![0; 64 * 1024];
        while let Ok(count @ 1..) = reader.read(&mut bytes) {
            if sender.send(bytes[..count].to_vec()).is_err() {
                return;
            }
        }
    })?;
    Ok(parts)
}

/// Records the run's output until the run has ended, and tells the run if it must be cancelled.
fn follow(
    job: &Job,
    mut child: Child,
    parts: Receiver<Vec<u8>>,
    output: &mut Writer,
) -> io::Result<ExitStatus> {
    let mut canceled: Option<(Instant, u32)> = None;
    let status = loop {
        match parts.recv_timeout(LOOK_EVERY) {
            Ok(bytes) => output.add(&bytes),
            Err(RecvTimeoutError::Timeout) => {}
            // The run has closed its output, but goes on.
            Err(RecvTimeoutError::Disconnected) => std::thread::sleep(LOOK_EVERY),
        }
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if job.is_to_be_canceled() {
            let (since, told) = *canceled.get_or_insert((Instant::now(), 0));
            let (signal, wanted) = match since.elapsed() {
                long if long >= KILLED => (Signal::SIGKILL, 3),
                long if long >= TOLD_AGAIN => (Signal::SIGTERM, 2),
                _ => (Signal::SIGTERM, 1),
            };
            if told < wanted {
                let _ = kill(Pid::from_raw(child.id().cast_signed()), signal);
                canceled = Some((since, wanted));
            }
        }
    };
    let until = Instant::now() + LAST_WORDS;
    while Instant::now() < until {
        match parts.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(bytes) => output.add(&bytes),
            Err(_) => break,
        }
    }
    Ok(status)
}
