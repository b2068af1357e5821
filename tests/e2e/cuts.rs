//! Networks that fail under a running job: its data must be right and its status 0, whatever happened to the
//! lanes.
//!
//! `traffic` (tests/programs) exchanges checked messages between all ranks until it is told that it is
//! enough, and tells how many rounds are done. A round needs both directions of the WAN, so rounds show
//! whether the job stands or goes.

use crate::grid::{Lab, root};
use crate::mpi::{self, Mpi};
use crate::programs::{Expected, Item};
use causeway_control::{Status, TunnelStatus};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// A job that has not moved for this long after its network came back hangs.
const PROGRESS: Duration = Duration::from_secs(60);

/// Start of the launcher, the daemons and the ranks: 3 s on two free cores, above a minute seen beside
/// fifteen compilers.
const START: Duration = Duration::from_secs(180);

/// What starts and ends a job, beside what is done to it, in seconds.
const START_AND_END: u32 = 240;

/// Rounds a job may still end once nothing crosses the WAN any more. One: what rank 0 needs for it may have
/// arrived; for the next, the far ranks need what rank 0 sends afterwards.
const ON_THEIR_WAY: u64 = 1;

/// Where the lanes over TCP are counted: cuts may make a path look lossy, and one over QUIC would join them.
const TCP: [&str; 1] = ["transport = \"tcp\""];

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);

#[test]
#[ignore = "needs namespaces and Debian's Open MPI; run by make test"]
fn debian_open_mpi_outlives_cuts_of_two_seconds_and_a_reset_of_its_lane_every_second() {
    let Some(mut job) = Job::start(
        "rennes-nancy",
        "cuts-and-resets",
        &TCP,
        &mpi::debian_openmpi(),
        60,
    ) else {
        return;
    };
    job.is_cut_for(2 * SECOND);
    job.is_cut_for(2 * SECOND);
    job.loses_a_lane_every_second(10);
    job.ends_right();
}

#[test]
#[ignore = "needs namespaces and Debian's MPICH; run by make test"]
fn debian_mpich_outlives_cuts_of_two_seconds_and_new_programs_in_place_of_its_gateways() {
    let Some(mut job) = Job::start("rennes-nancy", "cuts", &[], &mpi::debian_mpich(), 60) else {
        return;
    };
    job.is_cut_for(2 * SECOND);
    job.gets_new_gateways();
    job.is_cut_for(2 * SECOND);
    job.gets_new_gateways();
    job.ends_right();
}

#[test]
#[ignore = "needs namespaces and Debian's MPICH; run by make test"]
fn debian_mpich_outlives_a_network_that_resets_and_refuses_all_and_a_gateway_with_a_twentieth_of_a_core() {
    let Some(mut job) = Job::start("rennes-nancy", "refused", &TCP, &mpi::debian_mpich(), 60) else {
        return;
    };
    job.is_refused_for(8 * SECOND);
    job.starves_for(8 * SECOND);
    job.ends_right();
}

#[test]
#[ignore = "needs namespaces and Debian's Open MPI; run by make test"]
fn debian_open_mpi_over_a_path_that_loses_goes_over_quic_and_outlives_cuts() {
    let Some(mut job) = Job::start("lossy", "cuts-quic", &[], &mpi::debian_openmpi(), 60) else {
        return;
    };
    job.goes_over_quic();
    job.is_cut_for(2 * SECOND);
    job.goes_over_quic();
    job.ends_right();
}

#[test]
#[ignore = "takes most of a minute; run by make test T=cuts"]
fn long_cuts_of_lanes_over_quic_alone_are_outlived() {
    let quic = ["transport = \"quic\""];
    let Some(mut job) = Job::start("lossy", "cuts-quic-alone", &quic, &mpi::debian_mpich(), 120) else {
        return;
    };
    job.is_cut_for(2 * SECOND);
    job.is_cut_for(13 * SECOND);
    job.gets_new_gateways();
    job.is_cut_for(30 * SECOND);
    job.goes_over_quic();
    job.ends_right();
}

#[test]
#[ignore = "takes most of a minute; run by make test T=cuts"]
fn long_cuts_that_end_before_the_lane_is_given_up_are_outlived_by_it() {
    let Some(mut job) = Job::start("rennes-nancy", "cuts-14s", &[], &mpi::debian_openmpi(), 120) else {
        return;
    };
    job.is_cut_for(7 * SECOND);
    job.is_cut_for(10 * SECOND);
    job.is_cut_for(13 * SECOND);
    job.ends_right();
}

