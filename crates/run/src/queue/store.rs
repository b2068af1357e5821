//! Submitted jobs on the disk: each has a directory, which only this user may read.
//!
//! | file | content | written by |
//! |---|---|---|
//! | `job.json` | [`Submitted`] | submit |
//! | `words`, `environment` | arguments of `causeway run`, and variables; a zero byte after each | submit |
//! | `lock` | nothing; whoever has its lock carries the job | carry |
//! | `phase.json` | how far the run is (`run::phase`) | run |
//! | `output-N` | what the run printed (`kept`) | carry |
//! | `cancel` | nothing; the job is to be cancelled | cancel |
//! | `end.json` | [`End`] | carry, cancel |

use crate::LOST;
use crate::phase::{self, Phase};
use causeway_control::{self as control, ControlError, Request};
use causeway_host::lock::Lock;
use causeway_host::{own_file, user_directories};
use causeway_wire::TextError;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Most bytes that are read of a file. Linux limits the arguments and the environment of a program to 6 MB.
const MOST_BYTES: u64 = 8 * 1024 * 1024;

/// How many ended jobs are kept, and for how many seconds.
const MOST_ENDED: usize = 256;
const KEPT_SECONDS: u64 = 30 * 24 * 3600;

/// The description of a job.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Submitted {
    /// The site to whose gateway the job was submitted.
    pub site: String,
    /// Where that gateway serves commands.
    pub control: PathBuf,
    /// The directory in which the job runs.
    pub directory: PathBuf,
    /// When the job was submitted, in seconds since 1970.
    pub at: u64,
    /// How long the job may wait before its program begins, in seconds.
    pub wait_seconds: u64,
    /// The command, for people.
    pub command: String,
}

/// How a job has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// Whether somebody has cancelled the job.
    pub is_canceled: bool,
    /// The status of the job's run.
    pub status: u8,
    /// When the job ended, in seconds since 1970.
    pub at: u64,
    /// What the status does not say.
    pub why: Option<String>,
}

/// The status of a job that was cancelled while it was queued, as if SIGTERM had ended it.
pub const CANCELED: u8 = 128 + 15;

impl End {
    /// The end of a job whose program was running when the process that carried it was killed: nobody knows
    /// how far it got.
    pub fn lost(job: &Job) -> End {
        End {
            is_canceled: job.is_to_be_canceled(),
            status: LOST,
            at: now(),
            why: Some("the process that carried it was killed while the program ran".to_owned()),
        }
    }
}

/// The state of a job, in the words of PSI/J.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// The job waits for its nodes or its gateway.
    Queued,
    /// The job's program is running.
    Active,
    /// The job's program has ended with status 0.
    Completed,
    /// The job has ended in another way.
    Failed,
    /// The job was cancelled.
    Canceled,
}

impl State {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            State::Queued => "queued",
            State::Active => "active",
            State::Completed => "completed",
            State::Failed => "failed",
            State::Canceled => "canceled",
        }
    }
}

/// One submitted job.
#[derive(Debug, Clone)]
pub struct Job {
    /// Its number.
    pub id: u64,
    /// The job's directory.
    pub directory: PathBuf,
}

/// Returns the directory of all submitted jobs of this user.
///
/// # Errors
/// There is no home directory.
pub fn place() -> Result<PathBuf, TextError> {
    Ok(user_directories::state().map_err(TextError::of)?.join("jobs"))
}

/// Returns the jobs in a directory, in the order in which they were submitted.
pub fn all(place: &Path) -> Vec<Job> {
    let entries = fs::read_dir(place).into_iter().flatten().flatten();
    let mut jobs: Vec<Job> = entries
        .filter_map(|entry| {
            let id = entry.file_name().to_str()?.parse().ok()?;
            let directory = entry.path();
            Some(Job { id, directory })
        })
        .collect();
    jobs.sort_by_key(|job| job.id);
    jobs
}

/// Finds a job of this user.
///
/// # Errors
/// No job has this number.
pub fn find(id: u64) -> Result<Job, TextError> {
    let place = place()?;
    let directory = place.join(id.to_string());
    match directory.is_dir() {
        true => Ok(Job { id, directory }),
        false => Err(format!(
            "there is no job {id} in {}; 'causeway jobs' shows them",
            place.display()
        )
        .into()),
    }
}

