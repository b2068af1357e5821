//! The variables that each MPI's launcher gets, as tables. Pure.
//!
//! A variable that the user has set stays as it is, except those of [`starters`]; options on mpirun's command
//! line take precedence over the environment in every family. Launchers forward their environment whole, so
//! every value suits every site.

use crate::Mpi;
use crate::eager::Eager;
use std::ffi::OsString;
use std::path::Path;

/// One variable of a table.
struct Setting {
    name: &'static str,
    value: Value,
    when: When,
}

enum Value {
    Text(&'static str),
    /// The command that replaces ssh.
    AgentCommand,
    /// The same as a path without arguments.
    AgentPath,
    /// The path of the host list.
    HostFile,
    /// The size up to which messages are sent at once.
    EagerBytes,
    /// The same for UCX.
    UcxEagerBytes,
    /// The same for libfabric's ofi_rxm.
    RxmEagerBytes,
}

enum When {
    Always,
    /// Only if Causeway chooses the hosts.
    OwnHosts,
    /// Only if the processes use IPv4: connections to addresses of the other version, which the grid map need
    /// not contain, would be tried natively, and hang.
    Ipv4,
    /// Only if the processes use IPv6, for the same reason.
    Ipv6,
    /// Only if MPICH was built with both ofi and ucx.
    TwoNetmods,
    /// Only if the link to another site is known, and the version was tested (docs/settings.md): this makes
    /// the MPI faster.
    KnownLink,
}

/// The version of IP that the processes of a job use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ip {
    /// IPv4, which every site has if possible.
    V4,
    /// IPv6, if some site has nothing else.
    V6,
    /// Either protocol, if it is not known which sites take part.
    Any,
}

/// What the tables depend on.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// The causeway binary, at the same path at every site.
    pub causeway: &'a Path,
    /// The program that replaces ssh if a path is wanted.
    pub agent: &'a Path,
    /// The host list; `None` if the user names hosts.
    pub host_file: Option<&'a Path>,
    /// The version of IP that the processes use.
    pub ip: Ip,
    /// Whether MPICH can use both ofi and ucx.
    pub two_netmods: bool,
    /// See [`crate::eager`]; `None` keeps the MPI's own limit.
    pub eager: Option<Eager>,
}

/// The settings for an MPI.
fn all(mpi: Mpi, facts: &Facts) -> impl Iterator<Item = &'static Setting> {
    let tables: &'static [&'static [Setting]] = match mpi {
        Mpi::OpenMpi4 => &[OPEN_MPI_4, OPEN_MPI_TCP],
        Mpi::OpenMpi5 => &[OPEN_MPI_5, OPEN_MPI_TCP],
        Mpi::Mpich => &[MPICH],
        Mpi::Intel => &[INTEL],
    };
    let Facts {
        host_file,
        ip,
        two_netmods,
        eager,
        ..
    } = *facts;
    let (own_hosts, known_link) = (host_file.is_some(), eager.is_some());
    tables
        .iter()
        .copied()
        .flatten()
        .filter(move |setting| match setting.when {
            When::Always => true,
            When::OwnHosts => own_hosts,
            When::Ipv4 => ip == Ip::V4,
            When::Ipv6 => ip == Ip::V6,
            When::TwoNetmods => two_netmods,
            When::KnownLink => known_link,
        })
}

/// Variables that say how to start processes on nodes, including older names. That is the gateways' task, so
/// a job's launcher gets none that the user has set.
pub fn starters(mpi: Mpi) -> &'static [&'static str] {
    match mpi {
        Mpi::OpenMpi4 => &[
            "OMPI_MCA_plm",
            "OMPI_MCA_plm_rsh_agent",
            "OMPI_MCA_orte_rsh_agent",
            "OMPI_MCA_pls_rsh_agent",
            "OMPI_MCA_plm_rsh_args",
        ],
        Mpi::OpenMpi5 => &[
            "PRTE_MCA_plm",
            "PRTE_MCA_plm_ssh_agent",
            "PRTE_MCA_plm_rsh_agent",
            "PRTE_MCA_plm_ssh_args",
        ],
        Mpi::Mpich => &[
            "HYDRA_LAUNCHER",
            "HYDRA_LAUNCHER_EXEC",
            "HYDRA_LAUNCHER_EXTRA_ARGS",
            "HYDRA_BOOTSTRAP",
            "HYDRA_BOOTSTRAP_EXEC",
            "HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS",
            "HYDRA_RMK",
        ],
        Mpi::Intel => &[
            "I_MPI_HYDRA_BOOTSTRAP",
            "I_MPI_HYDRA_BOOTSTRAP_EXEC",
            "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS",
            "I_MPI_HYDRA_RMK",
            "HYDRA_BOOTSTRAP",
            "HYDRA_BOOTSTRAP_EXEC",
        ],
    }
}

