//! Who takes part: the sites of the grid, what the broker says of them, and the jobs that run.

pub(crate) mod broker_session;
pub(crate) mod directory;
pub(crate) mod jobs;
pub(crate) mod register;
