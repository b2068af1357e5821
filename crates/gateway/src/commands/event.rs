//! What commands ask for that others do.

use std::path::PathBuf;

pub(crate) enum CommandsEvent {
    /// This gateway is to go on as another program.
    HandOver {
        command: usize,
        state_version: u32,
        program: PathBuf,
        config: PathBuf,
    },
}
