//! A row of the table: what something is, what it should be, and who can change it.

use serde::Serialize;
use std::fmt;

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Item {
    /// What users call it.
    pub name: String,
    /// `kernel`, `limits`, `network` or an MPI's name.
    pub group: String,
    /// What it is now.
    pub current: String,
    /// What it should be.
    pub wanted: String,
    /// Whether the present value suffices.
    pub is_enough: bool,
    /// The reason for `wanted`.
    pub why: String,
    /// What a change is expected to gain, or was measured to gain; empty if it need not be changed.
    pub gain: String,
    /// See [`Change`].
    pub change: Change,
}

/// How the item is changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// A kernel setting, by its path below /proc/sys.
    Setting {
        /// The setting's name, such as `net/ipv4/tcp_wmem`.
        name: String,
        /// All of its words.
        value: String,
    },
    /// Open MPI's file of parameters in the home directory.
    OpenMpi {
        /// The parameters' names and values.
        parameters: Vec<(String, String)>,
    },
    /// Variables that must be exported where mpirun is started.
    Environment {
        /// The variables' names and values.
        variables: Vec<(String, String)>,
    },
    /// The user has set the item to something else, and only the user may change it.
    Own {
        /// What to do, in one sentence.
        what: String,
    },
    /// A person has to make the change; a sentence says how.
    Told {
        /// A command or a sentence.
        what: String,
    },
    /// `causeway run` makes the change for each job.
    ByRun,
}

/// Who can make a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Who {
    /// This user.
    You,
    /// Somebody who is root.
    Administrator,
    /// `causeway run`.
    CausewayRun,
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Who::You => "you",
            Who::Administrator => "an administrator",
            Who::CausewayRun => "causeway run",
        })
    }
}

impl Change {
    /// The command that a user who may make the change would type.
    pub fn command(&self) -> String {
        match self {
            Change::Setting { name, value } => {
                format!("sysctl -w {}='{value}'", name.replace('/', "."))
            }
            Change::OpenMpi { parameters } => {
                let all = parameters.iter().map(|(name, value)| format!("{name} = {value}"));
                format!(
                    "in ~/.openmpi/mca-params.conf: {}",
                    all.collect::<Vec<_>>().join("; ")
                )
            }
            Change::Environment { variables } => {
                let all = variables.iter().map(|(name, value)| format!("{name}={value}"));
                format!("export {}", all.collect::<Vec<_>>().join(" "))
            }
            Change::Told { what } | Change::Own { what } => what.clone(),
            Change::ByRun => "nothing: causeway run sets it for each job".to_owned(),
        }
    }
}
