//! What happens to a grid under running jobs: its broker is killed, a relay dies, a certificate is renewed, a
//! site is put out. Jobs go on; those of the site that was put out end, and say why.
//!
//! Sites join as people have them join. The job is `traffic` (tests/programs): checked messages, all with
//! all, until it is told that it is enough.

use crate::grid::root;
use crate::members::Grid;
use crate::mpi::{self, Mpi};
use causeway_broker::Listing;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

/// Start of the launcher, its daemons and the ranks: 3 s on two free cores, a minute beside fifteen
/// compilers. What takes longer hangs.
const DEADLINE: Duration = Duration::from_secs(180);

/// Rounds that a job may still end whatever happens to its network: what they need has arrived.
const ON_THEIR_WAY: u64 = 1;

#[test]
#[ignore = "needs namespaces and Debian's Open MPI; run by make test"]
fn debian_open_mpi_goes_on_without_a_killed_broker_which_knows_members_and_jobs_again_afterwards() {
    let Some(mut grid) = Grid::start("endure-broker", "orsay-rennes-bordeaux", THREE, "orsay", &[]) else {
        return;
    };
    grid.join("orsay", &[]);
    grid.join("rennes", &[]);
    grid.has_tunnel("rennes", "orsay");
    let mut job = Job::start(&grid, "rennes", "before", "rennes=1,orsay=1");
    grid.lists("the job", |listing| {
        listing.jobs.iter().any(|job| {
            let what = &job.job;
            job.from == "rennes"
                && (what.sites.as_slice(), what.ranks) == (&["rennes".to_owned(), "orsay".to_owned()], 2)
                && what.name.contains("traffic")
        })
    });
    grid.fresh.kill("orsay", "broker");
    grid.fresh
        .wait_for("the gateway's word that the broker is gone", || {
            let status = grid.fresh.status("rennes").unwrap();
            status.grid.unwrap().broker_away.is_some()
        });
    job.goes_on("the broker's death");
    job.ends_right();
    let mut job = Job::start(&grid, "orsay", "without", "orsay=1,rennes=1");
    // What the store still has of a job that has ended meanwhile is put right.
    grid.start_broker();
    grid.lists("the one job that runs", |listing| {
        let jobs: Vec<&str> = listing.jobs.iter().map(|job| job.from.as_str()).collect();
        jobs == ["orsay"]
    });
    grid.join("bordeaux", &[]);
    grid.has_tunnel("orsay", "bordeaux");
    grid.has_tunnel("rennes", "bordeaux");
    job.goes_on("the broker's return");
    let last = grid.listing();
    grid.fresh.kill("orsay", "broker");
    let kept = grid.listing();
    assert_eq!(kept.jobs, last.jobs, "the store of the killed broker");
    assert_eq!(kept.sites.len(), 3);
    grid.start_broker();
    let third = Job::start(&grid, "bordeaux", "third", "bordeaux=1,rennes=1");
    let registered = |listing: &Listing| {
        let jobs = listing.jobs.iter();
        { jobs }.find(|job| job.from == "bordeaux").cloned()
    };
    grid.lists("the third job", |listing| registered(listing).is_some());
    let before = registered(&grid.listing()).unwrap();
    grid.fresh.says("bordeaux", &["gateway", "--drain"]);
    grid.lists("the third job of the next program", |listing| {
        registered(listing).is_some_and(|job| job.instance != before.instance)
    });
    let after = registered(&grid.listing()).unwrap();
    assert_eq!(after.job, before.job);
    assert!(after.since.abs_diff(before.since) <= 2, "{before:?} {after:?}");
    job.ends_right();
    third.ends_right();
    grid.lists("no job any more", |listing| listing.jobs.is_empty());
}

