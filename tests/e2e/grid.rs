//! Starts one lab for a list of items, lets the test meddle with it, waits for its end with a deadline and
//! judges what the items left.

use crate::namespaces;
use crate::programs::{Expected, Item};
use std::fmt::Write as _;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output};
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
pub fn causeway() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    let causeway = root().join(target).join("release/causeway");
    assert!(
        causeway.exists(),
        "{} is not there: 'make build' makes it",
        causeway.display()
    );
    causeway
}

/// Whether a lab can be started in which we are root of the host; says why not: `without_root` where we are
/// not.
pub fn is_root_in_labs(without_root: &str) -> bool {
    let why = match namespaces::probe() {
        Err(reason) => reason,
        Ok(()) if nix::unistd::Uid::effective().is_root() => return true,
        Ok(()) => without_root.to_owned(),
    };
    println!("skipped: {why}");
    false
}

/// Runs `items` in one lab of `scenario` and panics with a full account of every item that is not right.
pub fn run(scenario: &str, label: &str, items: Vec<Item>) {
    if let Some(lab) = Lab::start(scenario, label, &[], items) {
        lab.finish();
    }
}

/// A lab with its items running in it, one after the other.
pub struct Lab {
    /// Scenario and label, for those who read a failure.
    name: String,
    directory: PathBuf,
    items: Vec<Item>,
    /// A lab of the user's own may be up under the same name: ours is known in a directory of its own.
    state: tempfile::TempDir,
    command: Command,
    child: Child,
    deadline: Instant,
    allowed: Duration,
}

impl Lab {
    /// Starts it, with `grid` as lines of every gateway's `[grid]`; nothing where the machine does not let
    /// us.
    pub fn start(scenario: &str, label: &str, grid: &[&str], items: Vec<Item>) -> Option<Lab> {
        if let Err(reason) = namespaces::probe() {
            println!("skipped: {reason}");
            return None;
        }
        let scenario_name = Path::new(scenario).file_stem().unwrap_or_default();
        let name = format!("{}-{label}", scenario_name.to_string_lossy());
        let directory = root().join("target/e2e").join(&name);
        if directory.exists() {
            fs::remove_dir_all(&directory).unwrap();
        }
        fs::create_dir_all(&directory).unwrap();
        let list: String = items
            .iter()
            .map(|item| format!("{}\t{}\t{}\n", item.name, item.deadline(), item.command))
            .collect();
        fs::write(directory.join("items"), list).unwrap();
        let state = tempfile::Builder::new()
            .prefix("causeway-e2e-")
            .tempdir()
            .unwrap();

        let mut command = Command::new(causeway());
        command.args(["lab", "run", scenario, "--logs"]);
        command.arg(directory.join("gateways"));
        command.args(grid.iter().flat_map(|line| ["--grid", line]));
        command
            .arg("--")
            .arg(root().join("tests/e2e/run-items.sh"))
            .arg(&directory)
            .env("XDG_RUNTIME_DIR", state.path())
            .current_dir(root())
            .process_group(0);
        println!("{name}: {} programs", items.len());
        let seconds: u32 = items.iter().map(Item::deadline).sum();
        let allowed = LAB_START_AND_STOP + Duration::from_secs(seconds.into());
        let child = command
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
        Some(Lab {
            name,
            directory,
            items,
            state,
            command,
            child,
            deadline: Instant::now() + allowed,
            allowed,
        })
    }

    /// Returns the directory in which an item runs and leaves its files.
    pub fn place(&self, item: &str) -> PathBuf {
        self.directory.join(item)
    }

    /// Carries out `causeway lab ARGUMENTS` on this lab; its standard output.
    pub fn causeway(&self, arguments: &[&str]) -> String {
        let mut command = Command::new(causeway());
        command.arg("lab").args(arguments);
        command.env("XDG_RUNTIME_DIR", self.state.path());
        let Output {
            status,
            stdout,
            stderr,
        } = command
            .output()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
        assert!(
            status.success(),
            "{command:?}: {status}\nstdout:\n{stdout}\nstderr:\n{stderr}"
        );
        stdout.into_owned()
    }

