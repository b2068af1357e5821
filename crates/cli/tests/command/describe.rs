//! Completions, man pages and docs/commands.md come from the command line's own description.

use std::process::{Command, Output};

fn describe(words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_causeway"));
    command.arg("describe").args(words).output().unwrap()
}

#[test]
fn the_page_of_commands_is_what_the_command_says() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/commands.md");
    let page = std::fs::read_to_string(file).unwrap_or_default();
    let said = String::from_utf8(describe(&["page"]).stdout).unwrap();
    assert!(
        page == said,
        "docs/commands.md is old: target/release/causeway describe page > docs/commands.md"
    );
}

#[test]
fn a_man_page_is_there_for_each_command_and_none_for_hidden_ones() {
    let directory = tempfile::tempdir().unwrap();
    let output = describe(&["man", directory.path().to_str().unwrap()]);
    assert!(output.status.success(), "{output:?}");
    let read = |name: &str| std::fs::read_to_string(directory.path().join(name));
    assert!(read("causeway-run.1").unwrap().contains("\\-\\-sites"));
    assert!(read("causeway-grid-create.1").is_ok());
    assert!(read("causeway-start-node.1").is_err());
}

#[test]
fn a_directory_that_cannot_be_made_is_named() {
    let output = describe(&["man", "/dev/null/man"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("/dev/null/man"));
}

#[test]
fn bash_can_read_the_completions_and_finds_an_option() {
    let script = describe(&["completions", "bash"]).stdout;
    let ask =
        "COMP_WORDS=(causeway ping --co); COMP_CWORD=2; _causeway causeway --co ping; echo ${COMPREPLY[*]}";
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("causeway");
    std::fs::write(&file, script).unwrap();
    let line = format!("source {}; {ask}", file.display());
    let output = Command::new("bash").args(["-c", &line]).output().unwrap();
    assert_eq!(
        String::from_utf8_lossy(&output.stdout).trim(),
        "--count",
        "{output:?}"
    );
}
