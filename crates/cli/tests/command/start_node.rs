//! Tests `causeway start-node`, and what it starts, as a gateway starts them. No lab, no ssh: `sh` stands in
//! for the site's remote shell.

use nix::sys::signal::{SigSet, Signal};
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

/// The request frame of `remote/frame.rs`.
fn request(command: &str) -> Vec<u8> {
    let body = format!(r#"{{"command":{command:?},"environment":[],"path":[]}}"#);
    let length = u32::try_from(body.len()).unwrap();
    [&[1, 2], &length.to_be_bytes()[..], body.as_bytes()].concat()
}

/// Runs `command` on a node behind the remote shell `words`, and returns everything that start-node sends.
fn start(words: &[&str], node: &str, directory: &Path, command: &str) -> String {
    start_at(None, words, node, directory, command)
}

/// The same at this site.
fn start_at(site: Option<&str>, words: &[&str], node: &str, directory: &Path, command: &str) -> String {
    let mut child = Command::new(env!("CARGO_BIN_EXE_causeway"))
        .arg("start-node")
        .args(site.map(|site| format!("--site={site}")))
        .args(words.iter().map(|word| format!("--word={word}")))
        .args(["--", node])
        .current_dir(directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // The end of the input is the order to kill: the input stays open until the output has ended.
    let mut input = child.stdin.take().unwrap();
    let _ = input.write_all(&request(command));
    let mut said = Vec::new();
    child.stdout.take().unwrap().read_to_end(&mut said).unwrap();
    let status = child.wait().unwrap();
    format!("{} ({status})", String::from_utf8_lossy(&said))
}

#[test]
fn nothing_is_started_with_the_gateways_signals_blocked() {
    // The gateway has these signals blocked, because it reads them from a descriptor.
    let mut signals = SigSet::empty();
    for signal in [Signal::SIGHUP, Signal::SIGINT, Signal::SIGTERM, Signal::SIGCHLD] {
        signals.add(signal);
    }
    signals.thread_block().unwrap();
    let directory = tempfile::tempdir().unwrap();
    // A process that is just starting another one has all signals blocked, and whether it does so cannot be
    // seen from outside. So the shell looks several times, and the last look counts.
    let shell = "for look in $(seq 500); do cat /proc/$PPID/status > start-node; \
                 grep -q 'SigBlk:.*0000000000000000' start-node && break; done; cat /proc/self/status > shell; exec sh -c \"$1\"";
    let command = "cat /proc/self/status > command";
    let said = start(&["sh", "-c", shell, "{node}"], "n1", directory.path(), command);
    for name in ["start-node", "shell", "command"] {
        let status = std::fs::read_to_string(directory.path().join(name));
        let status = status.unwrap_or_else(|error| panic!("{name}: {error}; start-node says {said:?}"));
        let blocked = status.lines().find(|line| line.starts_with("SigBlk:"));
        assert_eq!(blocked, Some("SigBlk:\t0000000000000000"), "{name}");
    }
}

#[test]
fn words_with_blanks_reach_the_remote_shell_whole() {
    let directory = tempfile::tempdir().unwrap();
    let words = [
        "sh",
        "-c",
        "printf '<%s>' \"$@\" > words",
        "sh",
        "ProxyCommand=ssh  -W %h:%p bastion",
        "{node}",
    ];
    let said = start(&words, "n1", directory.path(), "true");
    let got = std::fs::read_to_string(directory.path().join("words")).unwrap_or_default();
    let wanted = "<ProxyCommand=ssh  -W %h:%p bastion><n1><";
    assert!(got.starts_with(wanted), "{got:?}; start-node says {said:?}");
}

#[test]
fn what_runs_on_a_node_knows_the_site_that_its_gateway_named_and_no_other() {
    let directory = tempfile::tempdir().unwrap();
    let command = "echo ${CAUSEWAY_SITE-none} >> site";
    let words = ["sh", "-c", "CAUSEWAY_SITE=lyon exec sh -c \"$1\"", "{node}"];
    start(&words, "n1", directory.path(), command);
    start_at(Some("o'rennes"), &words, "n1", directory.path(), command);
    // No remote shell leads to this host.
    start_at(Some("nancy"), &[], "127.0.0.1", directory.path(), command);
    let said = std::fs::read_to_string(directory.path().join("site")).unwrap();
    assert_eq!(said, "none\no'rennes\nnancy\n");
}

#[test]
fn a_node_that_looks_like_an_option_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let words = ["sh", "-c", "touch started", "{node}"];
    let said = start(&words, "-oProxyCommand=touch started", directory.path(), "true");
    assert!(said.contains("is not a node's name"), "{said:?}");
    assert!(!directory.path().join("started").exists());
}

#[test]
fn start_node_ends_with_the_process_that_started_it_though_its_input_stays_open() {
    let script = "\"$0\" start-node --word=sh --word=-c --word='echo begun >&2; exec sleep 300' -- n1 <&0 & echo $!; wait";
    let mut gateway = Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_causeway")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let _input = gateway.stdin.take().unwrap();
    let mut number = Vec::new();
    let mut output = gateway.stdout.take().unwrap();
    let mut byte = [0];
    while output.read(&mut byte).unwrap() == 1 && byte != *b"\n" {
        number.push(byte[0]);
    }
    let process = String::from_utf8(number).unwrap();
    let file = |name: &str| std::fs::read_to_string(format!("/proc/{process}/{name}")).unwrap_or_default();
    let until = std::time::Instant::now() + std::time::Duration::from_secs(30);
    // start-node has started its remote shell: so it is watching by now.
    while file(&format!("task/{process}/children")).is_empty() {
        assert!(std::time::Instant::now() < until, "start-node starts nothing");
        std::thread::yield_now();
    }
    gateway.kill().unwrap();
    gateway.wait().unwrap();
    let runs = || !matches!(file("stat").rsplit(')').next(), Some(rest) if rest.is_empty() || rest.starts_with(" Z"));
    while runs() {
        assert!(
            std::time::Instant::now() < until,
            "start-node goes on without its parent"
        );
        std::thread::yield_now();
    }
}

/// What `node-exec` sends with this lease if its input contains these bytes and stays open.
fn node_exec(lease: &str, input: &[u8]) -> Vec<u8> {
    let mut child = Command::new(env!("CARGO_BIN_EXE_causeway"))
        .args(["node-exec", "--lease", lease])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut open = child.stdin.take().unwrap();
    open.write_all(input).unwrap();
    let mut said = Vec::new();
    child.stdout.take().unwrap().read_to_end(&mut said).unwrap();
    child.wait().unwrap();
    said
}

/// A renewal of the lease.
const ALIVE: [u8; 6] = [1, 13, 0, 0, 0, 0];

#[test]
fn a_renewal_may_come_before_the_request() {
    let said = node_exec("600", &[&ALIVE, &ALIVE, &request("echo done")[..]].concat());
    assert!(String::from_utf8_lossy(&said).contains("done"), "{said:?}");
    assert_eq!(said.last(), Some(&0));
}

#[test]
fn what_runs_on_a_node_ends_when_nobody_renews_its_lease() {
    let said = node_exec("1", &request("sleep 300"));
    // The frame that ends the output has the status of a process that was killed.
    let (last, head) = said.split_last().unwrap();
    assert!(*last > 128 && head.ends_with(&[1, 8, 0, 0, 0, 1]), "{said:?}");
}