    /// Waits for something that an item does while it runs.
    pub fn wait_for(
        &mut self,
        item: &str,
        deadline: Duration,
        what: &str,
        mut done: impl FnMut(&Lab) -> bool,
    ) {
        let start = Instant::now();
        while !done(self) {
            let ended = self.child.try_wait().unwrap().is_some() || self.place(item).join("status").exists();
            let late = start.elapsed() > deadline;
            if ended || late {
                let why = if ended { "ended" } else { "went on" };
                panic!(
                    "\n{}: no {what} within {deadline:?}; {item} {why} without it\n{}",
                    self.name,
                    self.account(item, "it")
                );
            }
            std::thread::sleep(POLL);
        }
    }

    /// Waits for the end of every item and of the lab, and panics unless all is right.
    pub fn finish(mut self) {
        let left = self.deadline.saturating_duration_since(Instant::now());
        let Some(status) = ended_within(&mut self.child, left) else {
            panic!(
                "the lab {} did not end within its deadline of {} s: {:?}",
                self.name,
                self.allowed.as_secs(),
                self.command
            );
        };
        let items = self.items.iter();
        let wrong: Vec<_> = items.filter_map(|item| judge(&self.directory, item)).collect();
        assert!(
            wrong.is_empty() && status.success(),
            "\n{}: {} of {} programs are not right; the lab ended with {status}\n{}",
            self.name,
            wrong.len(),
            self.items.len(),
            wrong.join("\n")
        );
    }

    fn account(&self, item: &str, reason: &str) -> String {
        let item = self.items.iter().find(|known| known.name == item);
        item.map_or_else(String::new, |item| account(&self.directory, item, reason))
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(None)) {
            return;
        }
        // First the lab's own way out, which stops its nodes; then everything in its process group.
        signal(&self.child, nix::sys::signal::Signal::SIGTERM);
        if ended_within(&mut self.child, STOP).is_none() {
            signal(&self.child, nix::sys::signal::Signal::SIGKILL);
            let _ = self.child.wait();
        }
    }
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
    let reason = match left(directory, item, "status").trim() {
        "0" => wrong_answer(directory, item, &left(directory, item, "stdout"))?,
        "" => "it was not run".to_owned(),
        "124" | "137" => format!("it did not end within its deadline of {} s", item.deadline()),
        other => format!("status {other}"),
    };
    Some(account(directory, item, &reason))
}

fn left(directory: &Path, item: &Item, name: &str) -> String {
    fs::read_to_string(directory.join(&item.name).join(name)).unwrap_or_default()
}

fn account(directory: &Path, item: &Item, reason: &str) -> String {
    let left = |name: &str| left(directory, item, name);
    let mut account = String::new();
    let _ = writeln!(account, "--- {}: {reason}", item.name);
    let _ = writeln!(account, "command:   {}", item.command);
    let _ = writeln!(account, "directory: {}", directory.join(&item.name).display());
    let _ = writeln!(
        account,
        "status:    {} after {} s",
        left("status").trim(),
        left("seconds").trim()
    );
    let _ = writeln!(
        account,
        "stdout:\n{}\nstderr:\n{}",
        left("stdout"),
        left("stderr")
    );
    for (name, text) in by_rank(&directory.join(&item.name)) {
        let _ = writeln!(account, "{name}:\n{text}");
    }
    for gateway in fs::read_dir(directory.join("gateways"))
        .into_iter()
        .flatten()
        .flatten()
    {
        let text = fs::read_to_string(gateway.path()).unwrap_or_default();
        let _ = writeln!(account, "{}:\n{text}", gateway.path().display());
    }
    account
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

/// Returns what each rank of mpi4py's suite said in the end, times left out: how many tests ran, and `OK`.
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
