//! Finds out which MPI a launcher belongs to. Users call all launchers `mpirun`, so it finds the one in PATH
//! and asks for its version. It asks only programs with a launcher's name: anything else is the user's
//! program, and asking would run it.

use causeway_host::output::{Beyond, Output};
use causeway_mpis::{Mpi, launchers};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A launcher that was found and recognised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launcher {
    /// Its path, in which links are not resolved: its daemons are beside it.
    pub path: PathBuf,
    /// The MPI whose programs it starts.
    pub mpi: Mpi,
    /// Its version, as it reports it.
    pub version: String,
    /// Whether this is an MPICH that can use ofi and ucx, like the one from PyPI.
    pub two_netmods: bool,
}

/// Why a command cannot be run over sites.
#[derive(Debug, thiserror::Error)]
pub enum LauncherError {
    /// By its name, the program is not a launcher.
    #[error(
        "{0:?} is no MPI launcher: the command must begin with one, mpirun or mpiexec, as in \
         'causeway run -- mpirun -n 4 ./app'; for a script that starts MPI by itself: 'causeway run --script -- ./driver.sh'; \
         srun and others start a site's own part of a job: 'causeway run --at SITE srun ...'"
    )]
    Program(OsString),
    /// No such program.
    #[error("{0:?} is not found in PATH; load the MPI's module or virtual environment, or give its path")]
    NotFound(OsString),
    /// The program does not answer `--version` like an MPI launcher.
    #[error(
        "{} is not a known launcher (mpirun or mpiexec of Open MPI 4 or 5, MPICH, Intel MPI): \
         '--version' says {said:?}", path.display()
    )]
    Unknown {
        /// The program.
        path: PathBuf,
        /// The first line that it printed.
        said: String,
    },
    /// The launcher cannot be started.
    #[error("run {} --version: {source}", path.display())]
    Start {
        /// The program.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// The program hangs.
    #[error("{} --version gave no answer within {} s", .0.display(), DEADLINE.as_secs())]
    Silent(PathBuf),
}

/// How long a launcher may take to answer: one from a cold network file system took 2 s, and Intel MPI's is a
/// shell script around another one.
const DEADLINE: Duration = Duration::from_secs(5);

impl Launcher {
    /// Finds every launcher that PATH has under one of the usual names, each once, and the programs with such
    /// names that do not answer like one.
    ///
    /// This takes at most five seconds for each.
    pub fn in_path() -> Vec<(OsString, Result<Launcher, LauncherError>)> {
        let mut seen = HashSet::new();
        let all = launchers::USUAL.map(OsString::from).into_iter().map(|name| {
            let found = Launcher::find(&name);
            (name, found)
        });
        all.filter(|(_, found)| match found {
            // `mpirun` and `mpiexec` are often links to the same program.
            Ok(launcher) => seen.insert(launcher.path.canonicalize().unwrap_or_default()),
            Err(error) => !matches!(error, LauncherError::NotFound(_)),
        })
        .collect()
    }

    /// Finds the launcher and asks it.
    ///
    /// # Errors
    /// See [`LauncherError`]; takes at most five seconds.
    pub fn find(word: &OsStr) -> Result<Launcher, LauncherError> {
        if !launchers::is_one(word) {
            return Err(LauncherError::Program(word.to_owned()));
        }
        let search = std::env::var_os("PATH").unwrap_or_default();
        let path = find_in(word, &search).ok_or_else(|| LauncherError::NotFound(word.to_owned()))?;
        let text = version_text(&path)?;
        let (mpi, version) = launchers::recognise(&text).ok_or_else(|| {
            let first = text
                .lines()
                .find(|line| !line.trim().is_empty())
                .unwrap_or_default();
            LauncherError::Unknown {
                path: path.clone(),
                said: first.chars().take(80).collect(),
            }
        })?;
        let two_netmods = launchers::has_two_netmods(mpi, &text);
        Ok(Launcher {
            path,
            mpi,
            version,
            two_netmods,
        })
    }

