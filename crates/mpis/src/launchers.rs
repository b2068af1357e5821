//! Names of launchers, and what they report about themselves.

use crate::Mpi;
use std::ffi::OsStr;
use std::path::Path;

/// Names of launchers; Debian and others add the MPI's, as in `mpirun.openmpi`, and hydra its own.
const NAMES: &[&str] = &["mpirun", "mpiexec", "orterun", "prterun"];

/// Full names, as users and distributions write them.
pub const USUAL: [&str; 6] = [
    "mpirun",
    "mpiexec",
    "mpirun.openmpi",
    "mpirun.mpich",
    "mpiexec.hydra",
    "prterun",
];

/// Programs that start MPI programs and are not MPI programs themselves.
pub const STARTING: [&str; 12] = [
    "mpirun",
    "mpiexec",
    "srun",
    "orterun",
    "prterun",
    "mpirun.openmpi",
    "mpiexec.openmpi",
    "mpirun.mpich",
    "mpiexec.mpich",
    "mpiexec.hydra",
    "aprun",
    "jsrun",
];

/// Whether a word names a launcher.
pub fn is_one(word: &OsStr) -> bool {
    let name = Path::new(word).file_name().unwrap_or_default().to_string_lossy();
    let rest = NAMES.iter().find_map(|known| name.strip_prefix(known));
    rest.is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
}

/// The family and version in what `--version` prints.
pub fn recognise(text: &str) -> Option<(Mpi, String)> {
    let after = |mark: &str| {
        let rest = text.split_once(mark)?.1.trim_start();
        let version: String = rest
            .chars()
            .take_while(|c| !c.is_whitespace() && *c != ',')
            .collect();
        version
            .starts_with(|c: char| c.is_ascii_digit())
            .then_some(version)
    };
    if text.contains("Intel(R) MPI Library") {
        return Some((Mpi::Intel, after("Version")?));
    }
    if text.contains("HYDRA build details") {
        return Some((Mpi::Mpich, after("Version:")?));
    }
    if let Some(version) = after("(Open MPI)").or_else(|| after("(OpenRTE)")) {
        let before_5 = ["1.", "2.", "3.", "4."]
            .iter()
            .any(|major| version.starts_with(major));
        return Some((if before_5 { Mpi::OpenMpi4 } else { Mpi::OpenMpi5 }, version));
    }
    after("(PRRTE)").map(|version| (Mpi::OpenMpi5, format!("PRRTE {version}")))
}

/// Whether what an MPICH's launcher reports about itself has both ofi and ucx, like the one from PyPI.
pub fn has_two_netmods(mpi: Mpi, text: &str) -> bool {
    let both = ["ch4:ucx,ofi", "ch4:ofi,ucx"];
    mpi == Mpi::Mpich && both.iter().any(|both| text.contains(both))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_family_is_known_by_its_version_text() {
        let texts = [
            (
                "mpirun (Open MPI) 4.1.4\n\nReport bugs to",
                Mpi::OpenMpi4,
                "4.1.4",
            ),
            ("mpirun.openmpi (OpenRTE) 4.1.4\n\nReport", Mpi::OpenMpi4, "4.1.4"),
            ("mpirun (Open MPI) 5.0.11\n", Mpi::OpenMpi5, "5.0.11"),
            ("prterun (PRRTE) 3.0.13\n", Mpi::OpenMpi5, "PRRTE 3.0.13"),
            (
                "HYDRA build details:\n    Version:                                 4.0.2\n",
                Mpi::Mpich,
                "4.0.2",
            ),
            (
                "Intel(R) MPI Library for Linux* OS, Version 2021.18.1 Build 2026",
                Mpi::Intel,
                "2021.18.1",
            ),
        ];
        for (text, mpi, version) in texts {
            assert_eq!(recognise(text), Some((mpi, version.to_owned())), "{text}");
        }
        assert_eq!(recognise("GNU bash, version 5.2.15"), None);
        assert_eq!(recognise(""), None);
    }

    #[test]
    fn a_launcher_is_known_by_its_name() {
        for word in [
            "mpirun",
            "mpirun.openmpi",
            "/opt/intel/bin/mpiexec.hydra",
            "./mpiexec-5.0",
            "orterun",
            "prterun",
        ] {
            assert!(is_one(OsStr::new(word)), "{word}");
        }
        for word in [
            "./app",
            "mpirunner",
            "python3",
            "srun",
            "/opt/mpirun/bin/app",
            "",
            "/",
        ] {
            assert!(!is_one(OsStr::new(word)), "{word}");
        }
    }
}
