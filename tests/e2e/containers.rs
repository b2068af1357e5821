//! Ranks in containers of Podman, over two sites. container.sh has Podman's command.

use crate::grid::{self, root};
use crate::programs::{Expected, Item};

#[test]
#[ignore = "needs root and Podman (tools/setup/install.sh podman); run by make test T=containers"]
fn mpis_run_in_containers_that_see_the_shim_and_say_why_where_they_do_not() {
    let target = root().join("target");
    let (release, mpi) = (target.join("release"), target.join("mpi"));
    let bound = |directories: &[&std::path::Path]| {
        let all = { directories.iter() }.map(|bound| format!("--volume={0}:{0}", bound.display()));
        all.collect::<Vec<_>>().join(" ")
    };
    let both = bound(&[&release, &mpi]);
    let openmpi = "mpirun.openmpi --allow-run-as-root --oversubscribe";
    let runs = ["ring_mpi: 8 ranks, all right", "status 0"];
    let items = vec![
        item(
            "openmpi",
            openmpi,
            "debian-openmpi",
            &format!("--env-host {both}"),
            &runs,
        ),
        item(
            "mpich",
            "mpirun.mpich",
            "debian-mpich",
            &format!("--env-host {both}"),
            &runs,
        ),
        // The MPI's own variables alone.
        item(
            "dropped",
            "mpirun.mpich",
            "debian-mpich",
            &format!("--env=PMI_* {both}"),
            &[
                "uses an MPI without Causeway's shim and cannot reach other sites: the wrapper or container that starts \
                 it drops LD_PRELOAD",
            ],
        ),
        item(
            "unbound",
            "mpirun.mpich",
            "debian-mpich",
            &format!("--env-host {}", bound(&[&mpi])),
            &["it does not see the file, as in a container without that directory"],
        ),
    ];
    grid::run("scenarios/rennes-nancy.toml", "containers", items);
}

fn item(name: &str, launcher: &str, mpi: &str, options: &str, says: &[&str]) -> Item {
    let script = root().join("tests/e2e/container.sh");
    let program = root().join("target/mpi").join(mpi).join("ring_mpi");
    Item {
        name: name.to_owned(),
        command: format!(
            "timeout 60 causeway run --sites rennes=4,nancy=4 -- {launcher} -n 8 {} '{options}' {} 2>&1; echo status $?",
            script.display(),
            program.display()
        ),
        seconds: 90,
        expected: Expected::Says(says.iter().map(|text| (*text).to_owned()).collect()),
    }
}
