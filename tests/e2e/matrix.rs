//! Every kind of site with every kind of site: how they meet, how long that takes and what it costs, and that
//! a job runs over them.
//!
//! A third site, which everybody can dial, has the grid's broker and carries streams of those who cannot
//! meet.

use crate::fresh::Fresh;
use crate::grid::root;
use crate::mpi;
use crate::namespaces;
use causeway_control::LaneStatus;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

/// A kind of site: its name, what its firewall is in a scenario, whether its gateway can be dialled.
struct Kind {
    name: &'static str,
    firewall: &'static str,
    is_dialled: bool,
    /// Its NAT maps every destination anew.
    is_symmetric: bool,
}

const KINDS: [Kind; 5] = [
    Kind {
        name: "open",
        firewall: "\"open\"",
        is_dialled: true,
        is_symmetric: false,
    },
    Kind {
        name: "port range",
        firewall: "{ ports = \"7000-7010\" }",
        is_dialled: true,
        is_symmetric: false,
    },
    Kind {
        name: "outbound only",
        firewall: "\"outbound-only\"",
        is_dialled: false,
        is_symmetric: false,
    },
    Kind {
        name: "NAT",
        firewall: "\"nat\"",
        is_dialled: false,
        is_symmetric: false,
    },
    Kind {
        name: "NAT symmetric",
        firewall: "\"nat-symmetric\"",
        is_dialled: false,
        is_symmetric: true,
    },
];

const SITES: [&str; 3] = ["rennes", "nancy", "orsay"];

/// Where sites of a scenario have their head nodes' public addresses, in its order.
const PUBLIC: [&str; 3] = ["198.51.100.1", "198.51.100.5", "198.51.100.9"];

fn scenario(one: &Kind, other: &Kind) -> String {
    let mut text = "name = \"matrix\"\nrouted = false\ncongestion_control = \"cubic\"\n".to_owned();
    let firewalls = [one.firewall, other.firewall, "\"open\""];
    for (number, (site, firewall)) in SITES.iter().zip(firewalls).enumerate() {
        let _ = write!(
            text,
            "[[site]]\nname = \"{site}\"\nnodes = 1\nslots = 2\nsubnet = \"10.{}.0.0/24\"\nfirewall = {firewall}\n",
            number + 1
        );
    }
    for (ends, round) in [([0, 1], "11.6ms"), ([0, 2], "5ms"), ([1, 2], "9ms")] {
        let [one, other] = ends.map(|end| SITES[end]);
        let _ = write!(
            text,
            "[[link]]\nbetween = [\"{one}\", \"{other}\"]\nrtt = \"{round}\"\nrate = \"1Gbit/s\"\nqueue = \"2MB\"\nloss = \"0%\"\nseed = 1\n"
        );
    }
    text
}

/// How a pair is to meet. Both firewalls filter by address and port, so that behind a symmetric NAT nothing
/// can be punched.
fn expected(one: &Kind, other: &Kind) -> &'static [&'static str] {
    match (
        one.is_dialled || other.is_dialled,
        one.is_symmetric || other.is_symmetric,
    ) {
        (true, _) => &["direct", "dialled in"],
        (false, false) => &["punched", "punched (TCP)"],
        (false, true) => &["relay through orsay"],
    }
}

/// What became of a pair.
struct Met {
    after: Duration,
    lane: LaneStatus,
}

fn meet(one: &Kind, other: &Kind) -> Met {
    let name = format!("matrix-{}-{}", one.name, other.name).replace(' ', "-");
    let file = root().join("target/e2e").join(format!("{name}.toml"));
    std::fs::create_dir_all(root().join("target/e2e")).unwrap();
    std::fs::write(&file, scenario(one, other)).unwrap();
    let mut fresh = Fresh::up(&name, &file);
    let grid = fresh.directory.join("grid").display().to_string();
    let broker = format!("{}:7443", PUBLIC[2]);
    fresh.says(
        "orsay",
        &["grid", "create", "g5k", "--broker", &broker, "--dir", &grid],
    );
    fresh.start_broker("orsay", &grid);
    let began = Instant::now();
    let dialled = [one.is_dialled, other.is_dialled, true];
    for (number, (site, is_dialled)) in SITES.iter().zip(dialled).enumerate() {
        let token = fresh.says("orsay", &["grid", "token", "--site", site, "--dir", &grid]);
        let (subnet, node) = (format!("10.{}.0.0/24", number + 1), format!("{site}-1:2"));
        let wan = format!("{}:7001", PUBLIC[number]);
        let mut line = vec![
            "gateway",
            "--join",
            &token,
            "--subnet",
            &subnet,
            "--node",
            &node,
            "--accept-jobs",
            "all",
        ];
        if is_dialled {
            line.extend(["--wan", wan.as_str()]);
        }
        if *site == "orsay" {
            line.push("--relay");
        }
        fresh.leave(site, &line, site);
    }
    let lane = |fresh: &Fresh| -> Option<LaneStatus> {
        let tunnels = fresh.status("rennes")?.tunnels.into_iter();
        let mut tunnel = tunnels.filter(|tunnel| tunnel.site == "nancy");
        tunnel.next()?.lanes.into_iter().next()
    };
    fresh.wait_for("the tunnel", || lane(&fresh).is_some());
    let after = began.elapsed();
    let ring = mpi::debian_openmpi().programs.join("ring").display().to_string();
    let sites = "rennes=1,nancy=1";
    let said = fresh.says(
        "rennes",
        &["run", "--sites", sites, "--", "mpirun.openmpi", "-n", "2", &ring],
    );
    assert!(said.contains("all right"), "{said}");
    // A relay may have been sooner on a busy machine; a better way takes over.
    let is_expected = |lane: &LaneStatus| expected(one, other).contains(&lane.technique.as_str());
    fresh.wait_for("the expected technique", || {
        lane(&fresh).is_some_and(|lane| is_expected(&lane))
    });
    let lane = lane(&fresh).unwrap_or_else(|| panic!("{name}: the tunnel is gone after the job"));
    Met { after, lane }
}

#[test]
#[ignore = "takes minutes; run by make test T=matrix"]
fn matrix_of_all_kinds_of_sites_runs_a_job_over_each_pair() {
    if let Err(reason) = namespaces::probe() {
        println!("skipped: {reason}");
        return;
    }
    println!("| one site | the other | technique | carrier | met after (s) | round trip (ms) |");
    println!("|---|---|---|---|---|---|");
    for one in &KINDS {
        for other in &KINDS {
            let Met { after, lane } = meet(one, other);
            println!(
                "| {} | {} | {} | {} | {:.1} | {:.1} |",
                one.name,
                other.name,
                lane.technique,
                lane.carrier,
                after.as_secs_f64(),
                f64::from(lane.least_rtt_microseconds) / 1000.0
            );
            let relayed = lane.technique.starts_with("relay");
            assert!(
                !relayed || !(one.is_dialled || other.is_dialled),
                "{} {}",
                one.name,
                other.name
            );
        }
    }
}
