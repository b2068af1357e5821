//! `causeway bench` as users call it: on an emulated grid, with real MPIs.

use crate::grid::{causeway, root};
use crate::namespaces;
use causeway_bench::row::Row;
use causeway_bench::store;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A lab takes seconds to start, a minute beside fifteen compilers. What takes longer hangs.
const DEADLINE: Duration = Duration::from_secs(180);

/// A command in an empty directory of its own; none where the machine has no namespaces.
struct Bench {
    directory: PathBuf,
    words: Vec<String>,
}

impl Bench {
    fn new(name: &str, words: &[&str]) -> Option<Bench> {
        if let Err(reason) = namespaces::probe() {
            println!("skipped: {reason}");
            return None;
        }
        let directory = root().join("target/e2e").join(format!("bench-{name}"));
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir_all(&directory).unwrap();
        let words = words.iter().map(|&word| word.to_owned()).collect();
        Some(Bench { directory, words })
    }

    fn out(&self) -> PathBuf {
        self.directory.join("out")
    }

    fn command(&self) -> Command {
        let mut words = self.words.iter();
        let mut command = Command::new("timeout");
        command.arg(DEADLINE.as_secs().to_string()).arg(causeway());
        command.arg("bench").args(words.next());
        command.args(["--lab", "rennes-nancy", "--out"]).arg(self.out());
        command
            .args(words)
            .current_dir(&self.directory)
            .stdin(Stdio::null());
        command
    }

    fn run(&self) -> Output {
        let output = self.command().output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        println!("{}\n{}", text(&output.stdout), text(&output.stderr));
        output
    }

    fn rows(&self) -> Vec<Row> {
        store::read(&self.out()).unwrap().1
    }
}

#[test]
#[ignore = "needs namespaces and Debian's MPIs; run by make test"]
fn debian_mpis_are_measured_on_every_way_and_a_second_call_measures_nothing_again() {
    let words = [
        "pingpong",
        "--mpi=mpirun.openmpi",
        "--mpi=mpirun.mpich",
        "--ways=site,direct,causeway",
        "--settings=default,tuned",
        "--traffic=quiet,busy",
        "--sizes=1,64k",
        "--count=5",
        "--least=1",
        "--most=1",
    ];
    let Some(bench) = Bench::new("matrix", &words) else {
        return;
    };
    assert_eq!(bench.run().status.code(), Some(0));
    let rows = bench.rows();
    // Two settings of each: one site quiet, two ways quiet and busy.
    assert_eq!(rows.len(), 2 * 2 * (1 + 2 * 2));
    for row in &rows {
        assert_eq!(row.values().len(), 2, "{row:?}");
        assert!(
            row.values().iter().all(|value| value.summary.count == 5),
            "{row:?}"
        );
    }
    let summary = fs::read_to_string(bench.out().join("summary.csv")).unwrap();
    assert_eq!(summary.lines().count(), 1 + 2 * rows.len(), "{summary}");
    let before = fs::read(bench.out().join("rows.jsonl")).unwrap();
    assert_eq!(bench.run().status.code(), Some(0));
    assert_eq!(fs::read(bench.out().join("rows.jsonl")).unwrap(), before);
}

#[test]
#[ignore = "needs namespaces and Debian's MPIs; run by make test"]
fn debian_open_mpi_and_plain_tcp_give_operations_and_messages_their_times() {
    let operations = [
        "operations",
        "--mpi=mpirun.openmpi",
        "--sizes=0,8",
        "--count=5",
        "--least=1",
        "--most=1",
    ];
    let Some(bench) = Bench::new("operations", &operations) else {
        return;
    };
    assert_eq!(bench.run().status.code(), Some(0));
    for row in bench.rows() {
        let once = row
            .values()
            .iter()
            .filter(|value| value.quantity.measure == "once");
        let names: std::collections::BTreeSet<_> =
            once.map(|value| value.quantity.operation.clone()).collect();
        assert_eq!(names.len(), 14, "{names:?}");
    }
    let tcp = [
        "tcp",
        "--ways=site,direct,causeway",
        "--sizes=1,64k",
        "--count=5",
        "--least=1",
        "--most=1",
    ];
    let Some(bench) = Bench::new("tcp", &tcp) else {
        return;
    };
    assert_eq!(bench.run().status.code(), Some(0));
    assert!(bench.rows().iter().all(|row| row.values().len() == 2));
}

#[test]
#[ignore = "needs namespaces and Debian's Open MPI; run by make test"]
fn debian_open_mpi_is_measured_in_two_labs_in_turn_with_and_without_our_collectives() {
    let words = [
        "operations",
        "--lab=clear.toml",
        "--mpi=mpirun.openmpi",
        "--ways=no-collectives,causeway",
        "--operations=allgather",
        "--sizes=64k",
        "--count=3",
        "--seconds=100",
        "--least=1",
        "--most=1",
    ];
    let Some(bench) = Bench::new("labs", &words) else {
        return;
    };
    let sites = fs::read_to_string(root().join("scenarios/rennes-nancy.toml")).unwrap();
    let with = |grid: &str| {
        fs::write(
            bench.directory.join("clear.toml"),
            format!("grid = [{grid}]\n{sites}"),
        )
        .unwrap()
    };
    with("'insecure = true'");
    assert_eq!(bench.run().status.code(), Some(0));
    let rows = bench.rows();
    let order: Vec<_> = rows
        .iter()
        .map(|row| (row.cell.lab.as_str(), row.cell.way.name()))
        .collect();
    assert_eq!(
        order,
        [
            ("rennes-nancy", "no-collectives"),
            ("rennes-nancy", "causeway"),
            ("clear", "no-collectives"),
            ("clear", "causeway")
        ]
    );
    for lab in rows.chunks(2) {
        let crossed: Vec<u64> = lab.iter().filter_map(|row| row.network?.crossed_bytes).collect();
        assert!(crossed.len() == 2 && crossed[0] > crossed[1], "{crossed:?}");
    }
    // The lines reach the gateways: these refuse one that they do not know.
    with("'nonsense = true'");
    fs::remove_dir_all(bench.out()).unwrap();
    let refused = bench.run();
    assert_ne!(refused.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("nonsense"));
}

