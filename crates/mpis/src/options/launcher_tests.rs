//! Compares the tables with the launchers themselves: each option in a launcher's own help is given to it
//! before programs called 1, 2 and 3, and the one that runs shows how many values the option took.

use super::{FLAGS_OPEN_MPI_5, Mpi, PAIRED_OPEN_MPI, VALUED, VALUED_OPEN_MPI_5, read};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Values with which a launcher starts the program, for options that take no number.
const VALUES: &[(&str, &str)] = &[
    ("am", "/dev/null"),
    ("app-prefix", "/usr"),
    ("bind-to", "none"),
    ("bootstrap", "fork"),
    ("cartofile", "/dev/null"),
    ("cpu-list", "0"),
    ("cpu-set", "0"),
    ("debugger", "true"),
    ("default-hostfile", "HOSTS"),
    ("demux", "poll"),
    ("display", "map"),
    ("env", "A 1"),
    ("f", "HOSTS"),
    ("file", "HOSTS"),
    ("genv", "A 1"),
    ("gmca", "btl self"),
    ("gomca", "btl self"),
    ("gpmixmca", "a b"),
    ("gprtemca", "a b"),
    ("gtool", "env:0"),
    ("H", "localhost"),
    ("host", "localhost"),
    ("hostfile", "HOSTS"),
    ("hostlist", "localhost"),
    ("hosts", "localhost"),
    ("iface", "lo"),
    ("launcher", "fork"),
    ("machine", "HOSTS"),
    ("machinefile", "HOSTS"),
    ("machinelist", "localhost"),
    ("machines", "localhost"),
    ("map-by", "slot"),
    ("mca", "btl self"),
    ("omca", "btl self"),
    ("order-nodes", "ascending"),
    ("outfile", "out"),
    ("outfile-pattern", "out"),
    ("output", "tag"),
    ("output-directory", "out"),
    ("output-filename", "out"),
    ("path", "."),
    ("ppr", "1:node"),
    ("personality", "ompi"),
    ("pmixmca", "a b"),
    ("prefix", "/usr"),
    ("prtemca", "a b"),
    ("rank-by", "slot"),
    ("rmk", "user"),
    ("rtos", "show-progress"),
    ("runtime-options", "show-progress"),
    ("stdin", "none"),
    ("wd", "/"),
    ("wdir", "/"),
    ("with-ft", "none"),
    ("x", "A=1"),
];

/// Options with which a launcher starts no program, or not only on this host: those that only print, those
/// that need something that does not exist here (a debugger, a terminal, a running server, several hosts),
/// and names that the help shows but the launcher does not know.
#[rustfmt::skip]
const START_NOTHING: &[&str] = &[
    "amca", "app", "append-env", "aps", "cf", "check_mpi", "configfile", "continuous", "debug",
    "disable-recovery", "do-not-launch", "dvm", "dvm-hostfile", "enable-recovery", "gdb", "gdb-args",
    "gpmixmca", "gprtemca", "gpus-per-proc", "gtool", "gtoolfile", "h", "help", "hnp", "hosts-group",
    "info", "launch-agent", "mps", "namespace", "nolocal", "ompi-server", "output-from",
    "output-proctable", "pid", "preload-binary", "preload-files", "prepend-env", "rankfile", "rankmap",
    "report-events", "report-pid", "report-uri", "rf", "s", "singleton", "skip-launch-node",
    "stop-in-app", "stop-in-init", "stop-on-exec", "system-server", "system-server-only", "tune", "tv",
    "uri", "V", "v", "verbose", "version", "xml-file", "xterm",
];

/// What launchers print about an option that they do not have.
const UNKNOWN: &[&str] = &["unrecognized argument", "unrecognized option", "unknown option"];

/// What a launcher was found to do.
enum Seen {
    /// The launcher ran a program, after this many values.
    Ran(usize),
    /// The launcher ran no program, and printed this.
    Nothing(String),
}

struct Probe {
    directory: tempfile::TempDir,
    launcher: PathBuf,
}

impl Probe {
    fn of(launcher: &Path) -> Probe {
        Probe {
            directory: tempfile::tempdir().unwrap(),
            launcher: launcher.to_owned(),
        }
    }

    /// Writes the programs anew: an option may have taken the name of one for its output.
    fn lay_out(&self) {
        let directory = self.directory.path();
        for name in ["1", "2", "3"] {
            let path = directory.join(name);
            let _ = std::fs::remove_file(&path);
            let _ = std::fs::remove_dir_all(&path);
            let mark = self.mark(name);
            let _ = std::fs::remove_file(&mark);
            // The program is not recognised by its output, because an option may send that elsewhere.
            std::fs::write(&path, format!("#!/bin/sh\n: >{}\n", mark.display())).unwrap();
            std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        }
        std::fs::write(directory.join("HOSTS"), "localhost\n").unwrap();
    }

    /// The file that a program makes when it runs.
    fn mark(&self, name: &str) -> PathBuf {
        self.directory.path().join(format!("ran-{name}"))
    }

