//! One program over two sites that each run their own MPI: Debian's Open MPI at one, its MPICH at the other.
//! Every case ends with nothing left at either site; own-mpi.sh has the commands.

use crate::grid::{self, root};
use crate::programs::{Expected, Item};

#[test]
#[ignore = "needs namespaces and Debian's MPIs; run by make test"]
fn debian_open_mpi_and_mpich_are_one_world_over_two_sites() {
    let items = vec![
        case("exchange", &["own_world: 4 ranks, all right", "status 0"]),
        case("turned", &["own_world: 4 ranks, all right", "status 0"]),
        case("nodes", &["own_world: 4 ranks, all right", "status 0"]),
        case(
            "collectives",
            &[
                "collectives_mpif: all right",
                "collectives_mpi: all right",
                "collectives_f08: all right",
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
            &["site rennes: its processes joined one by one", "status 1"],
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