#[test]
#[ignore = "needs namespaces and Debian's Open MPI; run by make test"]
fn debian_open_mpi_whose_program_crashes_hangs_or_is_absent_leaves_a_row_with_the_reason() {
    for (name, program, reason) in [
        ("crash", "kill -SEGV $$", "ended with"),
        ("hang", "sleep 1000", "within 4 s"),
    ] {
        let words = [
            "app",
            "--ways=causeway",
            "--time-limit=4",
            "--least=1",
            "--most=1",
            "--",
            "mpirun.openmpi",
            "-n",
            "2",
            "sh",
            "-c",
            program,
        ];
        let Some(bench) = Bench::new(name, &words) else {
            return;
        };
        assert_eq!(bench.run().status.code(), Some(1), "{name}");
        let rows = bench.rows();
        let failure = rows[0].failure().unwrap();
        assert!(rows.len() == 1 && failure.contains(reason), "{failure}");
        assert!(is_kept(&bench.out().join("failed")), "{name}");
    }
}

/// Whether outputs of a run that failed lie there.
fn is_kept(directory: &Path) -> bool {
    let mut runs = fs::read_dir(directory).unwrap();
    runs.any(|run| run.unwrap().path().join("stderr").is_file())
}

#[test]
#[ignore = "needs namespaces and Debian's Open MPI; run by make test"]
fn debian_open_mpi_that_is_interrupted_leaves_its_rows_and_is_measured_on_later() {
    let words = [
        "app",
        "--ways=causeway",
        "--interval=0",
        "--least=3",
        "--most=3",
        "--",
        "mpirun.openmpi",
        "-n",
        "2",
        "true",
    ];
    let Some(bench) = Bench::new("interrupted", &words) else {
        return;
    };
    let child = bench
        .command()
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let mut child = child.unwrap();
    let rows = bench.out().join("rows.jsonl");
    let end = Instant::now() + DEADLINE;
    while fs::read_to_string(&rows).unwrap_or_default().lines().count() < 1 {
        assert!(Instant::now() < end, "no row in time");
        std::thread::sleep(Duration::from_millis(10));
    }
    // timeout passes it on.
    let pid = nix::unistd::Pid::from_raw(i32::try_from(child.id()).unwrap());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).unwrap();
    child.wait().unwrap();
    let kept = bench.rows();
    assert!((1..3).contains(&kept.len()), "{} rows", kept.len());
    assert!(bench.out().join("summary.json").is_file());
    assert_eq!(bench.run().status.code(), Some(0));
    let all = bench.rows();
    assert_eq!((all.len(), &all[..kept.len()]), (3, &kept[..]));
}

/// `causeway bench worth` in the directory of a test.
fn worth(bench: &Bench, words: &[&str]) -> Output {
    let mut command = Command::new("timeout");
    command.arg(DEADLINE.as_secs().to_string()).arg(causeway());
    command
        .args([
            "bench",
            "worth",
            "--rounds=1",
            "--link=11.6ms,1Gbit/s",
            "--json",
            "--out",
        ])
        .arg(bench.out());
    command
        .arg("--")
        .args(words)
        .current_dir(&bench.directory)
        .stdin(Stdio::null());
    let output = command.output().unwrap();
    println!("{}", String::from_utf8_lossy(&output.stderr));
    output
}

#[test]
#[ignore = "needs namespaces and Debian's MPIs; run by make test"]
fn debian_open_mpi_program_is_told_what_it_waits_for_and_tried_again_after_a_failure() {
    let Some(bench) = Bench::new("worth", &[]) else {
        return;
    };
    let ring = root().join("target/mpi/debian-openmpi/ring");
    let words = ["mpirun.openmpi", "-n", "2", ring.to_str().unwrap()];
    let first = worth(&bench, &words);
    assert_eq!(first.status.code(), Some(0));
    let told: serde_json::Value = serde_json::from_slice(&first.stdout).unwrap();
    for path in [
        "/one_site",
        "/measured",
        "/needs/own_seconds",
        "/needs/trips/median",
    ] {
        let seconds = told.pointer(path).and_then(serde_json::Value::as_f64);
        assert!(seconds.is_some_and(|seconds| seconds >= 0.0), "{path}: {told}");
    }
    // What is there is not measured again.
    let rows = || {
        let runs = ["1-near", "1-far", "1-thin", "1-11600us-1000000000bit"];
        runs.map(|run| fs::read(bench.out().join(run).join("rows.jsonl")).unwrap())
    };
    let before = rows();
    assert_eq!(worth(&bench, &words).status.code(), Some(0));
    assert_eq!(rows(), before);

    let Some(bench) = Bench::new("worth-failing", &[]) else {
        return;
    };
    let program = bench.directory.join("program");
    std::os::unix::fs::symlink("/bin/false", &program).unwrap();
    let words = ["mpirun.openmpi", "-n", "2", program.to_str().unwrap()];
    let failing = worth(&bench, &words);
    assert_eq!(failing.status.code(), Some(1));
    let said = String::from_utf8_lossy(&failing.stderr);
    assert!(said.contains("a run failed"), "{said}");
    // Once the program is mended, the same command tries again.
    fs::remove_file(&program).unwrap();
    std::os::unix::fs::symlink("/bin/true", &program).unwrap();
    assert_eq!(worth(&bench, &words).status.code(), Some(0));
}