    /// Returns the directory of its daemons.
    pub fn directory(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("/"))
    }

    /// `PATH` with its directory first: launchers that are scripts call the next one by its bare name.
    pub fn search_path(path: &Path) -> OsString {
        let mut search = path
            .parent()
            .map_or(OsString::new(), |directory| directory.as_os_str().to_owned());
        if let Some(rest) = std::env::var_os("PATH") {
            search.push(":");
            search.push(rest);
        }
        search
    }
}

/// Finds a program, by its name in these directories or by its path.
pub fn find_in(word: &OsStr, search: &OsStr) -> Option<PathBuf> {
    let runnable =
        |path: &PathBuf| path.is_file() && nix::unistd::access(path, nix::unistd::AccessFlags::X_OK).is_ok();
    if word.as_encoded_bytes().contains(&b'/') {
        return std::path::absolute(word).ok().filter(runnable);
    }
    std::env::split_paths(search)
        .map(|directory| directory.join(word))
        .find(runnable)
}

fn version_text(path: &Path) -> Result<String, LauncherError> {
    let start = |source| LauncherError::Start {
        path: path.to_owned(),
        source,
    };
    let mut command = Command::new(path);
    command.arg("--version").env("PATH", Launcher::search_path(path));
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    // In a group of its own, a script is ended together with everything that it has started; but Ctrl-C no
    // longer reaches it.
    causeway_host::processes::prepare(&mut command);
    let mut child = command.spawn().map_err(start)?;
    // No launcher prints more than a page.
    let mut output = Output::of(&mut child, 64 * 1024, Beyond::Closed);
    // `run` forks later, and must then have only one thread. If there is a text, no thread is left; if not,
    // `run` ends.
    let text = output.all(Instant::now() + DEADLINE);
    end_group(&mut child);
    text.map(|said| said.concat())
        .ok_or_else(|| LauncherError::Silent(path.to_owned()))
}

/// Ends a child and everything else in its group. As long as it was not waited for, its id certainly belongs
/// to it.
fn end_group(child: &mut Child) {
    let _ = killpg(Pid::from_raw(child.id() as i32), Signal::SIGKILL);
    let _ = child.wait();
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An executable script in a directory.
    fn script(directory: &Path, name: &str, lines: &str) -> PathBuf {
        use std::os::unix::fs::PermissionsExt;
        let path = directory.join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{lines}\n")).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        path
    }

    #[test]
    fn a_program_in_place_of_a_launcher_is_refused_without_being_run() {
        let directory = tempfile::tempdir().unwrap();
        let ran = directory.path().join("ran");
        let app = script(directory.path(), "app", &format!("touch {}", ran.display()));
        let refusal = Launcher::find(app.as_os_str()).unwrap_err().to_string();
        assert!(
            refusal.contains("must begin with one") && !refusal.contains('\n'),
            "{refusal}"
        );
        assert!(!ran.exists());
    }

    #[test]
    fn nothing_is_left_of_a_launcher_that_was_asked() {
        let directory = tempfile::tempdir().unwrap();
        let note = directory.path().join("pid");
        let lines = format!(
            "sleep 1000 >/dev/null 2>&1 & echo $! > {}\necho 'mpirun (Open MPI) 4.1.4'",
            note.display()
        );
        let path = script(directory.path(), "mpirun", &lines);
        assert_eq!(Launcher::find(path.as_os_str()).unwrap().version, "4.1.4");
        let pid = std::fs::read_to_string(&note).unwrap();
        let stat = || std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
        // Once killed, it may stay a zombie until init has collected it.
        let runs = || stat().is_ok_and(|stat| !stat.contains(") Z "));
        let deadline = Instant::now() + DEADLINE;
        while runs() {
            assert!(Instant::now() < deadline, "still there after {DEADLINE:?}: {pid}");
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_word_with_a_slash_is_a_path() {
        assert_eq!(
            find_in(OsStr::new("/bin/sh"), OsStr::new("")),
            Some("/bin/sh".into())
        );
        assert_eq!(
            find_in(OsStr::new("sh"), OsStr::new("/nowhere:/bin")),
            Some("/bin/sh".into())
        );
        assert_eq!(find_in(OsStr::new("sh"), OsStr::new("/nowhere")), None);
        assert_eq!(find_in(OsStr::new("/bin"), OsStr::new("")), None);
    }
}
