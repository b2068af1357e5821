//! Reads what mpirun's command line already says: how many ranks, and which hosts. Pure.

use crate::Mpi;
use crate::options::{self, Given};
use std::ffi::OsString;

/// What a launcher's command line says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CommandLine {
    /// Ranks of each program, if there are several separated by `:`; `None` if no count is given.
    pub ranks: Vec<Option<u32>>,
    /// The programs, as they are named.
    pub programs: Vec<OsString>,
    /// Whether the user names hosts, in whatever form.
    pub names_hosts: bool,
    /// Hosts that the user names one by one.
    pub hosts: Vec<String>,
    /// The values of all options that name hosts: lists, and names of files.
    pub host_values: Vec<OsString>,
    /// Whether the user names hosts by their numbers in Causeway's list, like Open MPI's `+n0`.
    pub numbers_hosts: bool,
    /// Whether there may be more ranks than slots: the user says so, or the launcher is hydra, which never
    /// counts.
    pub allows_more_than_slots: bool,
    /// Whether the user says at which address of this host the daemons connect to it.
    pub names_own_host: bool,
    /// Whether no program is named, as with `mpirun --help`, so that nothing is started.
    pub starts_nothing: bool,
}

const COUNTS: &[&str] = &["n", "np", "c"];

/// Options that name hosts. Files of placements name them, too.
const HOSTS: &[&str] = &[
    "H",
    "host",
    "hosts",
    "hostfile",
    "machinefile",
    "machine",
    "machines",
    "machinelist",
    "f",
    "hostlist",
    "file",
    "default-hostfile",
    "rankfile",
    "rf",
    "add-host",
    "add-hostfile",
    "hosts-group",
];

impl CommandLine {
    /// Reads the words after the launcher's name, and those of programs that are in a file.
    pub fn parse(mpi: Mpi, words: &[OsString], file: Option<&[OsString]>) -> CommandLine {
        let mut line = CommandLine::default();
        line.add(mpi, words);
        if let Some(file) = file {
            // The words that name the file have no ranks of their own.
            line.ranks.clear();
            line.add(mpi, file);
        }
        line
    }

    fn add(&mut self, mpi: Mpi, words: &[OsString]) {
        let line = self;
        line.allows_more_than_slots |= !mpi.is_open_mpi();
        for part in words.split(|word| word == ":") {
            let (given, end) = options::read(mpi, part, 0);
            let mut ranks = None;
            for option in &given {
                line.take(mpi, part, option, &mut ranks);
            }
            line.programs.extend(part.get(end).cloned());
            line.ranks.push(ranks);
        }
        line.starts_nothing = line.programs.is_empty() && !line.names_hosts;
    }

    /// All ranks, if every program says how many.
    pub fn total(&self) -> Option<u32> {
        self.ranks
            .iter()
            .copied()
            .try_fold(0_u32, |sum, ranks| sum.checked_add(ranks?))
    }

    fn take(&mut self, mpi: Mpi, words: &[OsString], option: &Given, ranks: &mut Option<u32>) {
        let name = option.name.as_str();
        let value = option.text(words);
        if COUNTS.contains(&name) && (name != "c" || mpi.is_open_mpi()) {
            *ranks = value.as_deref().and_then(|value| value.parse().ok());
        }
        // The standard's -file, which Open MPI 5 accepts and does not read, names a file of hosts for Intel
        // MPI.
        let is_number = |host: &str| host.starts_with("+n") || host.starts_with("+e");
        let are_numbers = mpi.is_open_mpi()
            && ["H", "host"].contains(&name)
            && value
                .as_deref()
                .is_some_and(|hosts| hosts.split(',').all(is_number));
        self.numbers_hosts |= are_numbers;
        if ["H", "host", "hosts"].contains(&name) && !are_numbers {
            let hosts = value.as_deref().unwrap_or_default().split(',');
            // A number of slots may follow. IPv6 addresses are not names.
            let hosts = hosts.map(|host| host.split(':').next().unwrap_or_default());
            self.hosts
                .extend(hosts.filter(|host| !host.is_empty()).map(str::to_owned));
        }
        let is_other = mpi.is_open_mpi() && name == "file";
        let is_parameter = mpi.is_open_mpi() && name.ends_with("mca") && names_host_file(value.as_deref());
        if HOSTS.contains(&name) && !is_other && !are_numbers || is_parameter {
            self.names_hosts = true;
            let values = option.values.iter().map(|value| value.of(words).to_owned());
            self.host_values.extend(values);
        }
        let mapping = value.filter(|_| name == "map-by").unwrap_or_default();
        self.allows_more_than_slots |=
            name == "oversubscribe" || mapping.to_ascii_lowercase().contains("oversubscribe");
        self.names_own_host |= !mpi.is_open_mpi() && ["localhost", "iface"].contains(&name);
    }
}