#[test]
#[ignore = "takes a minute; run by make test T=cuts"]
fn long_cut_of_thirty_seconds_is_outlived() {
    let Some(mut job) = Job::start("rennes-nancy", "cuts-30s", &[], &mpi::debian_openmpi(), 180) else {
        return;
    };
    job.is_cut_for(30 * SECOND);
    // Another phase of the redialling.
    job.is_cut_for(33 * SECOND);
    job.ends_right();
}

#[test]
#[ignore = "takes six minutes; run by make test T=cuts"]
fn long_cut_of_five_minutes_is_outlived() {
    let Some(mut job) = Job::start("rennes-nancy", "cuts-5min", &[], &mpi::debian_openmpi(), 360) else {
        return;
    };
    job.is_cut_for(5 * MINUTE);
    job.ends_right();
}

#[test]
#[ignore = "takes most of a minute; run by make test T=cuts"]
fn long_run_of_resets_of_one_of_two_lanes_is_outlived() {
    let lanes = ["lanes = 2", TCP[0]];
    let Some(mut job) = Job::start("rennes-nancy", "resets", &lanes, &mpi::debian_openmpi(), 60) else {
        return;
    };
    job.loses_a_lane_every_second(30);
    job.ends_right();
}

#[test]
#[ignore = "takes a minute; run by make test T=cuts"]
fn long_lived_lanes_whose_mappings_the_nat_forgets_are_replaced() {
    let scenario = root().join("tests/e2e/nat.toml").display().to_string();
    let Some(mut job) = Job::start(&scenario, "forgets", &TCP, &mpi::debian_openmpi(), 180) else {
        return;
    };
    for forgetting in [
        Forgetting::ANSWERS_WITH_RESETS,
        Forgetting::MAPS_ANEW,
        Forgetting::DROPS,
    ] {
        job.is_forgotten(&forgetting);
    }
    job.ends_right();
}

/// What a NAT does with the packets of a connection it has forgotten.
struct Forgetting {
    name: &'static str,
    /// Commands of nft on its router, before it forgets.
    rules: &'static [&'static str],
}

impl Forgetting {
    const ANSWERS_WITH_RESETS: Forgetting = Forgetting {
        name: "the NAT forgets and resets",
        rules: &[MIDDLE, "add rule inet test middle reject with tcp reset"],
    };
    /// Both ends then see a stranger's packets.
    const MAPS_ANEW: Forgetting = Forgetting {
        name: "the NAT forgets and maps to other ports",
        rules: &[
            "delete table inet test",
            "flush chain inet lab postrouting",
            "add rule inet lab postrouting oifname wan0 masquerade random",
        ],
    };
    const DROPS: Forgetting = Forgetting {
        name: "the NAT forgets and drops",
        rules: &[MIDDLE, "add rule inet test middle drop"],
    };
}

/// A chain for TCP packets that leave the site, begin no connection and belong to none that is known: its
/// beginning was forgotten. Only what leaves: the kernel may show the LAN's own frames to the router's
/// firewall (br_netfilter).
const MIDDLE: &str = "add table inet test; \
    add chain inet test middle; \
    add chain inet test forward { type filter hook forward priority -10; policy accept; }; \
    add rule inet test forward oifname wan0 ct state new,invalid tcp flags & (syn | rst) == 0 goto middle";

/// The one program of a lab, started and on its way.
struct Job {
    lab: Lab,
    item: String,
}

impl Job {
    /// Starts a job with as many ranks at one site as at the other. The test disturbs them for `seconds`.
    fn start(scenario: &str, label: &str, grid: &[&str], mpi: &Mpi, seconds: u32) -> Option<Job> {
        let item = format!("{}-traffic-{}", mpi.name, mpi.suite_ranks);
        let command = format!(
            "{} causeway run -- {} -n {} {}/traffic $PWD",
            mpi.environment,
            mpi.launcher,
            mpi.suite_ranks,
            mpi.programs.display()
        );
        let items = vec![Item {
            name: item.clone(),
            command,
            seconds: START_AND_END + seconds,
            expected: Expected::Says(vec!["all right".into()]),
        }];
        let mut job = Job {
            lab: Lab::start(scenario, label, grid, items)?,
            item,
        };
        job.goes_on("the start", START, 0);
        Some(job)
    }

    fn rounds(&self) -> u64 {
        rounds_in(&self.lab.place(&self.item))
    }

