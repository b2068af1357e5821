//! `causeway lab` as users start and stop it: with Ctrl-C at any moment, and without being root.

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, geteuid};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// How long a lab may take to start: half a second, but some seconds on a busy machine.
const DEADLINE: Duration = Duration::from_secs(60);

/// Directories for the labs of one test.
struct Labs(tempfile::TempDir);

impl Labs {
    /// `None`, with the reason printed, if this machine lets nobody make a lab.
    fn possible() -> Option<Labs> {
        let labs = Labs(tempfile::tempdir().unwrap());
        let mut probe = labs.causeway(&["lab", "run", "rennes-nancy", "--no-gateways", "--", "true"]);
        let output = probe.output().unwrap();
        match output.status.success() {
            true => Some(labs),
            false => {
                println!("skipped: {}", String::from_utf8_lossy(&output.stderr));
                None
            }
        }
    }

    fn causeway(&self, words: &[&str]) -> Command {
        let mut command = Command::new("env");
        // Whatever started the tests may ignore this signal, as a shell makes commands do that it starts with
        // '&'.
        command
            .args(["--default-signal=INT", env!("CARGO_BIN_EXE_causeway")])
            .args(words)
            .env("XDG_RUNTIME_DIR", self.0.path())
            .stdin(Stdio::null());
        command
    }

    /// Files that remain of any lab.
    fn left(&self) -> Vec<PathBuf> {
        let labs = self.0.path().join(format!("causeway-lab-{}", geteuid()));
        let entries = std::fs::read_dir(labs).into_iter().flatten();
        entries.map(|entry| entry.unwrap().path()).collect()
    }

    fn state(&self, lab: &str) -> PathBuf {
        let labs = format!("causeway-lab-{}", geteuid());
        self.0.path().join(labs).join(lab)
    }
}

fn wait_for(what: &str, done: impl Fn() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(
            start.elapsed() < DEADLINE,
            "{what} did not come within {DEADLINE:?}"
        );
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A command that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(mut command: Command) -> Running {
    Running(
        command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap(),
    )
}

/// `when` is for the message: if a lab fails to end once in a thousand times, the message must say at which
/// point.
fn end(Running(child): &mut Running, when: &str) -> ExitStatus {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        assert!(
            start.elapsed() < DEADLINE,
            "it did not end within {DEADLINE:?} of the signal at {when}"
        );
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn interrupt(running: &Running) {
    kill(Pid::from_raw(running.0.id() as i32), Signal::SIGINT).unwrap();
}

#[test]
fn ctrl_c_ends_a_lab_at_any_moment_of_its_start_and_leaves_nothing() {
    let Some(labs) = Labs::possible() else { return };
    // A node has a /tmp of its own.
    let shared = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let begun = shared.path().join("begun");
    let line = format!("echo > {}; exec sleep 1000", begun.display());
    // The first file of a lab, the last of its namespaces, the first of its gateways, the command.
    for (number, event) in ["ssh", "state.json", "gateway/grid.key", "command"]
        .iter()
        .enumerate()
    {
        let name = format!("stage-{number}");
        let words = [
            "lab",
            "run",
            "rennes-nancy",
            "--name",
            &name,
            "--",
            "sh",
            "-c",
            &line,
        ];
        let mut running = start(labs.causeway(&words));
        match *event {
            "command" => wait_for("the command", || begun.exists()),
            file => wait_for(file, || labs.state(&name).join(file).exists()),
        }
        interrupt(&running);
        let status = end(&mut running, event);
        assert_eq!(status.code(), Some(130), "at {event}");
        assert_eq!(labs.left(), Vec::<PathBuf>::new(), "at {event}");
        assert_eq!(begun.exists(), *event == "command", "at {event}");
    }
}

#[test]
fn ctrl_c_while_a_lab_goes_to_the_background_ends_it_and_leaves_nothing() {
    let Some(labs) = Labs::possible() else { return };
    for (number, event) in ["ssh", "state.json"].iter().enumerate() {
        let name = format!("up-{number}");
        let mut starting = start(labs.causeway(&["lab", "up", "rennes-nancy", "--name", &name]));
        wait_for(event, || labs.state(&name).join(event).exists());
        interrupt(&starting);
        assert_eq!(end(&mut starting, event).code(), Some(130), "at {event}");
        assert_eq!(labs.left(), Vec::<PathBuf>::new(), "at {event}");
    }
}

#[test]
fn a_node_that_is_entered_without_a_command_has_a_shell() {
    let Some(labs) = Labs::possible() else { return };
    let up = labs
        .causeway(&["lab", "up", "rennes-nancy", "--no-gateways"])
        .status();
    assert!(up.unwrap().success());
    let mut shell = labs.causeway(&["lab", "exec", "rennes-1"]);
    shell
        .env("SHELL", "/bin/sh")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut shell = shell.spawn().unwrap();
    writeln!(shell.stdin.take().unwrap(), "hostname; exit 3").unwrap();
    let output = shell.wait_with_output().unwrap();
    assert!(labs.causeway(&["lab", "down"]).status().unwrap().success());
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(output.stdout, b"rennes-1\n");
}

/// The user's number is not that of `nobody`, which stands for everybody outside a user namespace.
#[test]
fn a_lab_with_gateways_runs_for_an_ordinary_user() {
    if !geteuid().is_root() {
        println!("skipped: only root can become another user; the other tests here run as an ordinary one");
        return;
    }
    let Some(labs) = Labs::possible() else { return };
    let program = Path::new(env!("CARGO_BIN_EXE_causeway"));
    let place = labs.0.path();
    std::fs::set_permissions(place, PermissionsExt::from_mode(0o777)).unwrap();
    // Distributions let everybody open this device; this host may not. ssh-keygen needs a user with a name.
    let script = "set -e; mount -t tmpfs -o mode=755 none /dev/net; mknod -m 0666 /dev/net/tun c 10 200
                  echo 'ordinary:x:12345:12345::/:/bin/sh' | cat /etc/passwd - > /dev/net/passwd
                  mount --bind /dev/net/passwd /etc/passwd
                  exec setpriv --reuid 12345 --regid 12345 --clear-groups \"$0\" \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script]).arg(program);
    command.args(["lab", "run", "rennes-nancy", "--"]).arg(program);
    let output = command
        .arg("check")
        .env("HOME", place)
        .env("XDG_RUNTIME_DIR", place)
        .output()
        .unwrap();
    let [said, errors] =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    if errors.contains("Permission denied") && said.is_empty() {
        println!(
            "skipped: an ordinary user cannot read {}: {errors}",
            program.display()
        );
        return;
    }
    assert!(
        said.contains("site nancy\n  [ok]   tunnel: up"),
        "{said}\n{errors}"
    );
}
