//! One program over two sites that each run their own MPI: Debian's Open MPI at one, its MPICH at the other.
//! Every case ends with nothing left at either site; own-mpi.sh has the commands.

use crate::grid::{self, Lab, root};
use crate::programs::{Expected, Item};
use std::fs;
use std::time::Duration;

/// Start of two launchers and four ranks beside other work.
const START: Duration = Duration::from_secs(60);

/// What a lane and a tunnel get in that test until they are given up.
const GIVEN_UP: Duration = Duration::from_secs(4);

/// How long a gateway's host refuses connections until the gateway counts as killed.
const KILLED: Duration = Duration::from_secs(5);

/// The end of a job after that.
const ENDS: Duration = Duration::from_secs(10);

#[test]
#[ignore = "needs namespaces and Debian's MPIs; run by make test"]
fn debian_open_mpi_and_mpich_are_one_world_over_two_sites() {
    let items = vec![
        case("exchange", &["own_world: 4 ranks, all right", "status 0"]),
        case("turned", &["own_world: 4 ranks, all right", "status 0"]),
        case("nodes", &["own_world: 4 ranks, all right", "status 0"]),
        case(
            "exported",
            &[
                "HELLO=world\nHELLO=world",
                "own_world: 4 ranks, all right\nstatus 0\n",
            ],
        ),
        case(
            "collectives",
            &[
                "collectives_mpif: all right",
                "collectives_mpi: all right",
                "collectives_f08: all right",
            ],
        ),
        case(
            "groups",
            &[
                "rank 0 is at site rennes of 2, in group first",
                "rank 1 is at site rennes of 2, in group none",
                "rank 3 is at site nancy of 2, in group there",
                "topology: the sum is 6: all right",
                "rank 0 is at site rennes of 2, in group master",
                "rank 2 is at site nancy of 2, in group work",
                "topology: the sum is 3: all right",
                "own_world: 3 ranks, all right",
            ],
        ),
        case(
            "imports",
            &[
                "causeway: this program uses MPI_File_open, MPI_Win_create, which do not work over sites",
                "own_imports: 4 ranks, all right",
                "a program without such calls is told nothing",
            ],
        ),
        case("one-site", &["own_world: 2 ranks, all right", "status 0"]),
    ];
    grid::run("rennes-nancy", "own-mpi", items);
}

#[test]
#[ignore = "needs namespaces and Debian's MPIs; run by make test"]
fn debian_sites_with_the_same_addresses_and_their_own_mpi_are_one_world() {
    let right = &["own_world: 4 ranks, all right", "status 0"];
    let items = vec![case("exchange", right), case("nodes", right)];
    grid::run("overlap", "own-mpi", items);
}

#[test]
#[ignore = "needs namespaces and Debian's MPIs; run by make test"]
fn debian_sites_with_their_own_mpi_end_together_and_say_why() {
    let items = vec![
        case(
            "wrong-site",
            &[
                "there is no site \"lyon\"; the grid has rennes, nancy",
                "status 2",
            ],
        ),
        case(
            "not-found",
            &["site nancy: its command ended with status 127", "status 127"],
        ),
        case(
            "no-mpi",
            &[
                "no MPI here",
                "site nancy: its command ended with status 0 before its ranks joined",
                "status 1",
            ],
        ),
        case(
            "singletons",
            &[
                "site rennes: each process believes that it is alone, and its launcher has started 2",
                "status 1",
            ],
        ),
        case("abort", &["site nancy: ", "status 7"]),
        case(
            "exit",
            &[
                "site nancy: its command ended with status 3 before all its ranks",
                "status 3",
            ],
        ),
        case("kill", &["site nancy: ", "status 9"]),
        case("interrupt", &["status 130"]),
        case(
            "waiting",
            &["site rennes has joined: 2 processes of Open MPI", "status 143"],
        ),
        case("killed", &["status 137"]),
        case(
            "input",
            &[
                "one line",
                "site rennes: its command ended with status 3 before its ranks joined",
                "status 3",
            ],
        ),
    ];
    grid::run("rennes-nancy", "own-mpi-ends", items);
}

