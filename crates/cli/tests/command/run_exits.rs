//! However a job of `causeway run` ends, none of its processes is left at any site: real MPIs in an emulated
//! grid.
//!
//! Every case compares the processes of the whole lab before and after. Skips, with the reason, if there are
//! no namespaces, if no preload library is beside the binary, or if this MPI is missing; a lab that does not
//! start is a failure.

#[path = "../../../../tests/e2e/namespaces.rs"]
mod namespaces;

use crate::programs::copy;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// How long a job may take: it starts in 2 s if nothing else runs, but the machine may be busy with other
/// tests.
const DEADLINE: Duration = Duration::from_secs(60);

/// The file with the lab's standard error.
const MESSAGES: &str = "stderr";

/// A lab whose first head node runs shell commands.
struct Shell {
    lab: Child,
    lines: Receiver<String>,
    /// The lab's state directory: another lab of the same name may run at the same time. Its messages are
    /// there, too.
    directory: tempfile::TempDir,
}

/// Process ids with command lines.
type Processes = BTreeMap<i32, String>;

impl Shell {
    /// `None`, with the reason printed, if this machine cannot do it.
    fn start(launcher: &str) -> Option<Shell> {
        Shell::start_from(launcher, Path::new(env!("CARGO_BIN_EXE_causeway")))
    }

    /// The same with the command at this path, whose libraries are beside it.
    fn start_from(launcher: &str, causeway: &Path) -> Option<Shell> {
        let skip = |reason: &str| {
            println!("skipped: {reason}");
            None
        };
        for library in ["libcauseway_shim.so", "libcauseway_ucx.so"] {
            if !causeway.with_file_name(library).exists() {
                return skip(&format!("{library} is not built; make test T=unit builds it"));
            }
        }
        if let Err(reason) = namespaces::probe() {
            return skip(&reason);
        }
        if !std::env::split_paths(&std::env::var_os("PATH")?).any(|dir| dir.join(launcher).exists()) {
            return skip(&format!("{launcher} is not installed"));
        }
        let directory = tempfile::tempdir().unwrap();
        let mut command = Command::new(causeway);
        command.env("XDG_RUNTIME_DIR", directory.path());
        command.args(["lab", "run", "rennes-nancy", "--"]);
        // Under nohup, SIGHUP is ignored, also by everything that is started from there, and hydra does not
        // change that.
        command.args(["env", "--default-signal=HUP", "sh", "-c"]);
        command.arg("while IFS= read -r line; do eval \"$line\"; done");
        for name in ["OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] {
            command.env(name, "1");
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        command.stderr(File::create(directory.path().join(MESSAGES)).unwrap());
        let mut lab = command.spawn().unwrap();
        let (sender, lines) = channel();
        let output = BufReader::new(lab.stdout.take().unwrap());
        std::thread::spawn(move || {
            output
                .lines()
                .map_while(Result::ok)
                .try_for_each(|line| sender.send(line))
        });
        let mut shell = Shell {
            lab,
            lines,
            directory,
        };
        shell.say("echo ready");
        assert!(shell.heard("ready").is_some(), "the lab does not start");
        Some(shell)
    }

    fn say(&mut self, line: &str) {
        let _ = writeln!(self.lab.stdin.as_mut().unwrap(), "{line}");
    }

    /// The rest of the next line that begins like this; `None` if the lab ends before.
    fn heard(&self, start: &str) -> Option<String> {
        let deadline = Instant::now() + DEADLINE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => match line.strip_prefix(start) {
                    Some(rest) => return Some(rest.trim().to_owned()),
                    None => println!("lab: {line}"),
                },
                Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => return None,
                Err(_) => panic!(
                    "no line {start:?} within {DEADLINE:?}; running still: {:#?}",
                    self.processes()
                ),
            }
        }
    }

    fn processes(&self) -> Processes {
        descendants(self.lab.id() as i32)
    }

    /// Starts a job of four ranks that do nothing, and returns once all run. The status gets a new line: a
    /// launcher may be writing a line of its own, in parts.
    fn start_job(&mut self, launcher: &str, mark: &str) -> Processes {
        let before = self.processes();
        self.say(&format!(
            "causeway run -- {launcher} -n 4 sleep {mark} & wait $!; printf '\\nstatus %s\\n' $?"
        ));
        let ranks = format!("sleep {mark}");
        wait_until(&format!("4 ranks of {launcher} run"), || {
            (self.processes().values().filter(|line| **line == ranks).count() == 4).then_some(())
        });
        before
    }

    /// The process whose command line contains this and none of whose children's does.
    fn find(&self, part: &str) -> Vec<Pid> {
        let found = self
            .processes()
            .into_iter()
            .filter(|(_, line)| line.contains(part));
        found.map(|(pid, _)| Pid::from_raw(pid)).collect()
    }

    /// Waits until only those processes run that ran before, and the run's directory is gone.
    fn all_gone(&mut self, before: &Processes, case: &str) {
        let mut left = Processes::new();
        let gone = wait(|| {
            left = self.processes();
            left.retain(|pid, _| !before.contains_key(pid));
            left.is_empty().then_some(())
        });
        assert!(
            gone.is_some(),
            "{case}: still running after {DEADLINE:?}: {left:#?}"
        );
        self.say("printf '\\ndirectories %s\\n' $(ls -d ${XDG_RUNTIME_DIR:-/tmp}/causeway-run-* 2>/dev/null | wc -l)");
        assert_eq!(self.heard("directories").as_deref(), Some("0"), "{case}");
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        drop(self.lab.stdin.take());
        // If a case has failed, the shell still waits for its job.
        let _ = kill(Pid::from_raw(self.lab.id() as i32), Signal::SIGTERM);
        let _ = self.lab.wait();
        if std::thread::panicking() {
            let said = std::fs::read_to_string(self.directory.path().join(MESSAGES)).unwrap_or_default();
            eprintln!("what the lab and the jobs in it said on standard error:\n{said}");
        }
    }
}

