//! The families of launchers, with a row for each.

use crate::family::Family;

/// Families of launchers that are told what to do in the same way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mpi {
    /// Open MPI before 5, started by ORTE.
    OpenMpi4,
    /// Open MPI 5 and 6, started by PRRTE.
    OpenMpi5,
    /// MPICH, started by hydra.
    Mpich,
    /// Intel MPI, started by its own hydra.
    Intel,
}

/// How a launcher is told at which address its daemons can reach it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnHost {
    /// The launcher finds out by itself.
    Untold,
    /// This option takes the address.
    Address(&'static str),
    /// This option takes the interface that has it.
    Interface(&'static str),
}

/// How a launcher and its MPI differ from others.
#[derive(Debug)]
pub struct Row {
    /// Its usual name.
    pub name: &'static str,
    /// The interface that its programs are built for.
    pub family: Family,
    /// Libraries of collectives for its programs, the one with the wider handles first, so that no handle is
    /// cut. In a program with another interface, a library passes calls on.
    pub collectives: &'static [&'static str],
    /// The option by which a user names hosts.
    pub hosts_option: &'static str,
    /// The option that names a file with programs, without dashes.
    pub programs_option: &'static str,
    /// What separates a host from its ranks in a list of hosts.
    pub before_slots: &'static str,
    /// The option that gives it a list of hosts, if its variable for that does not suffice.
    pub host_list_option: Option<&'static str>,
    /// See [`OwnHost`].
    pub own_host: OwnHost,
    /// The option that keeps its daemons in the sessions that have started them, if no variable does so: the
    /// end of a session is what ends a job's processes.
    pub attached_option: Option<&'static str>,
    /// Whether it accepts hosts given by IPv6 addresses, or by names that stand for them.
    pub speaks_ipv6: bool,
    /// Whether its programs need the workaround for UCX (mpi/ucx/).
    pub needs_ucx_cure: bool,
    /// Whether it passes only those variables to the ranks that it is told to pass.
    pub hands_on_named_variables: bool,
    /// Whether it ends its ranks at the first request. hydra passes the first request on to them, and
    /// continues if they do.
    pub ends_at_first_request: bool,
    /// Whether it continues if a node's part has ended too early.
    pub leaves_ends_of_nodes: bool,
    /// Whether the user has a file with its parameters.
    pub has_parameter_file: bool,
    /// The size up to which it sends without asking first by default, for people.
    pub usual_limit: &'static str,
}

const OPEN_MPI_4: Row = Row {
    name: "Open MPI",
    family: Family::OpenMpi,
    collectives: &["libcauseway_mpi_openmpi.so"],
    hosts_option: "--host",
    programs_option: "app",
    before_slots: " slots=",
    host_list_option: None,
    own_host: OwnHost::Untold,
    attached_option: None,
    speaks_ipv6: true,
    needs_ucx_cure: false,
    hands_on_named_variables: true,
    ends_at_first_request: true,
    leaves_ends_of_nodes: false,
    has_parameter_file: true,
    usual_limit: "64 kB, the MPI's own",
};

const OPEN_MPI_5: Row = Row {
    collectives: &["libcauseway_mpi_openmpi5.so"],
    // Open MPI 5 also has a variable for this; 6 (PRRTE 5) has only this.
    attached_option: Some("--leave-session-attached"),
    ..OPEN_MPI_4
};

const MPICH: Row = Row {
    name: "MPICH",
    family: Family::Mpich,
    collectives: &["libcauseway_mpi_abi.so", "libcauseway_mpi_mpich.so"],
    hosts_option: "-hosts",
    programs_option: "configfile",
    before_slots: ":",
    host_list_option: None,
    own_host: OwnHost::Address("-localhost"),
    attached_option: None,
    // Open MPI takes `fd00:1::fd:4000` for a host fd00 (4.0.2, 5.0.2).
    speaks_ipv6: false,
    needs_ucx_cure: true,
    hands_on_named_variables: false,
    ends_at_first_request: false,
    leaves_ends_of_nodes: true,
    has_parameter_file: false,
    usual_limit: "what UCX or libfabric choose for a cluster",
};

const INTEL: Row = Row {
    name: "Intel MPI",
    // The launcher's variable accepts only names, and fills each host with as many ranks as it has cores.
    host_list_option: Some("-machinefile"),
    // The launcher's proxies work without an interface of that name.
    own_host: OwnHost::Interface("-iface"),
    needs_ucx_cure: false,
    usual_limit: "16 kB, libfabric's own",
    ..MPICH
};

impl Mpi {
    /// All MPIs.
    pub const ALL: [Mpi; 4] = [Mpi::OpenMpi4, Mpi::OpenMpi5, Mpi::Mpich, Mpi::Intel];

    /// See [`Row`].
    pub fn row(self) -> &'static Row {
        match self {
            Mpi::OpenMpi4 => &OPEN_MPI_4,
            Mpi::OpenMpi5 => &OPEN_MPI_5,
            Mpi::Mpich => &MPICH,
            Mpi::Intel => &INTEL,
        }
    }

    /// Its usual name.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// A program that prints the name of its node, for a launcher of this MPI.
    pub fn hello(name: &str) -> &'static [&'static str] {
        // hydra passes its input on to the first rank. If that has already ended, SIGPIPE ends the launcher:
        // natively in 9 of 80 runs of hostname over two hosts.
        match name == Mpi::OpenMpi4.name() || name == Mpi::OpenMpi5.name() {
            true => &["hostname"],
            false => &["sh", "-c", "hostname; sleep 1"],
        }
    }

    /// Whether it is configured by MCA parameters.
    pub(crate) fn is_open_mpi(self) -> bool {
        self.row().family == Family::OpenMpi
    }
}
