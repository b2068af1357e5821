//! Where this user's own files are, by the XDG base directory specification. If `$HOME` is not set, the
//! system's user database gives the home directory: nothing is ever kept in the directory in which a command
//! happens to run.

use nix::unistd::{User, geteuid};
use std::path::PathBuf;

/// Neither the environment nor the system names a home directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "there is no home directory for files of user {0}: HOME is not set, and the user database names none; set HOME to a \
     directory of your own"
)]
pub struct NoHome(u32);

/// Configuration: `~/.config/causeway`.
pub fn config() -> Result<PathBuf, NoHome> {
    base("XDG_CONFIG_HOME", ".config")
}

/// The configuration of the user's gateway, if no other file is named.
///
/// # Errors
/// There is no home directory.
pub fn gateway_config() -> Result<PathBuf, NoHome> {
    Ok(config()?.join("gateway.toml"))
}

/// What must not be lost: `~/.local/share/causeway`.
pub fn data() -> Result<PathBuf, NoHome> {
    base("XDG_DATA_HOME", ".local/share")
}

/// What must outlive a program: `~/.local/state/causeway`.
pub fn state() -> Result<PathBuf, NoHome> {
    base("XDG_STATE_HOME", ".local/state")
}

/// This user's home directory.
pub fn home() -> Result<PathBuf, NoHome> {
    let user = geteuid();
    let known = || Some(User::from_uid(user).ok()??.dir);
    set("HOME").or_else(known).ok_or(NoHome(user.as_raw()))
}

fn base(variable: &str, below_home: &str) -> Result<PathBuf, NoHome> {
    let base = set(variable).map_or_else(|| Ok(home()?.join(below_home)), Ok)?;
    Ok(base.join("causeway"))
}

/// An absolute path from a variable; the specification says to ignore relative ones.
fn set(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable)
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
}
