//! Reads what measured programs print. Lines of ours begin with `bench: `; whatever else a launcher prints is
//! passed over.

use crate::row::{Quantity, Value};

/// Values that one program may print: more is no result of ours.
const MOST_VALUES: usize = 1 << 20;

/// All values in the output of a ping-pong, over MPI or TCP, or of operations.
///
/// # Errors
/// The first line that begins like ours and is not, in one sentence; or that there is none.
pub fn values(text: &str) -> Result<Vec<Value>, String> {
    let mut all = Vec::new();
    for line in text.lines() {
        // A launcher may put the rank's name before it.
        let Some((_, words)) = line.split_once("bench: ") else {
            continue;
        };
        if words.starts_with("skipped ") {
            continue;
        }
        let value = value(words).ok_or_else(|| {
            let shown: String = line.chars().take(100).collect();
            format!("the program printed {shown:?}, which is no row")
        })?;
        all.push(value);
    }
    match all.is_empty() {
        true => Err("the program printed no row".into()),
        false => Ok(all),
    }
}

fn value(line: &str) -> Option<Value> {
    let mut words = line.split_whitespace();
    let kind = words.next()?;
    let operation = match kind {
        "operation" => words.next()?,
        "pingpong" | "tcp" => kind,
        _ => return None,
    };
    let size_bytes = words.next()?.parse().ok()?;
    let measure = match kind {
        "operation" => words.next()?,
        _ => "one way",
    };
    let numbers: Option<Vec<f64>> = words
        .take(MOST_VALUES)
        .map(|word| word.parse().ok().filter(|number: &f64| number.is_finite()))
        .collect();
    let mut numbers = numbers?;
    match measure {
        "one way" | "once" => {}
        // Minimum, mean and maximum over the ranks: the mean is what other benchmarks call the time.
        "loop" if numbers.len() == 3 => numbers = vec![numbers[1]],
        _ => return None,
    }
    let quantity = Quantity {
        operation: operation.to_owned(),
        measure: measure.to_owned(),
        size_bytes: Some(size_bytes),
        unit: "us".to_owned(),
    };
    Value::new(quantity, &numbers)
}

/// Time and verification of a NAS Parallel Benchmark, from its last table.
///
/// # Errors
/// What is missing or wrong, in one sentence.
pub fn npb_seconds(text: &str) -> Result<f64, String> {
    let field = |name: &str| {
        let line = text.lines().find(|line| line.trim_start().starts_with(name))?;
        Some(line.split_once('=')?.1.trim())
    };
    match field("Verification") {
        Some("SUCCESSFUL") => {}
        Some(other) => return Err(format!("its verification says {other}")),
        None => return Err("it printed no verification".into()),
    }
    let seconds = field("Time in seconds").and_then(|text| text.parse::<f64>().ok());
    let seconds = seconds.filter(|seconds| seconds.is_finite() && *seconds >= 0.0);
    seconds.ok_or_else(|| "it printed no time".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_found_among_what_launchers_say() {
        let text = "warning\nbench: pingpong 8 5900.1 5901.3 5899.9\n[1,0]<stdout>: bench: operation bcast 64 once 10.5\n\
                    bench: operation bcast 64 loop 1 2 3\nbench: skipped alltoall 4194304 needs more\n";
        let found = values(text).unwrap();
        assert_eq!(found.len(), 3);
        assert_eq!(found[0].summary.median, 5900.1);
        assert_eq!(
            (found[1].quantity.operation.as_str(), found[1].quantity.size_bytes),
            ("bcast", Some(64))
        );
        assert_eq!(found[2].summary.median, 2.0);
    }

    #[test]
    fn a_cut_row_is_no_result() {
        for text in [
            "",
            "bench: pingpong",
            "bench: pingpong x 1",
            "bench: pingpong 8",
            "bench: pingpong 8 1 2 nan",
            "bench: operation bcast 8 loop 1 2",
        ] {
            assert!(values(text).is_err(), "{text:?}");
        }
    }

    /// The end of what version 3.3 prints.
    const NPB: &str = "\n CG Benchmark Completed.\n Class           =                        A\n Time in seconds =                     3.19\n \
                       Mop/s total     =                   469.42\n Verification    =               SUCCESSFUL\n";

    #[test]
    fn a_nas_benchmark_counts_when_it_was_verified() {
        assert_eq!(npb_seconds(NPB), Ok(3.19));
        let wrong = NPB.replace("SUCCESSFUL", "UNSUCCESSFUL");
        assert!(npb_seconds(&wrong).unwrap_err().contains("UNSUCCESSFUL"));
        assert!(npb_seconds("killed").is_err());
    }
}
