//! Two sites that let nobody in, one of them behind a NAT, and their broker at a third: a way is punched for
//! their lanes, and again after the network between them was down for longer than a lane bears. Where they
//! let no UDP out, it is punched over TCP, and an MPI job runs over that.

use crate::fresh::Fresh;
use crate::grid::root;
use crate::mpi;
use crate::namespaces;
use causeway_control::Status;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Where both sites find the third one's head node.
const LYON: &str = "198.51.100.9";

/// Less than the emulated round trip between the two.
const PHYSICAL_MICROSECONDS: u32 = 11_500;

/// Drops all UDP, as many campuses do.
const NO_UDP: &str = "insert rule inet lab forward oifname \"wan0\" meta l4proto udp drop";

/// What nobody has asked for is refused instead of dropped, so that only what crosses on the way gets
/// through.
const REFUSED: &str =
    "insert rule inet lab forward iifname \"wan0\" ct state new meta l4proto tcp reject with tcp reset";

fn scenario() -> PathBuf {
    root().join("tests/e2e/punched.toml")
}

/// Both sites and the broker, joined but not met yet, and the broker's site, which everybody can dial, as a
/// relay or not at all. The routers of both take these rules first.
fn join(name: &str, scenario: &Path, rules: &[&str], relay: bool) -> Fresh {
    let mut fresh = Fresh::up(name, scenario);
    for router in ["rennes-router", "nancy-router"] {
        for rule in rules {
            let words = ["exec", "--lab", name, router, "--", "nft", rule];
            succeeds(&fresh, &words);
        }
    }
    let grid = fresh.directory.join("grid").display().to_string();
    let broker = format!("{LYON}:7443");
    fresh.says(
        "lyon",
        &["grid", "create", "g5k", "--broker", &broker, "--dir", &grid],
    );
    fresh.start_broker("lyon", &grid);
    let wan = format!("{LYON}:7001");
    let open = ["--wan", wan.as_str(), "--relay"];
    let sites = [
        ("lyon", "10.3.0.0/24", open.as_slice()),
        ("rennes", "10.1.0.0/24", &[]),
        ("nancy", "10.2.0.0/24", &[]),
    ];
    for (site, subnet, more) in &sites[usize::from(!relay)..] {
        let token = fresh.says("lyon", &["grid", "token", "--site", site, "--dir", &grid]);
        let node = format!("{site}-1:4");
        let line = [
            "gateway",
            "--join",
            &token,
            "--subnet",
            subnet,
            "--node",
            &node,
            "--accept-jobs",
            "all",
        ];
        fresh.leave(site, &[&line, *more].concat(), site);
    }
    fresh
}

fn succeeds(fresh: &Fresh, words: &[&str]) {
    let output = fresh.lab(words).output().unwrap();
    assert!(
        output.status.success(),
        "{words:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// The status of a site shows a lane that came about so.
fn shows(fresh: &Fresh, site: &str, how: &str) -> bool {
    let status = fresh.on(site, &["status"]).output().unwrap();
    let said = String::from_utf8_lossy(&status.stdout).into_owned();
    said.contains(how) && !said.contains("no lane for") && !said.contains("relay through")
}

#[test]
#[ignore = "needs namespaces; run by make test"]
fn two_sites_behind_a_nat_and_a_firewall_punch_a_way_and_again_when_it_is_lost() {
    if let Err(reason) = namespaces::probe() {
        println!("skipped: {reason}");
        return;
    }
    let fresh = join("punching", &scenario(), &[], false);
    let is_punched = |site: &str| shows(&fresh, site, "punched  QUIC");
    fresh.wait_for("the lane at both sites", || {
        ["rennes", "nancy"].into_iter().all(is_punched)
    });
    println!("{}", fresh.says("nancy", &["ping", "-c", "3", "rennes"]));
    // Both gateways give the lane up while nothing gets through.
    let link = |state: &str| succeeds(&fresh, &["link", "rennes", "nancy", state, "--lab", "punching"]);
    link("--down");
    fresh.wait_for("the loss of the lane", || {
        !["rennes", "nancy"].into_iter().any(is_punched)
    });
    link("--up");
    // Over UDP or TCP: both are tried again and again.
    fresh.wait_for("the lane punched anew", || {
        ["rennes", "nancy"]
            .into_iter()
            .all(|site| shows(&fresh, site, "punched"))
    });
    println!("{}", fresh.says("nancy", &["ping", "-c", "3", "rennes"]));
}

/// Both meet over TCP, a job runs, and another after the gateway of one was handed over to a new program.
fn meet_over_tcp(name: &str, scenario: &Path, rules: &[&str], relay: bool) {
    if let Err(reason) = namespaces::probe() {
        println!("skipped: {reason}");
        return;
    }
    let began = Instant::now();
    let fresh = join(name, scenario, rules, relay);
    let joined = began.elapsed();
    // A relay serves meanwhile, and no longer.
    let is_punched = |site: &str| shows(&fresh, site, "punched (TCP)  TLS 1.3");
    let both = || ["rennes", "nancy"].into_iter().all(is_punched);
    fresh.wait_for("the lane at both sites", both);
    let met = began.elapsed() - joined;
    let ring = mpi::debian_openmpi().programs.join("ring").display().to_string();
    let sites = "rennes=2,nancy=2";
    let runs = || {
        let said = fresh.says(
            "rennes",
            &["run", "--sites", sites, "--", "mpirun.openmpi", "-n", "4", &ring],
        );
        assert!(said.contains("all right"), "{said}");
    };
    runs();
    let handed = Instant::now();
    fresh.says("nancy", &["gateway", "--drain"]);
    fresh.wait_for("the lane punched anew", both);
    let again = handed.elapsed();
    runs();
    // Kernels take the round trip of segments that cross for half of what it is; what TCP's timestamps tell
    // of one is in whole milliseconds.
    for site in ["rennes", "nancy"] {
        let status = fresh.says(site, &["status", "--json"]);
        let status: Status = serde_json::from_str(&status).unwrap();
        let lanes = status.tunnels.iter().flat_map(|tunnel| &tunnel.lanes);
        let mut punched = lanes.filter(|lane| lane.technique == "punched (TCP)");
        let least = punched.next().unwrap().least_rtt_microseconds;
        assert!(
            least + 1000 > PHYSICAL_MICROSECONDS,
            "{site}: {least} us of {PHYSICAL_MICROSECONDS}"
        );
    }
    println!(
        "    met {met:.1?} after both had begun to join, and {again:.1?} after a hand-over was asked for"
    );
}

#[test]
#[ignore = "needs namespaces and Debian's Open MPI; run by make test"]
fn debian_open_mpi_runs_over_a_lane_punched_by_tcp_from_behind_a_nat_where_no_udp_is_let_out() {
    meet_over_tcp("nat-by-tcp", &scenario(), &[NO_UDP], true);
}

#[test]
#[ignore = "needs namespaces and Debian's Open MPI; run by make test"]
fn debian_open_mpi_runs_over_a_lane_punched_by_tcp_between_firewalls_that_refuse_what_comes_too_early() {
    let text = std::fs::read_to_string(scenario()).unwrap();
    let file = root().join("target/e2e/refused-by-tcp.toml");
    std::fs::create_dir_all(root().join("target/e2e")).unwrap();
    std::fs::write(&file, text.replace("\"nat\"", "\"outbound-only\"")).unwrap();
    meet_over_tcp("refused-by-tcp", &file, &[NO_UDP, REFUSED], false);
}
