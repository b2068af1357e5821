//! The MPIs that are measured: those that were named, or all that PATH has.

use super::Failure;
use causeway_host::say;
use causeway_launchers::launcher::Launcher;
use causeway_mpis::versions;
use std::ffi::OsString;
use std::path::PathBuf;

/// An MPI under the name that its rows have.
#[derive(Debug, Clone)]
pub struct NamedMpi {
    /// Its name and version; with the launcher's path if two are alike.
    pub name: String,
    /// The launcher that starts it.
    pub launcher: Launcher,
}

impl NamedMpi {
    /// Whether `causeway run` tunes it without being told to.
    pub fn is_tested(&self) -> bool {
        versions::known(self.launcher.mpi, &self.launcher.version).is_some()
    }

    /// A program of the same MPI: `mpicc` beside `mpirun`, `mpicc.openmpi` beside `mpirun.openmpi`.
    pub fn sibling(&self, name: &str) -> Option<PathBuf> {
        let own = self.launcher.path.file_name()?.to_string_lossy().into_owned();
        let suffix = own.split_once('.').map(|(_, rest)| format!(".{rest}"));
        let with_suffix = suffix.map(|suffix| format!("{name}{suffix}"));
        let names = with_suffix.into_iter().chain([name.to_owned()]);
        let paths = names.map(|name| self.launcher.path.with_file_name(name));
        paths.into_iter().find(|path| path.is_file())
    }
}

/// The MPIs of these launchers; if none is named, of all launchers in PATH.
pub fn find(wanted: &[OsString]) -> Result<Vec<NamedMpi>, Failure> {
    let mut launchers = Vec::new();
    for word in wanted {
        launchers.push(Launcher::find(word).map_err(Failure::usage)?);
    }
    if wanted.is_empty() {
        for (name, found) in Launcher::in_path() {
            match found {
                Ok(launcher) => launchers.push(launcher),
                Err(error) => say::error(format_args!(
                    "causeway bench: {} is left out: {error}",
                    name.display()
                )),
            }
        }
    }
    if launchers.is_empty() {
        return Err(Failure::usage(
            "PATH has no MPI launcher; load the MPI's module or virtual environment, or name it with --mpi",
        ));
    }
    Ok(named(launchers))
}

fn named(launchers: Vec<Launcher>) -> Vec<NamedMpi> {
    let plain = |launcher: &Launcher| format!("{} {}", launcher.mpi.name(), launcher.version);
    let names: Vec<String> = launchers.iter().map(plain).collect();
    let all = launchers.into_iter().zip(&names).map(|(launcher, name)| {
        let is_alone = names.iter().filter(|other| *other == name).count() == 1;
        let name = match is_alone {
            true => name.clone(),
            false => format!("{name} ({})", launcher.path.display()),
        };
        NamedMpi { name, launcher }
    });
    all.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_mpis::Mpi;

    fn launcher(path: &str, version: &str) -> Launcher {
        Launcher {
            path: path.into(),
            mpi: Mpi::OpenMpi4,
            version: version.into(),
            two_netmods: false,
        }
    }

    #[test]
    fn two_of_one_version_are_told_apart_by_their_paths() {
        let all = named(vec![
            launcher("/a/mpirun", "4.1.4"),
            launcher("/b/mpirun", "4.1.4"),
            launcher("/c/mpirun", "4.1.8"),
        ]);
        let names: Vec<&str> = all.iter().map(|mpi| mpi.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "Open MPI 4.1.4 (/a/mpirun)",
                "Open MPI 4.1.4 (/b/mpirun)",
                "Open MPI 4.1.8"
            ]
        );
    }
}
