//! `causeway collectives explain` and the rules of `causeway run --collectives`, without gateways and MPIs.
//! Skips, with the reason, if the program that decides is not built beside the command.

use std::path::Path;
use std::process::{Command, Output};

/// `None`, with the reason printed, if it cannot run.
fn causeway(arguments: &[&str]) -> Option<Output> {
    let causeway = Path::new(env!("CARGO_BIN_EXE_causeway"));
    if !causeway.with_file_name("causeway-collectives").exists() {
        println!("skipped: causeway-collectives is not built; make test T=unit builds it");
        return None;
    }
    let mut command = Command::new(causeway);
    let output = command.args(arguments).output();
    Some(output.unwrap())
}

fn text(output: &[u8]) -> String {
    String::from_utf8_lossy(output).into_owned()
}

/// The table's rows of an operation, in words.
fn rows(table: &str, operation: &str) -> Vec<Vec<String>> {
    let lines = table
        .lines()
        .map(|line| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
    lines
        .filter(|words| words.first().is_some_and(|word| word == operation))
        .collect()
}

/// Returns the end of an operation's first range, in bytes.
fn first_boundary(table: &str, operation: &str) -> u64 {
    let rows = rows(table, operation);
    let [number, unit] = &rows[0][4..6] else {
        panic!("{rows:?}")
    };
    let times = match unit.as_str() {
        "B" => 1,
        "kB" => 1 << 10,
        _ => panic!("{rows:?}"),
    };
    number.parse::<u64>().unwrap() * times
}

const LINK: [&str; 4] = ["collectives", "explain", "--link", "11.6ms,1Gbit/s"];

fn explain(more: &[&str]) -> Option<String> {
    let output = causeway(&[&LINK[..], more].concat())?;
    assert!(output.status.success(), "{output:?}");
    Some(text(&output.stdout))
}

#[test]
fn algorithms_change_over_near_where_they_were_measured_to() {
    let Some(table) = explain(&["--sites", "4,4"]) else {
        return;
    };
    // For reduce_scatter, the size of the whole vector of eight ranks.
    for (operation, measured) in [
        ("gather", 8 << 10),
        ("scatter", 8 << 10),
        ("allgather", 8 << 10),
        ("alltoall", 1 << 10),
        ("reduce_scatter", 24 << 10),
    ] {
        let at = first_boundary(&table, operation);
        assert!(
            (measured / 2..=2 * measured).contains(&at),
            "{operation} at {at}\n{table}"
        );
    }
    for operation in ["bcast", "reduce", "allreduce", "scan"] {
        assert_eq!(first_boundary(&table, operation), 256 << 10, "{table}");
    }
}

#[test]
fn what_reductions_get_does_not_depend_on_the_links_that_each_run_measures_anew() {
    let reductions = ["--op", "reduce,allreduce,reduce_scatter,scan", "--sites", "4,3"];
    let ranges = |link: &str| {
        let output = causeway(&[&["collectives", "explain", "--link", link][..], &reductions].concat())?;
        let table = text(&output.stdout);
        // The costs follow the range and the algorithm.
        let rows = table.lines().skip_while(|line| !line.is_empty()).skip(1);
        Some(
            rows.map(|row| row.split(" at ").next().unwrap().to_owned())
                .collect::<Vec<_>>(),
        )
    };
    let Some(first) = ranges("11.6ms,1Gbit/s") else {
        return;
    };
    assert!(first.len() >= 4, "{first:?}");
    for link in ["1ms,1Gbit/s", "200ms,100Mbit/s", "11ms,10Gbit/s"] {
        assert_eq!(ranges(link).unwrap(), first, "{link}");
    }
}

#[test]
fn a_rule_of_the_file_goes_before_the_model() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("rules");
    std::fs::write(
        &file,
        "# mine\nallreduce 0..64k native\ngather direct, alltoall 1M.. leaders\n",
    )
    .unwrap();
    let Some(table) = explain(&["--collectives", file.to_str().unwrap()]) else {
        return;
    };
    let allreduce = rows(&table, "allreduce");
    assert_eq!(
        allreduce[0][1..8],
        ["0", "B", "..", "64", "kB", "native", "at"],
        "{table}"
    );
    assert_eq!(allreduce[1][6], "leaders", "{table}");
    assert_eq!(rows(&table, "gather").len(), 1, "{table}");
    assert!(table.contains("rule: alltoall 1048576.. leaders"), "{table}");
}

#[test]
fn a_rule_that_is_not_understood_ends_a_run_before_it_begins_with_file_line_and_reason() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("rules");
    let file = file.to_str().unwrap();
    for (rules, reason) in [
        (
            "bcast native\n\nallreduce trees\n",
            ":3: allreduce has no algorithm \"trees\"; it has: native, leaders",
        ),
        (
            "broadcast native",
            ":1: there is no operation \"broadcast\"; there are: barrier, bcast",
        ),
        ("\nbcast 8..4 native", ":2: \"8..4\" is no range of sizes"),
        ("bcast", ":1: a rule is: operation [low..high] algorithm"),
    ] {
        std::fs::write(file, rules).unwrap();
        let Some(output) = causeway(&["run", "--collectives", file, "--", "mpirun", "./app"]) else {
            return;
        };
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let said = text(&output.stderr);
        assert!(said.contains(&format!("--collectives: {file}{reason}")), "{said}");
    }
}

#[test]
fn what_cannot_be_explained_says_why() {
    for (arguments, reason) in [
        (["--sites", "4"], "no list of at least two sites' ranks"),
        (["--op", "reduction"], "no operation: \"reduction\""),
        (
            ["--collectives", "/nowhere/rules"],
            "/nowhere/rules: No such file or directory",
        ),
    ] {
        let Some(output) = causeway(&[&LINK[..], &arguments].concat()) else {
            return;
        };
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(text(&output.stderr).contains(reason), "{output:?}");
    }
}