    /// Waits until the job has ended more rounds since `rounds` than those that were on their way.
    fn goes_on(&mut self, after: &str, deadline: Duration, rounds: u64) -> Duration {
        let start = Instant::now();
        let (item, what) = (self.item.clone(), format!("progress after {after}"));
        let place = self.lab.place(&item);
        self.lab.wait_for(&item, deadline, &what, |_| {
            rounds_in(&place) > rounds + ON_THEIR_WAY
        });
        start.elapsed()
    }

    fn is_cut_for(&mut self, time: Duration) {
        self.lab.causeway(&["link", "rennes", "nancy", "--down"]);
        let before = self.rounds();
        // Not to wait for something: the cut's length is what is tested.
        std::thread::sleep(time);
        let rounds = self.rounds();
        assert!(
            rounds <= before + ON_THEIR_WAY,
            "{} rounds ended while the link was down",
            rounds - before
        );
        self.lab.causeway(&["link", "rennes", "nancy", "--up"]);
        let after = self.goes_on("the cut", PROGRESS, rounds);
        println!("    {}: goes on {after:.1?} after a cut of {time:?}", self.item);
    }

    /// The network answers whatever goes between the gateways with a reset, as if their programs were gone,
    /// and the last second of it loses what begins a connection.
    fn is_refused_for(&mut self, time: Duration) {
        let nft = |lab: &Lab, rules: &str| {
            lab.causeway(&["exec", "rennes-router", "--", "nft", rules]);
        };
        nft(&self.lab, REFUSES);
        // Until then rounds end.
        let before = self.rounds();
        // Not to wait for something: how long it refuses is what is tested.
        std::thread::sleep(time - SECOND);
        nft(
            &self.lab,
            "insert rule inet refuses forward oifname wan0 tcp flags syn drop",
        );
        std::thread::sleep(SECOND);
        let rounds = self.rounds();
        assert!(
            rounds <= before + ON_THEIR_WAY,
            "{} rounds ended meanwhile",
            rounds - before
        );
        nft(&self.lab, "delete table inet refuses");
        let after = self.goes_on("a network that refuses", PROGRESS, rounds);
        println!("    {}: goes on {after:.1?} after {time:?} of resets", self.item);
    }

    /// The worker of rennes runs for a twentieth of the time, and its lane is reset meanwhile.
    fn starves_for(&mut self, time: Duration) {
        let slices = time.as_millis() / 250;
        let script = format!(
            "worker=$(causeway status --json | sed -n 's/.*\"worker\": *\\([0-9]*\\),.*/\\1/p'); \
             for slice in $(seq {slices}); do kill -STOP $worker; sleep 0.2375; kill -CONT $worker; sleep 0.0125; done"
        );
        let rounds = self.rounds();
        let lost = |lab: &Lab| ["rennes", "nancy"].map(|site| tunnel(lab, site).lanes_lost);
        let before = lost(&self.lab);
        let head = ["exec", "rennes-head", "--", "bash", "-c", &script];
        std::thread::scope(|scope| {
            scope.spawn(|| self.lab.causeway(&head));
            let reset =
                format!("{RESETS}; add rule inet resets forward tcp dport 7001 reject with tcp reset");
            self.lab.causeway(&["exec", "rennes-router", "--", "nft", &reset]);
            std::thread::sleep(time / 4);
            let healed = ["exec", "rennes-router", "--", "nft", "delete table inet resets"];
            self.lab.causeway(&healed);
        });
        assert!(lost(&self.lab) > before, "no lane was reset");
        let after = self.goes_on("a worker that starved", PROGRESS, rounds);
        println!(
            "    {}: goes on {after:.1?} after {time:?} of a twentieth of a core",
            self.item
        );
    }

    /// Resets one lane after the other on the way, each a second after the one before, or as soon as it is
    /// replaced.
    fn loses_a_lane_every_second(&mut self, times: u64) {
        self.lab.causeway(&["exec", "rennes-router", "--", "nft", RESETS]);
        let lost = |lab: &Lab| ["rennes", "nancy"].map(|site| tunnel(lab, site).lanes_lost);
        let before = lost(&self.lab);
        let lanes = tunnel(&self.lab, "nancy").lanes.len();
        let item = self.item.clone();
        for time in 1..=times {
            let next = Instant::now() + SECOND;
            let rounds = self.rounds();
            let all = tunnel(&self.lab, "nancy").lanes;
            // The dialling side's port is the lane's own, and never used again here.
            let port = all[time as usize % lanes].peer.port();
            let rules = ["sport", "dport"]
                .map(|end| format!("add rule inet resets forward tcp {end} {port} reject with tcp reset"));
            self.lab
                .causeway(&["exec", "rennes-router", "--", "nft", &rules.join("; ")]);
            self.lab
                .wait_for(&item, PROGRESS, "loss and return of the lane", |lab| {
                    let now = lost(lab);
                    now[0] >= before[0] + time
                        && now[1] >= before[1] + time
                        && tunnel(lab, "rennes").lanes.len() == lanes
                        && tunnel(lab, "nancy").lanes.len() == lanes
                });
            self.goes_on("the reset of a lane", PROGRESS, rounds);
            std::thread::sleep(next.saturating_duration_since(Instant::now()));
        }
        println!("    {item}: goes on after {times} resets of a lane");
    }