/// Writes a job to the disk before it returns.
///
/// # Errors
/// Those of the file system.
pub fn create(place: &Path, job: &Submitted, words: &[OsString]) -> io::Result<Job> {
    DirBuilder::new().mode(0o700).recursive(true).create(place)?;
    prune(place);
    let new = place.join(format!("new-{}", std::process::id()));
    let _ = fs::remove_dir_all(&new);
    DirBuilder::new().mode(0o700).create(&new)?;
    let variables: Vec<OsString> = std::env::vars_os()
        .map(|(mut name, value)| {
            name.push("=");
            name.push(value);
            name
        })
        .collect();
    let write = || {
        own_file::keep(&new.join("words"), &joined(words))?;
        own_file::keep(&new.join("environment"), &joined(&variables))?;
        own_file::keep(&new.join("lock"), b"")?;
        write_json(&new.join("job.json"), job)?;
        // A file system without locks would let two processes carry the job.
        Lock::take(OpenOptions::new().write(true).open(new.join("lock"))?)?;
        name_it(place, &new)
    };
    // A full disk must not leave half a job.
    write().inspect_err(|_| drop(fs::remove_dir_all(&new)))
}

/// Gives a job the next free number. No other command can have taken it since: a directory that contains
/// files is never replaced.
fn name_it(place: &Path, new: &Path) -> io::Result<Job> {
    let mut id = all(place).last().map_or(0, |job| job.id);
    loop {
        id += 1;
        let directory = place.join(id.to_string());
        match fs::rename(new, &directory) {
            Ok(()) => {
                File::open(place)?.sync_all()?;
                return Ok(Job { id, directory });
            }
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::DirectoryNotEmpty | ErrorKind::AlreadyExists
                ) => {}
            Err(error) => return Err(error),
        }
    }
}

/// Removes old ended jobs. The last job stays, so that no number is given twice.
fn prune(place: &Path) {
    let mut jobs = all(place);
    jobs.pop();
    let ended: Vec<(Job, End)> = { jobs.into_iter() }
        .filter_map(|job| job.end().map(|end| (job, end)))
        .collect();
    let too_many = ended.len().saturating_sub(MOST_ENDED);
    for (number, (job, end)) in ended.iter().enumerate() {
        if number < too_many || end.at + KEPT_SECONDS < now() {
            let _ = fs::remove_dir_all(&job.directory);
        }
    }
}

impl Job {
    /// The job's description.
    ///
    /// # Errors
    /// The job's file cannot be read.
    pub fn submitted(&self) -> io::Result<Submitted> {
        read_json(&self.directory.join("job.json"))
    }

    /// The arguments of the job's `causeway run`.
    ///
    /// # Errors
    /// Those of reading a file.
    pub fn words(&self) -> io::Result<Vec<OsString>> {
        Ok(split(&read_file(&self.directory.join("words"))?))
    }

    /// The variables of the job's run.
    ///
    /// # Errors
    /// Those of reading a file.
    pub fn environment(&self) -> io::Result<Vec<(OsString, OsString)>> {
        let all = split(&read_file(&self.directory.join("environment"))?);
        let pair = |text: OsString| {
            let bytes = text.into_vec();
            let at = bytes.iter().position(|byte| *byte == b'=')?;
            let (name, value) = (
                OsStr::from_bytes(&bytes[..at]),
                OsStr::from_bytes(&bytes[at + 1..]),
            );
            Some((name.to_owned(), value.to_owned()))
        };
        Ok(all.into_iter().filter_map(pair).collect())
    }

    /// The file in which the job's run reports its phase.
    pub fn phase_file(&self) -> PathBuf {
        self.directory.join("phase.json")
    }

    /// The phase of the job's run; `None` before it has begun.
    pub fn phase(&self) -> Option<Phase> {
        phase::read(&self.phase_file())
    }

    /// How the job has ended; `None` if it has not.
    pub fn end(&self) -> Option<End> {
        read_json(&self.directory.join("end.json")).ok()
    }

    /// Records how the job has ended.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn set_end(&self, end: &End) -> io::Result<()> {
        write_json(&self.directory.join("end.json"), end)
    }

    /// Asks the process that carries the job to cancel it.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn ask_to_cancel(&self) -> io::Result<()> {
        own_file::keep(&self.directory.join("cancel"), b"")
    }

    /// Whether the job must be cancelled.
    pub fn is_to_be_canceled(&self) -> bool {
        self.directory.join("cancel").exists()
    }

    /// The job's lock, which shows that this process carries the job; `None` if another one does.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn lock(&self) -> io::Result<Option<Lock>> {
        Lock::take(OpenOptions::new().write(true).open(self.directory.join("lock"))?)
    }

    /// Has the job carried if it has not ended and no process carries it. If its gateway cannot be reached,
    /// nothing happens: a gateway that starts looks for such jobs.
    pub fn see_to_it(&self) {
        let is_left = self.end().is_none() && self.lock().is_ok_and(|lock| lock.is_some());
        if is_left && let (Ok(submitted), Some(place)) = (self.submitted(), self.directory.parent()) {
            let _ = have_carried(&submitted.control, place);
        }
    }

    /// Removes the job, if no process carries it.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn remove(&self) -> io::Result<()> {
        match self.lock()? {
            Some(_lock) => fs::remove_dir_all(&self.directory),
            None => Ok(()),
        }
    }

    /// The job's state.
    pub fn state(&self) -> State {
        match (self.end(), self.phase()) {
            (Some(end), _) if end.is_canceled => State::Canceled,
            (Some(end), _) if end.status == 0 => State::Completed,
            (Some(_), _) => State::Failed,
            (None, Some(Phase::Running { .. })) => State::Active,
            (None, _) => State::Queued,
        }
    }
}

