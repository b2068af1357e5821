//! Commands as new users type them: if something is missing, misspelt or left out, the message says what to
//! do.

use causeway_lab::Scenario;
use std::path::Path;
use std::process::{Command, Output};

/// `causeway` in an environment without any files of this user.
fn causeway(home: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_causeway"));
    command
        .args(words)
        .env("HOME", home)
        .env("XDG_RUNTIME_DIR", home)
        .env_remove("XDG_CONFIG_HOME")
        .env_remove("CAUSEWAY_CONTROL");
    command.output().unwrap()
}

#[test]
fn what_a_new_user_types_first_is_answered_with_what_to_type_next() {
    let home = tempfile::tempdir().unwrap();
    for (words, status, answer) in [
        (["gateway"].as_slice(), 2, "causeway gateway --join TOKEN"),
        (&["lab", "list"], 0, "no grid runs"),
        (&["run", "--", "srun", "./app"], 2, "causeway run --at SITE srun"),
        (
            &["bench", "npb", "--source", "/nosuch"],
            2,
            "/nosuch does not exist; name your copy",
        ),
    ] {
        let output = causeway(home.path(), words);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains(answer), "{words:?}: {said}");
        assert_eq!(output.status.code(), Some(status), "{words:?}: {said}");
    }
}

#[test]
fn the_version_names_the_commit_that_was_built() {
    let home = tempfile::tempdir().unwrap();
    let said = |word: &str| {
        let output = causeway(home.path(), &[word]);
        assert!(output.status.success(), "{word}: {}", output.status);
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    };
    let (said, long) = (said("-V"), said("--version"));
    let long: Vec<&str> = long.lines().collect();
    assert_eq!(long[0], said);
    assert!(long[1].starts_with("wire: lanes "), "{long:?}");
    assert!(long[2].starts_with("state: gateway "), "{long:?}");
    assert!(long[3].starts_with("interfaces: "), "{long:?}");
    let version = env!("CARGO_PKG_VERSION");
    let commit = said.strip_prefix(&format!("causeway {version}")).unwrap();
    // Sources that are not a clone have no commit.
    let is_commit = |text: &str| text.len() >= 10 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let commit = commit
        .strip_prefix(" (")
        .and_then(|rest| rest.strip_suffix(')'))
        .unwrap_or_default();
    assert!(commit.is_empty() || is_commit(commit), "{said}");
}

#[test]
fn the_help_of_a_lab_names_every_scenario() {
    let home = tempfile::tempdir().unwrap();
    for task in ["run", "up"] {
        let output = causeway(home.path(), &["lab", task, "--help"]);
        let help = String::from_utf8_lossy(&output.stdout).into_owned();
        for name in Scenario::names() {
            assert!(help.contains(name), "{name} is not in {help}");
        }
    }
}

#[test]
fn a_site_of_which_the_audit_has_nothing_is_told_with_those_it_has() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("gateway.toml");
    let key = home.path().join("grid.key");
    std::fs::write(&key, "0123456789abcdef").unwrap();
    std::fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let text = "[site]\nname = \"rennes\"\nsubnets = [\"10.1.0.0/24\"]\n[listen]\nlan = [\"10.1.0.253:7000\"]\n\
                [grid]\nkey_file = \"grid.key\"\n";
    std::fs::write(&file, text).unwrap();
    let entry = causeway_control::audit::AuditEntry {
        site: "nancy".into(),
        ..causeway_control::audit::AuditEntry::new(
            "2026-11-24T23:05:01Z".into(),
            causeway_control::audit::AuditEvent::Start,
        )
    };
    let line = serde_json::to_string(&entry).unwrap() + "\n";
    std::fs::write(home.path().join("audit-rennes.jsonl"), line).unwrap();
    let typed = file.display().to_string();
    let output = causeway(home.path(), &["audit", "--config", &typed, "--site", "nanzy"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        said.contains("no entry of site nanzy; it has entries of nancy"),
        "{said}"
    );
    let output = causeway(home.path(), &["audit", "--config", &typed, "--site", "nancy"]);
    assert!(
        output.stderr.is_empty() && !output.stdout.is_empty(),
        "{output:?}"
    );
}