fn wait<T>(mut event: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + DEADLINE;
    loop {
        match event() {
            Some(result) => return Some(result),
            None if Instant::now() >= deadline => return None,
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}

fn wait_until<T>(what: &str, event: impl FnMut() -> Option<T>) -> T {
    wait(event).unwrap_or_else(|| panic!("not within {DEADLINE:?}: {what}"))
}

fn descendants(root: i32) -> Processes {
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse::<i32>().ok())
        else {
            continue;
        };
        let Ok(stat) = std::fs::read_to_string(entry.path().join("stat")) else {
            continue;
        };
        let parent = stat
            .rsplit_once(')')
            .unwrap()
            .1
            .split_whitespace()
            .nth(1)
            .unwrap()
            .parse()
            .unwrap();
        children.entry(parent).or_default().push(pid);
    }
    let mut found = Processes::new();
    let mut open = vec![root];
    while let Some(parent) = open.pop() {
        for pid in children.remove(&parent).unwrap_or_default() {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line)
                .replace('\0', " ")
                .trim()
                .to_owned();
            found.insert(pid, line);
            open.push(pid);
        }
    }
    found
}

/// `run` and its guard have the same command line; the guard is the child.
fn run_and_guard(shell: &Shell) -> (Pid, Pid) {
    let mut found = shell.find("causeway run --");
    found.retain(|pid| !shell.processes()[&pid.as_raw()].starts_with("sh "));
    assert_eq!(found.len(), 2, "run and its guard");
    (found[0].min(found[1]), found[0].max(found[1]))
}

fn every_end_leaves_nothing(launcher: &str, proxy: &str) {
    let Some(mut shell) = Shell::start(launcher) else {
        return;
    };
    // A first job, so that what a gateway keeps after a job is among what was there before.
    shell.say(&format!(
        "causeway run -- {launcher} -n 4 sh -c 'exit 7'; printf '\\nstatus %s\\n' $?"
    ));
    assert_eq!(
        shell.heard("status").as_deref(),
        Some("7"),
        "the status of the ranks is passed on"
    );
    let signals = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];
    for (number, signal) in signals.into_iter().enumerate() {
        let before = shell.start_job(launcher, &format!("71{number}"));
        kill(run_and_guard(&shell).0, signal).unwrap();
        // The status is the launcher's own, and MPICH's is sometimes 0 here.
        assert!(shell.heard("status").is_some());
        shell.all_gone(&before, &format!("{launcher}: {signal} for run"));
    }

    let before = shell.start_job(launcher, "720");
    let run = run_and_guard(&shell).0;
    for _ in 0..3 {
        let _ = kill(run, Signal::SIGINT);
    }
    assert!(shell.heard("status").is_some());
    shell.all_gone(&before, &format!("{launcher}: SIGINT three times"));

    let before = shell.start_job(launcher, "721");
    kill(run_and_guard(&shell).0, Signal::SIGKILL).unwrap();
    assert_eq!(shell.heard("status").as_deref(), Some("137"));
    shell.all_gone(&before, &format!("{launcher}: SIGKILL for run"));

    let before = shell.start_job(launcher, "722");
    kill(run_and_guard(&shell).1, Signal::SIGKILL).unwrap();
    assert_eq!(shell.heard("status").as_deref(), Some("137"));
    shell.all_gone(&before, &format!("{launcher}: SIGKILL for the guard"));

    let before = shell.start_job(launcher, "723");
    let (_, guard) = run_and_guard(&shell);
    let mpirun = *descendants(guard.as_raw()).keys().next().unwrap();
    kill(Pid::from_raw(mpirun), Signal::SIGKILL).unwrap();
    assert_eq!(shell.heard("status").as_deref(), Some("137"));
    shell.all_gone(&before, &format!("{launcher}: SIGKILL for the launcher"));

    // node-exec runs twice on each node, as itself and as its guard.
    let parts = [
        (proxy, 0),
        ("causeway node-exec", 0),
        ("causeway node-exec", 1),
        ("causeway start-node", 0),
        ("sleep 728", 0),
    ];
    for (number, (part, from_last)) in parts.into_iter().enumerate() {
        let before = shell.start_job(launcher, &format!("72{}", number + 4));
        let found = shell.find(part);
        kill(found[found.len() - 1 - from_last], Signal::SIGKILL).unwrap();
        assert_ne!(shell.heard("status").as_deref(), Some("0"));
        shell.all_gone(&before, &format!("{launcher}: SIGKILL for one {part}"));
    }
}