/// Asks a gateway to have all jobs carried that no process carries.
///
/// # Errors
/// Those of asking.
pub fn have_carried(control: &Path, place: &Path) -> Result<(), ControlError> {
    let request = Request::Carry {
        jobs: place.to_owned(),
    };
    control::ask(control, &request).map(drop)
}

/// Seconds since 1970.
pub fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap_or_default().as_secs()
}

fn joined(words: &[OsString]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for word in words {
        bytes.extend(word.as_bytes());
        bytes.push(0);
    }
    bytes
}

fn split(bytes: &[u8]) -> Vec<OsString> {
    let ends = bytes.split_inclusive(|byte| *byte == 0);
    ends.map(|word| OsStr::from_bytes(&word[..word.len() - 1]).to_owned())
        .collect()
}

fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > MOST_BYTES {
        true => Err(io::Error::other(format!(
            "{} is longer than {MOST_BYTES} bytes",
            path.display()
        ))),
        false => Ok(bytes),
    }
}

fn read_json<T: DeserializeOwned>(path: &Path) -> io::Result<T> {
    Ok(serde_json::from_slice(&read_file(path)?)?)
}

/// Writes a file such that it is either complete or absent.
pub(super) fn write_json<T: Serialize>(path: &Path, value: &T) -> io::Result<()> {
    own_file::keep(path, &serde_json::to_vec(value)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn submitted() -> Submitted {
        Submitted {
            site: "rennes".into(),
            control: "/run/gateway.sock".into(),
            directory: "/".into(),
            at: now(),
            wait_seconds: 60,
            command: "mpirun ./app".into(),
        }
    }

    #[test]
    fn a_job_has_the_next_number_and_is_read_as_it_was_written() {
        let directory = tempfile::tempdir().unwrap();
        let words = ["--sites", "rennes=1", "", "--", "mpirun", "\u{e9}"].map(OsString::from);
        let first = create(directory.path(), &submitted(), &words).unwrap();
        let second = create(directory.path(), &submitted(), &words).unwrap();
        assert_eq!((first.id, second.id), (1, 2));
        let ids: Vec<u64> = all(directory.path()).iter().map(|job| job.id).collect();
        assert_eq!(ids, [1, 2]);
        assert_eq!(first.words().unwrap(), words);
        let path = std::env::var_os("PATH").unwrap();
        let has_path = |(name, value): &(OsString, OsString)| name == "PATH" && *value == path;
        assert!(first.environment().unwrap().iter().any(has_path));
        assert_eq!(first.submitted().unwrap().command, "mpirun ./app");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2);
    }

    #[test]
    fn the_state_follows_from_the_files_and_one_process_at_a_time_carries_a_job() {
        let directory = tempfile::tempdir().unwrap();
        let job = create(directory.path(), &submitted(), &[]).unwrap();
        assert_eq!(job.state(), State::Queued);
        let held = job.lock().unwrap();
        assert!(held.is_some() && job.lock().unwrap().is_none());
        drop(held);
        assert!(job.lock().unwrap().is_some());
        phase::write(&job.phase_file(), &Phase::Running { at: 1 });
        assert_eq!(job.state(), State::Active);
        for (is_canceled, status, state) in [
            (false, 0, State::Completed),
            (false, 3, State::Failed),
            (true, 143, State::Canceled),
        ] {
            let end = End {
                is_canceled,
                status,
                at: 2,
                why: None,
            };
            job.set_end(&end).unwrap();
            assert_eq!((job.state(), job.end()), (state, Some(end)));
        }
    }

    #[test]
    fn ended_jobs_are_removed_when_they_are_old_or_too_many() {
        let directory = tempfile::tempdir().unwrap();
        let end = |at| End {
            is_canceled: false,
            status: 0,
            at,
            why: None,
        };
        let old = create(directory.path(), &submitted(), &[]).unwrap();
        old.set_end(&end(1)).unwrap();
        let waits = create(directory.path(), &submitted(), &[]).unwrap();
        // This job stays because its number would be given again.
        assert!(old.directory.exists());
        let third = create(directory.path(), &submitted(), &[]).unwrap();
        assert!(!old.directory.exists() && third.id == 3);
        for _ in 0..MOST_ENDED + 5 {
            create(directory.path(), &submitted(), &[])
                .unwrap()
                .set_end(&end(now()))
                .unwrap();
        }
        create(directory.path(), &submitted(), &[]).unwrap();
        assert_eq!(all(directory.path()).len(), 2 + MOST_ENDED + 2);
        assert!(waits.directory.exists());
    }
}
