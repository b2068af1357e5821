//! `causeway run --script -- ./driver.sh`: runs a script, or any other program, that starts MPI itself, any
//! number of times. The launchers that it finds in PATH are links to this program, and each call of one is
//! `causeway run` with the options of the script's own command line.

use super::allocations::Allocations;
use super::child::{self, ChildError};
use super::coallocation::{self, Begun};
use super::directory::RunDirectory;
use super::error::RunError;
use super::job::known_sites;
use super::meant::{Nodes, Run, Start};
use super::patience::Patience;
use super::phase;
use super::sites::names;
use causeway_host::say;
use causeway_launchers::launcher::find_in;
use causeway_mpis::launchers::USUAL;
use causeway_remote::parts::Expected;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// The variable with the directory of a script's launchers. The script has it; the processes that its
/// launchers start do not.
const VARIABLE: &str = "CAUSEWAY_SCRIPT";

/// Names in a run's directory: the directory of the launchers and, beside it, the file with their options.
const LAUNCHERS: &str = "launchers";
const OPTIONS: &str = "options";

/// The status of a shell for a command that it does not find.
const NOT_FOUND: u8 = 127;

/// Gets the allocations of `--time`, in which all jobs of the script run.
fn begin(run: &Run) -> Result<Option<Begun>, RunError> {
    if !run.asks_for_nodes() {
        return Ok(None);
    }
    let mut known = known_sites(run.mode, &names(run.sites.as_deref()))?;
    coallocation::begin(run, &mut known)
}

/// Runs the script to its end, and returns its status.
///
/// # Errors
/// The script cannot be started, its directory cannot be made, or its allocations are not given.
pub fn run(run: &Run, script: &[OsString], own: &Path) -> Result<u8, RunError> {
    let (word, words) = script.split_first().ok_or(RunError::NoCommand)?;
    let begun = begin(run)?;
    let options = for_launchers(run, begun.as_ref().map(|begun| &begun.allocations)).options();
    let signals = child::hold_signals(Patience::without_limit()).map_err(RunError::Signals)?;
    let directory = RunDirectory::create(own).map_err(RunError::Directory)?;
    let launchers = directory.path().join(LAUNCHERS);
    make(own, directory.path(), &options).map_err(RunError::Directory)?;
    let mut command = Command::new(word);
    command
        .args(words)
        .env(VARIABLE, &launchers)
        .env("PATH", with(&launchers, std::env::var_os("PATH").as_deref()));
    phase::report_running(run.report.as_deref()).map_err(RunError::Report)?;
    // The jobs belong to the script's launchers: this process only has the job of the allocations.
    let (none, _far_end) = UnixStream::pair().map_err(RunError::Directory)?;
    let job = begun.as_ref().map_or(&none, |begun| &begun.connection);
    let expected = Expected {
        sites: Vec::new(),
        leaves_ends: true,
    };
    let ended = child::run(command, job, directory.path(), signals, expected);
    let status = ended.and_then(child::Ended::status);
    let status = status.map_err(|error: ChildError| RunError::from(error))?;
    Ok(begun.map_or(status, |begun| begun.held.status_after(status)))
}

/// The description of what each launcher of a script runs: the script's own run, without what applies to the
/// script alone. A submitted job has begun when its script begins. With the allocations of `--time`,
/// launchers use those of all the run's sites, and the script decides how many ranks each job has.
fn for_launchers(run: &Run, held: Option<&Allocations>) -> Run {
    let mut each = Run {
        start: Start::Launcher(Vec::new()),
        wait: None,
        wait_until: None,
        report: None,
        ..run.clone()
    };
    if let Some(held) = held {
        each.nodes = Nodes::Allocated(held.clone());
        for (_, ranks) in each.sites.iter_mut().flatten() {
            *ranks = None;
        }
    }
    each
}

/// Makes the launchers, and writes their options.
fn make(own: &Path, directory: &Path, options: &[OsString]) -> io::Result<()> {
    let launchers = directory.join(LAUNCHERS);
    fs::create_dir(&launchers)?;
    // No word contains a zero byte.
    let words: Vec<&[u8]> = options.iter().map(|word| word.as_bytes()).collect();
    fs::write(directory.join(OPTIONS), words.join(&0))?;
    USUAL
        .iter()
        .try_for_each(|name| symlink(own, launchers.join(name)))
}

/// Reads the options that [`make`] has written.
fn read_options(launchers: &Path) -> io::Result<Vec<OsString>> {
    let file = launchers.with_file_name(OPTIONS);
    let bytes = fs::read(&file)
        .map_err(|error| io::Error::new(error.kind(), format!("read {}: {error}", file.display())))?;
    let words = bytes.split(|byte| *byte == 0).filter(|word| !word.is_empty());
    Ok(words.map(|word| OsString::from_vec(word.to_vec())).collect())
}

