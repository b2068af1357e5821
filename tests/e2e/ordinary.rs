//! A lab, its gateways and jobs of both MPIs for a user who is not root. Whoever runs the tests as an
//! ordinary user has that in every other test.

use crate::grid::{causeway, is_root_in_labs, root};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

/// Becomes a user whose number is not that of `nobody`, which stands for everybody outside a user namespace.
/// Distributions let everybody open this device; this host may not. ssh wants the user to have a name.
const BECOME: &str = "set -e; mount -t tmpfs -o mode=755 none /dev/net; mknod -m 0666 /dev/net/tun c 10 200
    echo 'ordinary:x:12345:12345::/:/bin/sh' | cat /etc/passwd - > /dev/net/passwd
    mount --bind /dev/net/passwd /etc/passwd
    exec setpriv --reuid 12345 --regid 12345 --clear-groups timeout 120 \"$@\"";

#[test]
#[ignore = "needs namespaces and Debian's MPIs; run by make test"]
fn debian_mpis_run_in_a_lab_of_an_ordinary_user() {
    if !is_root_in_labs("only root can become another user") {
        return;
    }
    let directory = root().join("target/e2e/ordinary");
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).unwrap();
    fs::set_permissions(&directory, PermissionsExt::from_mode(0o777)).unwrap();
    let mut readable = Command::new("setpriv");
    readable.args([
        "--reuid",
        "12345",
        "--regid",
        "12345",
        "--clear-groups",
        "test",
        "-x",
    ]);
    if !readable.arg(causeway()).status().unwrap().success() {
        println!("skipped: another user cannot read {}", root().display());
        return;
    }
    for mpi in ["openmpi", "mpich"] {
        let mut command = Command::new("unshare");
        command
            .args(["--mount", "sh", "-c", BECOME, "sh"])
            .arg(causeway());
        command.args(["lab", "run", "rennes-nancy", "--"]).arg(causeway());
        command
            .args(["run", "--", &format!("mpirun.{mpi}"), "-n", "4"])
            .arg(root().join(format!("target/mpi/debian-{mpi}/ring")))
            .current_dir(&directory)
            .env("HOME", &directory)
            .env("XDG_RUNTIME_DIR", &directory);
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            output.status.success() && said.contains("all right"),
            "{command:?} ended with {}\n{said}\n{errors}",
            output.status
        );
    }
}
