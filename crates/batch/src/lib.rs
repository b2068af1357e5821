//! Makes the questions to a site's batch system, and reads its answers. Pure: it makes words of commands and
//! reads texts; `causeway ask-batch` runs the commands. A batch system has one module, and a variant of
//! [`System`].

pub mod budget;
mod clock;
mod hostlist;
mod id;
mod oar;
mod oar_offer;
pub mod offer;
mod pbs;
mod pbs_offer;
pub mod release;
mod slurm;
mod slurm_limits;
mod slurm_offer;
pub mod together;
pub mod word;

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::time::SystemTime;

pub use hostlist::expand;
pub use id::{component, is_id};
use offer::{Limit, Offer, OfferError};
use word::Request;

/// Most nodes of an allocation that are read.
pub const MAX_NODES: usize = 10_000;

/// All batch systems.
pub const SYSTEMS: [System; 3] = [System::Slurm, System::Pbs, System::Oar];

/// A batch system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum System {
    /// Slurm, by its commands: squeue, scontrol, srun.
    Slurm,
    /// OpenPBS, by its commands: qstat, qsub, pbs_attach.
    Pbs,
    /// OAR, by its commands: oarstat, oarsub, oarsh.
    Oar,
}

impl FromStr for System {
    type Err = String;

    fn from_str(text: &str) -> Result<System, String> {
        match text {
            "slurm" => Ok(System::Slurm),
            "pbs" => Ok(System::Pbs),
            "oar" => Ok(System::Oar),
            _ => Err(format!(
                "{text:?} is no batch system that Causeway knows; it knows \"slurm\", \"pbs\" and \"oar\""
            )),
        }
    }
}

impl fmt::Display for System {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            System::Slurm => "slurm",
            System::Pbs => "pbs",
            System::Oar => "oar",
        })
    }
}

/// A node of an allocation, as its batch system describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// The name by which the batch system knows it.
    pub name: String,
    /// Its address, or the host name that has one.
    pub address: String,
    /// Processes for which the allocation has room there, at least 1.
    pub slots: u32,
}

/// The state of an allocation, in terms of PSI/J, which has three states for what is one here, the end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum State {
    /// The allocation waits, or its state is not known.
    #[default]
    Queued,
    /// The allocation has its nodes.
    Active,
    /// The allocation does not run again.
    Ended,
}

/// One of a user's allocations, as its batch system lists it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listed {
    /// Its id.
    pub id: String,
    /// Its id as the batch system shows it to people, if that differs: for an element of an array (`12_3`),
    /// or a component of a heterogeneous allocation (`12+1`).
    pub shown: Option<String>,
    /// Its state.
    pub state: State,
    /// The batch system's word for its state.
    pub word: String,
    /// Its nodes, in the batch system's notation; empty while it waits.
    pub nodes: String,
    /// When it begins or has begun, in seconds since 1970, if that is known.
    pub start: Option<u64>,
    /// Why it waits, in the batch system's words; empty if it does not say.
    pub reason: String,
    /// Whether it waits for something that never comes.
    pub is_refused: bool,
    /// Its name.
    pub name: String,
}

impl Listed {
    /// Says whether it is over. A state that is not known is not.
    pub fn has_ended(&self) -> bool {
        self.state == State::Ended
    }

    /// Says whether it is a component of a heterogeneous allocation.
    fn is_component(&self) -> bool {
        self.shown.as_deref().and_then(component).is_some()
    }

    /// Says whether it has its nodes.
    pub fn runs(&self) -> bool {
        self.state == State::Active && !self.nodes.is_empty()
    }
}

/// Why an allocation cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AllocationError {
    /// No allocation of this user has the id.
    #[error("this account has no allocation {0}")]
    Unknown(String),
    /// The allocation has not begun, or is over.
    #[error("allocation {0} is not running: it is {1}")]
    NotRunning(String, String),
    /// The allocation is part of a heterogeneous one, named by its own number.
    #[error("allocation {0} is heterogeneous: name a component as squeue shows it, such as {1}")]
    Component(String, String),
    /// The answer is not what the batch system's manual says.
    #[error("the answer about allocation {0} is not understood: {1}")]
    Answer(String, String),
}

