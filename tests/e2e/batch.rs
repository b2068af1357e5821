//! Two sites whose nodes belong to a Slurm each, and take no ssh: jobs run in allocations of both. batch.sh
//! has the commands.

use crate::grid::{self, root};
use crate::programs::{Expected, Item};

#[test]
#[ignore = "needs namespaces, Debian's MPIs and its Slurm; run by make test"]
fn debian_mpis_run_in_allocations_of_two_sites_of_slurm_and_leave_nothing_there() {
    let items = vec![
        case(
            "one-mpi",
            &["ring_mpi: 8 ranks", "variables of Slurm: 0", "status 0"],
        ),
        case("own-mpi", &["own_world: 8 ranks, all right", "status 0"]),
        case("inside", &["ring_mpi: 2 ranks", "status 0"]),
        case(
            "script",
            &[
                "ring_mpi: 8 ranks, all right\nstatus 0\n",
                "from rennes-2",
                "the connection to this site's gateway ended, and the job with it",
                "own_world: 8 ranks, all right\nstatus 0\nls: cannot access",
                "the one on nobody.invalid (/run/causeway/gateway.sock) cannot be asked: ssh ended with",
            ],
        ),
        case(
            "parts",
            &[
                "ring_mpi: 4 ranks, all right",
                "ring_mpi: 2 ranks, all right",
                "status 0",
            ],
        ),
        case(
            "refused",
            &[
                "allocation 999 of rennes: this account has no allocation 999",
                "allocation 999 of nancy: nancy has no running allocation 999",
                "no node of rennes offers a slot",
                "20 ranks are requested, but the nodes of nancy, rennes have 16 slots",
                "is no node of the job's allocation at this site",
                "status 2",
            ],
        ),
        case(
            "resources",
            &[
                "grid grid: 2 sites, 4 nodes, 16 slots",
                "rennes all* 2 4 - - - 0 0 2 in ",
                "nancy all* 2 4 - - - 0 0 2 in ",
                "\"name\": \"rennes-2\"",
                "\"free_slots\": 0",
                "of nancy for 5 s: ",
                "and another node like it",
                "later: rennes 1 1 1",
                "later: nancy 1 1 1",
            ],
        ),
        case("cancelled", &["site nancy: "]),
        case("killed", &["status 137"]),
    ];
    grid::run("slurm", "batch", items);
}

#[test]
#[ignore = "needs namespaces, Debian's MPIs and its Slurm; run by make test"]
fn debian_mpis_get_allocations_of_two_sites_of_slurm_at_once_and_however_they_end_all_is_given_back() {
    let items = vec![
        time(
            "one-mpi",
            &[
                "ring_mpi: 16 ranks, all right",
                "ring_mpi: 8 ranks, all right",
                "status 0",
            ],
        ),
        time(
            "own-mpi",
            &[
                "own_world: 8 ranks, all right\nstatus 0\nc",
                "own_world: 8 ranks, all right\nstatus 0\ncauseway: --sites and --at must name the same sites: nancy",
                "leave out --sites, or add --time",
                "status 2",
            ],
        ),
        time(
            "refused",
            &[
                "rennes gives no allocation: sbatch: allocation failure: Requested node configuration is not available",
                "can never begin: Partition",
                "the site does not let --wrap be chosen",
                "nancy gives no allocation: sbatch: allocation failure: Invalid partition name specified",
                "--time needs the ranks of each site",
                "would lead to another server",
                "status 2",
            ],
        ),
        time(
            "budget",
            &[
                "status 0\nc",
                "status 0\ncauseway: ",
                "1.3 core-hours (8 ranks for 10 minutes) are more than core_hours_a_day in [batch] leaves rennes",
                "allocations for rennes",
                "of 1 core-hours in a day",
                "max_allocations in [batch]",
                "second 2",
                "status 130",
            ],
        ),
        time(
            "drained",
            &[
                "rennes: nodes are down or drained; it begins when they are back",
                "ring_mpi: 8 ranks, all right",
                "status 0",
            ],
        ),
        time(
            "busy",
            &["had not begun within 8s; all are given back", "status 3"],
        ),
        time(
            "compete",
            &[
                "all right\nstatus 0\nthe other: ",
                "ring_mpi: 16 ranks, all right\nstatus 0\nall is given back",
            ],
        ),
        time(
            "script",
            &["8 ranks, all right\nring_mpi: 8 ranks, all right\nstatus 5"],
        ),
        time("interrupt", &["status 130"]),
        time("killed", &["status 137"]),
        time("cancelled", &["causeway: nancy: allocation "]),
        time("gateway", &["site nancy: ", "left: 1"]),
    ];
    grid::run("slurm", "batch-time", items);
}

#[test]
#[ignore = "needs namespaces, Debian's MPIs and its Slurm; run by make test T=batch"]
fn long_waits_of_one_site_for_another_and_a_controller_that_is_away_leave_no_allocation() {
    let items = vec![
        time(
            "idle",
            &[
                "rennes has waited for nancy for 2s: all is given back, and asked for again",
                "rennes, nancy had not begun within 16s",
                "status 3",
            ],
        ),
        time("controller", &["status 130"]),
    ];
    grid::run("slurm", "batch-waits", items);
}

