//! Gateways whose workers are killed or stopped at random, or get no more memory, while jobs check every byte
//! that crosses them, through a NAT, relays and TLS, and while connections between gateways are cut, brokers
//! die or lose the network between them, and disks of gateways are full, too.
//! CHAOS_SECONDS sets for how long, CHAOS_SEED what happens when.

use crate::endure::Job;
use crate::fresh::right;
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

/// Sites of brokers.
const BROKERS: [&str; 2] = ["orsay", "lyon"];

/// Signals that end a worker. No fault of its own raises them, nobody who starts a program has it ignore
/// them, and every shell knows them.
const SIGNALS: [&str; 8] = ["KILL", "USR1", "USR2", "ALRM", "XCPU", "VTALRM", "PROF", "PWR"];

/// What happens, and how often it has.
#[derive(Debug, Default)]
struct Counts {
    kills: u64,
    stops: u64,
    short: u64,
    cuts: u64,
    brokers: u64,
    apart: u64,
    full: u64,
}

/// What has failed and is not mended yet.
#[derive(Debug, Default)]
struct Faults {
    /// The site whose broker is dead.
    away: Option<&'static str>,
    /// Whether nothing crosses between the two brokers.
    apart: bool,
    /// The site on whose disk a gateway can write nothing.
    full: Option<&'static str>,
}

/// Gives a worker no more memory than it has: when it needs more, it ends by a fault of its own.
const NO_MORE_MEMORY: &str =
    "prlimit --pid $1 --as=$(($(sed -n 's/^VmSize:[^0-9]*\\([0-9]*\\) kB/\\1/p' /proc/$1/status) * 1024))";

/// The next worker may end so, too, but after the third within ten seconds nothing would be taken up.
const FAULTS_APART: Duration = Duration::from_secs(6);

/// Has a shell do something with the worker of a site's gateway, `$1`; whether there was one.
fn to_worker(grid: &Grid, site: &str, script: &str) -> bool {
    let Some(status) = grid.fresh.status(site) else {
        return false;
    };
    let worker = status.worker.to_string();
    grid.fresh.says_any(site, &["sh", "-c", script, "sh", &worker]);
    true
}

/// Gives a site a small disk for what its gateway writes.
fn small_disk(grid: &Grid, site: &str) {
    let place = grid.fresh.directory.join(site).display().to_string();
    let script = "mkdir -p $1; mount -t tmpfs -o size=4m tmpfs $1";
    grid.fresh.says_any(site, &["sh", "-ec", script, "sh", &place]);
}

/// Fills the disk of a site, or makes room on the one that was filled last.
fn change_disk(grid: &Grid, full: &mut Option<&'static str>, site: &'static str) {
    let (site, script) = match full.take() {
        Some(site) => (site, "rm $1/filled"),
        None => {
            *full = Some(site);
            (site, "! head -c 8000000 /dev/zero >$1/filled")
        }
    };
    let place = grid.fresh.directory.join(site).display().to_string();
    grid.fresh.says_any(site, &["sh", "-ec", script, "sh", &place]);
}

/// Takes the network between the two brokers away, or gives it back.
fn change_network(grid: &Grid, apart: &mut bool) {
    *apart = !*apart;
    let way = if *apart { "--down" } else { "--up" };
    let words = ["link", "--lab", grid.fresh.name(), BROKERS[0], BROKERS[1], way];
    right(&grid.fresh.lab(&words).output().unwrap());
}

/// Kills a broker, or starts the one that was killed last.
fn change_broker(grid: &mut Grid, away: &mut Option<&'static str>, random: &mut fastrand::Rng) {
    match away.take() {
        Some(site) => grid.start_broker_of(site),
        None => {
            let site = random.choice(BROKERS).unwrap_or(BROKERS[0]);
            grid.kill_broker_of(site);
            *away = Some(site);
        }
    }
}

#[test]
#[ignore = "needs namespaces and Debian's MPIs; run by make test"]
fn debian_mpis_lose_no_byte_and_no_job_while_workers_of_gateways_are_killed_at_random() {
    let scenario = root().join("tests/e2e/two-relays.toml").display().to_string();
    let Some(mut grid) = Grid::start_several("chaos", &scenario, &SITES, &BROKERS) else {
        return;
    };
    SITES.iter().for_each(|site| small_disk(&grid, site));
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
    let (mut counts, mut faults) = (Counts::default(), Faults::default());
    let mut short_at = Instant::now();
    while Instant::now() < until {
        std::thread::sleep(Duration::from_millis(random.u64(200..2000)));
        let site = random.choice(SITES).unwrap_or("lyon");
        match random.u8(0..34) {
            0..3 => {
                counts.cuts += u64::from(grid.resets_lanes("rennes", "lyon"));
            }
            3..6 => {
                change_broker(&mut grid, &mut faults.away, &mut random);
                counts.brokers += u64::from(faults.away.is_some());
            }
            30..32 => {
                change_network(&grid, &mut faults.apart);
                counts.apart += u64::from(faults.apart);
            }
            32..34 => {
                change_disk(&grid, &mut faults.full, site);
                counts.full += u64::from(faults.full.is_some());
            }
            7..9 if short_at.elapsed() > FAULTS_APART => {
                counts.short += u64::from(to_worker(&grid, site, NO_MORE_MEMORY));
                short_at = Instant::now();
            }
            6 => counts.stops += u64::from(to_worker(&grid, site, "kill -STOP $1; sleep 5; kill -CONT $1")),
            _ => {
                let signal = random.choice(SIGNALS).unwrap_or("KILL");
                counts.kills += u64::from(to_worker(&grid, site, &format!("kill -{signal} $1")));
            }
        }
        if random.u8(0..10) == 0 {
            let job = random.usize(0..jobs.len());
            jobs[job].goes_on("the last kill");
        }
    }
    let rounds: Vec<u64> = jobs.iter().map(Job::rounds).collect();
    println!("    {counts:?}; rounds of the jobs: {rounds:?}");
    assert!(counts.kills > 0);
    faults.away.inspect(|site| grid.start_broker_of(site));
    if faults.apart {
        change_network(&grid, &mut faults.apart);
    }
    if faults.full.is_some() {
        change_disk(&grid, &mut faults.full, SITES[0]);
    }
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
    let ended: u64 = ends.iter().sum();
    println!("    {ended} workers have ended");
    assert!(
        (counts.kills..=counts.kills + counts.short).contains(&ended),
        "{ended} workers have ended, {counts:?}"
    );
}
