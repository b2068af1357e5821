//! Builds the NAS Parallel Benchmarks from the user's copy of their sources, once for each MPI.

use super::mpis::NamedMpi;
use crate::program::Program;
use causeway_host::quoted;
use causeway_wire::TextError;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// How long building one program may take: the largest one takes half a minute.
const BUILD: Duration = Duration::from_secs(600);

/// The sources, and what to build from them.
#[derive(Debug)]
pub struct Sources {
    /// A directory or an archive; it stays as it is.
    pub source: PathBuf,
    /// The class of the problems: `A` and so on.
    pub class: String,
    /// Options of the Fortran compiler.
    pub fflags: String,
    /// Where copies are built, one for each MPI.
    pub directory: PathBuf,
}

impl Sources {
    /// The program of one benchmark for this many ranks; it is built if it does not exist yet.
    ///
    /// # Errors
    /// Why there is none; the error is a sentence.
    pub fn program(
        &self,
        (benchmark, ranks): (&str, u32),
        mpi: &NamedMpi,
        stop: &Arc<AtomicBool>,
    ) -> Result<PathBuf, TextError> {
        let slug: String = mpi
            .name
            .to_lowercase()
            .replace(|c: char| !c.is_ascii_alphanumeric() && c != '.', "-");
        let copy = self.directory.join(slug);
        let found = |copy: &Path| {
            // Versions before 3.4 have the number of ranks in the name.
            let names = [ranks.to_string(), "x".to_owned()];
            let names = names.map(|last| format!("{benchmark}.{}.{last}", self.class));
            let paths = names.map(|name| copy.join("bin").join(name));
            paths.into_iter().find(|path| path.is_file())
        };
        if let Some(program) = root(&copy).as_deref().and_then(found) {
            return Ok(program);
        }
        let tool = |name: &str| {
            let path = mpi.sibling(name);
            path.ok_or_else(|| {
                let launcher = mpi.launcher.path.display();
                TextError::from(format!("there is no {name} beside {launcher}"))
            })
        };
        let (fortran, c) = (tool("mpif77").or_else(|_| tool("mpifort"))?, tool("mpicc")?);
        std::fs::create_dir_all(&copy).map_err(|error| format!("create {}: {error}", copy.display()))?;
        if root(&copy).is_none() {
            self.copy(&copy, stop)?;
        }
        let root = root(&copy).ok_or_else(|| {
            format!(
                "{} has no directory 'config' beside CG and IS",
                self.source.display()
            )
        })?;
        let text = self.make_def(&fortran, &c);
        let path = root.join("config/make.def");
        std::fs::write(&path, text).map_err(|error| format!("write {}: {error}", path.display()))?;
        // Their makefile makes the directory for programs only in some versions.
        let line = format!(
            "mkdir -p {bin} && make -C {root} {benchmark} CLASS={} NPROCS={ranks}",
            self.class,
            bin = quoted(root.join("bin")),
            root = quoted(&root),
        );
        self.run(&line, &copy, stop)?;
        let missing = || {
            let (class, copy) = (&self.class, copy.display());
            format!("make {benchmark} CLASS={class} NPROCS={ranks} made no program; its output is in {copy}")
        };
        Ok(found(&root).ok_or_else(missing)?)
    }

    fn copy(&self, to: &Path, stop: &Arc<AtomicBool>) -> Result<(), TextError> {
        let source = std::path::absolute(&self.source).unwrap_or_else(|_| self.source.clone());
        let source = quoted(source);
        let line = match self.source.is_dir() {
            // Sources that can be read need not be writable.
            true => format!("cp -rL {source} source && chmod -R u+w source"),
            false => format!("tar -xf {source} --no-same-owner && chmod -R u+w ."),
        };
        self.run(&line, to, stop)
    }

    fn run(&self, line: &str, directory: &Path, stop: &Arc<AtomicBool>) -> Result<(), TextError> {
        let program = Program::new(line, directory, BUILD).until(stop);
        let done = program.succeed();
        done.map_err(|error| format!("{}; its output is in {}", error.reason(), directory.display()))?;
        Ok(())
    }

    /// The settings of the makefiles, under the names of versions 3.3 and 3.4.
    fn make_def(&self, fortran: &Path, c: &Path) -> String {
        let (fortran, c, flags) = (fortran.display(), c.display(), &self.fflags);
        format!(
            "MPIF77 = {fortran}\nMPIFC = {fortran}\nFLINK = {fortran}\nFFLAGS = {flags}\nFLINKFLAGS = {flags}\n\
             MPICC = {c}\nCLINK = {c}\nCFLAGS = -O3\nCLINKFLAGS = -O3\n\
             CC = cc -g\nUCC = cc\nBINDIR = ../bin\nRAND = randi8\n"
        )
    }
}

/// The directory of the sources, at `copy` or right below it.
fn root(copy: &Path) -> Option<PathBuf> {
    let is_root = |path: &PathBuf| ["config", "CG", "IS"].iter().all(|name| path.join(name).is_dir());
    let below = std::fs::read_dir(copy)
        .ok()?
        .filter_map(|entry| Some(entry.ok()?.path()));
    let mut all = std::iter::once(copy.to_owned()).chain(below);
    all.find(is_root)
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_launchers::launcher::Launcher;
    use causeway_mpis::Mpi;

    fn mpi() -> NamedMpi {
        NamedMpi {
            name: "Open MPI 4.1.4".into(),
            launcher: Launcher {
                path: "/nowhere/mpirun".into(),
                mpi: Mpi::OpenMpi4,
                version: "4.1.4".into(),
                two_netmods: false,
            },
        }
    }

    fn sources(directory: &Path) -> Sources {
        Sources {
            source: directory.join("absent"),
            class: "S".into(),
            fflags: String::new(),
            directory: directory.join("npb"),
        }
    }

    #[test]
    fn a_program_that_was_built_is_not_built_again() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().join("npb/open-mpi-4.1.4/NPB3.4");
        for name in ["config", "CG", "IS", "bin"] {
            std::fs::create_dir_all(root.join(name)).unwrap();
        }
        std::fs::write(root.join("bin/cg.S.x"), "").unwrap();
        let found = sources(directory.path()).program(("cg", 4), &mpi(), &Arc::default());
        assert_eq!(found.ok(), Some(root.join("bin/cg.S.x")));
    }

    #[test]
    fn an_mpi_without_compilers_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let error = sources(directory.path()).program(("cg", 4), &mpi(), &Arc::default());
        assert_eq!(
            error.unwrap_err().to_string(),
            "there is no mpifort beside /nowhere/mpirun"
        );
    }
}
