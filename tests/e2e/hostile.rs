//! What another user of a head node does to jobs and gateways, all at once, while jobs run.

use crate::grid;
use crate::programs::{Expected, Item};

/// Runs both of Debian's MPIs beside a hostile neighbour, which must have held something of each kind.
#[test]
#[ignore = "needs namespaces and Debian's MPIs; run by make test"]
fn debian_mpis_go_on_beside_a_hostile_neighbour() {
    let script = grid::root().join("tests/e2e/hostile.sh");
    let item = |mpi: &str| Item {
        name: format!("beside-{mpi}"),
        command: format!("{} {mpi}", script.display()),
        seconds: 120,
        expected: Expected::Says(vec!["all right".to_owned()]),
    };
    grid::run("rennes-nancy", "hostile", vec![item("openmpi"), item("mpich")]);
}