#[test]
#[ignore = "needs namespaces and Debian's Open MPI; run by make test"]
fn debian_open_mpi_goes_on_while_three_brokers_are_killed_in_turn_and_a_site_that_one_revoked_is_out_at_all()
{
    let Some(mut grid) = Grid::start_several("endure-brokers", "orsay-rennes-bordeaux", THREE, THREE) else {
        return;
    };
    grid.join("orsay", &[]);
    grid.ask_at("rennes");
    grid.join("rennes", &[]);
    grid.has_tunnel("rennes", "orsay");
    let mut job = Job::start(&grid, "rennes", "throughout", "rennes=1,orsay=1");
    // With one broker left, which is another one each time, a site joins, and certificates are good.
    for (left, site) in THREE.iter().zip(["bordeaux", "", ""]) {
        let others: Vec<&&str> = THREE.iter().filter(|other| *other != left).collect();
        others.iter().for_each(|other| grid.kill_broker_of(other));
        grid.fresh.wait_for("the gateways' word that two are away", || {
            let away = |site: &str| {
                let status = grid.fresh.status(site).unwrap().grid.unwrap();
                assert_eq!(status.brokers.len(), 3);
                status
                    .brokers
                    .iter()
                    .filter(|broker| broker.away.is_some())
                    .count()
            };
            away("rennes") == 2 && away("orsay") == 2
        });
        grid.ask_at(left);
        if !site.is_empty() {
            grid.join(site, &[]);
            grid.has_tunnel("rennes", site);
            grid.has_tunnel("orsay", site);
        }
        job.goes_on("two brokers' deaths");
        others.iter().for_each(|other| grid.start_broker_of(other));
    }
    grid.fresh.wait_for("all brokers again", || {
        let status = grid.fresh.status("rennes").unwrap().grid.unwrap();
        status.brokers.iter().all(|broker| broker.away.is_none())
    });
    // The one that puts a site out is gone before another is there; gateways have it from that one.
    grid.kill_broker_of("orsay");
    grid.kill_broker_of("rennes");
    grid.ask_at("bordeaux");
    grid.says(&["grid", "revoke", "bordeaux"]);
    grid.fresh.wait_for("the end of its tunnels", || {
        let gone = |site: &str| {
            grid.tunnel(site, "bordeaux")
                .is_none_or(|tunnel| tunnel.lanes.is_empty())
        };
        gone("rennes") && gone("orsay")
    });
    grid.kill_broker_of("bordeaux");
    grid.start_broker_of("rennes");
    grid.ask_at("rennes");
    grid.lists("that bordeaux is out", |listing| {
        let mut sites = listing.sites.iter();
        sites.any(|site| site.site == "bordeaux" && site.revoked.is_some())
    });
    job.goes_on("the revocation");
    job.ends_right();
}

#[test]
#[ignore = "takes a minute; run by make test T=cuts"]
fn long_refusal_of_all_between_two_gateways_ends_no_job_where_the_broker_hears_from_both() {
    let sites = ["rennes", "nancy"];
    let Some(mut grid) = Grid::start("endure-refused", "rennes-nancy", &sites, "nancy", &[]) else {
        return;
    };
    grid.join("rennes", &[]);
    grid.join("nancy", &["--closed"]);
    grid.has_tunnel("nancy", "rennes");
    let mut job = Job::start(&grid, "rennes", "refused", "rennes=1,nancy=1");
    // Whatever goes to or from the gateway of rennes; that of nancy and the broker are on the same host.
    let refuses = "nft 'add table inet refuses; \
        add chain inet refuses forward { type filter hook forward priority -10; policy accept; }; \
        add rule inet refuses forward tcp dport 7001 reject with tcp reset; \
        add rule inet refuses forward tcp sport 7001 reject with tcp reset'";
    grid.fresh.shell("rennes-router", refuses);
    grid.fresh.wait_for("the word through the broker", || {
        let status = grid.fresh.status("nancy").unwrap();
        let mut why = status.sites.into_iter().filter_map(|site| site.unreachable);
        why.any(|why| why.contains("answers through the broker"))
    });
    let before = job.rounds();
    // Not to wait for something: it is more than a host may refuse with nobody to speak for it.
    std::thread::sleep(Duration::from_secs(40));
    assert!(job.rounds() <= before + ON_THEIR_WAY);
    grid.fresh.shell("rennes-router", "nft delete table inet refuses");
    job.goes_on("a long refusal");
    job.ends_right();
}

