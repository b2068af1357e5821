//! The lab's directory of keys, logs and sockets: `${XDG_RUNTIME_DIR:-/tmp}/causeway-lab-$UID/<name>/`. A
//! lock says whether its supervisor lives, so what a killed one left behind is recognised and removed.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::fcntl::{Flock, FlockArg};

use crate::error::LabError;

/// A state directory that this process owns. Dropping it removes it.
#[derive(Debug)]
pub(crate) struct StateDir {
    path: PathBuf,
    _lock: Flock<File>,
}

impl StateDir {
    /// Takes the directory of this name, removing a stale one.
    pub(crate) fn claim(root: &Path, name: &str) -> Result<StateDir, LabError> {
        make_root(root)?;
        let path = root.join(name);
        if path.exists() && !remove_stale(&path)? {
            return Err(LabError::AlreadyRunning {
                name: name.to_owned(),
                pid: supervisor_of(&path),
            });
        }
        let failed = |step| {
            let path = path.clone();
            move |source: io::Error| LabError::State { step, path, source }
        };
        // The directory is renamed into place while its lock is held, so that nobody ever sees it unlocked
        // and takes it for a stale one.
        let new = root.join(format!(".{name}.{}", std::process::id()));
        let _ = fs::remove_dir_all(&new);
        // The directory contains keys: nobody else has business here.
        let mut made = DirBuilder::new().mode(0o700).create(&new);
        if made
            .as_ref()
            .is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
        {
            // The last of the other labs has just ended and removed the root.
            make_root(root)?;
            made = DirBuilder::new().mode(0o700).create(&new);
        }
        made.map_err(failed("create state directory"))?;
        let lock = File::create(new.join(LOCK_FILE))
            .and_then(|_| lock(&new))
            .map_err(failed("lock"))?;
        let lock = lock.ok_or_else(|| failed("lock")(io::ErrorKind::WouldBlock.into()))?;
        fs::write(new.join(PID_FILE), std::process::id().to_string()).map_err(failed("write to"))?;
        if fs::rename(&new, &path).is_err() {
            let _ = fs::remove_dir_all(&new);
            return Err(LabError::AlreadyRunning {
                name: name.to_owned(),
                pid: supervisor_of(&path),
            });
        }
        Ok(StateDir { path, _lock: lock })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for StateDir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
        // The root is removed with the last lab; if there are others in it, this fails, as it should.
        if let Some(root) = self.path.parent() {
            let _ = fs::remove_dir(root);
        }
    }
}

/// Returns the default directory for the directories of this user's labs.
pub(crate) fn default_root() -> PathBuf {
    let base = std::env::var_os("XDG_RUNTIME_DIR").filter(|base| Path::new(base).is_dir());
    let base = base.map_or_else(|| PathBuf::from("/tmp"), PathBuf::from);
    base.join(format!("causeway-lab-{}", nix::unistd::geteuid()))
}

/// Whether the supervisor of this directory lives.
pub(crate) fn is_alive(path: &Path) -> bool {
    matches!(lock(path), Ok(None))
}

/// Removes the directory if its supervisor is gone; returns whether it did.
pub(crate) fn remove_stale(path: &Path) -> Result<bool, LabError> {
    let failed = |step, source| LabError::State {
        step,
        path: path.to_owned(),
        source,
    };
    let deadline = Instant::now() + HANDOVER_DEADLINE;
    let _lock = loop {
        match lock(path) {
            // The last fork of a killed supervisor may hold the lock for a moment longer.
            Ok(None) if supervisor_is_gone(path) && Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(2));
            }
            Ok(None) => return Ok(false),
            Ok(Some(lock)) => break Some(lock),
            // Somebody is removing it at this moment.
            Err(error) if error.kind() == io::ErrorKind::NotFound => break None,
            Err(source) => return Err(failed("lock", source)),
        }
    };
    match fs::remove_dir_all(path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            Err(failed("remove stale state directory", source))
        }
        _ => Ok(true),
    }
}

/// The supervisor's process id; 0 if it has not written one.
pub(crate) fn supervisor_of(path: &Path) -> u32 {
    fs::read_to_string(path.join(PID_FILE))
        .ok()
        .and_then(|pid| pid.trim().parse().ok())
        .unwrap_or_default()
}

fn supervisor_is_gone(path: &Path) -> bool {
    let pid = supervisor_of(path);
    pid != 0 && !Path::new(&format!("/proc/{pid}")).exists()
}

/// Names of the state directories under `root`, running or stale.
pub(crate) fn all(root: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(root).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
        .collect();
    paths.sort();
    paths
}

/// Checks the root, because it may be in /tmp, where anybody could have made it first.
fn make_root(root: &Path) -> Result<(), LabError> {
    let failed = |step, source| LabError::State {
        step,
        path: root.to_owned(),
        source,
    };
    match DirBuilder::new().mode(0o700).recursive(true).create(root) {
        Ok(()) => {}
        Err(source) => return Err(failed("create", source)),
    }
    let found = fs::symlink_metadata(root).map_err(|source| failed("look at", source))?;
    if !found.is_dir() || found.uid() != nix::unistd::geteuid().as_raw() {
        let source = io::Error::new(
            io::ErrorKind::PermissionDenied,
            "it belongs to somebody else; remove it",
        );
        return Err(failed("use", source));
    }
    Ok(())
}

fn lock(path: &Path) -> io::Result<Option<Flock<File>>> {
    let file = File::options().write(true).open(path.join(LOCK_FILE))?;
    match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
        Ok(lock) => Ok(Some(lock)),
        Err((_, nix::Error::EWOULDBLOCK)) => Ok(None),
        Err((_, errno)) => Err(errno.into()),
    }
}

/// A fork ends or execs within milliseconds.
const HANDOVER_DEADLINE: Duration = Duration::from_secs(5);
const LOCK_FILE: &str = "lock";
const PID_FILE: &str = "supervisor.pid";
