//! Each node of this site, reached as its gateway would reach it, and the causeway there.

use super::Subject;
use super::steps::Step;
use causeway_control::spawned::REMOTE_SHELL;
use causeway_host::output::{Beyond, Output};
use causeway_host::quoted;
use causeway_remote::ask::on_each;
use causeway_remote::start_node::shell_words;
use causeway_wire::TextError;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// ssh gives up a node that is switched off after ten seconds; the rest of this time is for one that is busy.
const DEADLINE: Duration = Duration::from_secs(15);

/// The most that is read of a shell's output.
const OUTPUT_BYTES: u64 = 4096;

/// See the module.
pub fn look(subject: &Subject) -> Vec<Step> {
    let own = match std::env::current_exe() {
        Ok(own) => own,
        Err(error) => return vec![Step::fail("causeway", error.to_string(), "is /proc mounted?")],
    };
    let (shell, nodes) = match (subject.config(), subject.status()) {
        (Some(config), _) => (config.remote_shell_of(&config.site), config.nodes.clone()),
        (None, Some(status)) => {
            let info = status.sites.iter().find(|site| site.name == status.site);
            let nodes = info
                .and_then(|site| site.info.as_ref())
                .map(|info| info.nodes.clone());
            (
                REMOTE_SHELL.map(str::to_owned).to_vec(),
                nodes.unwrap_or_default(),
            )
        }
        (None, None) => {
            let remedy = "give --config, or start the gateway";
            return vec![Step::fail(
                "nodes",
                "the nodes are not known: there is neither a configuration nor a gateway",
                remedy,
            )];
        }
    };
    let steps = on_each(&nodes, |node| reach(&shell, &node.name, &own));
    let steps = steps.into_iter().zip(&nodes);
    let steps = steps.map(|(step, node)| {
        step.unwrap_or_else(|| Step::fail(&node.name, "could not be checked", "try again"))
    });
    steps.collect()
}

/// The answer of a node.
pub enum Remote {
    /// The command succeeded, and printed this.
    Said(String),
    /// The node could not be asked, or the command failed.
    Failed(String),
}

/// Runs a shell's command on a node, as the gateway starts processes there.
pub fn ask(shell: &[String], node: &str, script: &str) -> Remote {
    match run(shell, node, script) {
        Ok((said, _, true)) => Remote::Said(said),
        Ok((_, complaint, false)) => Remote::Failed(complaint.trim().to_owned()),
        Err(why) => Remote::Failed(why.into()),
    }
}

/// Runs a command on a node. Returns both its outputs, and whether it succeeded.
fn run(shell: &[String], node: &str, script: &str) -> Result<(String, String, bool), TextError> {
    let words = shell_words(shell, node);
    let (program, arguments) = words.split_first().ok_or("the site's remote_shell is empty")?;
    let mut command = Command::new(program);
    command.args(arguments).arg(script);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    // The command ends if this process is killed, and has no signals blocked.
    causeway_host::processes::prepare(&mut command);
    answer(
        command
            .spawn()
            .map_err(|error| format!("run {program}: {error}"))?,
    )
}

/// Asks the causeway at the same path on a node for its version.
fn reach(shell: &[String], node: &str, own: &Path) -> Step {
    let script = format!("{} -V", quoted(own));
    let by_hand = format!("{} {script}", shell_words(shell, node).join(" "));
    let own_version = format!("causeway {}", crate::version::VERSION);
    match run(shell, node, &script) {
        Ok((said, ..)) if said.trim() == own_version => {
            Step::ok(node, format!("reached, {own_version} there"))
        }
        Ok((said, ..)) if said.trim().starts_with("causeway ") => Step::fail(
            node,
            format!("reached, but {} there, {own_version} here", said.trim()),
            format!("put this causeway and its libraries at {} there", own.display()),
        ),
        Ok((_, complaint, _)) => {
            let said = complaint.trim();
            let said = if said.is_empty() {
                "no version was printed"
            } else {
                said
            };
            Step::fail(
                node,
                said,
                format!("try by hand until it works without asking anything: {by_hand}"),
            )
        }
        Err(why) => Step::fail(
            node,
            why,
            format!("is the node up, and is remote_shell in [site] right? try by hand: {by_hand}"),
        ),
    }
}

/// Waits until the command ends. Returns both its outputs, and whether it succeeded.
fn answer(mut child: Child) -> Result<(String, String, bool), TextError> {
    let end = Instant::now() + DEADLINE;
    let said = Output::of(&mut child, OUTPUT_BYTES, Beyond::Closed).all(end);
    // Both outputs have ended, so the process has ended, or is about to.
    while said.is_some() && Instant::now() < end && matches!(child.try_wait(), Ok(None)) {
        thread::sleep(Duration::from_millis(5));
    }
    let _ = child.kill();
    let status = child.wait();
    let [output, complaint] = said.ok_or_else(|| format!("no answer within {} s", DEADLINE.as_secs()))?;
    Ok((output, complaint, status.is_ok_and(|status| status.success())))
}

#[cfg(test)]
mod tests {
    use super::super::steps::Verdict;
    use super::*;

    fn shell(script: &str) -> Vec<String> {
        ["sh", "-c", script, "{node}"].map(str::to_owned).to_vec()
    }

    #[test]
    fn a_node_says_its_version_or_why_it_does_not() {
        let own = Path::new("/opt/causeway");
        let version = crate::version::VERSION;
        let said = |script: &str| reach(&shell(script), "rennes-1", own);
        assert_eq!(said(&format!("echo 'causeway {version}'")).result, Verdict::Ok);
        let older = said("echo causeway 0.0.1");
        assert!(
            older.result == Verdict::Fail && older.detail.contains("0.0.1"),
            "{older}"
        );
        let refused = said("echo Permission denied >&2; exit 255");
        assert_eq!(
            (refused.result, refused.detail.as_str()),
            (Verdict::Fail, "Permission denied")
        );
        assert!(refused.remedy.unwrap().contains("rennes-1 /opt/causeway -V"));
        let asked = said(r#"echo "asked for $1" >&2"#);
        assert_eq!(asked.detail, "asked for /opt/causeway -V");
        assert_eq!(
            reach(&["/no/shell".to_owned()], "rennes-1", own).result,
            Verdict::Fail
        );
    }
}
