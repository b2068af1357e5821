//! Collectives that cross between sites once: the libraries that are preloaded for them (collectives/), and what they are told.

use super::launcher::Mpi;
use causeway_gateway::control::Status;
use std::path::{Path, PathBuf};

/// File names beside the causeway binary: one for each binary interface that programs of an MPI may have. A library whose
/// interface a program does not have hands its calls on; the one with the wider handles comes first, so that none is cut.
const OPEN_MPI: &[&str] = &["libcauseway_mpi_openmpi.so"];
const OPEN_MPI_5: &[&str] = &["libcauseway_mpi_openmpi5.so"];
const MPICH: &[&str] = &["libcauseway_mpi_abi.so", "libcauseway_mpi_mpich.so"];

/// All of them.
pub fn names() -> impl Iterator<Item = &'static str> {
    OPEN_MPI.iter().chain(OPEN_MPI_5).chain(MPICH).copied()
}

/// Variables of collectives/src/settings.c.
pub const ROUND_MICROSECONDS: &str = "CAUSEWAY_COLLECTIVES_ROUND_MICROSECONDS";
pub const MEGABITS: &str = "CAUSEWAY_COLLECTIVES_MEGABITS";

/// Reductions in the order of ranks.
pub const SAME_BITS: &str = "CAUSEWAY_COLLECTIVES_SAME_BITS";

/// The first that an MPI would have, for those who must say that none was built.
pub fn wanted(own: &Path, mpi: Mpi) -> PathBuf {
    own.with_file_name(names_for(mpi)[0])
}

fn names_for(mpi: Mpi) -> &'static [&'static str] {
    match mpi {
        Mpi::OpenMpi4 => OPEN_MPI,
        Mpi::OpenMpi5 => OPEN_MPI_5,
        Mpi::Mpich | Mpi::Intel => MPICH,
    }
}

/// Those of an MPI's libraries that were built: each needs the headers of its interface.
pub fn libraries(own: &Path, mpi: Mpi) -> Vec<PathBuf> {
    let paths = names_for(mpi).iter().map(|name| own.with_file_name(name));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::tuning;

    fn status(links: &[(&str, u32, u64)]) -> Status {
        let numbers: Vec<_> = links.iter().map(|(_, rtt, rate)| (*rtt, *rate)).collect();
        let mut status = tuning::tests::status(&numbers);
        for (tunnel, (site, ..)) in status.tunnels.iter_mut().zip(links) {
            tunnel.site = (*site).to_owned();
        }
        status
    }

    #[test]
    fn the_longest_and_the_slowest_way_to_the_jobs_own_sites_are_told() {
        let status = status(&[
            ("nancy", 11_600, 900_000_000),
            ("orsay", 8_000, 400_000_000),
            ("far", 90_000, 1),
        ]);
        let told = |sites: &[&str]| {
            let sites: Vec<String> = sites.iter().map(|site| (*site).to_owned()).collect();
            let settings = settings(&status, &sites).into_iter();
            settings.map(|(_, value)| value).collect::<Vec<_>>()
        };
        assert_eq!(told(&["rennes", "nancy", "orsay"]), ["11600", "400"]);
        assert_eq!(told(&["rennes", "far"]), ["90000", "100"]);
        assert_eq!(told(&[]), ["90000", "100"]);
        assert!(told(&["rennes"]).is_empty());
    }

    #[test]
    fn of_the_libraries_that_are_there_the_one_with_the_wider_handles_comes_first() {
        assert_eq!(MPICH[0], "libcauseway_mpi_abi.so");
        let directory = tempfile::tempdir().unwrap();
        let own = directory.path().join("causeway");
        let found = |mpi| {
            let paths = libraries(&own, mpi).into_iter();
            let name = |path: PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
            paths.map(name).collect::<Vec<_>>()
        };
        assert!(found(Mpi::Mpich).is_empty());
        for name in names() {
            std::fs::write(directory.path().join(name), "").unwrap();
        }
        assert_eq!(
            found(Mpi::Intel),
            ["libcauseway_mpi_abi.so", "libcauseway_mpi_mpich.so"]
        );
        assert_eq!(found(Mpi::OpenMpi5), ["libcauseway_mpi_openmpi5.so"]);
    }
}
