//! Makes the questions to a site's batch system, and reads its answers. Pure: it makes words of commands and
//! reads texts; `causeway ask-batch` runs the commands.
//!
//! A batch system has one module, and a variant of [`System`].

mod hostlist;
mod slurm;

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::str::FromStr;

pub use hostlist::expand;

/// Most nodes of an allocation that are read.
pub const MAX_NODES: usize = 10_000;

/// Longest id of an allocation.
const MAX_ID: usize = 20;

/// A batch system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum System {
    /// Slurm, by its commands: squeue, scontrol, srun.
    Slurm,
}

impl FromStr for System {
    type Err = String;

    fn from_str(text: &str) -> Result<System, String> {
        match text {
            "slurm" => Ok(System::Slurm),
            _ => Err(format!(
                "{text:?} is no batch system that Causeway knows; it knows \"slurm\""
            )),
        }
    }
}

impl fmt::Display for System {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            System::Slurm => "slurm",
        })
    }
}

/// A node of an allocation, as its batch system tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// The name by which the batch system knows it.
    pub name: String,
    /// Its address, or the host name that has one.
    pub address: String,
    /// Processes for which the allocation has room there, at least 1.
    pub slots: u32,
}

/// Why an allocation cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AllocationError {
    /// None of this user has the id.
    #[error("this account has no allocation {0}")]
    Unknown(String),
    /// It has not begun, or is over.
    #[error("allocation {0} is not running: it is {1}")]
    NotRunning(String, String),
    /// The answer is not what the batch system's manual says.
    #[error("the answer about allocation {0} is not understood: {1}")]
    Answer(String, String),
}

/// Says whether a text can be the id of an allocation: it becomes a word of commands.
pub fn is_id(text: &str) -> bool {
    (1..=MAX_ID).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}

impl System {
    /// The variable that says which configuration its commands use.
    pub fn configuration(self) -> &'static str {
        match self {
            System::Slurm => slurm::CONFIGURATION,
        }
    }

    /// The variable by which a process learns in which allocation it runs.
    pub fn own_allocation(self) -> &'static str {
        match self {
            System::Slurm => slurm::OWN_ALLOCATION,
        }
    }

    /// Variables for all commands, so that their answers have one form.
    pub fn answers(self) -> &'static [(&'static str, &'static str)] {
        match self {
            System::Slurm => slurm::ANSWERS,
        }
    }

    /// The command that lists this user's allocations.
    pub fn list_words(self) -> Vec<String> {
        match self {
            System::Slurm => slurm::list_words(),
        }
    }

    /// The state of an allocation, by the answer to [`System::list_words`]: the nodes, in the batch system's
    /// notation.
    ///
    /// # Errors
    /// It does not run.
    pub fn running(self, id: &str, listed: &str) -> Result<String, AllocationError> {
        match self {
            System::Slurm => slurm::running(id, listed),
        }
    }

    /// The commands that describe an allocation that runs, and its nodes.
    pub fn describe_words(self, id: &str, nodes: &str) -> [Vec<String>; 2] {
        match self {
            System::Slurm => slurm::describe_words(id, nodes),
        }
    }

    /// The nodes of an allocation in its own order, which [`System::running`] has told, by the answers to
    /// [`System::describe_words`].
    ///
    /// # Errors
    /// The answers are not understood.
    pub fn nodes(self, id: &str, nodes: &str, answers: [&str; 2]) -> Result<Vec<Node>, AllocationError> {
        match self {
            System::Slurm => slurm::nodes(id, nodes, answers),
        }
    }

    /// The command that runs another one on `{node}` within an allocation. The command for `sh -c` follows as
    /// one word.
    pub fn start_words(self, id: &str) -> Vec<String> {
        match self {
            System::Slurm => slurm::start_words(id),
        }
    }

    /// Says whether a variable describes one process that the batch system or a launcher has started, and so
    /// must not reach others.
    pub fn is_of_a_process(self, name: &OsStr) -> bool {
        let Some(name) = name.to_str() else {
            return false;
        };
        match self {
            System::Slurm => slurm::is_of_a_process(name),
        }
    }

    /// The variables that a script of the allocation has, made from those of a process that was started by
    /// [`System::start_words`], and the slots of the allocation's nodes in its order: launchers find the
    /// allocation by them.
    pub fn of_a_script(
        self,
        slots: &[u32],
        present: impl Fn(&str) -> Option<OsString>,
    ) -> Vec<(&'static str, OsString)> {
        match self {
            System::Slurm => slurm::of_a_script(slots, present),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_a_number() {
        for id in ["1", "20481"] {
            assert!(is_id(id), "{id}");
        }
        for id in [
            "",
            "-1",
            "1 2",
            "1;id",
            "--wrap=id",
            "all",
            "123456789012345678901",
        ] {
            assert!(!is_id(id), "{id}");
        }
    }

    #[test]
    fn a_system_is_read_as_it_is_shown() {
        assert_eq!(System::Slurm.to_string().parse(), Ok(System::Slurm));
        assert!("pbs".parse::<System>().unwrap_err().contains("slurm"));
    }
}
