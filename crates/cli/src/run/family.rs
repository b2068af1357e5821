//! Which MPI a program was built for, by the libraries that it names.

use super::launcher::Mpi;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The name of its MPI stands near the beginning of a program; reading ends here.
const MOST_READ: u64 = 32 << 20;

/// The binary interfaces for which launchers differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    OpenMpi,
    /// And what has its binary interface.
    Mpich,
}

impl Family {
    /// The family that a launcher starts.
    pub fn started_by(mpi: Mpi) -> Family {
        if mpi.is_open_mpi() {
            Family::OpenMpi
        } else {
            Family::Mpich
        }
    }

    /// Its usual name.
    pub fn name(self) -> &'static str {
        match self {
            Family::OpenMpi => "Open MPI",
            Family::Mpich => "MPICH or Intel MPI",
        }
    }

    /// Reads a program; `None` where it is a script, names no MPI, or cannot be read.
    pub fn of(program: &Path) -> Option<Family> {
        let mut bytes = Vec::new();
        let file = File::open(program).ok()?;
        file.take(MOST_READ).read_to_end(&mut bytes).ok()?;
        if !bytes.starts_with(b"\x7fELF") {
            return None;
        }
        let mut names = bytes.windows(PREFIX.len()).enumerate();
        names.find_map(|(at, window)| {
            let rest = &bytes[at + PREFIX.len()..];
            match window == PREFIX {
                true if rest.starts_with(b"i.so.40\0") => Some(Family::OpenMpi),
                true if rest.starts_with(b"ich.so") || rest.starts_with(b"i.so.12\0") => Some(Family::Mpich),
                _ => None,
            }
        })
    }
}

/// What the names of these libraries have in common.
const PREFIX: &[u8] = b"libmp";

/// A program as a shell finds it.
pub fn in_path(path: &OsStr, program: &OsStr) -> Option<PathBuf> {
    let program = Path::new(program);
    if program.components().count() > 1 {
        return program.is_file().then(|| program.to_owned());
    }
    let mut files = std::env::split_paths(path).map(|directory| directory.join(program));
    files.find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_programs_mpi_is_read_from_it() {
        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join("app");
        let family = |bytes: &[u8]| {
            std::fs::write(&program, bytes).unwrap();
            Family::of(&program)
        };
        let open_mpi = b"\x7fELF..libmp3.so\0libmpi.so.40\0libc.so.6\0";
        assert_eq!(family(open_mpi), Some(Family::OpenMpi));
        assert_eq!(family(b"\x7fELF..libmpich.so.12\0"), Some(Family::Mpich));
        assert_eq!(family(b"\x7fELF..libmpi.so.12\0"), Some(Family::Mpich));
        assert_eq!(family(b"\x7fELF..libmpi_abi.so.1\0"), None);
        assert_eq!(family(b"\x7fELF..libmp"), None);
        assert_eq!(family(b"#!/bin/sh\n# libmpi.so.40\0"), None);
        assert_eq!(Family::of(Path::new("/no/such")), None);
    }
}