    /// Waits until what it sends goes over QUIC, both ways.
    fn goes_over_quic(&mut self) {
        let sent = |lab: &Lab| {
            ["rennes", "nancy"].map(|site| {
                let lanes = tunnel(lab, site).lanes;
                let quic = lanes.iter().filter(|lane| lane.carrier == "QUIC");
                quic.map(|lane| lane.sent_bytes).sum::<u64>()
            })
        };
        let item = self.item.clone();
        let mut first = None;
        self.lab.wait_for(&item, PROGRESS, "traffic over QUIC", |lab| {
            let now = sent(lab);
            let first = *first.get_or_insert(now);
            // More than questions and acknowledgements.
            now.iter().zip(first).all(|(now, first)| *now > first + 100_000)
        });
    }

    /// Hands each site's gateway to a new program, one after the other.
    fn gets_new_gateways(&mut self) {
        for site in ["rennes", "nancy"] {
            let rounds = self.rounds();
            let head = format!("{site}-head");
            let configuration = format!("/run/causeway-lab/gateway/{site}.toml");
            let drain = ["causeway", "gateway", "--config", &configuration, "--drain"];
            let said = self
                .lab
                .causeway(&[&["exec", head.as_str(), "--"], drain.as_slice()].concat());
            let after = self.goes_on("the hand-over", PROGRESS, rounds);
            println!("    {}: goes on {after:.1?} after: {}", self.item, said.trim());
        }
    }

    fn is_forgotten(&mut self, forgetting: &Forgetting) {
        let lost = tunnel(&self.lab, "rennes").lanes_lost;
        let rules = forgetting.rules.join("; ");
        self.lab.causeway(&["exec", "rennes-router", "--", "nft", &rules]);
        let script = root().join("tests/e2e/forget-mappings.py").display().to_string();
        let known = self
            .lab
            .causeway(&["exec", "rennes-router", "--", "python3", &script]);
        let start = Instant::now();
        let item = self.item.clone();
        self.lab
            .wait_for(&item, PROGRESS, "replacement of the lane", |lab| {
                let tunnel = tunnel(lab, "rennes");
                tunnel.lanes_lost > lost && tunnel.down_seconds.is_none()
            });
        let rounds = self.rounds();
        self.goes_on("the replacement of the lane", PROGRESS, rounds);
        println!(
            "    {item}: goes on {:.1?} after {} ({} connections)",
            start.elapsed(),
            forgetting.name,
            known.trim()
        );
    }

    fn ends_right(self) {
        let place = self.lab.place(&self.item);
        fs::write(place.join("enough"), "").unwrap();
        self.lab.finish();
        println!("    {}", fs::read_to_string(place.join("stdout")).unwrap().trim());
    }
}

/// Resets all that goes between the sites; both ends of each connection learn of it. Not what stays in a LAN:
/// see [`MIDDLE`].
const REFUSES: &str = "add table inet refuses; \
    add chain inet refuses forward { type filter hook forward priority -10; policy accept; }; \
    add rule inet refuses forward iifname wan0 meta l4proto tcp reject with tcp reset; \
    add rule inet refuses forward oifname wan0 meta l4proto tcp reject with tcp reset";

/// A chain for rules that reset connections on their way through a router.
const RESETS: &str = "add table inet resets; \
    add chain inet resets forward { type filter hook forward priority -10; policy accept; }";

/// Counts the rounds that the job in this directory has ended; none before its first.
fn rounds_in(place: &Path) -> u64 {
    let text = fs::read_to_string(place.join("rounds")).unwrap_or_default();
    text.trim().parse().unwrap_or(0)
}

/// The one tunnel of the gateway of `site`.
fn tunnel(lab: &Lab, site: &str) -> TunnelStatus {
    let head = format!("{site}-head");
    let text = lab.causeway(&["exec", &head, "--", "causeway", "status", "--json"]);
    let mut status: Status = serde_json::from_str(&text).unwrap();
    status.tunnels.remove(0)
}
