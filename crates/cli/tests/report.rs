//! `causeway report` as users call it.
// A panic here is the report of a test.
#![allow(clippy::unwrap_used, clippy::panic)]

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
