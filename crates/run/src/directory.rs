//! The private directory of one run: it contains the host list, and the name by which launchers call the
//! agent.
//!
//! The directory is all that could be left behind if every process of the run were killed with SIGKILL; the
//! next run then removes it.

use super::distribution::Share;
use super::leftovers::{self, PREFIX};
use causeway_control::NodeInfo;
use causeway_host::lock::Lock;
use causeway_launchers::programs::Programs;
use causeway_mpis::Mpi;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A directory that is removed when this is dropped.
#[derive(Debug)]
pub struct RunDirectory {
    path: PathBuf,
    /// The directory's lock, which shows others that the run lives.
    _held: Lock,
}

impl RunDirectory {
    /// Makes the directory, with mode 0700 and with the agent's name in it.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn create(own: &Path) -> io::Result<RunDirectory> {
        leftovers::sweep();
        let (path, _held) = loop {
            let path = make_in(leftovers::places())?;
            if let Some(held) = leftovers::hold(&path)? {
                break (path, held);
            }
        };
        let directory = RunDirectory { path, _held };
        // hydra expects a path without arguments, and a link works even where programs must not be written.
        std::os::unix::fs::symlink(own, directory.agent())?;
        Ok(directory)
    }

    /// Returns the directory's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path of the program that launchers call in place of ssh.
    pub fn agent(&self) -> PathBuf {
        self.path.join(causeway_remote::AGENT_NAME)
    }

    /// Writes the programs of a user's file in the form that the launcher reads.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn write_programs(&self, programs: &Programs) -> io::Result<PathBuf> {
        let path = self.path.join("programs");
        std::fs::write(&path, programs.text())?;
        Ok(path)
    }

    /// Writes the host list in the form that the MPI reads.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn write_hosts(&self, mpi: Mpi, shares: &[Share]) -> io::Result<PathBuf> {
        let path = self.path.join("hosts");
        std::fs::write(&path, host_list(mpi, shares))?;
        Ok(path)
    }
}

/// Makes the directory in the first place that allows it. Places with blanks in their paths are skipped:
/// hydra would split the path of its agent at them (HYDRA_LAUNCHER_EXEC).
fn make_in(places: impl Iterator<Item = PathBuf>) -> io::Result<PathBuf> {
    let mut refusals = Vec::new();
    for place in places {
        if place.as_os_str().as_bytes().iter().any(u8::is_ascii_whitespace) {
            refusals.push(format!("{}: blanks in the path", place.display()));
            continue;
        }
        match nix::unistd::mkdtemp(&place.join(format!("{PREFIX}XXXXXX"))) {
            Ok(path) => return Ok(path),
            Err(error) => refusals.push(format!("{}: {}", place.display(), error.desc())),
        }
    }
    Err(io::Error::other(format!(
        "{}; set TMPDIR to a directory that can be written",
        refusals.join("; ")
    )))
}

impl Drop for RunDirectory {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

/// Removes a run's directory. Each process of the run does so when it ends, so the directory may be gone
/// already.
pub fn remove(path: &Path) {
    let _ = std::fs::remove_dir_all(path);
}

/// Whether the host list must name a node by its name: an IPv6 address would be cut at its colons.
pub fn stands_by_name(node: &NodeInfo) -> bool {
    node.address.is_ipv6()
}

/// Writes the host list. It names nodes by their addresses where possible, so that no site needs to know
/// another site's names.
fn host_list(mpi: Mpi, shares: &[Share]) -> String {
    let line = |share: &Share| {
        let host = match stands_by_name(share.node) {
            false => share.node.address.to_string(),
            true => share.node.name.clone(),
        };
        format!("{host}{}{}\n", mpi.row().before_slots, share.ranks)
    };
    shares.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_stand_by_address_in_the_words_of_each_mpi() {
        let v4 = NodeInfo {
            name: "nancy-1".into(),
            address: [10, 2, 0, 1].into(),
            slots: 4,
        };
        let v6 = NodeInfo {
            name: "orsay-1".into(),
            address: "fd00::1".parse().unwrap(),
            slots: 4,
        };
        let shares = [
            Share {
                site: "nancy",
                node: &v4,
                ranks: 2,
            },
            Share {
                site: "orsay",
                node: &v6,
                ranks: 1,
            },
        ];
        assert_eq!(
            host_list(Mpi::OpenMpi5, &shares),
            "10.2.0.1 slots=2\norsay-1 slots=1\n"
        );
        assert_eq!(host_list(Mpi::Intel, &shares), "10.2.0.1:2\norsay-1:1\n");
    }

    #[test]
    fn the_directory_goes_with_its_owner() {
        let directory = RunDirectory::create(Path::new("/bin/true")).unwrap();
        let path = directory.path().to_owned();
        assert!(directory.agent().exists());
        drop(directory);
        assert!(!path.exists());
    }

    #[test]
    fn the_directory_is_made_where_it_can_be() {
        let usable = tempfile::tempdir().unwrap();
        let blank = usable.path().join("my files");
        std::fs::create_dir(&blank).unwrap();
        let unusable = [PathBuf::from("/proc/self"), PathBuf::from("/no/such"), blank];
        let places = unusable.iter().cloned().chain([usable.path().to_owned()]);
        let made = make_in(places).unwrap();
        assert_eq!(made.parent(), Some(usable.path()));
        let refusal = make_in(unusable.into_iter()).unwrap_err().to_string();
        for part in [
            "/proc/self: ",
            "/no/such: No such file",
            "my files: blanks",
            "set TMPDIR",
        ] {
            assert!(refusal.contains(part), "{refusal}");
        }
    }
}