#[test]
#[ignore = "needs namespaces and Debian's MPIs; run by make test"]
fn debian_sites_with_their_own_mpi_end_at_both_sides_of_a_wan_that_is_cut_for_good() {
    let says = [
        "site nancy: the connection to its command ended before the command did",
        "status 1",
    ];
    let grid = ["lane_timeout = \"2s\"", "resume = \"2s\""];
    let items = vec![case("cut", &says)];
    let Some(mut lab) = Lab::start("rennes-nancy", "own-mpi-cut", &grid, items) else {
        return;
    };
    let output = lab.place("cut").join("output");
    let said = |text: &str| {
        fs::read_to_string(&output)
            .unwrap_or_default()
            .matches(text)
            .count()
    };
    lab.wait_for("cut", START, "start of all ranks", |_| said("is there") == 4);
    lab.causeway(&["link", "rennes", "nancy", "--down"]);
    lab.wait_for("cut", GIVEN_UP + ENDS, "end of every process", |lab| {
        let look = "pgrep -f own_[w]orld || echo none";
        let left = lab.causeway(&["exec", "nancy-1", "--", "sh", "-c", look]);
        left.trim() == "none" && said("status ") == 1
    });
    lab.causeway(&["link", "rennes", "nancy", "--up"]);
    fs::write(lab.place("cut").join("mended"), "").unwrap();
    lab.finish();
}

#[test]
#[ignore = "needs namespaces and Debian's MPIs; run by make test"]
fn debian_sites_with_their_own_mpi_end_at_both_sides_when_either_gateway_is_killed() {
    // The user's own one, then the other.
    for (site, says) in [("rennes", "gateway"), ("nancy", "site nancy: ")] {
        let mut item = case("gateway", &[]);
        item.expected = Expected::Says(vec![says.to_owned(), "status 1".to_owned()]);
        let Some(mut lab) = Lab::start(
            "rennes-nancy",
            &format!("own-mpi-gateway-{site}"),
            &[],
            vec![item],
        ) else {
            return;
        };
        let output = lab.place("gateway").join("output");
        let said = |text: &str| {
            let said = fs::read_to_string(&output).unwrap_or_default();
            said.matches(text).count()
        };
        lab.wait_for("gateway", START, "start of all ranks", |_| said("is there") == 4);
        // The keeper, which is the older one: its worker tells the others. If both are killed at once, nobody
        // does, and whoever cannot dial waits for `resume` (docs/decisions/0016).
        let kill = format!("pkill -KILL -o -f '[g]ateway --config .*/{site}.toml'");
        lab.causeway(&["exec", &format!("{site}-head"), "--", "sh", "-c", &kill]);
        for node in ["rennes-1", "nancy-1"] {
            lab.wait_for("gateway", KILLED + ENDS, "end of every process", |lab| {
                let look = "pgrep -f own_[w]orld || echo none";
                lab.causeway(&["exec", node, "--", "sh", "-c", look]).trim() == "none"
            });
        }
        fs::write(lab.place("gateway").join("looked"), "").unwrap();
        lab.finish();
    }
}

#[test]
#[ignore = "needs namespaces and Debian's MPIs; run by make test"]
fn debian_ranks_of_a_site_with_a_fast_network_use_it_and_no_socket() {
    let scenario = root().join("tests/e2e/fabric.toml").display().to_string();
    let items = vec![case(
        "fabric",
        &[
            // Between the two nodes, as UCX tells it.
            "tag(sysv/memory cma/memory)",
            "rank 0 on nancy-1: 128 MB within the site, nothing over sockets",
            "rank 1 on nancy-2: 128 MB within the site, nothing over sockets",
            "rank 2 on rennes-1: 128 MB within the site, nothing over sockets",
            "rank 3 on rennes-1: 128 MB within the site, nothing over sockets",
            "own_fabric: 4 ranks, all right",
            // The count sees what is told to take sockets.
            "rank 1 on nancy-2: 128 MB within the site, data over sockets",
            "own_fabric: 2 ranks, all right",
        ],
    )];
    grid::run(&scenario, "own-mpi-fabric", items);
}

