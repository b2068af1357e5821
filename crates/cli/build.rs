//! Names the commit that the command is built from, for `causeway --version`.

use std::path::Path;
use std::process::Command;

fn main() {
    let commit = git(&["rev-parse", "--short=10", "HEAD"]);
    let shown = commit.map_or_else(String::new, |commit| format!(" ({commit})"));
    println!("cargo::rustc-env=CAUSEWAY_COMMIT={shown}");
    println!("cargo::rerun-if-changed=build.rs");
    // Git writes a line there for each commit and each switch of branches. Sources without Git have none.
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"]);
    if let Some(log) = log.filter(|log| Path::new(log).exists()) {
        println!("cargo::rerun-if-changed={log}");
    }
}

fn git(words: &[&str]) -> Option<String> {
    let output = Command::new("git").args(words).output().ok()?;
    let said = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| said.trim().to_owned())
}
