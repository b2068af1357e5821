//! What was found out of the way between two sites outlives a worker, a program and a lane: the next lane is
//! filled by it, under a job too, and is not trained anew.
//!
//! `gap` (tests/programs) sends small messages to and fro, which tell a congestion control nothing.

use crate::grid::Lab;
use crate::mpi;
use crate::programs::{Expected, Item};
use causeway_control::{LaneStatus, Status};
use std::fs;
use std::time::Duration;

/// Start of the job, or of a lane with its training, on a busy host.
const DEADLINE: Duration = Duration::from_secs(180);

/// A lane that is filled sends twice what its way holds, 1.45 MB here. One that is trained sends 30 to 65 MB.
const FILLED_BYTES: u64 = 16_000_000;

/// No lane of small messages is taken for so fast, in bits per second, before it is trained.
const TRAINED: u64 = 200_000_000;

const ITEM: &str = "gap";

#[test]
#[ignore = "needs namespaces and Debian's Open MPI; run by make test"]
fn debian_open_mpi_keeps_the_known_rate_of_its_path_when_workers_are_killed_and_lanes_are_cut() {
    let openmpi = mpi::debian_openmpi();
    let items = vec![Item {
        name: ITEM.into(),
        command: format!(
            "until [ -e enough ]; do {} causeway run --sites rennes=1,nancy=1 -- {} -n 2 {}/gap 5 || exit; done",
            openmpi.environment,
            openmpi.launcher,
            openmpi.programs.display()
        ),
        seconds: 600,
        expected: Expected::Says(vec!["all right".into()]),
    }];
    // Over QUIC a cut would change the carrier.
    let Some(mut lab) = Lab::start("rennes-nancy", "known-paths", &["transport = \"tcp\""], items) else {
        return;
    };
    let output = lab.place(ITEM).join("stdout");
    lab.wait_for(ITEM, DEADLINE, "the start of the lab", |_| output.exists());
    lab.wait_for(ITEM, DEADLINE, "a trained lane, and the job", |lab| {
        status(lab, "rennes").streams > 0 && SITES.iter().all(|site| knows(&lane(lab, site), TRAINED))
    });
    let before = SITES.map(|site| lane(&lab, site).unwrap().rate_bits_per_second);
    for event in [KILLED, HANDED_OVER, CUT] {
        let lost = SITES.map(|site| lost(&lab, site));
        (event.happens)(&lab);
        lab.wait_for(ITEM, DEADLINE, event.name, |lab| {
            let sites = SITES.iter().zip(before).zip(lost);
            let mut back = sites.map(|((site, rate), before)| {
                lost_since(lab, site, before) && knows(&lane(lab, site), rate / 2)
            });
            back.all(|back| back)
        });
        for site in SITES {
            let sent = lane(&lab, site).unwrap().sent_bytes;
            assert!(
                sent < FILLED_BYTES,
                "{site} sent {sent} bytes after {}",
                event.name
            );
        }
    }
    fs::write(lab.place(ITEM).join("enough"), "").unwrap();
    lab.finish();
}

const SITES: [&str; 2] = ["rennes", "nancy"];

struct Event {
    name: &'static str,
    happens: fn(&Lab),
}

const KILLED: Event = Event {
    name: "a lane that knows its way after the kill of a worker",
    happens: |lab| {
        let worker = status(lab, "rennes").worker.to_string();
        lab.causeway(&["exec", "rennes-head", "--", "kill", "-9", &worker]);
    },
};

const HANDED_OVER: Event = Event {
    name: "a lane that knows its way after a hand-over",
    happens: |lab| {
        let configuration = "/run/causeway-lab/gateway/nancy.toml";
        let drain = ["causeway", "gateway", "--config", configuration, "--drain"];
        lab.causeway(&[&["exec", "nancy-head", "--"], drain.as_slice()].concat());
    },
};

/// A router resets the lane.
const CUT: Event = Event {
    name: "a lane that knows its way after a reset",
    happens: |lab| {
        let port = lane(lab, "nancy").unwrap().peer.port();
        let chain = "add table inet resets; \
            add chain inet resets forward { type filter hook forward priority -10; policy accept; }";
        let rules = ["sport", "dport"]
            .map(|end| format!("add rule inet resets forward tcp {end} {port} reject with tcp reset"));
        let rules = format!("{chain}; {}", rules.join("; "));
        lab.causeway(&["exec", "rennes-router", "--", "nft", &rules]);
    },
};

fn status(lab: &Lab, site: &str) -> Status {
    let head = format!("{site}-head");
    let text = lab.causeway(&["exec", &head, "--", "causeway", "status", "--json"]);
    serde_json::from_str(&text).unwrap()
}

fn lane(lab: &Lab, site: &str) -> Option<LaneStatus> {
    let mut status = status(lab, site);
    (!status.tunnels.is_empty()).then(|| status.tunnels.remove(0).lanes.pop())?
}

fn lost(lab: &Lab, site: &str) -> (u64, u32) {
    let status = status(lab, site);
    (status.tunnels[0].lanes_lost, status.worker)
}

/// Whether the lane of then is gone: a new worker has lost it without having counted that.
fn lost_since(lab: &Lab, site: &str, (lanes, worker): (u64, u32)) -> bool {
    let status = status(lab, site);
    let tunnel = status.tunnels.first();
    status.worker != worker || tunnel.is_some_and(|tunnel| tunnel.lanes_lost > lanes)
}

/// Whether a lane knows that its way carries more than this, and has a window that holds it.
fn knows(lane: &Option<LaneStatus>, more_than: u64) -> bool {
    lane.as_ref().is_some_and(|lane| {
        let held_bytes = lane.rate_bits_per_second / 8 * u64::from(lane.least_rtt_microseconds) / 1_000_000;
        !lane.trains && lane.rate_bits_per_second > more_than && lane.window_bytes >= held_bytes / 2
    })
}