#[test]
#[ignore = "needs namespaces, Debian's MPIs and its Slurm; run by make test"]
fn debian_jobs_that_are_submitted_wait_run_and_end_without_anybody_and_survive_their_gateway() {
    let items = vec![
        queued("ends", &["from nancy-1", "wait 7", "failed  queued", "status 7"]),
        queued(
            "cancel",
            &[
                "waits: cancel 0, wait 143",
                "runs: cancel 0, wait",
                "ended before",
                "prints: cancel 0",
                "canceled  queued",
            ],
        ),
        queued(
            "gateway",
            &[
                "carrier: wait 0",
                "gateway: wait 0",
                "gateway and all it has started: wait 0",
            ],
        ),
        queued(
            "killed",
            &[
                "the process that carried it was killed while the program ran",
                "wait 4",
            ],
        ),
        queued(
            "full",
            &[
                "of its output could not be written: ",
                "wait 0",
                "write the job down in",
                "submit 2",
            ],
        ),
        // The last one: it starts gateways of its own.
        queued(
            "start",
            &[
                "no gateway of rennes is there: ",
                "no gateway of nancy is there: ",
                "from nancy-1",
                "wait 0",
                "start the gateway of nancy by 'false' ([start] of gateway.toml): exit status: 1",
            ],
        ),
    ];
    grid::run("slurm", "batch-queue", items);
}

#[test]
#[ignore = "needs namespaces, Debian's MPIs and its Slurm; run by make test T=batch"]
fn long_three_clusters_of_slurm_give_nodes_at_once_and_whatever_breaks_all_is_given_back() {
    let item = |name: &str, says: &[&str]| Item {
        command: format!(
            "{} {name} {}",
            root().join("tests/e2e/batch-three.sh").display(),
            root().join("target/mpi").display()
        ),
        name: name.to_owned(),
        seconds: 120,
        ..time(name, says)
    };
    let items = vec![
        item(
            "all",
            &[
                "ring_mpi: 12 ranks, all right",
                "group work: 4 at rennes",
                "group master: 2 at orsay",
                "ring_mpi: 10 ranks, all right",
                "own_world: 6 ranks, all right",
                "status 0",
            ],
        ),
        item(
            "full",
            &[
                "bordeaux: allocation ",
                "waits: ",
                "orsay, rennes, bordeaux had not begun",
                "status 3",
            ],
        ),
        item(
            "refused",
            &[
                "bordeaux gives no allocation: ",
                "can never begin: Partition",
                "status 2",
            ],
        ),
        item(
            "controller-before",
            &["bordeaux gives no allocation: ", "status 2"],
        ),
        item(
            "controller-while",
            &["it has run without a controller", "status 0"],
        ),
        item(
            "interrupt",
            &["asked: 130", "queued: 130", "held: 130", "runs: 130"],
        ),
        item("host", &["orsay is gone: nothing is left at the others"]),
        item("node-waits", &["status 3"]),
        item("node-runs", &["srun: error: Node failure on bordeaux-1"]),
    ];
    grid::run("tests/e2e/three-slurms.toml", "batch-three", items);
    // These change the Slurm of a site.
    let accounts = item(
        "accounts",
        &[
            "gives no allocation: sbatch: allocation failure: Invalid account",
            "ring_mpi: 6 ranks, all right\nstatus 0\ntoo many: ",
            "can never begin: AssocMaxCpuPerJobLimit",
            "bordeaux p7 any normal any any any 3 min",
            "can never begin: AssocMaxWallDurationPerJobLimit",
            "waits: AssocGrpJobsLimit",
            "status 3\nnone at all: ",
            "submit limit",
        ],
    );
    let clocks = item(
        "clocks",
        &[
            "bordeaux is ahead by 90 s",
            "ring_mpi: 6 ranks, all right",
            "the estimate is right",
            "status 0",
        ],
    );
    grid::run("tests/e2e/three-slurms.toml", "batch-accounts", vec![accounts]);
    grid::run("tests/e2e/three-slurms.toml", "batch-clocks", vec![clocks]);
}

#[test]
#[ignore = "needs root and OpenPBS (tools/setup/openpbs.sh); run by make test T=batch-pbs"]
fn openpbs_and_slurm_give_nodes_at_once_and_however_a_job_ends_all_is_given_back() {
    let system = BesideSlurm {
        name: "pbs",
        variables: "variables of PBS: 0",
        no_allocation: "this account has no allocation 999.rennes-head",
        refuses: [
            "can never begin: Can Never Run: Insufficient amount of resource: ncpus",
            "qsub: Job violates queue and/or server resource limits",
            "qsub: Unknown queue",
            "the site does not let --partition be chosen",
        ],
        waits: "waits: Not enough free nodes available",
        queue: "rennes  workq*",
    };
    grid::run("tests/e2e/pbs-slurm.toml", "batch-pbs", system.cases(vec![]));
}

