//! The options of each launcher, and which of the words after one are its values. Pure.
//!
//! If a word is mistaken for the program, the options end there, and if a program's own argument is mistaken
//! for an option, the job gets other hosts or ranks. So every option is listed here with the number of its
//! values. `launcher_tests` compares the tables with each launcher's own help and with what the launcher
//! does.

use crate::Mpi;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

/// An option that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Given {
    /// Its name without dashes: hydra's in lower case, PRRTE's in full.
    pub name: String,
    /// The number of the word in which it begins.
    pub at: usize,
    /// Its values. If the line ends too early, there are fewer than the option takes.
    pub values: Vec<Value>,
}

/// Where a value is: the rest of this word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Value {
    /// The number of the word.
    pub word: usize,
    /// The byte of that word at which the value begins: after `=`, or 0.
    pub from: usize,
}

impl Value {
    /// The value itself.
    pub fn of(self, words: &[OsString]) -> &OsStr {
        OsStr::from_bytes(&words[self.word].as_bytes()[self.from..])
    }
}

impl Given {
    /// Returns the number of the first word after the option.
    pub fn end(&self) -> usize {
        self.values.last().map_or(self.at, |value| value.word) + 1
    }

    /// The first value as text.
    pub fn text(&self, words: &[OsString]) -> Option<String> {
        let value = self.values.first()?.of(words);
        Some(value.to_string_lossy().into_owned())
    }
}

/// Reads options from the word `from` on. Returns them, and the number of the word that ends them: the
/// program, or the `:` after which the next program has its own.
pub fn read(mpi: Mpi, words: &[OsString], from: usize) -> (Vec<Given>, usize) {
    let mut given = Vec::new();
    let mut at = from;
    while let Some(word) = words.get(at) {
        let Some((name, inline)) = split(mpi, word) else {
            break;
        };
        let mut option = Given {
            name,
            at,
            values: inline.map(|from| Value { word: at, from }).into_iter().collect(),
        };
        option.take_values(mpi, words);
        at = option.end();
        given.push(option);
    }
    (given, at)
}

impl Given {
    /// Takes the words after the option that belong to it.
    fn take_values(&mut self, mpi: Mpi, words: &[OsString]) {
        let (valued, paired) = tables(mpi);
        let names = |table: &[&str]| table.contains(&self.name.as_str());
        let wanted = match (
            names(paired),
            names(valued) || VALUED.contains(&self.name.as_str()),
        ) {
            (true, _) => 2,
            (false, true) => 1,
            (false, false) => 0,
        };
        while self.values.len() < wanted && self.end() < words.len() {
            // hydra accepts NAME=VALUE for both.
            let first = self.values.first().map(|value| value.of(words));
            if !mpi.is_open_mpi() && first.is_some_and(|first| first.as_bytes().contains(&b'=')) {
                return;
            }
            self.values.push(Value {
                word: self.end(),
                from: 0,
            });
        }
    }
}

/// Whether an option says how to start processes on nodes.
pub fn is_starter(mpi: Mpi, words: &[OsString], option: &Given) -> bool {
    let name = option.name.as_str();
    if mpi.is_open_mpi() {
        let parameter = option.text(words).filter(|_| name.ends_with("mca"));
        return parameter.is_some_and(|parameter| STARTER_PARAMETERS.contains(&parameter.as_str()));
    }
    STARTER_OPTIONS.contains(&name)
}

/// The value of an option that is a list of variables for the ranks, like Open MPI's `--mca
/// mca_base_env_list`.
pub fn list_of_variables(mpi: Mpi, words: &[OsString], option: &Given) -> Option<Value> {
    let is_parameter = mpi.is_open_mpi() && option.name.ends_with("mca");
    let is_list = option
        .values
        .first()
        .is_some_and(|value| value.of(words) == VARIABLES_PARAMETER);
    (is_parameter && is_list)
        .then(|| option.values.get(1).copied())
        .flatten()
}

