//! Sites that let nobody in, and a third that does: a job of the two goes through the gateway of the third,
//! which takes no part in it.

use crate::grid::Lab;
use crate::mpi::{self, Mpi, PingPong};
use crate::programs::{Expected, Item};
use causeway_control::Status;
use std::time::Duration;

/// Start of the launcher and its daemons, beside other programs on two cores.
const START: Duration = Duration::from_secs(120);

#[test]
#[ignore = "needs namespaces and Debian's Open MPI; run by make test"]
fn debian_open_mpi_runs_over_two_sites_that_let_nobody_in_through_a_third() {
    let mpi = mpi::debian_openmpi();
    let items = vec![
        across(&mpi, "ring", 2),
        across(&mpi, "alltoall", 3),
        ping_pong(&mpi),
    ];
    let [first, .., last] = [0, 1, 2].map(|at| items[at].name.clone());
    let Some(mut lab) = Lab::start("closed", "relay", &[], items) else {
        return;
    };
    // Items begin when every tunnel is up.
    lab.wait_for(&last, START, "connection carried by lyon", |lab| {
        lab.place(&first).exists() && status(lab, "lyon").relayed > 0
    });
    for (site, other) in [("rennes", "nancy"), ("nancy", "rennes")] {
        let tunnels = status(&lab, site).tunnels.into_iter();
        let lanes = tunnels.filter(|tunnel| tunnel.site == other);
        let lanes: Vec<_> = lanes.flat_map(|tunnel| tunnel.lanes).collect();
        assert!(!lanes.is_empty());
        for lane in lanes {
            assert_eq!(lane.technique, "relay through lyon");
            let rtt = f64::from(lane.least_rtt_microseconds) / 1e3;
            println!("    {site}: round trip to {other} through lyon {rtt:.2} ms; the links have 8 and 6 ms");
        }
    }
    lab.finish();
}

/// A checked program with as many ranks at either site, none at the third.
fn across(mpi: &Mpi, program: &str, ranks: u32) -> Item {
    Item {
        name: format!("{}-{program}-{}", mpi.name, 2 * ranks),
        command: format!(
            "{} {}/{program} && causeway status",
            run(mpi, ranks),
            mpi.programs.display()
        ),
        seconds: 120,
        expected: Expected::Says(vec!["all right".into(), "relay through lyon".into()]),
    }
}

fn ping_pong(mpi: &Mpi) -> Item {
    let PingPong::NetPipe(program) = &mpi.ping_pong else {
        panic!("{} has no NetPIPE", mpi.name)
    };
    Item {
        name: format!("{}-pingpong-2", mpi.name),
        command: format!(
            "{} {program} -l 1 -u 1048576 -p 0 -n 5 -o $PWD/np.out && cat np.out",
            run(mpi, 1)
        ),
        seconds: 120,
        expected: Expected::Says(vec!["1048576".into()]),
    }
}

fn run(mpi: &Mpi, ranks: u32) -> String {
    format!(
        "{} causeway run --sites rennes={ranks},nancy={ranks} -- {} -n {}",
        mpi.environment,
        mpi.launcher,
        2 * ranks
    )
}

fn status(lab: &Lab, site: &str) -> Status {
    let head = format!("{site}-head");
    let text = lab.causeway(&["exec", &head, "--", "causeway", "status", "--json"]);
    serde_json::from_str(&text).unwrap()
}
