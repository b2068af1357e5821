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
            "refused",
            &[
                "allocation 999 of rennes: this account has no allocation 999",
                "allocation 999 of nancy: nancy has no running allocation 999",
                "port 22: Connection refused",
                "20 ranks are requested, but the nodes of nancy, rennes have 16 slots",
                "is no node of the job's allocation at this site",
                "status 2",
            ],
        ),
        case("cancelled", &["site nancy: "]),
        case("killed", &["status 137"]),
    ];
    grid::run("slurm", "batch", items);
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
