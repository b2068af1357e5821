//! Starts one lab for a list of items, waits for it with a deadline and judges what the items left.

use crate::namespaces;
use crate::programs::{Expected, Item};
use std::fmt::Write as _;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

/// Beside the items' own deadlines: start and stop of the lab on a loaded two-core machine.
const LAB_START_AND_STOP: Duration = Duration::from_secs(60);

/// How long a lab told to stop may take before it is killed.
const STOP: Duration = Duration::from_secs(15);

/// How often a child is looked at; an exit cannot be waited for with a deadline by the standard library.
const POLL: Duration = Duration::from_millis(50);

/// The repository.
pub fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize()
        .unwrap_or_else(|error| panic!("{}: {error}", root.display()))
}

/// The release binary: what users get, and what the figures are about.
fn causeway() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    let causeway = root().join(target).join("release/causeway");
    assert!(
        causeway.exists(),
        "{} is not there: 'make build' makes it",
        causeway.display()
    );
    causeway
}

/// Runs `items` in one lab of `scenario` and panics with a full account of every item that is not right.
pub fn run(scenario: &str, label: &str, items: Vec<Item>) {
    if let Err(reason) = namespaces::probe() {
        println!("skipped: {reason}");
        return;
    }
    let directory = root().join("target/e2e").join(format!("{scenario}-{label}"));
    if directory.exists() {
        fs::remove_dir_all(&directory).unwrap();
    }
    fs::create_dir_all(&directory).unwrap();
    let list: String = items
        .iter()
        .map(|item| format!("{}\t{}\t{}\n", item.name, item.seconds, item.command))
        .collect();
    fs::write(directory.join("items"), list).unwrap();
    // A lab of the user's own may be up under the same name: ours is known in a directory of its own.
    let state = tempfile::Builder::new()
        .prefix("causeway-e2e-")
        .tempdir()
        .unwrap();

    let mut command = Command::new(causeway());
    command
        .args(["lab", "run", scenario, "--"])
        .arg(root().join("tests/e2e/run-items.sh"))
        .arg(&directory)
        .env("XDG_RUNTIME_DIR", state.path())
        .current_dir(root())
        .process_group(0);
    println!("{scenario}, {label}: {} programs", items.len());
    let allowed: u32 = items.iter().map(|item| item.seconds).sum();
    let deadline = LAB_START_AND_STOP + Duration::from_secs(allowed.into());
    let lab = wait(command, deadline, &format!("the lab {scenario} for {label}"));

    let wrong: Vec<_> = items.iter().filter_map(|item| judge(&directory, item)).collect();
    assert!(
        wrong.is_empty() && lab.success(),
        "\n{scenario}, {label}: {} of {} programs are not right; the lab ended with {lab}\n{}",
        wrong.len(),
        items.len(),
        wrong.join("\n")
    );
}

fn wait(mut command: Command, deadline: Duration, what: &str) -> ExitStatus {
    let mut child = command
        .spawn()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    if let Some(status) = ended_within(&mut child, deadline) {
        return status;
    }
    // First the lab's own way out, which stops its nodes; then everything in its process group.
    signal(&child, nix::sys::signal::Signal::SIGTERM);
    if ended_within(&mut child, STOP).is_none() {
        signal(&child, nix::sys::signal::Signal::SIGKILL);
        let _ = child.wait();
    }
    panic!(
        "{what} did not end within its deadline of {} s: {command:?}",
        deadline.as_secs()
    );
}

fn ended_within(child: &mut Child, deadline: Duration) -> Option<ExitStatus> {
    let start = Instant::now();
    while start.elapsed() < deadline {
        if let Some(status) = child.try_wait().unwrap() {
            return Some(status);
        }
        std::thread::sleep(POLL);
    }
    None
}

fn signal(child: &Child, signal: nix::sys::signal::Signal) {
    let group = nix::unistd::Pid::from_raw(i32::try_from(child.id()).unwrap());
    let _ = nix::sys::signal::killpg(group, signal);
}

/// `None` when the item is right, else everything there is to know about it.
fn judge(directory: &Path, item: &Item) -> Option<String> {
    let left = |name: &str| fs::read_to_string(directory.join(&item.name).join(name)).unwrap_or_default();
    let (status, stdout, stderr) = (left("status"), left("stdout"), left("stderr"));
    let reason = match status.trim() {
        "0" => wrong_answer(directory, item, &stdout)?,
        "" => "it was not run".to_owned(),
        "124" | "137" => format!("it did not end within its deadline of {} s", item.seconds),
        other => format!("status {other}"),
    };
    let mut account = String::new();
    let _ = writeln!(account, "--- {}: {reason}", item.name);
    let _ = writeln!(account, "command:   {}", item.command);
    let _ = writeln!(account, "directory: {}", directory.join(&item.name).display());
    let _ = writeln!(
        account,
        "status:    {} after {} s",
        status.trim(),
        left("seconds").trim()
    );
    let _ = writeln!(account, "stdout:\n{stdout}\nstderr:\n{stderr}");
    for (name, text) in by_rank(&directory.join(&item.name)) {
        let _ = writeln!(account, "{name}:\n{text}");
    }
    Some(account)
}

fn wrong_answer(directory: &Path, item: &Item, stdout: &str) -> Option<String> {
    let bad = "mpi4py's suite gives no good verdict at every rank";
    match &item.expected {
        Expected::Says(texts) => texts
            .iter()
            .find(|text| !stdout.contains(text.as_str()))
            .map(|text| format!("it does not say {text:?}")),
        Expected::Verdict => verdicts(&directory.join(&item.name))
            .err()
            .map(|why| format!("{bad}: {why}")),
        Expected::SameVerdictAs(other) => match verdicts(&directory.join(&item.name)) {
            Err(why) => Some(format!("{bad}: {why}")),
            Ok(here) => {
                let there = verdicts(&directory.join(other));
                (Ok(&here) != there.as_ref()).then(|| format!("verdicts {here:?}, but {there:?} on one site"))
            }
        },
    }
}

/// What each rank of mpi4py's suite said in the end, times left out: how many tests ran, and `OK`.
fn verdicts(item: &Path) -> Result<Vec<String>, String> {
    let all = by_rank(item).into_iter().map(|(name, text)| {
        let ran = text.lines().find(|line| line.starts_with("Ran "));
        let good = text.lines().rfind(|line| line.starts_with("OK"));
        match (ran, good) {
            (Some(ran), Some(good)) => Ok(format!("{}: {good}", ran.split(" in ").next().unwrap_or(ran))),
            _ => Err(format!("{name} has none")),
        }
    });
    let all: Vec<String> = all.collect::<Result<_, _>>()?;
    if all.is_empty() {
        Err("no rank wrote any".into())
    } else {
        Ok(all)
    }
}

/// The standard error of ranks that have one of their own (own-stderr.sh), in order of the files' names.
fn by_rank(item: &Path) -> Vec<(String, String)> {
    let entries = fs::read_dir(item).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.filter(|name| name.starts_with("stderr.")).collect();
    names.sort();
    let text = |name: &String| fs::read_to_string(item.join(name)).unwrap_or_default();
    names.iter().map(|name| (name.clone(), text(name))).collect()
}
