//! The way of somebody who has never used Causeway: a grid, its broker, a token and one line for each of two
//! sites, a job. One of the sites is behind a NAT; nobody is root of anything but the emulated nodes, which
//! have but one user.

use crate::fresh::Fresh;
use crate::grid::root;
use crate::mpi;
use crate::namespaces;
use std::time::Instant;

/// Where rennes, whose NAT lets nobody in, finds nancy.
const NANCY: &str = "198.51.100.5";

const NAME: &str = "nat-newcomers";

#[test]
#[ignore = "needs namespaces and Debian's Open MPI; run by make test"]
fn debian_open_mpi_runs_for_newcomers_who_join_two_sites_with_tokens() {
    if let Err(reason) = namespaces::probe() {
        println!("skipped: {reason}");
        return;
    }
    let mut fresh = Fresh::up(NAME, &root().join("tests/e2e/nat.toml"));
    let grid = fresh.directory.join("grid").display().to_string();
    let began = Instant::now();
    let broker = format!("{NANCY}:7443");
    fresh.says(
        "nancy",
        &["grid", "create", "g5k", "--broker", &broker, "--dir", &grid],
    );
    fresh.start_broker("nancy", &grid);
    let wan = format!("{NANCY}:7001");
    for (site, subnet, more) in [
        ("nancy", "10.2.0.0/24", ["--wan", wan.as_str()].as_slice()),
        ("rennes", "10.1.0.0/24", &[]),
    ] {
        let token = fresh.says("nancy", &["grid", "token", "--site", site, "--dir", &grid]);
        let nodes = [1, 2].map(|number| format!("{site}-{number}:4"));
        let line = [
            "gateway",
            "--join",
            &token,
            "--subnet",
            subnet,
            "--node",
            &nodes[0],
            "--node",
            &nodes[1],
            "--accept-jobs",
            "rennes,nancy",
        ];
        fresh.leave(site, &[&line, more].concat(), site);
    }
    fresh.wait_for("the tunnel", || {
        let status = fresh.on("rennes", &["status"]).output().unwrap();
        String::from_utf8_lossy(&status.stdout).contains("tunnel to nancy")
    });
    let met = began.elapsed();
    let programs = mpi::debian_openmpi().programs;
    let ring = programs.join("ring").display().to_string();
    let said = fresh.says("rennes", &["run", "--", "mpirun.openmpi", "-n", "4", &ring]);
    assert!(said.contains("all right"), "{said}");
    println!(
        "    two sites have met {met:.1?} after 'grid create', their first job has ended after {:.1?}: {said}",
        began.elapsed()
    );
}
