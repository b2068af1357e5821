//! Reads what mpirun's command line already says: how many ranks, which hosts. Pure.
//!
//! The options that take values are listed so that an argument of the user's own program is never taken for
//! one of mpirun's.

use super::launcher::Mpi;
use std::ffi::OsString;

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CommandLine {
    /// Ranks of each program, as `:` separates them; `None` where no count is given.
    pub ranks: Vec<Option<u32>>,
    /// The user names hosts, in whatever form.
    pub names_hosts: bool,
    /// The user allows more ranks than slots.
    pub oversubscribes: bool,
    /// The user says which address of this host the daemons call.
    pub names_own_host: bool,
    /// No program is named, as with `mpirun --help`: nothing is started.
    pub starts_nothing: bool,
}

/// Options with one value, common to the families.
const VALUED: &[&str] = &[
    "n",
    "np",
    "wdir",
    "host",
    "hosts",
    "hostfile",
    "machinefile",
    "bind-to",
    "map-by",
];

/// Open MPI 4.1 (`mpirun --help all`) and 5.0 (prterun(1)).
const VALUED_OPEN_MPI: &[&str] = &[
    "c",
    "N",
    "x",
    "H",
    "am",
    "app",
    "cf",
    "cartofile",
    "cpu-list",
    "cpu-set",
    "cpus-per-proc",
    "cpus-per-rank",
    "debugger",
    "default-hostfile",
    "hnp",
    "launch-agent",
    "max-restarts",
    "max-vm-size",
    "npernode",
    "npersocket",
    "ompi-server",
    "output-filename",
    "path",
    "personality",
    "ppr",
    "prefix",
    "preload-files",
    "rank-by",
    "report-events",
    "report-pid",
    "report-uri",
    "rf",
    "rankfile",
    "stdin",
    "timeout",
    "tune",
    "wd",
    "xml-file",
    "xterm",
    "add-host",
    "add-hostfile",
    "display",
    "output",
    "runtime-options",
    "dvm",
    "dvm-hostfile",
    "num-connect-retries",
    "pid",
    "namespace",
    "set-cwd",
    "uri",
    "keepalive",
    "exec-agent",
    "memory-limit",
    "gpu-support",
    "with-ft",
    "mem-bind",
    "initial-errhandler",
    "show-progress",
    "server-wait-time",
    "spawn-timeout",
    "system-server-only",
    "pset",
    "set-env",
    "append-env",
    "prepend-env",
    "unset-env",
];

/// Open MPI's parameters of its layers.
const PAIRED_OPEN_MPI: &[&str] = &[
    "mca", "gmca", "omca", "gomca", "prtemca", "gprtemca", "pmixmca", "gpmixmca",
];

/// hydra of MPICH 4 and 5 (`mpiexec --help`) and of Intel MPI 2021.
const VALUED_HYDRA: &[&str] = &[
    "f",
    "genvlist",
    "envlist",
    "configfile",
    "launcher",
    "launcher-exec",
    "bootstrap",
    "bootstrap-exec",
    "rmk",
    "topolib",
    "membind",
    "demux",
    "iface",
    "ppn",
    "perhost",
    "grr",
    "prepend-pattern",
    "outfile-pattern",
    "errfile-pattern",
    "nameserver",
    "order-nodes",
    "localhost",
    "usize",
    "gpus-per-proc",
    "gpu-subdevs-per-proc",
    "hostlist",
    "path",
    "arch",
    "soft",
    "file",
    "machine",
    "gtool",
    "gtoolfile",
    "hosts-group",
    "s",
    "tune",
    "cpu-bind",
    "pmi-port-range",
    "port-range",
    "bootstrap-exec-args",
    "timeout",
];

const PAIRED_HYDRA: &[&str] = &["env", "genv"];

const COUNTS: &[&str] = &["n", "np", "c"];

/// Ways to name hosts. Files of placements name them too.
const HOSTS: &[&str] = &[
    "H",
    "host",
    "hosts",
    "hostfile",
    "machinefile",
    "machine",
    "f",
    "hostlist",
    "default-hostfile",
    "rankfile",
    "rf",
    "configfile",
    "app",
    "add-host",
    "add-hostfile",
    "hosts-group",
];

impl CommandLine {
    /// Reads the words behind the launcher's name.
    pub fn parse(mpi: Mpi, words: &[OsString]) -> CommandLine {
        let mut line = CommandLine::default();
        let mut programs = 0;
        for part in words.split(|word| word == ":") {
            let mut part = Part {
                mpi,
                words: part,
                ranks: None,
            };
            if part.read(&mut line) {
                programs += 1;
            }
            line.ranks.push(part.ranks);
        }
        line.starts_nothing = programs == 0 && !line.names_hosts;
        line
    }

