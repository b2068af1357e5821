//! What the lab's own tests share: starting a lab in a new directory, or saying why this machine forbids it,
//! and running a command in a node with a deadline.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use causeway_lab::{Ended, Lab, LabError, LabOptions, NodeCommand, Scenario, Stdio};

/// Status, output and messages of a command.
#[derive(Debug)]
pub struct Output {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

/// A scenario of two sites with one compute node each; `extra` is put into the head of the file, `first` into
/// the first site.
pub fn two_sites(extra: &str, first: &str) -> Scenario {
    let text = format!(
        r#"name = "test"
{extra}
[[site]]
name = "rennes"
nodes = 1
subnet = "10.1.0.0/24"
{first}
[[site]]
name = "nancy"
nodes = 1
subnet = "10.2.0.0/24"
[[link]]
between = ["rennes", "nancy"]
rtt = "2ms"
rate = "1Gbit/s"
"#
    );
    Scenario::parse(&text, "test.toml").unwrap()
}

/// Starts the lab, or prints why it cannot be started here.
pub fn start(scenario: &Scenario) -> Option<Lab> {
    let options = LabOptions {
        state_dir: Some(own_directory()),
        ..LabOptions::default()
    };
    match Lab::start(scenario, &options) {
        Ok(lab) => Some(lab),
        Err(error @ LabError::Machine { .. }) => skip(&error),
        Err(error) if format!("{error:?}").contains("EPERM") => skip(&error),
        Err(error) => panic!("start lab: {error:?}"),
    }
}

fn skip<T>(error: &LabError) -> Option<T> {
    println!("skipped: {error}");
    None
}

/// A directory for the state of the labs of one test; only empty directories are left, under the target
/// directory.
pub fn own_directory() -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("lab-{}-{number}", std::process::id()))
}

/// Runs a shell command in a node and waits for its end.
pub fn sh(lab: &mut Lab, node: &str, script: &str) -> Output {
    let command = NodeCommand {
        node: node.to_owned(),
        argv: ["bash", "-c", script].map(Into::into).to_vec(),
        cwd: Some("/".into()),
        stdin: Stdio::Null,
        stdout: Stdio::Piped,
        stderr: Stdio::Piped,
        ..NodeCommand::default()
    };
    let mut child = lab.spawn(command).unwrap();
    let ended = lab.serve(Some(&mut child), Some(COMMAND_DEADLINE)).unwrap();
    if !matches!(ended, Ended::Child(_)) {
        let seen = look_around(lab, node);
        child.signal(libc::SIGKILL).unwrap();
        let output = child.wait_with_output();
        panic!(
            "{node}: {script}: {ended:?} instead of its end within {COMMAND_DEADLINE:?}: {output:?}\n{seen}"
        );
    }
    let (status, stdout, stderr) = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8_lossy(bytes).trim().to_owned();
    Output {
        code: status.code(),
        stdout: text(&stdout),
        stderr: text(&stderr),
    }
}

/// Describes what a node and its router were doing when a command did not end.
fn look_around(lab: &Lab, node: &str) -> String {
    let site = node.split('-').next().unwrap_or_default();
    let places = [
        (node.to_owned(), "ps axfww; cat /proc/net/tcp"),
        (format!("{site}-router"), ROUTER_STATE),
    ];
    let mut seen = format!("{:?}", lab.link_stats());
    for (place, script) in places {
        let argv = ["bash", "-c", script].map(Into::into).to_vec();
        let command = NodeCommand {
            node: place,
            argv,
            stdout: Stdio::Piped,
            stderr: Stdio::Null,
            ..NodeCommand::default()
        };
        let output = lab
            .spawn(command)
            .map(|child| child.wait_with_output())
            .unwrap()
            .unwrap();
        seen += &format!("\n{}", String::from_utf8_lossy(&output.1));
    }
    seen
}

const ROUTER_STATE: &str = "ip -s link; nft list ruleset; cat /proc/net/stat/nf_conntrack";
/// Much longer than any of these commands takes on a busy machine.
const COMMAND_DEADLINE: Duration = Duration::from_secs(40);
