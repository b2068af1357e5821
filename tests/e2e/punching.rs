//! Two sites that let nobody in, one of them behind a NAT, and their broker at a third: a way is punched for their lanes, and again after the network
//! between them was down for longer than a lane bears.

use crate::fresh::Fresh;
use crate::grid::root;
use crate::namespaces;

/// Where both sites find the third one's head node.
const LYON: &str = "198.51.100.9";

#[test]
#[ignore = "needs namespaces; run by make test"]
fn two_sites_behind_a_nat_and_a_firewall_punch_a_way_and_again_when_it_is_lost() {
    if let Err(reason) = namespaces::probe() {
        println!("skipped: {reason}");
        return;
    }
    let mut fresh = Fresh::up("punching", &root().join("tests/e2e/punched.toml"));
    let grid = fresh.directory.join("grid").display().to_string();
    let broker = format!("{LYON}:7443");
    fresh.says(
        "lyon",
        &["grid", "create", "g5k", "--broker", &broker, "--dir", &grid],
    );
    fresh.start_broker("lyon", &grid);
    for (site, subnet) in [("rennes", "10.1.0.0/24"), ("nancy", "10.2.0.0/24")] {
        let token = fresh.says("lyon", &["grid", "token", "--site", site, "--dir", &grid]);
        let node = format!("{site}-1:4");
        let line = ["gateway", "--join", &token, "--subnet", subnet, "--node", &node];
        fresh.leave(site, &line, site);
    }
    let is_punched = |site: &str| {
        let status = fresh.on(site, &["status"]).output().unwrap();
        let said = String::from_utf8_lossy(&status.stdout).into_owned();
        said.contains("punched  QUIC") && !said.contains("no lane for")
    };
    fresh.wait_for("the lane at both sites", || {
        ["rennes", "nancy"].into_iter().all(is_punched)
    });
    println!("{}", fresh.says("nancy", &["ping", "-c", "3", "rennes"]));
    // Both gateways give the lane up while nothing gets through.
    let link = |state: &str| {
        let words = ["link", "rennes", "nancy", state, "--lab", "punching"];
        let output = fresh.lab(&words).output().unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    };
    link("--down");
    fresh.wait_for("the loss of the lane", || {
        !is_punched("rennes") && !is_punched("nancy")
    });
    link("--up");
    fresh.wait_for("the lane punched anew", || {
        ["rennes", "nancy"].into_iter().all(is_punched)
    });
    println!("{}", fresh.says("nancy", &["ping", "-c", "3", "rennes"]));
}