    fn run(&self, words: &[&str]) -> String {
        self.lay_out();
        let path = std::env::var_os("PATH").unwrap_or_default();
        let own = self.launcher.parent().into_iter().chain([self.directory.path()]);
        let path = std::env::join_paths(own.map(PathBuf::from).chain(std::env::split_paths(&path))).unwrap();
        let mut command = Command::new("timeout");
        command
            .args(["--signal=KILL", "10"])
            .arg(&self.launcher)
            .args(words);
        for family in ["OMPI", "PRTE"] {
            command.env(format!("{family}_ALLOW_RUN_AS_ROOT"), "1");
            command.env(format!("{family}_ALLOW_RUN_AS_ROOT_CONFIRM"), "1");
        }
        // The output is a file, because a daemon that outlives its launcher would keep a pipe open.
        let said = tempfile::NamedTempFile::new().unwrap();
        command.env("PATH", path).current_dir(self.directory.path());
        command.stdin(Stdio::null()).stdout(appending(said.path()));
        command.stderr(appending(said.path()));
        command.status().unwrap();
        String::from_utf8_lossy(&std::fs::read(said.path()).unwrap()).into_owned()
    }

    /// The words from the option on, and what the launcher did with them.
    fn with(&self, option: &str, values: &[&str]) -> (Vec<OsString>, Seen) {
        let mut words = vec![option];
        words.extend(values);
        words.extend(["1", "2", "3"]);
        let said = self.run(&words);
        let ran = (1..=3).find(|number: &usize| self.mark(&number.to_string()).exists());
        let all = words.iter().map(OsString::from).collect();
        (
            all,
            ran.map_or(Seen::Nothing(said), |ran| Seen::Ran(values.len() + ran)),
        )
    }
}

fn appending(path: &Path) -> std::fs::File {
    std::fs::OpenOptions::new().append(true).open(path).unwrap()
}

/// The words in a launcher's help that begin its options.
fn options_in(help: &str) -> BTreeSet<String> {
    let lines = help
        .lines()
        .map(str::trim_start)
        .filter(|line| line.starts_with('-'));
    let words = lines.filter_map(|line| line.split_whitespace().next());
    let words = words.flat_map(|word| word.split(['/', '|', '=']));
    let options = words.filter(|word| word.starts_with('-') && word.len() > 1 && !word.starts_with("---"));
    options
        .map(|word| word.trim_end_matches([',', ':']).to_owned())
        .collect()
}

/// Compares the two; returns what is wrong.
fn compared(mpi: Mpi, launcher: &Path, options: &BTreeSet<String>) -> Vec<String> {
    let probe = Probe::of(launcher);
    let mut wrong = Vec::new();
    for option in options {
        let name = option.trim_start_matches('-');
        if START_NOTHING.contains(&name) {
            continue;
        }
        let known = VALUES.iter().find(|(known, _)| *known == name);
        let tries = [Some(""), known.map(|(_, values)| *values)];
        let mut said = String::new();
        let mut is_seen = false;
        for values in tries.into_iter().flatten() {
            let values: Vec<&str> = values.split_whitespace().collect();
            match probe.with(option, &values) {
                (words, Seen::Ran(at)) => {
                    is_seen = true;
                    let (_, end) = read(mpi, &words, 0);
                    if end != at {
                        wrong.push(format!(
                            "{option}: the program is word {at}, the table says {end}"
                        ));
                    }
                    break;
                }
                (_, Seen::Nothing(text)) => said = text,
            }
        }
        let is_unknown = UNKNOWN.iter().any(|text| said.contains(text));
        if !is_seen && !is_unknown {
            let said: String = said.chars().take(300).collect();
            wrong.push(format!("{option}: not classified; the launcher says {said:?}"));
        }
    }
    wrong
}

fn agrees(mpi: Mpi, launcher: &str, help: &[&str]) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let path = root.join(launcher);
    let launcher = if path.exists() {
        path
    } else {
        PathBuf::from(launcher)
    };
    let mut options = options_in(&Probe::of(&launcher).run(help));
    if mpi == Mpi::OpenMpi5 {
        // The help does not name any.
        let tables = [VALUED, VALUED_OPEN_MPI_5, PAIRED_OPEN_MPI, FLAGS_OPEN_MPI_5];
        options = tables.concat().iter().map(|name| dashed(name)).collect();
    }
    assert!(options.len() > 30, "{}: {options:?}", launcher.display());
    let wrong = compared(mpi, &launcher, &options);
    assert!(wrong.is_empty(), "{}:\n{}", launcher.display(), wrong.join("\n"));
}

fn dashed(name: &str) -> String {
    let dashes = if name.len() == 1 { "-" } else { "--" };
    format!("{dashes}{name}")
}

#[test]
#[ignore = "starts each launcher a hundred times; run by make test T=mpis"]
fn each_option_of_debians_open_mpi_takes_what_the_table_says() {
    agrees(Mpi::OpenMpi4, "mpirun.openmpi", &["--help", "all"]);
}

#[test]
#[ignore = "starts each launcher a hundred times; run by make test T=mpis"]
fn each_option_of_debians_mpich_takes_what_the_table_says() {
    agrees(Mpi::Mpich, "mpirun.mpich", &["--help"]);
}

#[test]
#[ignore = "starts each launcher a hundred times; run by make test T=mpis"]
fn each_option_of_open_mpi_5_takes_what_the_table_says() {
    agrees(Mpi::OpenMpi5, ".cache/mpi/openmpi/bin/mpirun", &["--help"]);
}

#[test]
#[ignore = "starts each launcher a hundred times; run by make test T=mpis"]
fn each_option_of_mpich_5_takes_what_the_table_says() {
    agrees(Mpi::Mpich, ".cache/mpi/mpich/bin/mpiexec", &["--help"]);
}

#[test]
#[ignore = "starts each launcher a hundred times; run by make test T=mpis"]
fn each_option_of_intel_mpi_takes_what_the_table_says() {
    agrees(Mpi::Intel, ".cache/mpi/intel/bin/mpiexec.hydra", &["--help"]);
}
