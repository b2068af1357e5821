//! The MPI programs that come with Causeway, and how a user's launcher starts them: see mpi/programs/loader.

use crate::launcher::Launcher;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// File name of the program that loads the others, beside the causeway binary.
const LOADER: &str = "causeway-loader";

/// One of the programs, for one MPI.
#[derive(Debug, Clone)]
pub struct MpiProgram {
    loader: PathBuf,
    name: &'static str,
    interface: &'static str,
    libraries: String,
}

impl MpiProgram {
    /// The program with that name beside `causeway`, for the MPI of `launcher`.
    pub fn new(causeway: &Path, name: &'static str, launcher: &Launcher) -> MpiProgram {
        MpiProgram {
            loader: causeway.with_file_name(LOADER),
            name,
            interface: launcher.mpi.row().family.interface(),
            libraries: libraries(launcher),
        }
    }

    /// A file that it needs and that does not exist.
    pub fn missing(&self) -> Option<PathBuf> {
        let library = format!("libcauseway_{}_{}.so", self.name, self.interface);
        let files = [self.loader.clone(), self.loader.with_file_name(library)];
        files.into_iter().find(|file| !file.is_file())
    }

    /// The words that start it, following the launcher and its options.
    pub fn words(&self) -> [OsString; 4] {
        let [name, interface] = [self.name, self.interface].map(OsString::from);
        [
            self.loader.clone().into(),
            name,
            interface,
            self.libraries.clone().into(),
        ]
    }
}

/// Lists the places where the MPI's library may be: beside its launcher, or where the system looks for it.
fn libraries(launcher: &Launcher) -> String {
    let names = launcher.mpi.row().family.sonames();
    let real = launcher.path.canonicalize().unwrap_or_default();
    let prefixes = [launcher.path.as_path(), real.as_path()].map(|path| path.parent().and_then(Path::parent));
    let mut all = Vec::new();
    for prefix in prefixes.into_iter().flatten() {
        for directory in ["lib", "lib64"] {
            let paths = names.iter().map(|name| prefix.join(directory).join(name));
            all.extend(
                paths
                    .filter(|path| path.is_file())
                    .map(|path| path.display().to_string()),
            );
        }
    }
    all.extend(names.iter().map(|name| (*name).to_owned()));
    all.join(":")
}