/// Says whether a variable belongs to a batch system and must be hidden from a process of another allocation.
pub fn is_of_a_process(name: &OsStr) -> bool {
    SYSTEMS.iter().any(|system| system.is_of_a_process(name))
}

/// The allocation in which a process runs, as this variable of its batch system says; of a heterogeneous one,
/// the first component, in which the process runs.
pub fn own_id(variable: &str, present: impl Fn(&str) -> Option<OsString>) -> Option<String> {
    let id = present(variable)?.into_string().ok()?;
    let is_heterogeneous = variable == slurm::OWN_ALLOCATION && present(slurm::COMPONENTS).is_some();
    Some(if is_heterogeneous { format!("{id}+0") } else { id })
}

/// How a process is started on a node of an allocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start {
    /// The command that runs another one on `{node}`. The command to run is appended as one shell word.
    pub words: Vec<String>,
    /// What makes a command part of the allocation on the node, if `words` does not do so itself; the command
    /// follows it.
    pub task: Vec<String>,
}

impl System {
    /// The variable that says which configuration its commands use, if one does.
    pub fn configuration(self) -> Option<&'static str> {
        match self {
            System::Slurm => Some(slurm::CONFIGURATION),
            System::Pbs => Some(pbs::CONFIGURATION),
            // OAR's commands run as another user, and let nobody choose the configuration.
            System::Oar => None,
        }
    }

    /// The variable by which a process learns in which allocation it runs.
    pub fn own_allocation(self) -> &'static str {
        match self {
            System::Slurm => slurm::OWN_ALLOCATION,
            System::Pbs => pbs::OWN_ALLOCATION,
            System::Oar => oar::OWN_ALLOCATION,
        }
    }

    /// Variables set for all commands, so that their answers always have the same form.
    pub fn answers(self) -> &'static [(&'static str, &'static str)] {
        match self {
            System::Slurm => slurm::ANSWERS,
            System::Pbs => pbs::ANSWERS,
            System::Oar => oar::ANSWERS,
        }
    }

    /// The command that lists this user's allocations.
    pub fn list_words(self) -> Vec<String> {
        match self {
            System::Slurm => slurm::list_words(),
            System::Pbs => pbs::list_words(),
            System::Oar => oar::list_words(),
        }
    }

    /// What the answer to [`System::list_words`] lists.
    pub fn listed(self, answer: &str) -> Vec<Listed> {
        match self {
            System::Slurm => slurm::listed(answer),
            System::Pbs => pbs::listed(answer),
            System::Oar => oar::listed(answer),
        }
    }

    /// The nodes of an allocation, in the batch system's notation, taken from the answer to
    /// [`System::list_words`].
    ///
    /// # Errors
    /// The allocation does not run.
    pub fn running(self, id: &str, answer: &str) -> Result<String, AllocationError> {
        let is_it = |listed: &Listed| listed.id == id || listed.shown.as_deref() == Some(id);
        match self.listed(answer).into_iter().find(is_it) {
            Some(listed) if listed.id == id && listed.is_component() => {
                let shown = listed.shown.unwrap_or_default();
                Err(AllocationError::Component(id.to_owned(), shown))
            }
            Some(listed) if listed.runs() => Ok(listed.nodes),
            Some(listed) => Err(AllocationError::NotRunning(id.to_owned(), listed.word)),
            None => Err(AllocationError::Unknown(id.to_owned())),
        }
    }

    /// Options that a run may choose if the site does not say.
    pub fn usual_choice(self) -> &'static [&'static str] {
        match self {
            System::Slurm => &slurm::USUAL_CHOICE,
            System::Pbs => &pbs::USUAL_CHOICE,
            System::Oar => &oar::USUAL_CHOICE,
        }
    }

    /// Says why a site may not let a run choose an option of this name; `None` if it may.
    pub fn is_never_chosen(self, option: &str) -> Option<&'static str> {
        match self {
            System::Slurm => slurm::is_never_chosen(option),
            System::Pbs => pbs::is_never_chosen(option),
            System::Oar => oar::is_never_chosen(option),
        }
    }

    /// Checks an option that a site gives with each request.
    ///
    /// # Errors
    /// The text cannot be an option; the error is a sentence.
    pub fn check_option(self, option: &str) -> Result<(), String> {
        match self {
            System::Slurm => slurm::check_option(option),
            System::Pbs => pbs::check_option(option),
            System::Oar => oar::check_option(option),
        }
    }

    /// The command that asks when an allocation could begin, if there is one; the script is its standard
    /// input.
    pub fn estimate_words(self, request: &Request, options: &[String]) -> Option<Vec<String>> {
        match self {
            System::Slurm => Some(slurm::estimate_words(request, options)),
            // They give estimates only for jobs that are queued.
            System::Pbs | System::Oar => None,
        }
    }

    /// When an allocation could begin, in seconds since 1970, read from what the command of
    /// [`System::estimate_words`] printed; `None` if it does not say.
    pub fn estimate(self, answer: &str) -> Option<u64> {
        match self {
            System::Slurm => slurm::estimate(answer),
            System::Pbs | System::Oar => None,
        }
    }

    /// The command to run after an estimate was refused for lack of nodes. It prints nothing if all nodes are
    /// available to jobs.
    pub fn unavailable_words(self, why: &str) -> Option<Vec<String>> {
        match self {
            System::Slurm => slurm::lacks_nodes(why).then(slurm::unavailable_words),
            System::Pbs | System::Oar => None,
        }
    }

    /// The command that asks for an allocation of this name; the script is its standard input, and it prints
    /// the id. If it is not to begin at once, `start` gives the delay in seconds, and the current time.
    pub fn submit_words(
        self,
        name: &str,
        request: &Request,
        start: (u64, SystemTime),
        options: &[String],
    ) -> Vec<String> {
        match self {
            System::Slurm => slurm::submit_words(name, request, start.0, options),
            System::Pbs => pbs::submit_words(name, request, start, options),
            System::Oar => oar::submit_words(name, request, start.0, options),
        }
    }

    /// The id, read from what the command of [`System::submit_words`] printed.
    pub fn submitted(self, answer: &str) -> Option<String> {
        match self {
            System::Slurm => slurm::submitted(answer),
            System::Pbs => pbs::submitted(answer),
            System::Oar => oar::submitted(answer),
        }
    }

    /// Whether a request that is to begin later does so by itself, or waits for [`System::hasten_words`].
    pub fn begins_by_itself(self) -> bool {
        match self {
            System::Slurm | System::Pbs => true,
            System::Oar => false,
        }
    }

    /// The command that lets a delayed request begin now.
    pub fn hasten_words(self, id: &str) -> Vec<String> {
        match self {
            System::Slurm => slurm::hasten_words(id),
            System::Pbs => pbs::hasten_words(id),
            System::Oar => oar::hasten_words(id),
        }
    }

    /// The command that gives allocations back.
    pub fn cancel_words(self, ids: &[String]) -> Vec<String> {
        match self {
            System::Slurm => slurm::cancel_words(ids),
            System::Pbs => pbs::cancel_words(ids),
            System::Oar => oar::cancel_words(ids),
        }
    }

    /// The command that removes what a request of this name may have left outside the batch system; `None` if
    /// it leaves nothing. It is run when the allocation is gone.
    pub fn forget_words(self, name: &str) -> Option<Vec<String>> {
        match self {
            System::Slurm | System::Pbs => None,
            System::Oar => Some(oar::forget_words(name)),
        }
    }

    /// The commands that describe an allocation that runs, and its nodes.
    pub fn describe_words(self, id: &str, nodes: &str) -> Vec<Vec<String>> {
        match self {
            System::Slurm => slurm::describe_words(id, nodes),
            System::Pbs => pbs::describe_words(id),
            System::Oar => oar::describe_words(id),
        }
    }

    /// The nodes of an allocation in its own order. `nodes` is what [`System::running`] returned; `answers`
    /// are those to [`System::describe_words`].
    ///
    /// # Errors
    /// The answers are not understood.
    pub fn nodes(self, id: &str, nodes: &str, answers: &[String]) -> Result<Vec<Node>, AllocationError> {
        match self {
            System::Slurm => slurm::nodes(id, nodes, answers),
            System::Pbs => pbs::nodes(id, nodes, answers),
            System::Oar => oar::nodes(id, nodes, answers),
        }
    }

    /// The commands that list what it has for this user: partitions with their nodes, and the jobs that hold
    /// nodes.
    pub fn offer_words(self) -> Vec<Vec<String>> {
        match self {
            System::Slurm => slurm_offer::offer_words(),
            System::Pbs => pbs_offer::offer_words(),
            System::Oar => oar_offer::offer_words(),
        }
    }

    /// The command that says how the batch system is set up, if accounts may have limits there.
    pub fn set_up_words(self) -> Option<Vec<String>> {
        match self {
            System::Slurm => Some(slurm_limits::set_up_words()),
            // Limits of queues come with the offer; others are in rules that are shown to nobody.
            System::Pbs | System::Oar => None,
        }
    }

    /// The commands that say what a user's accounts may have, given the answer to [`System::set_up_words`];
    /// `None` if there are no limits.
    pub fn limit_words(self, user: &str, set_up: &str) -> Option<Vec<Vec<String>>> {
        match self {
            System::Slurm => {
                { slurm_limits::cluster(set_up) }.map(|cluster| slurm_limits::limit_words(user, &cluster))
            }
            System::Pbs | System::Oar => None,
        }
    }

    /// What a user's accounts may have, read from the answers to [`System::limit_words`].
    ///
    /// # Errors
    /// The answers are not understood.
    pub fn limits(self, answers: &[String]) -> Result<Vec<Limit>, OfferError> {
        match self {
            System::Slurm => slurm_limits::limits(answers),
            System::Pbs | System::Oar => Ok(Vec::new()),
        }
    }

    /// What the batch system has, read from the answers to [`System::offer_words`].
    ///
    /// # Errors
    /// The answers are not understood, or too long.
    pub fn offer(self, answers: &[String]) -> Result<Offer, OfferError> {
        match self {
            System::Slurm => slurm_offer::offer(answers),
            System::Pbs => pbs_offer::offer(answers),
            System::Oar => oar_offer::offer(answers),
        }
    }

    /// How a process is started on a node of an allocation. `remote_shell` is the site's own way to a node,
    /// `conf` the batch system's configuration.
    pub fn start(self, id: &str, remote_shell: &[String], conf: Option<&Path>) -> Start {
        match self {
            System::Slurm => Start {
                words: slurm::start_words(id),
                task: Vec::new(),
            },
            System::Pbs => pbs::start(id, remote_shell, conf),
            System::Oar => oar::start(id),
        }
    }

    /// Whether what [`System::start`] runs passes all of its own variables on to the process.
    pub fn hands_on_variables(self) -> bool {
        match self {
            System::Slurm => true,
            System::Pbs | System::Oar => false,
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
            System::Pbs => pbs::is_of_a_process(name),
            System::Oar => oar::is_of_a_process(name),
        }
    }

    /// The variables of a script in the allocation, derived from those of a process that [`System::start`]
    /// has started, and the slots of the allocation's nodes in its order. Launchers recognise the allocation
    /// by them.
    pub fn script_variables(
        self,
        slots: &[u32],
        present: impl Fn(&str) -> Option<OsString>,
    ) -> Vec<(&'static str, OsString)> {
        match self {
            System::Slurm => slurm::script_variables(slots, present),
            // PBS's launchers need a secret, too, which only processes of the job have.
            System::Pbs => Vec::new(),
            // Launchers know nothing of OAR.
            System::Oar => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_is_read_as_it_is_shown() {
        for system in SYSTEMS {
            assert_eq!(system.to_string().parse(), Ok(system));
        }
        assert!("lsf".parse::<System>().unwrap_err().contains("slurm"));
    }
}
