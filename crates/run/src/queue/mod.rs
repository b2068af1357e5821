//! Jobs that a user submits and then leaves alone.
//!
//! ```text
//!   submit -- writes --> ~/.local/state/causeway/jobs/ID/ <-- reads -- jobs, output, wait
//!     `-- asks --> gateway -- starts --> carry -- runs --> causeway run
//! ```
//! `store` manages their directories, `carry` is the process that runs a job to its end, and `kept` its
//! output. A gateway that starts resumes those that no process carries any more.

pub mod carry;
pub mod kept;
pub mod store;
