//! Describes the machine of a measurement: processor, cores, memory, kernel, commit, MPI versions. What is
//! unknown is called unknown, and not guessed.

use causeway_bench::host::{self, first_line, unknown};
use std::process::Command;

/// Lines `what: value` for the head of a result.
pub fn describe(launchers: &[(&str, String)]) -> Vec<(String, String)> {
    let mut lines = host::describe();
    lines.insert(1, ("causeway".to_owned(), commit()));
    for (name, launcher) in launchers {
        lines.push(((*name).to_owned(), mpi_version(launcher)));
    }
    lines
}

/// The commit of the checkout, with a mark if files differ from it.
fn commit() -> String {
    let commit = first_line("git", &["rev-parse", "--short=12", "HEAD"]);
    // Results of a run are in the tree, too, and are not a change of the program.
    let changed = first_line(
        "git",
        &[
            "status",
            "--porcelain",
            "--untracked-files=no",
            "--",
            "crates",
            "Cargo.lock",
        ],
    );
    if changed == unknown() || commit == unknown() {
        commit
    } else {
        format!("{commit}, with changes")
    }
}

fn mpi_version(launcher: &str) -> String {
    let Ok(output) = Command::new(launcher).arg("--version").output() else {
        return unknown();
    };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let version = text
        .lines()
        .map(str::trim)
        .find(|line| line.contains("Version:") || line.contains("Open MPI"));
    version
        .or_else(|| text.lines().next())
        .map_or_else(unknown, |line| {
            line.split_whitespace()
                .collect::<Vec<_>>()
                .join(" ")
                .replace("Version:", "MPICH")
        })
}