/// Variables by which a user names hosts.
pub fn hosts(mpi: Mpi) -> &'static [&'static str] {
    match mpi {
        Mpi::OpenMpi4 => &["OMPI_MCA_orte_default_hostfile", "OMPI_MCA_orte_rankfile"],
        Mpi::OpenMpi5 => &["PRTE_MCA_prte_default_hostfile", "PRTE_MCA_rmaps_rank_file_path"],
        Mpi::Mpich => &["HYDRA_HOST_FILE"],
        Mpi::Intel => &["I_MPI_HYDRA_HOST_FILE", "I_MPI_HYDRA_HOSTS_GROUP"],
    }
}

/// Names of settings that the user has made.
pub fn left_alone(mpi: Mpi, facts: &Facts, is_set: impl Fn(&str) -> bool) -> Vec<&'static str> {
    let names = all(mpi, facts).map(|setting| setting.name);
    names.filter(|name| is_set(name)).collect()
}

/// The settings for an MPI, without those for which `is_set` holds.
pub fn settings(mpi: Mpi, facts: &Facts, is_set: impl Fn(&str) -> bool) -> Vec<(&'static str, OsString)> {
    let bytes = |of: fn(&Eager) -> u64| facts.eager.as_ref().map_or(0, of).to_string().into();
    let value = |setting: &Setting| match setting.value {
        Value::Text(text) => OsString::from(text),
        Value::AgentCommand => {
            let mut command = facts.causeway.as_os_str().to_owned();
            command.push(" agent");
            command
        }
        Value::AgentPath => facts.agent.into(),
        Value::HostFile => facts.host_file.map(OsString::from).unwrap_or_default(),
        Value::EagerBytes => bytes(|eager| eager.usual_bytes),
        Value::UcxEagerBytes => bytes(|eager| eager.ucx_bytes),
        Value::RxmEagerBytes => bytes(|eager| eager.rxm_bytes),
    };
    let open = all(mpi, facts).filter(|setting| !is_set(setting.name));
    open.map(|setting| (setting.name, value(setting))).collect()
}

/// The variable by which an MPI's launcher tells a process that it is a rank.
fn rank_variable(mpi: Mpi) -> &'static str {
    match mpi {
        Mpi::OpenMpi4 | Mpi::OpenMpi5 => "OMPI_COMM_WORLD_RANK",
        Mpi::Mpich | Mpi::Intel => "PMI_RANK",
    }
}

/// Lists the settings that are only for the launcher, in the form in which the shim removes them from ranks:
/// the host list, and what replaces ssh. Launchers pass all variables on to ranks, where a launcher that a
/// rank starts would take them for its own.
pub fn not_for_ranks(mpi: Mpi, facts: &Facts, is_set: impl Fn(&str) -> bool) -> String {
    let is_of_the_launcher = |setting: &&Setting| {
        matches!(
            setting.value,
            Value::AgentCommand | Value::AgentPath | Value::HostFile
        )
    };
    let open = all(mpi, facts).filter(|setting| !is_set(setting.name));
    let names: Vec<&str> = open
        .filter(is_of_the_launcher)
        .map(|setting| setting.name)
        .collect();
    format!("{}|{}", rank_variable(mpi), names.join(" "))
}

const fn always(name: &'static str, text: &'static str) -> Setting {
    only(When::Always, name, Value::Text(text))
}

const fn only(when: When, name: &'static str, value: Value) -> Setting {
    Setting { name, value, when }
}

/// What both versions of Open MPI are told about the ranks' connections.
const OPEN_MPI_TCP: &[Setting] = &[
    always("OMPI_MCA_pml", "ob1"),
    only(When::Ipv4, "OMPI_MCA_btl_tcp_disable_family", Value::Text("6")),
    only(When::Ipv6, "OMPI_MCA_btl_tcp_disable_family", Value::Text("4")),
    only(When::KnownLink, "OMPI_MCA_btl_tcp_eager_limit", Value::EagerBytes),
    only(
        When::KnownLink,
        "OMPI_MCA_btl_tcp_rndv_eager_limit",
        Value::EagerBytes,
    ),
    // Open MPI allocates buffers of the eager limit's size in advance, 8 at first and then 32 at a time; two
    // keep the memory within bounds.
    only(
        When::KnownLink,
        "OMPI_MCA_btl_tcp_free_list_num",
        Value::Text("2"),
    ),
    only(
        When::KnownLink,
        "OMPI_MCA_btl_tcp_free_list_inc",
        Value::Text("2"),
    ),
];

