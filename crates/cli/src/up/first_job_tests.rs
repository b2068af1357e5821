use super::super::facts::{BatchNodes, Facts};
use super::super::host::Host;
use super::super::ports::Ports;
use super::*;

fn site(name: &str, directory: &str, mpis: &[(&str, &str, &str)]) -> Site {
    let found = |(word, mpi, version): &(&str, &str, &str)| Found {
        word: (*word).to_owned(),
        mpi: (*mpi).to_owned(),
        version: (*version).to_owned(),
        program: vec![format!("{directory}/causeway-loader"), "bench".to_owned()],
    };
    Site {
        host: Host {
            site: name.to_owned(),
            destination: ".".to_owned(),
            connections: "/tmp/c".into(),
        },
        home: "/home/ada".to_owned(),
        directory: directory.to_owned(),
        causeway: format!("{directory}/causeway"),
        facts: Facts {
            host: format!("{name}-head"),
            system: String::new(),
            is_root: false,
            processors: 8,
            clock: 0,
            addresses: Vec::new(),
            batch: None,
            networks: Vec::new(),
            launchers: mpis.iter().map(found).collect(),
            site: None,
            accepts: Vec::new(),
            gateway_runs: false,
            gateway_is_other: false,
            grid: None,
            broker_runs: false,
            ports: Ports::USUAL,
        },
    }
}

fn lines(jobs: &Jobs) -> Vec<String> {
    let all = jobs.hello.iter().chain([&jobs.pingpong]);
    all.map(|words| words.iter().map(quoted).collect::<Vec<_>>().join(" "))
        .collect()
}

#[test]
fn one_mpi_that_all_sites_have_runs_over_all_of_them() {
    let sites = [
        site("rennes", "/c", &[("mpirun", "Open MPI", "4.1.4")]),
        site(
            "nancy",
            "/c",
            &[("mpiexec", "MPICH", "4.0.2"), ("mpirun", "Open MPI", "4.1.4")],
        ),
    ];
    assert_eq!(
        lines(&Jobs::of(&sites).unwrap()),
        [
            "run --sites rennes=1,nancy=1 -- mpirun -n 2 hostname",
            "run --sites rennes=1,nancy=1 -- mpirun -n 2 /c/causeway-loader bench pingpong --sizes 1 --count 20"
        ]
    );
}

#[test]
fn the_first_job_stays_a_second_under_mpichs_launcher_which_sigpipe_may_end_otherwise() {
    let mpich = [("mpiexec", "MPICH", "4.0.2")];
    let sites = ["rennes", "nancy"].map(|name| site(name, "/c", &mpich));
    assert_eq!(
        lines(&Jobs::of(&sites).unwrap())[0],
        "run --sites rennes=1,nancy=1 -- mpiexec -n 2 sh -c 'hostname; sleep 1'"
    );
}

#[test]
fn sites_without_a_common_mpi_or_with_other_homes_are_one_world_of_their_own_mpis() {
    let mut sites = [
        site("rennes", "/c", &[("mpirun", "Open MPI", "4.1.0")]),
        site("nancy", "/c", &[("mpiexec", "MPICH", "5.0.2")]),
    ];
    sites[1].facts.is_root = true;
    let world = "run --at rennes 'mpirun -n 1 /c/causeway-loader bench pingpong --sizes 1 --count 20' --at nancy 'export \
                 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1; mpiexec -n 1 /c/causeway-loader bench pingpong \
                 --sizes 1 --count 20'";
    assert_eq!(lines(&Jobs::of(&sites).unwrap()), [world]);
    let mpi = [("mpirun", "Open MPI", "4.1.4")];
    let homes = [
        site("rennes", "/home/ada/c", &mpi),
        site("nancy", "/users/ada/c", &mpi),
    ];
    let jobs = lines(&Jobs::of(&homes).unwrap());
    assert!(
        jobs[0].contains("'mpirun -n 1 /users/ada/c/causeway-loader "),
        "{jobs:?}"
    );
    let none = [site("rennes", "/c", &mpi), site("nancy", "/c", &[])];
    assert!(Jobs::of(&none).unwrap_err().contains("nancy has no launcher"));
}

#[test]
fn nodes_of_batch_systems_are_asked_for_by_number_and_time() {
    let batch = || BatchNodes {
        system: "slurm".to_owned(),
        addresses: Vec::new(),
    };
    let mut sites = [
        site("rennes", "/c", &[("mpirun", "Open MPI", "4.1.4")]),
        site("nancy", "/c", &[("mpirun", "Open MPI", "5.0.8")]),
    ];
    sites[0].facts.batch = Some(batch());
    assert!(Jobs::of(&sites).unwrap_err().contains("others have none"));
    sites[1].facts.batch = Some(batch());
    let jobs = lines(&Jobs::of(&sites).unwrap());
    assert!(
        jobs[0].starts_with("run --sites rennes=1,nancy=1 --time 2min --wait 5min --at rennes 'mpirun "),
        "{jobs:?}"
    );
}

#[test]
fn a_round_trip_is_twice_the_median_of_the_programs_row() {
    assert_eq!(
        round_trip("x\nbench: pingpong 1 5900.0 7000.0 6000.0\n"),
        Some(12.0)
    );
    assert_eq!(round_trip("mpirun: no\n"), None);
    assert_eq!(round_trip("bench: pingpong 1 \n"), None);
}

#[test]
fn a_node_without_the_home_of_its_head_node_is_told_as_such() {
    let missing = "site b: its command was not started: bash: line 1: /home/ada/.local/share/causeway/installed/\
                   30d34bb56f1d/causeway: No such file or directory";
    assert!(explained(missing).contains("does not share the home directory"));
    let other = "site b: ./app: No such file or directory";
    assert_eq!(explained(other), other);
}