/// Whether an option sets one variable of the ranks, as `NAME=VALUE` or in two values.
pub fn sets_a_variable(mpi: Mpi, option: &Given) -> bool {
    let names: &[&str] = if mpi.is_open_mpi() {
        &["x"]
    } else {
        &["env", "genv"]
    };
    names.contains(&option.name.as_str())
}

/// Open MPI's parameter for a list of variables for the ranks.
const VARIABLES_PARAMETER: &str = "mca_base_env_list";

/// Parameters of Open MPI and PRRTE that say how to start processes on nodes, including older names.
const STARTER_PARAMETERS: &[&str] = &[
    "plm",
    "plm_rsh_agent",
    "orte_rsh_agent",
    "pls_rsh_agent",
    "plm_ssh_agent",
    "plm_rsh_args",
    "plm_ssh_args",
];

/// hydra's options with the same meaning.
const STARTER_OPTIONS: &[&str] = &[
    "launcher",
    "launcher-exec",
    "bootstrap",
    "bootstrap-exec",
    "bootstrap-exec-args",
    "rmk",
];

/// The name of an option, and where a value in the same word begins; `None` if the word is not an option.
fn split(mpi: Mpi, word: &OsStr) -> Option<(String, Option<usize>)> {
    let bytes = word.as_bytes();
    let dashes = bytes.iter().take_while(|byte| **byte == b'-').count();
    // Open MPI 4 accepts one dash or two, and takes `=` for a part of the name.
    let dashes = if mpi == Mpi::OpenMpi4 {
        dashes.min(2)
    } else {
        dashes
    };
    if dashes == 0 || bytes.len() == dashes {
        return None;
    }
    let equals = bytes.iter().position(|byte| *byte == b'=');
    let equals = equals.filter(|_| mpi != Mpi::OpenMpi4);
    let name = String::from_utf8_lossy(&bytes[dashes..equals.unwrap_or(bytes.len())]).into_owned();
    let name = match mpi {
        Mpi::OpenMpi4 => name,
        Mpi::OpenMpi5 => in_full(name),
        Mpi::Mpich | Mpi::Intel => name.to_ascii_lowercase(),
    };
    Some((name, equals.map(|at| at + 1)))
}

/// PRRTE accepts the beginning of a name if only one option begins with it (getopt_long(3)).
fn in_full(name: String) -> String {
    let (valued, paired) = tables(Mpi::OpenMpi5);
    let all = || VALUED.iter().chain(valued).chain(paired).chain(FLAGS_OPEN_MPI_5);
    if name.len() < 2 || all().any(|option| **option == name) {
        return name;
    }
    let mut fit = all().filter(|option| option.starts_with(&name));
    match (fit.next(), fit.next()) {
        (Some(only), None) => (*only).to_owned(),
        _ => name,
    }
}

/// Options with one value, and those with two.
fn tables(mpi: Mpi) -> (&'static [&'static str], &'static [&'static str]) {
    match mpi {
        Mpi::OpenMpi4 => (VALUED_OPEN_MPI_4, PAIRED_OPEN_MPI),
        Mpi::OpenMpi5 => (VALUED_OPEN_MPI_5, PAIRED_OPEN_MPI),
        Mpi::Mpich => (VALUED_MPICH, PAIRED_HYDRA),
        Mpi::Intel => (VALUED_INTEL, PAIRED_HYDRA),
    }
}

/// Options with one value that all families have.
#[rustfmt::skip]
const VALUED: &[&str] = &["n", "np", "wdir", "host", "hostfile", "machinefile", "bind-to", "map-by"];

/// From `mpirun --help all` of Open MPI 4.1.4.
#[rustfmt::skip]
const VALUED_OPEN_MPI_4: &[&str] = &[
    "c", "N", "x", "H", "am", "app", "cf", "cartofile", "cpu-list", "cpu-set", "cpus-per-proc",
    "cpus-per-rank", "debugger", "default-hostfile", "hnp", "launch-agent", "max-restarts", "max-vm-size",
    "npernode", "npersocket", "ompi-server", "output-filename", "path", "personality", "ppr", "prefix",
    "preload-files", "rank-by", "report-events", "report-pid", "report-uri", "rf", "rankfile", "stdin",
    "timeout", "tune", "wd", "xml-file", "xterm",
];

