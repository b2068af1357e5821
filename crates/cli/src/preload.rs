//! File names of the libraries that are preloaded into a job's processes. They lie beside the causeway
//! binary.

/// Sends connections between sites through the gateway.
pub const SHIM: &str = "libcauseway_shim.so";

/// File name of the cure for MPICH over UCX, which without it neither ends nor receives every datatype
/// rightly; see mpich-ucx/.
pub const UCX: &str = "libcauseway_ucx.so";

/// The libraries of collectives (mpi/), one for each binary interface that an MPI's programs may have. In a
/// program with another interface a library hands calls on. The library with the wider handles comes first,
/// so that no handle is cut.
pub const OPEN_MPI: &[&str] = &["libcauseway_mpi_openmpi.so"];
/// The same as [`OPEN_MPI`] for version 5.
pub const OPEN_MPI_5: &[&str] = &["libcauseway_mpi_openmpi5.so"];
/// The same as [`OPEN_MPI`] for MPICH and those of its interface.
pub const MPICH: &[&str] = &["libcauseway_mpi_abi.so", "libcauseway_mpi_mpich.so"];

/// The library that counts a program's messages (mpi/messages), for Open MPI. `causeway bench messages` alone
/// preloads it.
pub const MESSAGES_OPEN_MPI: &[&str] = &["libcauseway_messages_openmpi.so"];
/// The same as [`MESSAGES_OPEN_MPI`] for MPICH and those of its interface.
pub const MESSAGES_MPICH: &[&str] = &["libcauseway_messages_abi.so", "libcauseway_messages_mpich.so"];

/// What processes get of which each may have another MPI, since each site runs its own: for each
/// interface the library of collectives, and the world library (mpi/src/world) below it. A program
/// finds a call that its MPI lacks in the first library that has one, so those of its own interface
/// come first: with wider handles, Open MPI's are first for all. Its library of collectives is that
/// for version 5, which has the names of both.
pub const WORLD: &[(&str, &str)] = &[
    ("libcauseway_mpi_openmpi5.so", "libcauseway_world_openmpi.so"),
    ("libcauseway_mpi_abi.so", "libcauseway_world_abi.so"),
    ("libcauseway_mpi_mpich.so", "libcauseway_world_mpich.so"),
];

/// Names all of them.
pub fn names() -> impl Iterator<Item = &'static str> {
    let collectives = [OPEN_MPI, OPEN_MPI_5, MPICH].into_iter().flatten().copied();
    let worlds = WORLD.iter().map(|(_, world)| *world);
    [SHIM, UCX].into_iter().chain(collectives).chain(worlds)
}