    /// All ranks, if every program says how many.
    pub fn total(&self) -> Option<u32> {
        self.ranks
            .iter()
            .copied()
            .try_fold(0_u32, |sum, ranks| sum.checked_add(ranks?))
    }
}

struct Part<'a> {
    mpi: Mpi,
    words: &'a [OsString],
    ranks: Option<u32>,
}

impl Part<'_> {
    /// Reads options up to the program; true if there is one.
    fn read(&mut self, line: &mut CommandLine) -> bool {
        let mut words = self.words.iter();
        while let Some(word) = words.next() {
            let word = word.to_string_lossy();
            let Some(option) = word.strip_prefix("--").or_else(|| word.strip_prefix('-')) else {
                return true;
            };
            let (name, mut value) = match option.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (option, None),
            };
            if value.is_none() {
                for _ in 0..self.values(name) {
                    value = words.next().map(|value| value.to_string_lossy().into_owned());
                }
            }
            self.option(line, name, value.as_deref());
        }
        false
    }

    fn option(&mut self, line: &mut CommandLine, name: &str, value: Option<&str>) {
        if COUNTS.contains(&name) && (name != "c" || self.mpi.is_open_mpi()) {
            self.ranks = value.and_then(|value| value.parse().ok());
        }
        line.names_hosts |= HOSTS.contains(&name) && (self.mpi.is_open_mpi() || name != "app");
        let mapping = value.filter(|_| name == "map-by").unwrap_or_default();
        line.oversubscribes |=
            name == "oversubscribe" || mapping.to_ascii_lowercase().contains("oversubscribe");
        line.names_own_host |= !self.mpi.is_open_mpi() && ["localhost", "iface"].contains(&name);
    }

    fn values(&self, name: &str) -> usize {
        let (valued, paired) = match self.mpi.is_open_mpi() {
            true => (VALUED_OPEN_MPI, PAIRED_OPEN_MPI),
            false => (VALUED_HYDRA, PAIRED_HYDRA),
        };
        match name {
            name if paired.contains(&name) => 2,
            name if valued.contains(&name) || VALUED.contains(&name) => 1,
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(mpi: Mpi, line: &str) -> CommandLine {
        CommandLine::parse(mpi, &line.split(' ').map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn the_programs_own_arguments_are_not_read() {
        let line = parse(
            Mpi::OpenMpi4,
            "-n 4 --mca btl self ./app -n 100 -H x --oversubscribe",
        );
        assert_eq!(
            line,
            CommandLine {
                ranks: vec![Some(4)],
                ..CommandLine::default()
            }
        );
        let line = parse(Mpi::Mpich, "-genv A -n -np 6 -ppn 2 ./app -f y");
        assert_eq!(
            line,
            CommandLine {
                ranks: vec![Some(6)],
                ..CommandLine::default()
            }
        );
    }

    #[test]
    fn several_programs_sum_up() {
        assert_eq!(
            parse(Mpi::OpenMpi5, "-n 1 ./boss : --np 3 -x A=1 ./worker").total(),
            Some(4)
        );
        assert_eq!(parse(Mpi::Mpich, "-n 1 ./boss : ./worker").total(), None);
        assert_eq!(parse(Mpi::OpenMpi4, "./app").total(), None);
        assert_eq!(parse(Mpi::OpenMpi4, "-np=3 ./app").total(), Some(3));
    }

    #[test]
    fn every_way_to_name_hosts_is_seen() {
        for option in [
            "-H a:2",
            "--host a",
            "--hostfile f",
            "-machinefile f",
            "--rankfile f",
        ] {
            assert!(
                parse(Mpi::OpenMpi4, &format!("{option} -n 2 ./app")).names_hosts,
                "{option}"
            );
        }
        for option in ["-f f", "-hosts a,b", "-host a", "-machinefile f"] {
            assert!(
                parse(Mpi::Intel, &format!("-n 2 {option} ./app")).names_hosts,
                "{option}"
            );
        }
        assert!(!parse(Mpi::OpenMpi4, "-n 2 ./app -H a").names_hosts);
    }

    #[test]
    fn oversubscription_is_seen_in_both_forms() {
        assert!(parse(Mpi::OpenMpi4, "--oversubscribe ./app").oversubscribes);
        assert!(parse(Mpi::OpenMpi5, "--map-by node:OVERSUBSCRIBE ./app").oversubscribes);
        assert!(!parse(Mpi::OpenMpi5, "--map-by node ./app").oversubscribes);
    }

    #[test]
    fn a_line_without_a_program_starts_nothing() {
        assert!(parse(Mpi::OpenMpi4, "--version").starts_nothing);
        assert!(parse(Mpi::Mpich, "-n 4").starts_nothing);
        assert!(!parse(Mpi::Mpich, "-configfile f").starts_nothing);
        assert!(!parse(Mpi::Mpich, "hostname").starts_nothing);
    }
}