/// The tables of PRRTE 3.0 for Open MPI 5.0, and those for programs without an MPI.
#[rustfmt::skip]
const VALUED_OPEN_MPI_5: &[&str] = &[
    "c", "N", "x", "H", "personality", "tune", "launch-agent", "max-vm-size", "tmpdir", "prefix",
    "forward-signals", "xterm", "timeout", "spawn-timeout", "app", "output",
    "stream-buffering", "stdin", "preload-files", "wd", "path", "pset", "default-hostfile", "rank-by",
    "display", "max-restarts", "with-ft", "initial-errhandler", "arch", "file", "output-directory",
    "output-filename", "cpu-set", "cpu-list", "cpus-per-proc", "cpus-per-rank", "npernode", "npersocket",
    "ppr", "am", "rankfile", "display-topo", "report-pid", "report-uri", "dvm", "dvm-hostfile",
    "namespace", "num-connect-retries", "pid", "uri", "keepalive", "exec-agent", "memory-limit",
    "gpu-support", "mem-bind", "server-wait-time", "add-host", "add-hostfile", "runtime-options", "rtos",
    "set-env", "unset-env", "app-prefix", "system-server",
];

/// Options of PRRTE without a value that the beginning of a name could also mean.
const FLAGS_OPEN_MPI_5: &[&str] = &[
    "help",
    "version",
    "verbose",
    "parseable",
    "parsable",
    "debug-daemons",
    "debug-daemons-file",
    "leave-session-attached",
    "noprefix",
    "no-app-prefix",
    "allow-run-as-root",
    "report-child-jobs-separately",
    "stop-on-exec",
    "stop-in-app",
    "report-state-on-timeout",
    "get-stack-traces",
    "no-aggregate-help",
    "preload-binary",
    "show-progress",
    "do-not-launch",
    "enable-recovery",
    "disable-recovery",
    "continuous",
    "display-comm",
    "display-comm-finalize",
    "soft",
    "xml",
    "tag-output",
    "timestamp-output",
    "merge-stderr-to-stdout",
    "display-devel-map",
    "output-proctable",
    "report-bindings",
    "display-devel-allocation",
    "display-map",
    "display-allocation",
    "nolocal",
    "oversubscribe",
    "nooversubscribe",
    "use-hwthread-cpus",
    "bind-to-core",
    "bynode",
    "bycore",
    "byslot",
    "pernode",
    "debug",
    "do-not-resolve",
    "fwd-environment",
    "set-sid",
];

/// Parameters of Open MPI's layers, and variables, for which PRRTE takes two words.
const PAIRED_OPEN_MPI: &[&str] = &[
    "mca",
    "gmca",
    "omca",
    "gomca",
    "amca",
    "prtemca",
    "gprtemca",
    "pmixmca",
    "gpmixmca",
    "append-env",
    "prepend-env",
];

/// hydra of MPICH 4.0 and 5.0: `mpiexec --help`, and the names that the help leaves out.
#[rustfmt::skip]
const VALUED_MPICH: &[&str] = &[
    "f", "hosts", "genvlist", "envlist", "configfile", "launcher", "launcher-exec", "bootstrap",
    "bootstrap-exec", "rmk", "topolib", "membind", "demux", "iface", "ppn", "prepend-pattern",
    "outfile-pattern", "errfile-pattern", "outfile", "errfile", "output-from", "nameserver", "order-nodes",
    "localhost", "usize", "gpus-per-proc", "gpu-subdevs-per-proc", "hostlist", "machine", "machines",
    "machinelist", "rankmap", "memory-alloc-kinds",
];

/// hydra of Intel MPI 2021.18, likewise.
#[rustfmt::skip]
const VALUED_INTEL: &[&str] = &[
    "f", "file", "hosts", "genvlist", "genvexcl", "envlist", "envexcl", "configfile", "launcher",
    "launcher-exec", "bootstrap", "bootstrap-exec", "bootstrap-exec-args", "rmk", "membind", "demux",
    "iface", "ppn", "perhost", "grr", "prepend-pattern", "outfile-pattern", "errfile-pattern", "nameserver",
    "localhost", "usize", "machine", "gdb-args", "gtool", "gtoolfile", "hosts-group", "s", "tune",
    "cpu-bind", "path", "tmpdir", "branch-count", "pmi-port-range", "port-range", "timeout", "umask",
];

