//! Completes an environment without `HOME` or `PATH`, with which `env -i` and some services start commands.

use causeway_host::user_directories;
use std::ffi::OsString;

/// The path that shells and execvp(3) use if `PATH` is not set.
const USUAL_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Sets the missing variables for this process and all that it starts: launchers and shells look for programs
/// and files there. Call it before any thread starts.
pub fn complete() {
    let path = || Some(USUAL_PATH.into());
    let home = || user_directories::home().ok().map(OsString::from);
    set_if_missing("PATH", path);
    set_if_missing("HOME", home);
}

fn set_if_missing(name: &str, value: impl FnOnce() -> Option<OsString>) {
    if std::env::var_os(name).is_some() {
        return;
    }
    if let Some(value) = value() {
        // SAFETY: there is no other thread yet that could read the environment.
        unsafe { std::env::set_var(name, value) };
    }
}
