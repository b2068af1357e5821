//! Keys and settings with which a plain `ssh rennes-2 hostname` works between nodes, made anew for each lab.
//! They are mounted over /etc/ssh in each node, so that nothing of the user's own ssh set-up is read or
//! changed.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::error::LabError;

/// Fills the directory that becomes /etc/ssh.
pub(crate) fn write_directory(directory: &Path, ssh_keygen: &Path) -> Result<(), LabError> {
    let failed = |step| {
        move |source| LabError::State {
            step,
            path: directory.to_owned(),
            source,
        }
    };
    fs::DirBuilder::new()
        .mode(0o755)
        .create(directory)
        .map_err(failed("create"))?;
    for key in ["lab_key", "lab_host_key"] {
        generate(ssh_keygen, &directory.join(key))?;
    }
    let write = |name: &str, text: &str| fs::write(directory.join(name), text);
    let fill = || -> io::Result<()> {
        let host_key = fs::read_to_string(directory.join("lab_host_key.pub"))?;
        write("lab_known_hosts", &format!("* {host_key}"))?;
        fs::copy(
            directory.join("lab_key.pub"),
            directory.join("lab_authorized_keys"),
        )?;
        write("ssh_config", SSH_CONFIG)?;
        write("sshd_config", SSHD_CONFIG)
    };
    fill().map_err(failed("fill"))
}

fn generate(ssh_keygen: &Path, key: &Path) -> Result<(), LabError> {
    let output = Command::new(ssh_keygen)
        .args(["-q", "-t", "ed25519", "-N", "", "-C", "causeway-lab", "-f"])
        .arg(key)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| LabError::setup("run ssh-keygen", error))?;
    if output.status.success() {
        return Ok(());
    }
    Err(LabError::setup(
        "ssh-keygen",
        String::from_utf8_lossy(&output.stderr).trim(),
    ))
}

const SSH_CONFIG: &str = "\
Host *
  IdentityFile /etc/ssh/lab_key
  IdentitiesOnly yes
  UserKnownHostsFile /etc/ssh/lab_known_hosts
  GlobalKnownHostsFile /etc/ssh/lab_known_hosts
  StrictHostKeyChecking yes
  UpdateHostKeys no
  BatchMode yes
  ConnectTimeout 10
  LogLevel ERROR
";

// SHLVL: bash reads ~/.bashrc for a command of sshd unless it is a shell within a shell; a version manager
// started there took a lock that a killed session left behind, and every later one waited a minute for it.
// MaxStartups and MaxSessions: an MPI launcher opens all its connections at once.
const SSHD_CONFIG: &str = "\
Port 22
ListenAddress 0.0.0.0
HostKey /etc/ssh/lab_host_key
AuthorizedKeysFile /etc/ssh/lab_authorized_keys
PidFile none
UsePAM no
SetEnv SHLVL=1
StrictModes no
UseDNS no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin yes
PermitUserEnvironment no
PrintMotd no
PrintLastLog no
MaxStartups 1000
MaxSessions 1000
LogLevel ERROR
";
