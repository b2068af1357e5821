//! Which MPI a program was built for, judging by the libraries that it asks the loader for.

use crate::elf::Elf;
use std::ffi::OsStr;
use std::fs::File;
use std::path::{Path, PathBuf};

/// The binary interfaces that need different launchers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// Open MPI's.
    OpenMpi,
    /// MPICH's, and that of every MPI with the same binary interface.
    Mpich,
}

impl Family {
    /// Both families.
    pub const ALL: [Family; 2] = [Family::OpenMpi, Family::Mpich];

    /// Its usual name.
    pub fn name(self) -> &'static str {
        match self {
            Family::OpenMpi => "Open MPI",
            Family::Mpich => "MPICH or Intel MPI",
        }
    }

    /// Reads a program; `None` if it is a script, needs no MPI's library, or cannot be read.
    pub fn of(program: &Path) -> Option<Family> {
        // A program may contain the names of other MPIs in its data, as Causeway does; the loader's list
        // decides.
        let needed = Elf::from_file(File::open(program).ok()?)?.needed();
        needed.iter().find_map(|name| Family::from_library(name))
    }

    /// The MPI that gave it its binary interface.
    pub fn short_name(self) -> &'static str {
        match self {
            Family::OpenMpi => "Open MPI",
            Family::Mpich => "MPICH",
        }
    }

    /// The word for its binary interface in the names of Causeway's files.
    pub fn interface(self) -> &'static str {
        match self {
            Family::OpenMpi => "openmpi",
            Family::Mpich => "mpich",
        }
    }

    /// The names of its library for C. Distributions give MPICH's another name.
    pub fn sonames(self) -> &'static [&'static str] {
        match self {
            Family::OpenMpi => &["libmpi.so.40"],
            Family::Mpich => &["libmpi.so.12", "libmpich.so.12"],
        }
    }

    /// The libraries that count the messages of its programs.
    pub fn messages(self) -> &'static [&'static str] {
        match self {
            Family::OpenMpi => &["libcauseway_messages_openmpi.so"],
            Family::Mpich => &["libcauseway_messages_abi.so", "libcauseway_messages_mpich.so"],
        }
    }

    /// The type with which Slurm's srun connects its programs.
    pub fn srun_type(self) -> &'static str {
        match self {
            Family::OpenMpi => "pmix",
            Family::Mpich => "pmi2",
        }
    }

    /// Launchers that start its programs, the most reliable first.
    pub fn launchers(self) -> &'static [&'static str] {
        match self {
            Family::OpenMpi => &["mpirun.openmpi", "mpirun", "mpiexec"],
            Family::Mpich => &["mpiexec.hydra", "mpirun", "mpiexec"],
        }
    }

    fn from_library(name: &[u8]) -> Option<Family> {
        let begins = |names: &[&[u8]]| names.iter().any(|known| name.starts_with(known));
        if begins(OPEN_MPI) {
            Some(Family::OpenMpi)
        } else if begins(MPICH) {
            Some(Family::Mpich)
        } else {
            None
        }
    }
}

/// The beginnings of the names of the libraries for C and Fortran.
const OPEN_MPI: &[&[u8]] = &[b"libmpi.so.40", b"libmpi_mpifh.so", b"libmpi_usempi"];
const MPICH: &[&[u8]] = &[b"libmpich", b"libmpi.so.12", b"libmpifort.so.12"];

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

    use std::process::Command;

    /// A program that is linked with a library of this name.
    fn linked_with(directory: &Path, library: &str) -> PathBuf {
        let program = directory.join("app");
        std::fs::write(directory.join("app.c"), "int main(void) { return 0; }\n").unwrap();
        let cc = |words: &[&str]| {
            let status = Command::new("cc").args(words).current_dir(directory).status();
            assert!(status.unwrap().success(), "cc {words:?}");
        };
        let named = format!("-Wl,-soname,{library}");
        cc(&["-shared", "-x", "c", "/dev/null", &named, "-o", "library.so"]);
        cc(&["app.c", "-Wl,--no-as-needed", "./library.so", "-o", "app"]);
        program
    }

    #[test]
    fn a_programs_mpi_is_that_of_the_libraries_it_asks_for() {
        let directory = tempfile::tempdir().unwrap();
        for (library, family) in [
            ("libmpi.so.40", Some(Family::OpenMpi)),
            ("libmpi_mpifh.so.40", Some(Family::OpenMpi)),
            ("libmpich.so.12", Some(Family::Mpich)),
            ("libmpi.so.12", Some(Family::Mpich)),
            ("libmpi_abi.so.1", None),
        ] {
            let program = linked_with(directory.path(), library);
            assert_eq!(Family::of(&program), family, "{library}");
        }
    }

    #[test]
    fn names_in_a_programs_data_are_no_libraries_of_it() {
        // This very program contains the names, from the test above.
        assert_eq!(Family::of(&std::env::current_exe().unwrap()), None);
        assert_eq!(Family::of(Path::new("/no/such")), None);
    }
}