#[test]
#[ignore = "needs namespaces and Debian's Open MPI; run by make test"]
fn debian_open_mpi_goes_on_through_another_relay_when_its_relay_is_killed() {
    let scenario = root().join("tests/e2e/two-relays.toml").display().to_string();
    let sites = ["rennes", "nancy", "lyon", "orsay"];
    let Some(mut grid) = Grid::start("endure-relay", &scenario, &sites, "orsay", &[]) else {
        return;
    };
    grid.join("lyon", &["--relay"]);
    grid.join("orsay", &["--relay"]);
    grid.join("rennes", &["--closed"]);
    grid.join("nancy", &["--closed"]);
    for relay in ["lyon", "orsay"] {
        grid.has_tunnel("rennes", relay);
        grid.has_tunnel("nancy", relay);
    }
    grid.has_tunnel("rennes", "nancy");
    let mut job = Job::start(&grid, "rennes", "relayed", "rennes=2,nancy=2");
    let relay = grid.technique("rennes", "nancy");
    let relay = relay.strip_prefix("relay through ").unwrap().to_owned();
    grid.fresh.kill(&relay, &relay);
    let other = if relay == "lyon" { "orsay" } else { "lyon" };
    let through = format!("relay through {other}");
    for (site, far) in [("rennes", "nancy"), ("nancy", "rennes")] {
        grid.fresh
            .wait_for("the other relay", || grid.technique(site, far) == through);
    }
    job.goes_on("the relay's death");
    job.ends_right();
    let check = grid.fresh.on("rennes", &["check"]).output().unwrap();
    let said = String::from_utf8_lossy(&check.stdout);
    for step in [
        "[ok]   certificate: of site rennes of grid g5k, valid until".to_owned(),
        "[ok]   broker: answers at 198.51.100.13:7443".to_owned(),
        "[ok]   technique: direct: this gateway dials the other".to_owned(),
        format!(
            "[warn] technique: {through}, which costs a detour and the relay's bandwidth; no better way: neither gateway can be dialled"
        ),
    ] {
        assert!(said.contains(&step), "no {step:?} in\n{said}");
    }
}

#[test]
#[ignore = "needs namespaces and Debian's Open MPI; run by make test"]
fn debian_open_mpi_goes_on_over_lanes_that_show_a_renewed_certificate() {
    let short = ["certificate_life = \"3min\""];
    let Some(mut grid) = Grid::start(
        "endure-renewal",
        "rennes-nancy",
        &["rennes", "nancy"],
        "nancy",
        &short,
    ) else {
        return;
    };
    grid.join("rennes", &[]);
    grid.join("nancy", &[]);
    grid.has_tunnel("rennes", "nancy");
    let ends = |grid: &Grid, site| grid.fresh.status(site).unwrap().grid.unwrap().certificate_ends;
    let before = ["rennes", "nancy"].map(|site| ends(&grid, site));
    let serials = grid.serials();
    let mut job = Job::start(&grid, "rennes", "renewed", "rennes=2,nancy=2");
    grid.fresh.wait_for("the renewal at both sites", || {
        let now = ["rennes", "nancy"].map(|site| ends(&grid, site));
        now[0] > before[0] && now[1] > before[1]
    });
    // What the broker has of a site is what its lanes show.
    grid.fresh.wait_for("both certificates at the broker", || {
        let now = grid.serials();
        now.iter().zip(&serials).all(|(now, old)| now != old)
    });
    job.goes_on("the renewal");
    let lost = grid.tunnel("rennes", "nancy").unwrap().lanes_lost;
    assert!(grid.resets_lanes("rennes", "nancy"), "no lane");
    grid.fresh.wait_for("a lane after the renewal", || {
        let tunnel = grid.tunnel("rennes", "nancy").unwrap();
        tunnel.lanes_lost > lost && !tunnel.lanes.is_empty()
    });
    job.goes_on("the new lane");
    job.ends_right();
}

