//! What commands ask for and other owners do.

use crate::keys::CommandKey;
use std::path::PathBuf;

pub(crate) enum CommandsEvent {
    /// This gateway is to continue as another program.
    HandOver {
        command: CommandKey,
        state_version: u32,
        program: PathBuf,
        config: PathBuf,
    },
}