#[test]
#[ignore = "needs root and OAR (tools/setup/install.sh oar); run by make test T=batch-oar"]
fn oar_and_slurm_give_nodes_at_once_and_however_a_job_ends_all_is_given_back() {
    let system = BesideSlurm {
        name: "oar",
        variables: "variables of OAR: 0",
        no_allocation: "this account has no allocation 999",
        refuses: [
            "oarsub: There are not enough resources for your request",
            "A job may take two hours at most",
            "The queue none does not exist",
            "the site does not let --property be chosen",
        ],
        waits: "waits: its time is planned",
        queue: "rennes  default*",
    };
    let timer = [
        "it is held back, begins in ",
        "ring_mpi: 8 ranks, all right",
        "status 0",
    ];
    let user = [
        "ring_mpi: 8 ranks, all right\nas ada: 0",
        "as ada, cancelled: 255",
    ];
    let more = vec![
        system.case("cgroups", &["ranks of a job: 1"]),
        system.case("timer", &timer),
        system.case("user", &user),
    ];
    grid::run("tests/e2e/oar-slurm.toml", "batch-oar", system.cases(more));
}

/// A batch system other than Slurm, whose site is beside one of Slurm, and what it says.
struct BesideSlurm {
    name: &'static str,
    /// How many of its variables ranks see.
    variables: &'static str,
    no_allocation: &'static str,
    refuses: [&'static str; 4],
    waits: &'static str,
    /// Its usual queue, as resources show it.
    queue: &'static str,
}

impl BesideSlurm {
    /// All cases, with these more. That of the gateway starts another one, and so comes late.
    fn cases(&self, more: Vec<Item>) -> Vec<Item> {
        let all = [
            "rennes: does not say beforehand when it could begin",
            "ring_mpi: 16 ranks, all right",
            "ring_mpi: 8 ranks, all right",
            "own_world: 8 ranks, all right",
            self.variables,
            "status 0",
        ];
        let alloc = [
            "ring_mpi: 8 ranks, all right\nstatus 0",
            "7 ranks are requested, but the nodes of rennes have 6 slots",
            self.no_allocation,
            "causeway: site rennes: ",
        ];
        let refused = [&self.refuses[..], &["status 2"]].concat();
        let interrupt = ["asked: 130", "queued: 130", "held: 130", "runs: 130"];
        let right = ["ring_mpi: 8 ranks, all right", "status 0"];
        let mut items = vec![
            self.case("all", &all),
            self.case("alloc", &alloc),
            self.case("script", &right),
            self.case("refused", &refused),
            self.case("busy", &[self.waits, "had not begun within 15s", "status 3"]),
            self.case("later", &right),
            self.case("interrupt", &interrupt),
            self.case("killed", &["status 137"]),
            self.case("canceled", &["causeway: rennes: allocation "]),
            self.case("server", &["it has run without a server", "status 0"]),
        ];
        items.extend(more);
        items.push(self.case("gateway", &["left: 1"]));
        let queued = ["ring_mpi: 8 ranks, all right", "wait 0", self.queue];
        items.push(self.case("queued", &queued));
        items
    }

    fn case(&self, name: &str, says: &[&str]) -> Item {
        let left = ["nothing is left on rennes-1", "nothing is left on rennes-2"];
        let says: Vec<&str> = says.iter().chain(&left).copied().collect();
        Item {
            command: format!(
                "{} {} {name} {}",
                root().join("tests/e2e/batch-beside.sh").display(),
                self.name,
                root().join("target/mpi").display()
            ),
            name: name.to_owned(),
            seconds: 120,
            ..time(name, &says)
        }
    }
}

fn queued(name: &str, says: &[&str]) -> Item {
    Item {
        name: format!("queue-{name}"),
        command: time(name, says).command.replacen("time-", "queue-", 1),
        ..time(name, says)
    }
}

fn time(name: &str, says: &[&str]) -> Item {
    let name = format!("time-{name}");
    let script = root().join("tests/e2e/batch.sh");
    let programs = root().join("target/mpi");
    Item {
        command: format!("{} {name} {}", script.display(), programs.display()),
        seconds: 60,
        expected: Expected::Says(
            { says.iter().chain(&["all is given back"]) }
                .map(|text| (*text).to_owned())
                .collect(),
        ),
        name,
    }
}

fn case(name: &str, says: &[&str]) -> Item {
    let script = root().join("tests/e2e/batch.sh");
    let programs = root().join("target/mpi");
    let left = [
        "no step is left",
        "nothing is left on rennes-1",
        "nothing is left on rennes-2",
        "nothing is left on nancy-1",
        "nothing is left on nancy-2",
    ];
    Item {
        name: name.to_owned(),
        command: format!("{} {name} {}", script.display(), programs.display()),
        seconds: 120,
        expected: Expected::Says(says.iter().chain(&left).map(|text| (*text).to_owned()).collect()),
    }
}
