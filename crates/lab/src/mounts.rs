//! Gives a node its file system: the host's, or that of its site's own system, except for what makes it a
//! separate machine. This runs in the node's init, inside its own mount namespace, so nothing here is visible
//! outside or outlives it.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use nix::mount::MsFlags;

use crate::mount_calls::{below, bind, fresh, plain};
use crate::system::System;

/// The path at which a node sees the lab's state directory.
pub(crate) const STATE_IN_NODE: &str = "/run/causeway-lab";

/// Mounts everything; `state` is the lab's state directory, `own` the node's part of it, `memory` what it
/// shares with others as /dev/shm, `system` the files that it has instead of the host's.
///
/// # Errors
/// The step that failed, and the kernel's answer.
pub(crate) fn arrange(
    state: &Path,
    own: &Path,
    memory: Option<&Path>,
    system: Option<&System>,
) -> Result<(), (String, io::Error)> {
    let at = |step: &str| {
        let step = step.to_owned();
        move |error: io::Error| (step, error)
    };
    // Opened first: what follows may hide its path (/tmp, /run).
    let state_handle = File::open(state).map_err(at("open state directory"))?;
    let work = work_below_tmp(&std::env::current_dir().unwrap_or_default());
    let work = work.filter(|_| system.is_none());
    let work = work.and_then(|path| Some((File::open(&path).ok()?, path)));
    let cgroups = File::open("/sys/fs/cgroup");
    plain(None, "/", None, MsFlags::MS_REC | MsFlags::MS_PRIVATE, None).map_err(at("make mounts private"))?;
    // From here on, paths of the host are below this one.
    let host = match system {
        Some(system) => system.enter(own)?,
        None => Path::new("/"),
    };
    let (state, own) = (below(host, state), below(host, own));
    let memory = memory.map(|memory| below(host, memory));
    configuration(&state, &own)?;
    fresh("proc", "/proc", "").map_err(at("mount /proc"))?;
    bind(&own.join("boot_id"), "/proc/sys/kernel/random/boot_id").map_err(at("mount boot_id"))?;
    network_of_sysfs(cgroups.as_ref().ok());
    let shared = memory.map(|memory| bind(&memory, "/dev/shm"));
    let shared = shared.unwrap_or_else(|| fresh("tmpfs", "/dev/shm", "mode=1777"));
    shared.map_err(at("mount /dev/shm"))?;
    fresh("tmpfs", "/run", "mode=0755").map_err(at("mount /run"))?;
    directory("/run/sshd", 0o755).map_err(at("make /run/sshd"))?;
    directory("/run/lock", 0o1777).map_err(at("make /run/lock"))?;
    directory(STATE_IN_NODE, 0o755).map_err(at("make a place for the state directory"))?;
    let source = handle(&state_handle);
    plain(Some(&source), STATE_IN_NODE, None, MsFlags::MS_BIND, None).map_err(at("mount state directory"))?;
    if let Some(system) = system {
        return system.leave_host(host);
    }
    temporary().map_err(at("mount /tmp"))?;
    if let Some((work_handle, path)) = &work {
        let target = path.to_string_lossy();
        // With a plain tmpfs on /tmp, the mount point does not exist yet.
        let _ = fs::create_dir(path);
        plain(Some(&handle(work_handle)), &target, None, MsFlags::MS_BIND, None)
            .map_err(at("mount the directory the lab was started in"))?;
    }
    Ok(())
}

/// Mounts a sysfs, which shows the network interfaces of the namespace in which it was mounted; UCX looks
/// there (FACTS 3.7). If that fails, the host's stays, which is wrong only about interfaces.
fn network_of_sysfs(cgroups: Option<&File>) {
    if fresh("sysfs", "/sys", "").is_ok()
        && let Some(cgroups) = cgroups
    {
        let flags = MsFlags::MS_BIND | MsFlags::MS_REC;
        let _ = plain(Some(&handle(cgroups)), "/sys/fs/cgroup", None, flags, None);
    }
}

/// What the node has in /etc; the paths are as seen at this moment.
fn configuration(state: &Path, own: &Path) -> Result<(), (String, io::Error)> {
    let at = |step: &'static str| move |error: io::Error| (step.to_owned(), error);
    bind(&own.join("hosts"), "/etc/hosts").map_err(at("mount over /etc/hosts, which must be there"))?;
    bind(&state.join("ssh"), "/etc/ssh").map_err(at("mount /etc/ssh"))?;
    if let Ok(text) = fs::read(own.join(SLURM_CONF)) {
        fresh("tmpfs", SLURM, "mode=0755").map_err(at("mount /etc/slurm"))?;
        fs::write(Path::new(SLURM).join(SLURM_CONF), text).map_err(at("write slurm.conf"))?;
    }
    Ok(())
}

/// The directory in /tmp in which the lab was started, if it was started there: what users' commands write
/// there must not be lost together with the node.
fn work_below_tmp(current: &Path) -> Option<PathBuf> {
    let first = current.strip_prefix("/tmp").ok()?.components().next()?;
    Some(Path::new("/tmp").join(first))
}

/// The host's /tmp below, and memory above it: programs built there are seen, and what the node writes stays
/// its own.
fn temporary() -> io::Result<()> {
    // /run is the node's own by now, so the layers can be there.
    directory(LAYERS, 0o700)?;
    fresh("tmpfs", LAYERS, "mode=0755")?;
    directory(&format!("{LAYERS}/upper"), 0o1777)?;
    directory(&format!("{LAYERS}/work"), 0o700)?;
    let options = format!("lowerdir=/tmp,upperdir={LAYERS}/upper,workdir={LAYERS}/work");
    // Inside a user namespace overlayfs keeps its marks in user.* attributes; as root it needs no such
    // option.
    let overlay = |options: &str| {
        plain(
            Some("overlay"),
            "/tmp",
            Some("overlay"),
            MsFlags::empty(),
            Some(options),
        )
    };
    overlay(&options)
        .or_else(|_| overlay(&format!("{options},userxattr")))
        .or_else(|_| fresh("tmpfs", "/tmp", "mode=1777"))
}

fn directory(path: &str, mode: u32) -> io::Result<()> {
    DirBuilder::new().create(path)?;
    // The mode is not set at creation, because the umask would take bits away.
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode))
}

fn handle(file: &File) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

/// The configuration of a node of Slurm, in its own directory and in [`SLURM`].
pub(crate) const SLURM_CONF: &str = "slurm.conf";

/// Where Debian's Slurm looks for its configuration.
const SLURM: &str = "/etc/slurm";

/// The directory of the layers, hidden in the node's own /run.
const LAYERS: &str = "/run/tmp-layers";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_directory_of_tmp_a_lab_was_started_in_stays_the_hosts() {
        let work = |current: &str| work_below_tmp(Path::new(current));
        assert_eq!(work("/tmp/checkout/crates/cli"), Some("/tmp/checkout".into()));
        assert_eq!(work("/tmp/checkout"), Some("/tmp/checkout".into()));
        assert_eq!(work("/tmp"), None);
        assert_eq!(work("/home/user"), None);
    }
}
