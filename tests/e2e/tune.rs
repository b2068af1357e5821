//! `causeway tune` on nodes of an emulated grid, whose kernel settings are their own.

use crate::grid::{causeway, root};
use crate::namespaces;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// What a node's kernel says of what is changed.
const READ: &str = "cat /proc/sys/net/ipv4/tcp_wmem /proc/sys/net/ipv4/tcp_slow_start_after_idle";

/// A far path: its buffers are too small anywhere.
const FAR: &str = "tune --direct --link 300ms,10Gbit/s --mpi mpirun.openmpi";

struct Lab {
    directory: PathBuf,
    name: String,
}

impl Lab {
    fn up(name: &str) -> Option<Lab> {
        if let Err(reason) = namespaces::probe() {
            println!("skipped: {reason}");
            return None;
        }
        let directory = root().join("target/e2e").join(name);
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir_all(&directory).unwrap();
        let lab = Lab {
            directory,
            name: format!("{name}-{}", std::process::id()),
        };
        let words = ["up", "rennes-nancy", "--no-gateways", "--name", &lab.name];
        assert!(lab.causeway(&["lab"]).args(words).status().unwrap().success());
        Some(lab)
    }

    /// `causeway` with a home and a state of its own.
    fn causeway(&self, words: &[&str]) -> Command {
        let mut command = Command::new("timeout");
        command.arg("120").arg(causeway()).args(words);
        command
            .env("HOME", &self.directory)
            .env("XDG_STATE_HOME", self.directory.join("state"));
        command.stdin(Stdio::null());
        command
    }

    /// A bash line on a node: its status and all that it said.
    fn node(&self, line: &str) -> (Option<i32>, String) {
        let line = line.replace("causeway", &causeway().display().to_string());
        let mut command = self.causeway(&["lab", "exec", "--lab", &self.name, "rennes-1", "--"]);
        let output = command
            .args(["bash", "-c", &format!("{line} 2>&1")])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        println!("{line}\n{said}");
        (output.status.code(), said)
    }

    fn parameters(&self) -> PathBuf {
        self.directory.join(".openmpi/mca-params.conf")
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let _ = self.causeway(&["lab", "down", &self.name]).status();
    }
}

#[test]
#[ignore = "needs namespaces and Debian's Open MPI; run by make test"]
fn debian_open_mpi_and_a_kernel_are_tuned_twice_and_undone_to_the_byte() {
    let Some(lab) = Lab::up("tune-undo") else {
        return;
    };
    fs::create_dir_all(lab.directory.join(".openmpi")).unwrap();
    let mine = "# mine\nbtl_tcp_eager_limit = 70000";
    fs::write(lab.parameters(), mine).unwrap();
    let (_, before) = lab.node(READ);
    for _ in 0..2 {
        // rmem_max is not a node's own in a lab: "all" asks for what this user may.
        assert_eq!(lab.node(&format!("causeway {FAR} --apply")).0, Some(0));
    }
    let (_, during) = lab.node(READ);
    assert_ne!(before, during);
    let file = fs::read_to_string(lab.parameters()).unwrap();
    assert!(
        file.starts_with(mine) && file.contains("btl_tcp_rndv_eager_limit = "),
        "{file}"
    );
    // What the user has set stays.
    assert_eq!(file.matches("btl_tcp_eager_limit").count(), 1, "{file}");
    assert_eq!(lab.node("causeway tune --undo").0, Some(0));
    assert_eq!(lab.node(READ).1, before);
    assert_eq!(fs::read_to_string(lab.parameters()).unwrap(), mine);
}

#[test]
#[ignore = "needs namespaces and Debian's Open MPI; run by make test"]
fn debian_open_mpi_host_whose_tuning_was_killed_at_any_moment_is_undone() {
    let Some(lab) = Lab::up("tune-kill") else {
        return;
    };
    let (_, before) = lab.node(READ);
    // It asks mpirun for its version first: that takes most of the time.
    for milliseconds in (5..=160).step_by(5) {
        let seconds = f64::from(milliseconds) / 1000.0;
        lab.node(&format!(
            "timeout -s KILL {seconds} causeway {FAR} --apply=kernel; true"
        ));
        assert_eq!(lab.node("causeway tune --undo").0, Some(0), "{milliseconds} ms");
        assert_eq!(lab.node(READ).1, before, "{milliseconds} ms");
    }
}

#[test]
#[ignore = "needs namespaces and Debian's Open MPI; run by make test"]
fn debian_open_mpi_host_that_refuses_a_value_says_what_an_administrator_would_type() {
    let Some(lab) = Lab::up("tune-refused") else {
        return;
    };
    let (status, said) = lab.node(&format!("causeway {FAR} --apply=net.core.rmem_max"));
    assert_eq!(status, Some(1));
    assert!(said.contains("sysctl -w net.core.rmem_max="), "{said}");
    let (status, said) = lab.node(&format!("causeway {FAR} --apply=net.odd"));
    assert_eq!(status, Some(2));
    assert!(said.contains("net.odd"), "{said}");
}
