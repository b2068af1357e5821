//! How far a run has got, for the process that carries a submitted job: `causeway run --report FILE`.

use causeway_host::own_file;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// The run waits for the nodes of its sites.
    Waiting {
        /// What each of the sites said last.
        line: String,
    },
    /// The run's program is running.
    Running {
        /// Since when it has been running, in seconds since 1970.
        at: u64,
    },
    /// The run has ended before its program began, because a gateway could not be reached: a later run may
    /// get further.
    Away {
        /// The run's error message.
        line: String,
    },
}

impl Phase {
    /// The phase of a program that begins now.
    pub fn running() -> Phase {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        Phase::Running {
            at: now.unwrap_or_default().as_secs(),
        }
    }
}

/// Writes the phase, if a file is given. A failure to write it does not end the run.
pub fn report(file: Option<&Path>, phase: &Phase) {
    if let Some(file) = file {
        write(file, phase);
    }
}

/// Writes that the program begins, if a file is given. This is on the disk when the function returns: a job
/// that has begun must not begin again.
///
/// # Errors
/// Those of the file system.
pub fn report_running(file: Option<&Path>) -> io::Result<()> {
    let Some(file) = file else { return Ok(()) };
    try_write(file, &Phase::running())?;
    let directory = file.parent().unwrap_or(Path::new("."));
    fs::File::open(directory)?.sync_all()
}

/// Writes the phase.
pub fn write(file: &Path, phase: &Phase) {
    let _ = try_write(file, phase);
}

fn try_write(file: &Path, phase: &Phase) -> io::Result<()> {
    own_file::keep(file, &serde_json::to_vec(phase)?)
}

/// Reads the phase; `None` if there is none yet.
pub fn read(file: &Path) -> Option<Phase> {
    serde_json::from_slice(&fs::read(file).ok()?).ok()
}
