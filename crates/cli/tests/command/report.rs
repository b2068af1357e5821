//! `causeway report` as users call it.
// A panic here is how a test reports.

use causeway_bench::cell::{Cell, Settings, Traffic, Way};
use causeway_bench::plan::{Head, Plan};
use causeway_bench::row::{Outcome, Quantity, Row, Value};
use causeway_bench::schedule::Bounds;
use causeway_bench::store::Store;
use std::path::Path;
use std::process::{Command, Output};

fn report(words: &[&Path]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_causeway"));
    command.arg("report").args(words).output().unwrap()
}

fn measure(directory: &Path) {
    let cell = Cell {
        program: String::new(),
        mpi: "Open MPI 4.1.4".into(),
        lab: String::new(),
        way: Way::Causeway,
        settings: Settings::Tuned,
        traffic: Traffic::Quiet,
    };
    let bounds = Bounds {
        least: 1,
        most: 1,
        narrow: 0.02,
        seed: 1,
    };
    let head = Head {
        plan: Plan::new("pingpong", vec![cell.clone()], bounds),
        command: "causeway bench pingpong".into(),
        version: "0".into(),
        host: vec![],
        link: None,
    };
    let quantity = Quantity {
        operation: "pingpong".into(),
        measure: "one way".into(),
        size_bytes: Some(8),
        unit: "us".into(),
    };
    let values = Value::new(quantity, &[5900.0]).into_iter().collect();
    let mut store = Store::open(directory, head).unwrap();
    store
        .add(Row {
            cell,
            run: 0,
            seconds: 1.0,
            network: None,
            cores: None,
            outcome: Outcome::Measured { values },
        })
        .unwrap();
}

#[test]
fn a_measurement_becomes_a_page_and_a_csv_beside_it() {
    let directory = tempfile::tempdir().unwrap();
    let bench = directory.path().join("bench-pingpong");
    measure(&bench);
    let output = report(&[&bench]);
    assert!(output.status.success(), "{output:?}");
    let page = std::fs::read_to_string(bench.join("report.html")).unwrap();
    assert!(page.contains("pingpong: bench-pingpong"), "{page}");
    let csv = std::fs::read_to_string(bench.join("report.csv")).unwrap();
    assert_eq!(csv.lines().count(), 2);
}

#[test]
fn a_directory_without_a_measurement_is_named_and_nothing_is_written() {
    let directory = tempfile::tempdir().unwrap();
    let output = report(&[directory.path()]);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        error.contains("plan.json") && error.contains("causeway bench"),
        "{error}"
    );
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn what_is_not_a_report_is_written_to_or_refused_and_never_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let bench = directory.path().join("bench-pingpong");
    measure(&bench);
    let summary = bench.join("summary.csv");
    std::fs::write(&summary, "the measurement's own\n").unwrap();
    let thesis = directory.path().join("thesis.html");
    std::fs::write(&thesis, "<!doctype html>a thesis").unwrap();
    for (out, reason) in [
        ("/dev/full".into(), "No space left on device"),
        (bench.join("summary.html"), "summary.csv exists already"),
        (thesis.clone(), "thesis.html exists already"),
        (directory.path().join("x.csv"), "--out names the page"),
        (directory.path().to_owned(), "is a directory"),
    ] {
        let output = report(&[&bench, Path::new("--out"), &out]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            output.status.code() == Some(1) && said.contains(reason),
            "{out:?}: {said}"
        );
    }
    assert_eq!(std::fs::read(&summary).unwrap(), b"the measurement's own\n");
    assert_eq!(std::fs::read(&thesis).unwrap(), b"<!doctype html>a thesis");
    assert!(!directory.path().join("x.csv").exists());
    use std::os::unix::fs::FileTypeExt;
    assert!(
        Path::new("/dev/full")
            .metadata()
            .unwrap()
            .file_type()
            .is_char_device()
    );
    // Without a name, only the page is printed.
    let printed = report(&[&bench, Path::new("--out"), Path::new("-")]);
    let page = String::from_utf8_lossy(&printed.stdout).into_owned();
    assert!(
        page.contains("pingpong: bench-pingpong") && !Path::new("-.csv").exists(),
        "{page}"
    );
    // A page of an earlier run is replaced.
    let out = directory.path().join("page.html");
    for _ in 0..2 {
        assert!(report(&[&bench, Path::new("--out"), &out]).status.success());
    }
    assert!(directory.path().join("page.csv").exists());
}
