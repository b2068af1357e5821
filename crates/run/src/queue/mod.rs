//! Jobs that are submitted and left alone.
//!
//! ```text
//!   submit -- writes --> ~/.local/state/causeway/jobs/ID/ <-- reads -- jobs, output, wait
//!     `-- asks --> gateway -- starts --> carry -- runs --> causeway run
//! ```
//! `store` has the directories, `carry` the process that runs a job to its end, `kept` its output. A gateway
//! that starts resumes those that no process carries any more.

pub mod carry;
pub mod kept;
pub mod store;
