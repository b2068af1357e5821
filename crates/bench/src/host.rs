//! Describes the machine of a measurement. What is unknown is called unknown, and not guessed.

use std::process::Command;

/// Lines `what: value`: date, processor, cores, memory, kernel.
pub fn describe() -> Vec<(String, String)> {
    let lines = [
        ("date (UTC)", first_line("date", &["-u", "+%Y-%m-%d %H:%M"])),
        ("processor", proc_value("/proc/cpuinfo", "model name")),
        (
            "cores",
            std::thread::available_parallelism().map_or_else(|_| unknown(), |n| n.to_string()),
        ),
        ("memory", proc_value("/proc/meminfo", "MemTotal")),
        ("kernel", first_line("uname", &["-srm"])),
    ];
    lines.map(|(what, value)| (what.to_owned(), value)).into()
}

/// The first line that a program prints; `unknown` if it fails.
pub fn first_line(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program)
        .args(arguments)
        .output()
        .ok()
        .filter(|output| output.status.success());
    let text = output
        .map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
        .unwrap_or_default();
    text.lines()
        .next()
        .map_or_else(unknown, |line| line.trim().to_owned())
}

fn proc_value(path: &str, key: &str) -> String {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with(key));
    line.and_then(|line| line.split_once(':'))
        .map_or_else(unknown, |(_, value)| value.trim().to_owned())
}

/// The word for what could not be found out.
pub fn unknown() -> String {
    "unknown".to_owned()
}

/// The commit of the checkout, with a mark when files differ from it.
pub fn commit() -> String {
    let commit = first_line("git", &["rev-parse", "--short=12", "HEAD"]);
    // Results of a run lie in the tree too and are no change of the program.
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
