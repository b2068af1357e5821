//! Collectives that cross between sites once: the libraries that are preloaded for them (collectives/), and what they are told.

use super::launcher::Mpi;
use causeway_gateway::control::Status;
use std::path::{Path, PathBuf};

/// File names beside the causeway binary: one for each binary interface that programs of an MPI may have. A library whose
/// interface a program does not have hands its calls on; the one with the wider handles comes first, so that none is cut.
const OPEN_MPI: &[&str] = &["libcauseway_mpi_openmpi.so"];
const MPICH: &[&str] = &["libcauseway_mpi_abi.so", "libcauseway_mpi_mpich.so"];

/// Variables of collectives/src/choice.c.
const ROUND_MICROSECONDS: &str = "CAUSEWAY_COLLECTIVES_ROUND_MICROSECONDS";
const MEGABITS: &str = "CAUSEWAY_COLLECTIVES_MEGABITS";

/// Those of an MPI's libraries that were built: each needs the headers of its interface.
pub fn libraries(own: &Path, mpi: Mpi) -> Vec<PathBuf> {
    let names = if mpi.is_open_mpi() { OPEN_MPI } else { MPICH };
    let paths = names.iter().map(|name| own.with_file_name(name));
    paths.filter(|path| path.is_file()).collect()
}

/// The longest and the slowest way to the sites named, as the gateway knows them; to all where none is.
pub fn settings(status: &Status, sites: &[String]) -> Vec<(&'static str, String)> {
    let tunnels = || {
        status
            .tunnels
            .iter()
            .filter(|tunnel| sites.is_empty() || sites.contains(&tunnel.site))
    };
    let round = tunnels()
        .map(|tunnel| tunnel.rtt_microseconds)
        .filter(|round| *round > 0)
        .max();
    // A lane that has carried little knows too low a rate: not below a tenth of what most links have.
    let rate = tunnels()
        .map(|tunnel| tunnel.rate_bits_per_second / 1_000_000)
        .min();
    let round = round.map(|round| (ROUND_MICROSECONDS, round.to_string()));
    let rate = rate.map(|rate| (MEGABITS, rate.max(100).to_string()));
    round.into_iter().chain(rate).collect()
}