const PAIRED_HYDRA: &[&str] = &["env", "genv"];

#[cfg(test)]
mod launcher_tests;

#[cfg(test)]
mod tests {
    use super::*;

    /// Every option with its values, and the word that ends the options.
    fn parts(mpi: Mpi, line: &str) -> (Vec<(String, Vec<String>)>, Option<String>) {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let (given, end) = read(mpi, &words, 0);
        let values = |option: &Given| {
            let values = option
                .values
                .iter()
                .map(|value| value.of(&words).to_string_lossy());
            values.map(|value| value.into_owned()).collect()
        };
        let given = given.iter().map(|option| (option.name.clone(), values(option)));
        let end = words.get(end).map(|word| word.to_string_lossy().into_owned());
        (given.collect(), end)
    }

    fn one(name: &str, values: &[&str]) -> (Vec<(String, Vec<String>)>, Option<String>) {
        let values = values.iter().map(|value| (*value).to_owned()).collect();
        (vec![(name.to_owned(), values)], Some("./app".to_owned()))
    }

    #[test]
    fn hydra_takes_a_variable_and_its_value_in_one_word_or_in_two() {
        for mpi in [Mpi::Mpich, Mpi::Intel] {
            for option in ["-genv", "--env"] {
                let name = option.trim_start_matches('-');
                assert_eq!(parts(mpi, &format!("{option} A 1 ./app")), one(name, &["A", "1"]));
                assert_eq!(parts(mpi, &format!("{option} A=1 ./app")), one(name, &["A=1"]));
                assert_eq!(parts(mpi, &format!("{option} A= ./app")), one(name, &["A="]));
                assert_eq!(parts(mpi, &format!("{option}=A=1 ./app")), one(name, &["A=1"]));
                assert_eq!(parts(mpi, &format!("{option}=A 1 ./app")), one(name, &["A", "1"]));
            }
        }
    }

    #[test]
    fn mpichs_names_have_any_number_of_dashes_and_any_case() {
        for line in ["-n 4 ./app", "--NP=4 ./app", "---Np 4 ./app"] {
            let (given, end) = parts(Mpi::Mpich, line);
            assert_eq!(given[0].1, ["4"], "{line}");
            assert_eq!(end.as_deref(), Some("./app"), "{line}");
        }
    }

    #[test]
    fn a_value_behind_an_equals_sign_is_prrtes_and_hydras_alone() {
        assert_eq!(parts(Mpi::OpenMpi5, "--np=4 ./app"), one("np", &["4"]));
        assert_eq!(
            parts(Mpi::OpenMpi5, "--mca=btl self ./app"),
            one("mca", &["btl", "self"])
        );
        let (given, end) = parts(Mpi::OpenMpi4, "--np=4 ./app");
        assert_eq!((given[0].0.as_str(), end.as_deref()), ("np=4", Some("./app")));
    }

    #[test]
    fn prrte_takes_the_beginning_of_a_name() {
        assert_eq!(parts(Mpi::OpenMpi5, "--map slot ./app"), one("map-by", &["slot"]));
        assert_eq!(parts(Mpi::OpenMpi5, "--oversub ./app"), one("oversubscribe", &[]));
        // Two options begin like this, so the launcher refuses the word.
        assert_eq!(parts(Mpi::OpenMpi5, "--display-d ./app"), one("display-d", &[]));
    }

    #[test]
    fn a_line_that_ends_within_an_option_has_no_program() {
        assert_eq!(parts(Mpi::Mpich, "-genv A").1, None);
        assert_eq!(parts(Mpi::OpenMpi4, "-n").1, None);
        assert_eq!(parts(Mpi::OpenMpi4, "- ./app").1.as_deref(), Some("-"));
    }
}