#[test]
fn no_end_of_a_job_of_open_mpi_leaves_a_process() {
    every_end_leaves_nothing("mpirun.openmpi", "orted");
}

#[test]
fn no_end_of_a_job_of_mpich_leaves_a_process() {
    every_end_leaves_nothing("mpirun.mpich", "hydra_pmi_proxy");
}

/// hydra goes on when all ranks of a node have exited, as they do without MPI_Finalize.
#[test]
fn a_job_of_mpich_that_goes_on_without_a_node_says_what_it_waits_for() {
    let Some(mut shell) = Shell::start("mpirun.mpich") else {
        return;
    };
    shell.say(
        "causeway run -- mpirun.mpich -n 1 true : -n 3 sleep 740 & wait $!; printf '\\nstatus %s\\n' $?",
    );
    let messages = shell.directory.path().join(MESSAGES);
    let said = wait_until("a line says what the job waits for", || {
        let said = std::fs::read_to_string(&messages).unwrap();
        said.lines()
            .find(|line| line.contains("waits for"))
            .map(str::to_owned)
    });
    assert!(
        said.starts_with("causeway: the job has ended on 10.1.0.1"),
        "{said}"
    );
    assert!(said.contains("10.1.0.2, 10.2.0.1, 10.2.0.2:"), "{said}");
    kill(run_and_guard(&shell).0, Signal::SIGTERM).unwrap();
    assert!(shell.heard("status").is_some());
}

/// mpirun ends its daemons before itself, and a daemon that hangs would keep it for ever.
#[test]
fn one_request_ends_a_job_of_open_mpi_with_a_daemon_that_hangs() {
    let Some(mut shell) = Shell::start("mpirun.openmpi") else {
        return;
    };
    // A job that ends, so that what a gateway keeps after a job is among what was there before.
    shell.say("causeway run -- mpirun.openmpi -n 4 true; echo \"status $?\"");
    assert_eq!(shell.heard("status").as_deref(), Some("0"));
    let before = shell.start_job("mpirun.openmpi", "730");
    let daemons = shell.find("orted");
    kill(*daemons.last().unwrap(), Signal::SIGSTOP).unwrap();
    kill(run_and_guard(&shell).0, Signal::SIGINT).unwrap();
    assert!(shell.heard("status").is_some());
    shell.all_gone(&before, "SIGINT with a daemon that hangs");
}

/// An upgrade in place: the package manager, or cargo, puts a new file where the running program's was.
#[test]
fn a_gateway_whose_program_was_replaced_starts_jobs_with_the_new_one() {
    let built = Path::new(env!("CARGO_BIN_EXE_causeway"));
    // Not in /tmp, because every node has its own.
    let installed = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    for name in ["causeway", "libcauseway_shim.so", "libcauseway_ucx.so"] {
        // If a library is missing, the start reports it.
        copy(&built.with_file_name(name), &installed.path().join(name));
    }
    let causeway = installed.path().join("causeway");
    let Some(mut shell) = Shell::start_from("mpirun.openmpi", &causeway) else {
        return;
    };
    let new = installed.path().join("new");
    copy(built, &new);
    std::fs::rename(&new, &causeway).unwrap();
    shell.say("causeway run -- mpirun.openmpi -n 4 hostname; echo \"status $?\"");
    assert_eq!(shell.heard("status").as_deref(), Some("0"));
}
