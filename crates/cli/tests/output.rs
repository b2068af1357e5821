//! Commands whose output nobody can read end quietly, with a status that says so.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a helper of a test fails it by panicking"
)]

use std::fs::File;
use std::process::{Command, Stdio};

/// `causeway` in an empty directory for labs and gateways.
fn causeway(directory: &tempfile::TempDir, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_causeway"));
    command.args(words).env("XDG_RUNTIME_DIR", directory.path());
    command.env("CAUSEWAY_CONTROL", directory.path().join("no-gateway.sock"));
    command
}

fn full() -> Stdio {
    File::options().write(true).open("/dev/full").unwrap().into()
}

#[test]
fn a_reader_that_has_gone_ends_a_command_as_sigpipe_would() {
    let directory = tempfile::tempdir().unwrap();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut list = causeway(&directory, &["lab", "list", "--json"]);
    let output = list.stdout(writer).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), said.as_str()), (Some(141), ""));
}

#[test]
fn output_that_cannot_be_written_is_a_failure_with_its_reason() {
    let directory = tempfile::tempdir().unwrap();
    let mut list = causeway(&directory, &["lab", "list", "--json"]);
    let output = list.stdout(full()).stderr(Stdio::piped()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.starts_with("causeway: write to standard output: No space"),
        "{said}"
    );
}

#[test]
fn messages_that_cannot_be_written_change_no_status() {
    let directory = tempfile::tempdir().unwrap();
    for (words, status) in [
        (&["status"][..], 1),
        (&["lab", "exec", "n1", "--", "true"], 1),
        (&["run", "--", "mpirun-that-is-not-there"], 2),
        (&["gateway", "--config", "/nowhere.toml"], 2),
        (&["agent", "n1"], 255),
    ] {
        let ended = causeway(&directory, words).stderr(full()).status().unwrap();
        assert_eq!(ended.code(), Some(status), "{words:?}");
    }
}