/// Whether a parameter of Open MPI names a file of hosts.
fn names_host_file(parameter: Option<&str>) -> bool {
    parameter.is_some_and(|parameter| HOST_PARAMETERS.contains(&parameter))
}

const HOST_PARAMETERS: &[&str] = &[
    "orte_default_hostfile",
    "orte_rankfile",
    "prte_default_hostfile",
    "rmaps_rank_file_path",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(mpi: Mpi, line: &str) -> CommandLine {
        CommandLine::parse(
            mpi,
            &line.split(' ').map(OsString::from).collect::<Vec<_>>(),
            None,
        )
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
                programs: vec!["./app".into()],
                ..CommandLine::default()
            }
        );
        let line = parse(Mpi::Mpich, "-genv A -n -np 6 -ppn 2 ./app -f y");
        assert_eq!(
            line,
            CommandLine {
                ranks: vec![Some(6)],
                programs: vec!["./app".into()],
                allows_more_than_slots: true,
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
        assert_eq!(parse(Mpi::Mpich, "-genv A=1 -n 4 ./app").total(), Some(4));
        assert_eq!(parse(Mpi::OpenMpi5, "--np=3 ./app").total(), Some(3));
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
        let named = parse(Mpi::OpenMpi4, "-H a:2,b.example -n 2 ./app");
        assert_eq!(named.hosts, ["a", "b.example"]);
        let numbers = parse(Mpi::OpenMpi4, "-H +n0,+n1 -n 2 ./app");
        assert!(numbers.numbers_hosts && !numbers.names_hosts);
        assert!(parse(Mpi::OpenMpi5, "--mca prte_default_hostfile f ./app").names_hosts);
    }

    #[test]
    fn oversubscription_is_seen_in_both_forms() {
        assert!(parse(Mpi::OpenMpi4, "--oversubscribe ./app").allows_more_than_slots);
        assert!(parse(Mpi::OpenMpi5, "--map-by node:OVERSUBSCRIBE ./app").allows_more_than_slots);
        assert!(!parse(Mpi::OpenMpi5, "--map-by node ./app").allows_more_than_slots);
    }

    #[test]
    fn a_line_without_a_program_starts_nothing() {
        assert!(parse(Mpi::OpenMpi4, "--version").starts_nothing);
        assert!(parse(Mpi::Mpich, "-n 4").starts_nothing);
        assert!(!parse(Mpi::Mpich, "-n 4 -env A=1 ./app").starts_nothing);
        assert!(parse(Mpi::Mpich, "-configfile f").starts_nothing);
        let [line, file] = ["-configfile f", "-n 2 ./a : -n 1 ./b"].map(|text| {
            let words = text.split(' ').map(OsString::from);
            words.collect::<Vec<_>>()
        });
        let line = CommandLine::parse(Mpi::Mpich, &line, Some(&file));
        assert!(!line.starts_nothing && !line.names_hosts);
        assert_eq!(line.total(), Some(3));
        assert!(!parse(Mpi::Mpich, "hostname").starts_nothing);
    }
}