const OPEN_MPI_4: &[Setting] = &[
    always("OMPI_MCA_plm", "rsh"),
    // Every orted looks the agent up, too, and crashes if it is not found: a path that exists only during
    // this run would not work.
    only(When::Always, "OMPI_MCA_plm_rsh_agent", Value::AgentCommand),
    // Every daemon is started from here: nodes need no way to start anything on each other.
    always("OMPI_MCA_plm_rsh_no_tree_spawn", "1"),
    // An orted that goes to the background leaves its session, and the end of the session is what ends a
    // job's processes; if it stays attached, it also keeps its standard error.
    always("OMPI_MCA_orte_leave_session_attached", "1"),
    // Attached sessions all last until the end, so there must be room for all of them (the default is 128).
    always("OMPI_MCA_plm_rsh_num_concurrent", "8192"),
    only(When::OwnHosts, "OMPI_MCA_orte_default_hostfile", Value::HostFile),
    // The list has as many slots as ranks, so that these are where Causeway places them. Without this
    // setting, processes that the program spawns would find no slot.
    only(
        When::OwnHosts,
        "OMPI_MCA_rmaps_base_oversubscribe",
        Value::Text("1"),
    ),
    always("OMPI_MCA_orte_keep_fqdn_hostnames", "1"),
    always("OMPI_MCA_btl", "tcp,vader,self"),
    only(
        When::Ipv4,
        "OMPI_MCA_oob_tcp_disable_ipv6_family",
        Value::Text("1"),
    ),
    only(
        When::Ipv6,
        "OMPI_MCA_oob_tcp_disable_ipv4_family",
        Value::Text("1"),
    ),
];

const OPEN_MPI_5: &[Setting] = &[
    // Unless noted otherwise, the reasons are those of Open MPI 4.
    always("PRTE_MCA_plm", "ssh"),
    only(When::Always, "PRTE_MCA_plm_ssh_agent", Value::AgentCommand),
    always("PRTE_MCA_plm_ssh_no_tree_spawn", "1"),
    always("PRTE_MCA_prte_leave_session_attached", "1"),
    always("PRTE_MCA_plm_ssh_num_concurrent", "8192"),
    only(When::OwnHosts, "PRTE_MCA_prte_default_hostfile", Value::HostFile),
    always("PRTE_MCA_prte_keep_fqdn_hostnames", "1"),
    // The other choice asks the kernel for a route to the peer, which the shim replaces.
    always("PRTE_MCA_prtereachable", "weighted"),
    always("OMPI_MCA_reachable", "weighted"),
    // Otherwise, private addresses of two sites count as unreachable from each other.
    always("OMPI_MCA_opal_net_private_ipv4", "127.0.0.0/8"),
    always("OMPI_MCA_btl", "tcp,sm,self"),
    only(When::Ipv4, "PRTE_MCA_prte_disable_ipv6_family", Value::Text("1")),
    only(When::Ipv6, "PRTE_MCA_prte_disable_ipv4_family", Value::Text("1")),
];

const MPICH: &[Setting] = &[
    always("HYDRA_LAUNCHER", "ssh"),
    only(When::Always, "HYDRA_LAUNCHER_EXEC", Value::AgentPath),
    only(When::OwnHosts, "HYDRA_HOST_FILE", Value::HostFile),
    // From version 1.20 on, UCX refuses peers for which the kernel has no route; ofi does not ask.
    only(When::TwoNetmods, "MPIR_CVAR_CH4_NETMOD", Value::Text("ofi")),
    always("FI_PROVIDER", "tcp"),
    always("FI_TCP_IO_URING", "0"),
    always("UCX_TLS", "tcp,self,sm"),
    // libfabric's tcp provider sends everything that fits at once; UCX asks first from some kilobytes on.
    only(When::KnownLink, "UCX_RNDV_THRESH", Value::UcxEagerBytes),
];