/// PATH with the launchers in front.
fn with(launchers: &Path, path: Option<&OsStr>) -> OsString {
    let mut all = launchers.as_os_str().to_owned();
    if let Some(path) = path {
        all.push(":");
        all.push(path);
    }
    all
}

/// PATH without the launchers, wherever a script has put them in it.
fn without(launchers: &Path, path: &OsStr) -> OsString {
    let others: Vec<&[u8]> = path
        .as_bytes()
        .split(|byte| *byte == b':')
        .filter(|directory| *directory != launchers.as_os_str().as_bytes())
        .collect();
    OsString::from_vec(others.join(&b':'))
}

/// The script's launcher under whose name this process was called: its name, the directory of the launchers,
/// and its words.
pub fn called_by_name() -> Option<Called> {
    let mut words = std::env::args_os();
    let name = PathBuf::from(words.next()?).file_name()?.to_owned();
    let launchers = std::env::var_os(VARIABLE).map(PathBuf::from)?;
    let is_one = USUAL.iter().any(|usual| name == *usual);
    (is_one && launchers.is_absolute()).then(|| Called {
        name,
        launchers,
        words: words.collect(),
    })
}

/// See [`called_by_name`].
pub struct Called {
    name: OsString,
    launchers: PathBuf,
    words: Vec<OsString>,
}

/// Runs, over the sites, the launcher that the script would otherwise have found.
pub fn call(called: &Called) -> ExitCode {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = without(&called.launchers, &path);
    let name = called.name.to_string_lossy();
    let Some(launcher) = find_in(&called.name, &path) else {
        say::error(format_args!(
            "causeway: {name:?} is not found in PATH, but for Causeway's own"
        ));
        return ExitCode::from(NOT_FOUND);
    };
    let run = || -> io::Result<io::Error> {
        let mut command = Command::new(std::env::current_exe()?);
        command
            .arg("run")
            .args(read_options(&called.launchers)?)
            .arg("--")
            .arg(launcher)
            .args(&called.words)
            .env("PATH", &path)
            .env_remove(VARIABLE);
        Ok(command.exec())
    };
    let error = run().unwrap_or_else(|error| error);
    say::error(format_args!("causeway: run {name} of a script: {error}"));
    ExitCode::FAILURE
}

#[cfg(test)]
mod tests {
    use super::super::meant::Asked;
    use super::super::mode::Mode;
    use super::*;
    use std::time::Duration;

    #[test]
    fn launchers_get_the_options_of_the_scripts_command_line_but_for_those_of_its_own_run() {
        let words = |run: &Run| run.options().join(OsStr::new(" "));
        let script = Run {
            sites: Some(vec![
                ("rennes".to_owned(), Some(2)),
                ("nancy".to_owned(), Some(2)),
            ]),
            weight: 3,
            wait: Some(Duration::from_secs(3600)),
            wait_until: Some(Duration::from_secs(9)),
            report: Some("/f".into()),
            ..Run::new(Mode::Shim, Start::Script(vec!["./driver.sh".into()]))
        };
        let each = for_launchers(&script, None);
        assert_eq!(words(&each), "--sites rennes=2,nancy=2 --weight 3");
        let script = Run {
            nodes: Nodes::Asked(Asked {
                time: Duration::from_secs(3600),
                idle: Duration::from_secs(60),
                options: [("rennes".to_owned(), vec!["--partition=fast".to_owned()])].into(),
            }),
            ..script
        };
        let held = [("rennes", "1"), ("nancy", "7")].map(|(site, id)| (site.to_owned(), id.to_owned()));
        let each = for_launchers(&script, Some(&held.into()));
        assert_eq!(
            words(&each),
            "--sites rennes,nancy --alloc nancy:7 --alloc rennes:1 --weight 3"
        );
    }

    #[test]
    fn a_script_finds_links_to_this_program_and_the_options_stand_beside_them() {
        let directory = tempfile::tempdir().unwrap();
        let options = [OsString::from("--sites"), OsString::from("rennes=2, nancy=2")];
        make(Path::new("/bin/true"), directory.path(), &options).unwrap();
        let launchers = directory.path().join(LAUNCHERS);
        assert_eq!(read_options(&launchers).unwrap(), options);
        let path = with(&launchers, Some(OsStr::new("/usr/bin:/bin")));
        let found = find_in(OsStr::new("mpirun"), &path).unwrap();
        assert_eq!(fs::read_link(found).unwrap(), Path::new("/bin/true"));
        // A module that the script loads puts its own directory first.
        let mut more = OsString::from("/opt/mpi/bin:");
        more.push(&path);
        assert_eq!(without(&launchers, &more), "/opt/mpi/bin:/usr/bin:/bin");
        assert_eq!(with(&launchers, None), launchers.as_os_str());
        let none = tempfile::tempdir().unwrap();
        make(Path::new("/bin/true"), none.path(), &[]).unwrap();
        assert!(read_options(&none.path().join(LAUNCHERS)).unwrap().is_empty());
    }
}
