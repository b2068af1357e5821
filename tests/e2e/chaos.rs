//! Gateways whose workers are killed at random while jobs check every byte that crosses them, through a NAT,
//! relays and TLS, and while connections between gateways are cut, too. CHAOS_SECONDS sets for how long,
//! CHAOS_SEED what happens when.

use crate::endure::Job;
use crate::grid::root;
use crate::members::Grid;
use crate::mpi;
use std::time::{Duration, Instant};

const SITES: [&str; 4] = ["rennes", "nancy", "lyon", "orsay"];

/// As long as a test of every day may take.
const SECONDS: u64 = 60;

/// A number that a variable of the environment may change.
fn number(name: &str, default: u64) -> u64 {
    let text = std::env::var(name).ok();
    text.map_or(default, |text| text.parse().unwrap())
}

/// Kills the worker of a site's gateway; whether there was one to kill.
fn kill_worker(grid: &Grid, site: &str) -> bool {
    let Some(status) = grid.fresh.status(site) else {
        return false;
    };
    let worker = status.worker.to_string();
    grid.fresh.says_any(site, &["kill", "-9", &worker]);
    true
}

#[test]
#[ignore = "needs namespaces and Debian's MPIs; run by make test"]
fn debian_mpis_lose_no_byte_and_no_job_while_workers_of_gateways_are_killed_at_random() {
    let scenario = root().join("tests/e2e/two-relays.toml").display().to_string();
    let Some(mut grid) = Grid::start("chaos", &scenario, &SITES, "orsay", &[]) else {
        return;
    };
    for (site, more) in [
        ("lyon", "--relay"),
        ("orsay", "--relay"),
        ("rennes", "--closed"),
        ("nancy", "--closed"),
    ] {
        grid.join(site, &[more]);
    }
    for (site, other) in [
        ("rennes", "lyon"),
        ("nancy", "lyon"),
        ("rennes", "orsay"),
        ("rennes", "nancy"),
    ] {
        grid.has_tunnel(site, other);
    }
    let (openmpi, mpich) = (mpi::debian_openmpi(), mpi::debian_mpich());
    let relayed = ["--sites", "rennes=1,nancy=1", "--", "mpirun.openmpi"];
    let direct = ["--sites", "nancy=1,lyon=1", "--", "mpirun.mpich"];
    let own = ["--own-mpi", "--sites", "rennes=1,orsay=1", "--"];
    let mut jobs = vec![
        Job::start_with(&grid, "rennes", "open-mpi", &openmpi, &relayed),
        Job::start_with(&grid, "nancy", "mpich", &mpich, &direct),
        Job::start_with(&grid, "rennes", "own-mpi", &mpich, &own),
    ];
    let seed = number("CHAOS_SEED", 1);
    println!("    CHAOS_SEED={seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let until = Instant::now() + Duration::from_secs(number("CHAOS_SECONDS", SECONDS));
    let (mut kills, mut cuts) = (0_u64, 0_u64);
    while Instant::now() < until {
        std::thread::sleep(Duration::from_millis(random.u64(200..2000)));
        if random.u8(0..10) == 0 {
            grid.resets_lanes("rennes", "lyon");
            cuts += 1;
        } else if kill_worker(&grid, random.choice(SITES).unwrap_or("lyon")) {
            kills += 1;
        }
        if random.u8(0..10) == 0 {
            let job = random.usize(0..jobs.len());
            jobs[job].goes_on("the last kill");
        }
    }
    let rounds: Vec<u64> = jobs.iter().map(Job::rounds).collect();
    println!("    {kills} kills and {cuts} cuts; rounds of the jobs: {rounds:?}");
    assert!(kills > 0);
    for job in &mut jobs {
        job.goes_on("the last kill");
    }
    jobs.into_iter().for_each(Job::ends_right);
    grid.fresh.wait_for("the end of all streams", || {
        SITES.iter().all(|site| {
            let status = grid.fresh.status(site);
            status.is_some_and(|status| status.streams == 0 && status.jobs.is_empty())
        })
    });
    let ends = SITES.map(|site| grid.fresh.status(site).unwrap().worker_ends);
    assert_eq!(ends.iter().sum::<u64>(), kills, "no worker has ended by itself");
}