#[test]
#[ignore = "needs namespaces and Debian's Open MPI; run by make test"]
fn debian_open_mpi_ends_with_a_site_that_is_revoked_and_says_so_while_other_sites_jobs_go_on() {
    let Some(mut grid) = Grid::start("endure-revoked", "orsay-rennes-bordeaux", THREE, "orsay", &[]) else {
        return;
    };
    for site in THREE {
        grid.join(site, &[]);
    }
    grid.has_tunnel("rennes", "orsay");
    grid.has_tunnel("rennes", "bordeaux");
    grid.has_tunnel("bordeaux", "orsay");
    let mut others = Job::start(&grid, "orsay", "others", "orsay=1,rennes=1");
    let with = Job::start(&grid, "rennes", "with", "rennes=1,bordeaux=1");
    let from = Job::start(&grid, "bordeaux", "from", "bordeaux=1,orsay=1");
    grid.says(&["grid", "revoke", "bordeaux"]);
    for (job, says) in [
        (with, "this job has lost site bordeaux: "),
        (from, "this job has lost site orsay: "),
    ] {
        let (status, said) = job.ends();
        assert!(!status.success(), "{status}\n{said}");
        let line = said.lines().find(|line| line.contains(says));
        let line = line.unwrap_or_else(|| panic!("no line says {says:?}:\n{said}\n{}", grid.fresh.logs()));
        assert!(line.contains("bordeaux") && line.contains("revoked"), "{line}");
        println!("    {line}");
    }
    others.goes_on("the revocation");
    others.ends_right();
    let refused = grid.fresh.on(
        "rennes",
        &[
            "run",
            "--sites",
            "rennes=1,bordeaux=1",
            "--",
            "mpirun.openmpi",
            "true",
        ],
    );
    let refused = { refused }.output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && said.contains("bordeaux"), "{said}");
}

const THREE: &[&str] = &["orsay", "rennes", "bordeaux"];

pub struct Job {
    child: Child,
    place: PathBuf,
}

impl Drop for Job {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Job {
    /// Starts a job of Open MPI and waits until its ranks exchange messages.
    fn start(grid: &Grid, site: &str, name: &str, sites: &str) -> Job {
        let openmpi = mpi::debian_openmpi();
        let line = ["--sites", sites, "--", "mpirun.openmpi"];
        Job::start_with(grid, site, name, &openmpi, &line)
    }

    /// The same with words of `causeway run` before the program, which is built for this MPI.
    pub fn start_with(grid: &Grid, site: &str, name: &str, mpi: &Mpi, words: &[&str]) -> Job {
        let place = grid.fresh.directory.join(name);
        fs::create_dir_all(&place).unwrap();
        let directory = place.display().to_string();
        let program = mpi.programs.join("traffic").display().to_string();
        let line = [&["run"], words, &[&program, &directory]].concat();
        let out = |name: &str| fs::File::create(place.join(name)).unwrap();
        let mut command = grid.fresh.on(site, &line);
        let child = command
            .stdout(out("stdout"))
            .stderr(out("stderr"))
            .spawn()
            .unwrap();
        let mut job = Job { child, place };
        job.goes_on("the start");
        job
    }

    pub fn rounds(&self) -> u64 {
        let text = fs::read_to_string(self.place.join("rounds")).unwrap_or_default();
        text.trim().parse().unwrap_or(0)
    }

    /// Returns what it has said.
    fn said(&self) -> String {
        let said = ["stdout", "stderr"].map(|name| fs::read_to_string(self.place.join(name)).unwrap());
        said.concat()
    }

    /// Waits until it has ended more rounds than those that were on their way.
    pub fn goes_on(&mut self, after: &str) {
        let (start, rounds) = (Instant::now(), self.rounds());
        while self.rounds() <= rounds + ON_THEIR_WAY {
            let ended = self.child.try_wait().unwrap();
            let late = start.elapsed() > DEADLINE;
            let place = self.place.display();
            assert!(ended.is_none(), "{place}: ended after {after}\n{}", self.said());
            assert!(!late, "{place}: no progress after {after}\n{}", self.said());
            std::thread::sleep(Duration::from_millis(50));
        }
        println!(
            "    {}: goes on {:.1?} after {after}",
            self.place.display(),
            start.elapsed()
        );
    }

    /// Waits for an end that nobody has asked for.
    fn ends(mut self) -> (ExitStatus, String) {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                println!(
                    "    {}: {status} after {:.1?}",
                    self.place.display(),
                    start.elapsed()
                );
                return (status, self.said());
            }
            let late = start.elapsed() > DEADLINE;
            assert!(!late, "{}: does not end\n{}", self.place.display(), self.said());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    pub fn ends_right(self) {
        fs::write(self.place.join("enough"), "").unwrap();
        let place = self.place.clone();
        let (status, said) = self.ends();
        let right = status.success() && said.contains("all right");
        assert!(right, "{}: {status}\n{said}", place.display());
    }
}
