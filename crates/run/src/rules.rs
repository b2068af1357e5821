//! The user's rules about which algorithm a collective operation uses.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The program that mpi/build.sh builds and puts beside the libraries.
pub const PROGRAM: &str = "causeway-collectives";

/// The variable with the rules of mpi/collectives/select/rules.h, separated by commas.
pub const RULES: &str = "CAUSEWAY_COLLECTIVES_RULES";

/// Why there are no rules.
#[derive(Debug, thiserror::Error)]
pub enum RulesError {
    /// The program is missing or does not start.
    #[error("start {}: {reason}; build it with 'make build'", .program.display())]
    Program {
        /// The program.
        program: PathBuf,
        /// The reason.
        reason: std::io::Error,
    },
    /// The program's message: file, line and reason.
    #[error("{0}")]
    Wrong(String),
}

/// The rules in a file that the user has named.
///
/// # Errors
/// A rule is not understood; the error says where it is.
pub fn asked(own: &Path, file: Option<&Path>) -> Result<Option<String>, RulesError> {
    file.map(|file| rules(own, file)).transpose()
}

/// The rules in a file on one line, in the form of CAUSEWAY_COLLECTIVES_RULES.
///
/// # Errors
/// A rule is not understood; the error says where it is.
pub fn rules(own: &Path, file: &Path) -> Result<String, RulesError> {
    let program = own.with_file_name(PROGRAM);
    let mut command = Command::new(&program);
    let output = command.arg("rules").arg(file).output();
    let output = output.map_err(|reason| RulesError::Program { program, reason })?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    match output.status.success() {
        true => Ok(text(&output.stdout)),
        false => Err(RulesError::Wrong(text(&output.stderr))),
    }
}

/// Puts the rules from the user's own variable first.
pub fn with_rules(own: Option<OsString>, rules: &str) -> OsString {
    let mut all = own.unwrap_or_default();
    if !all.is_empty() && !rules.is_empty() {
        all.push(", ");
    }
    all.push(rules);
    all
}