const INTEL: &[Setting] = &[
    always("I_MPI_HYDRA_BOOTSTRAP", "ssh"),
    only(When::Always, "I_MPI_HYDRA_BOOTSTRAP_EXEC", Value::AgentPath),
    // The host list is given on the command line, see `super::extra_arguments`.
    always("I_MPI_FABRICS", "shm:ofi"),
    always("I_MPI_OFI_PROVIDER", "tcp"),
    always("FI_PROVIDER", "tcp"),
    always("FI_TCP_IO_URING", "0"),
    only(When::KnownLink, "FI_OFI_RXM_BUFFER_SIZE", Value::RxmEagerBytes),
    // One pool of receive buffers for all peers; otherwise, each peer has 128.
    only(When::KnownLink, "FI_OFI_RXM_USE_SRX", Value::Text("1")),
    only(When::KnownLink, "FI_OFI_RXM_MSG_RX_SIZE", Value::Text("32")),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> Facts<'static> {
        let (agent, host_file) = (Path::new("/r/agent"), Some(Path::new("/r/hosts")));
        Facts {
            causeway: Path::new("/c/causeway"),
            agent,
            host_file,
            ip: Ip::V4,
            two_netmods: false,
            eager: None,
        }
    }

    #[test]
    fn messages_are_sent_at_once_up_to_the_limit_of_the_link() {
        let known = Facts {
            eager: Some(Eager {
                usual_bytes: 4 << 20,
                ucx_bytes: 4 << 20,
                rxm_bytes: 4 << 20,
            }),
            ..facts()
        };
        for (mpi, name) in [
            (Mpi::OpenMpi4, "OMPI_MCA_btl_tcp_eager_limit"),
            (Mpi::OpenMpi5, "OMPI_MCA_btl_tcp_eager_limit"),
            (Mpi::Mpich, "UCX_RNDV_THRESH"),
            (Mpi::Intel, "FI_OFI_RXM_BUFFER_SIZE"),
        ] {
            let has = |facts| {
                settings(mpi, facts, |_| false)
                    .iter()
                    .any(|(key, value)| *key == name && value == "4194304")
            };
            assert!(has(&known) && !has(&facts()), "{mpi:?}");
        }
    }

    #[test]
    fn what_is_for_the_launcher_alone_is_named_for_ranks_but_for_what_the_user_has_set() {
        let named = |mpi, set: &[&str]| not_for_ranks(mpi, &facts(), |name| set.contains(&name));
        assert_eq!(
            named(Mpi::Mpich, &[]),
            "PMI_RANK|HYDRA_LAUNCHER_EXEC HYDRA_HOST_FILE"
        );
        assert_eq!(
            named(Mpi::Mpich, &["HYDRA_HOST_FILE"]),
            "PMI_RANK|HYDRA_LAUNCHER_EXEC"
        );
        assert_eq!(
            named(Mpi::OpenMpi4, &[]),
            "OMPI_COMM_WORLD_RANK|OMPI_MCA_plm_rsh_agent OMPI_MCA_orte_default_hostfile"
        );
        assert!(named(Mpi::Intel, &[]).ends_with("|I_MPI_HYDRA_BOOTSTRAP_EXEC"));
        assert!(named(Mpi::OpenMpi5, &[]).contains("PRTE_MCA_plm_ssh_agent"));
    }

    #[test]
    fn every_family_gets_agent_and_hosts() {
        for mpi in [Mpi::OpenMpi4, Mpi::OpenMpi5, Mpi::Mpich, Mpi::Intel] {
            let set = settings(mpi, &facts(), |_| false);
            assert!(
                set.iter()
                    .any(|(_, value)| value == "/r/agent" || value == "/c/causeway agent"),
                "{mpi:?}"
            );
            let lists_hosts = set.iter().any(|(_, value)| value == "/r/hosts");
            assert_eq!(lists_hosts, mpi != Mpi::Intel, "{mpi:?}");
            let names: std::collections::HashSet<_> = set.iter().map(|(name, _)| name).collect();
            assert_eq!(names.len(), set.len(), "{mpi:?} says something twice");
        }
    }

    #[test]
    fn what_the_user_has_set_is_left_alone() {
        let set = settings(Mpi::OpenMpi4, &facts(), |name| name == "OMPI_MCA_pml");
        assert!(set.iter().all(|(name, _)| *name != "OMPI_MCA_pml"));
        let without_hosts = Facts {
            host_file: None,
            ..facts()
        };
        let set = settings(Mpi::Mpich, &without_hosts, |_| false);
        assert!(set.iter().all(|(name, _)| *name != "HYDRA_HOST_FILE"));
    }

    #[test]
    fn the_version_of_ip_that_is_not_used_is_switched_off_where_that_is_known() {
        let off = |ip: Ip| {
            let set = settings(Mpi::OpenMpi4, &Facts { ip, ..facts() }, |_| false);
            let mut families = set.into_iter();
            families.find_map(|(name, value)| (name == "OMPI_MCA_btl_tcp_disable_family").then_some(value))
        };
        assert_eq!(off(Ip::V4), Some("6".into()));
        assert_eq!(off(Ip::V6), Some("4".into()));
        assert_eq!(off(Ip::Any), None);
        // In a table of a single version of IP, each variable occurs once.
        for ip in [Ip::V4, Ip::V6, Ip::Any] {
            let set = settings(Mpi::OpenMpi5, &Facts { ip, ..facts() }, |_| false);
            let names: std::collections::HashSet<_> = set.iter().map(|(name, _)| name).collect();
            assert_eq!(names.len(), set.len(), "{ip:?}");
        }
    }
}