#[test]
#[ignore = "needs namespaces and Debian's MPICH; run by make test"]
fn debian_sites_start_a_program_as_their_gateways_say() {
    let right = "own_world: 4 ranks, all right";
    let items = vec![
        case(
            "own-mpi",
            &[
                "causeway: each of rennes, nancy starts its own MPI, because of --own-mpi",
                "site rennes: mpiexec.hydra -n ${MOST:-2}",
                "site nancy: mpiexec.hydra -n ${MOST:-2}",
                right,
                "status 0",
            ],
        ),
        case(
            "setup",
            &[
                "rennes has come",
                "nancy has come",
                "own_world: 2 ranks, all right",
            ],
        ),
        case(
            "wrong-count",
            &[
                "site rennes: its launcher started 1 processes, but --sites says 2",
                "status 2",
            ],
        ),
    ];
    // The section ends that of the grid.
    let mpi = [
        "[mpi]",
        "start = 'mpiexec.hydra -n ${MOST:-{ranks}}'",
        "setup = 'export LAB_SETUP=come'",
    ];
    if let Some(lab) = Lab::start("rennes-nancy", "own-mpi-starts", &mpi, items) {
        lab.finish();
    }
}

#[test]
#[ignore = "needs namespaces, Debian's MPIs and its Slurm; run by make test"]
fn debian_site_of_slurm_that_refuses_ssh_is_part_of_a_world_and_keeps_no_allocation() {
    let right = &["own_world: 4 ranks, all right", "status 0"];
    let started = &[
        "rennes-1 refuses ssh",
        "rennes-2 refuses ssh",
        "slurm has 2 idle nodes",
    ];
    let counts: &[&str] = &["4 ranks, ", "In all 296 messages, 201 MB"];
    let ends: [(&str, &[&str]); 12] = [
        (
            "srun-own",
            &[
                "site rennes: srun -n 2 --mpi=pmi2",
                "site nancy: mpiexec.hydra -n 2",
                "own_world: 4 ranks, all right",
            ],
        ),
        ("srun-mpich", right),
        ("srun-openmpi", right),
        ("salloc-mpich", right),
        ("salloc-openmpi", right),
        ("srun-messages-mpich", counts),
        ("srun-messages-openmpi", counts),
        (
            "srun-singletons",
            &["site rennes: its processes joined one by one"],
        ),
        ("srun-kill", &["site rennes: its command ended with status"]),
        (
            "srun-abort",
            &["site rennes: rank 3 at rennes called MPI_Abort with code 7"],
        ),
        (
            "srun-other",
            &[
                "site nancy: its command ended with status 3 before all its ranks",
                "status 3",
            ],
        ),
        ("srun-interrupt", &["status 130"]),
    ];
    let nothing = [
        "nothing is allocated",
        "nothing is left on rennes-1",
        "nothing is left on rennes-2",
    ];
    let mut items = vec![case("slurm", started)];
    items.extend(ends.map(|(name, says)| case(name, &[says, &nothing].concat())));
    items.push(case(
        "srun-killed",
        &[&["status 137"], nothing.as_slice()].concat(),
    ));
    grid::run("tests/e2e/one-slurm.toml", "own-mpi-slurm", items);
}

fn case(name: &str, says: &[&str]) -> Item {
    let script = root().join("tests/e2e/own-mpi.sh");
    let programs = root().join("target/mpi");
    let left = ["nothing is left at rennes", "nothing is left at nancy"];
    Item {
        name: name.to_owned(),
        command: format!("{} {name} {}", script.display(), programs.display()),
        seconds: 60,
        expected: Expected::Says(says.iter().chain(&left).map(|text| (*text).to_owned()).collect()),
    }
}
