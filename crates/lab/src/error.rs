//! The errors of a lab. Mistakes in a scenario are their own type, `Mistakes`.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::wan::WanError;

/// Why a lab could not be started, entered, changed or stopped.
#[derive(Debug, Error)]
pub enum LabError {
    /// The machine lacks something; the remedy is a command or a setting.
    #[error("{what}; {remedy}")]
    Machine {
        /// The thing that is missing or forbidden.
        what: String,
        /// What to do about it.
        remedy: String,
    },
    /// Another supervisor runs a lab of this name.
    #[error("lab {name} is already running (supervisor {pid}); `causeway lab down {name}` stops it")]
    AlreadyRunning {
        /// Name of the lab.
        name: String,
        /// Process id of its supervisor.
        pid: u32,
    },
    /// A step of the set-up failed in one of the lab's own processes.
    #[error("set up lab: {step}: {reason}")]
    Setup {
        /// Which step, where.
        step: String,
        /// The kernel's or the tool's answer.
        reason: String,
    },
    /// The WAN emulator refused.
    #[error("lab WAN")]
    Wan(#[from] WanError),
    /// No node has this name.
    #[error("no node {node} in lab {lab}; there are {known}")]
    NoSuchNode {
        /// The name asked for.
        node: String,
        /// Name of the lab.
        lab: String,
        /// The names that exist.
        known: String,
    },
    /// No running lab has this name.
    #[error("no running lab {name}; running are: {known}")]
    NoSuchLab {
        /// The name asked for.
        name: String,
        /// The names that exist, or "none".
        known: String,
    },
    /// A command could not be started in a node.
    #[error("run {program} on {node}: {step}")]
    Spawn {
        /// Name of the node.
        node: String,
        /// The command's first word.
        program: String,
        /// What could not be done.
        step: &'static str,
        /// The kernel's answer.
        source: io::Error,
    },
    /// A file of the state directory could not be read or written.
    #[error("{step} {}", path.display())]
    State {
        /// The action that was tried.
        step: &'static str,
        /// The file.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The supervisor of a lab refused a request.
    #[error("lab {name} refused: {reason}")]
    Refused {
        /// Name of the lab.
        name: String,
        /// The interface's answer.
        reason: String,
    },
    /// A call to the kernel failed in this process.
    #[error("{step}")]
    Kernel {
        /// What was tried.
        step: &'static str,
        /// The kernel's answer.
        source: io::Error,
    },
    /// This process was told to end before the lab was up.
    #[error("signal {0} came while the lab started; nothing of it is left")]
    Signal(i32),
    /// Something did not happen in time.
    #[error("{what} did not happen within {seconds} s")]
    Deadline {
        /// What was waited for.
        what: String,
        /// How long.
        seconds: u64,
    },
}

impl LabError {
    pub(crate) fn setup(step: impl Into<String>, reason: impl ToString) -> LabError {
        LabError::Setup {
            step: step.into(),
            reason: reason.to_string(),
        }
    }

    pub(crate) fn kernel<E: Into<io::Error>>(step: &'static str) -> impl FnOnce(E) -> LabError {
        move |error| LabError::Kernel {
            step,
            source: error.into(),
        }
    }
}
