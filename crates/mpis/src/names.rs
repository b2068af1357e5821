//! Names that processes, daemons and the loader use.

/// Variables by which launchers tell a process its rank.
pub const RANKS: [&str; 4] = ["OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"];

/// The beginnings of the variables through which a process manager speaks with a process that it starts.
pub const PROCESS_MANAGERS: [&str; 2] = ["PMI_", "PMIX_"];

/// The beginnings of the names of MPI libraries.
pub const LIBRARIES: [&str; 3] = ["libmpi.so", "libmpich.so", "libmpi_abi.so"];

/// The beginnings of the names of libraries whose connect() leads to other ranks, including the libraries
/// through which MPIs connect.
pub const CONNECTING: [&str; 5] = ["mca_btl_tcp", "libfabric", "libtcp-fi", "libopen-pal", "libucs"];

/// Beginnings of the names of variables that an MPI's daemon needs when it starts: permission to run as root,
/// the MPI's directory, and settings that the launcher does not put on the daemon's command line.
pub const DAEMON_FAMILIES: &[&str] = &[
    "OMPI_ALLOW_RUN_AS_ROOT",
    "PRTE_ALLOW_RUN_AS_ROOT",
    "OMPI_MCA_",
    "PRTE_MCA_",
    "PMIX_MCA_",
    "OPAL_PREFIX",
    "PRTE_PREFIX",
    "PMIX_PREFIX",
    "I_MPI_",
    "FI_",
    "UCX_",
    "MPIR_CVAR_",
];

/// Variables with which root lets launchers run as root; each has a second one whose name ends with
/// `_CONFIRM`.
pub const AS_ROOT: [&str; 2] = ["OMPI_ALLOW_RUN_AS_ROOT", "PRTE_ALLOW_RUN_AS_ROOT"];

/// Settings for nodes that share few cores: a rank that waits lets the others run, and no launcher binds the
/// ranks of each node to its first cores, which would be the same ones for all. Open MPI does so with two
/// ranks.
pub const SHARED_CORES: [(&str, &str); 4] = [
    ("OMPI_MCA_mpi_yield_when_idle", "1"),
    ("OMPI_MCA_hwloc_base_binding_policy", "none"),
    ("PRTE_MCA_hwloc_default_binding_policy", "none"),
    ("I_MPI_PIN", "0"),
];

/// The beginning of the variables for Open MPI's parameters.
pub const MCA: &str = "OMPI_MCA_";

/// Open MPI's parameter for the seconds between a request to end and a kill.
pub const KILL_AFTER: &str = "odls_base_sigkill_timeout";

/// Open MPI 4's daemons forward to ranks on other nodes the variables that this lists, and also OMPI_*. It is
/// the form of mpirun's -x for parameter files: with the form for the environment, mca_base_env_list, mpirun
/// refuses -x.
pub const FORWARDED: &str = "OMPI_MCA_mca_base_env_list_internal";

/// Makes the list above join the one in mpirun's environment, if there is one: words of sh, for use inside
/// double quotes.
pub const JOINS_FORWARDED: &str = "[ -z \\\"\\${OMPI_MCA_mca_base_env_list-}\\\" ] || { \
     export OMPI_MCA_mca_base_env_list=\\\"\\$OMPI_MCA_mca_base_env_list;\\$OMPI_MCA_mca_base_env_list_internal\\\"; \
     unset OMPI_MCA_mca_base_env_list_internal; }; ";

/// Makes Open MPI 5's daemons forward all variables. They have no list that could be joined with the user's.
pub const FORWARDS_ALL: &str = "PRTE_MCA_prte_fwd_environment";

/// Without this, srun leaves the other ranks of a program alone when one has died.
pub const SRUN_ENDS_ALL: &str = "SLURM_KILL_BAD_EXIT";

/// The libraries to preload if each site runs its own MPI: for each interface, the library of collectives,
/// and below it the world library (mpi/world). A program finds a call that its MPI lacks in the first library
/// that has it, so those of the program's own interface come first; but Open MPI's, whose handles are wider,
/// come first for all. Its library of collectives is the one for version 5, which has the names of both
/// versions.
pub const WORLD: &[(&str, &str)] = &[
    ("libcauseway_mpi_openmpi5.so", "libcauseway_world_openmpi.so"),
    ("libcauseway_mpi_abi.so", "libcauseway_world_abi.so"),
    ("libcauseway_mpi_mpich.so", "libcauseway_world_mpich.so"),
];
