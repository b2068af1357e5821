//! Reads what measured programs print. Lines of ours begin with `bench: `; whatever else a launcher prints is
//! skipped.

use crate::row::{Quantity, Value};

/// Why an output gives no value, in one sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct OutputError(String);

/// Most values that one program may print: more than this is not our output.
const MOST_VALUES: usize = 1 << 20;

/// All values in the output of a ping-pong, over MPI or TCP, or of operations.
///
/// # Errors
/// The first line that begins like ours but is malformed, in one sentence; or a sentence that there is none.
pub fn values(text: &str) -> Result<Vec<Value>, OutputError> {
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
            OutputError(format!("the program printed {shown:?}, which is no row"))
        })?;
        all.push(value);
    }
    some(all)
}

fn some(all: Vec<Value>) -> Result<Vec<Value>, OutputError> {
    match all.is_empty() {
        true => Err(OutputError("the program printed no row".into())),
        false => Ok(all),
    }
}

/// All values in the output of Intel's MPI benchmarks (IMB-MPI1): the mean over ranks, as they average it.
///
/// # Errors
/// There is none.
pub fn imb(text: &str) -> Result<Vec<Value>, OutputError> {
    let mut all = Vec::new();
    let (mut operation, mut column) = (String::new(), None);
    for line in text.lines() {
        let line = line.trim_start();
        if let Some(name) = line.strip_prefix("# Benchmarking ") {
            operation = name.split_whitespace().next().unwrap_or_default().to_lowercase();
            column = None;
        } else if line.starts_with("#bytes") || line.starts_with("#repetitions") {
            let mut heads = line.split_whitespace();
            column = heads.position(|head| head == "t_avg[usec]" || head == "t[usec]");
        } else if let Some(at) = column.filter(|_| line.starts_with(|c: char| c.is_ascii_digit())) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let time = words.get(at).and_then(|word| word.parse().ok());
            // A barrier has no bytes: its first column is the number of rounds.
            let size = words.first().filter(|_| operation != "barrier");
            let size = size.map_or(Some(0), |word| word.parse().ok());
            all.extend(
                time.zip(size)
                    .and_then(|(time, size)| in_loop(&operation, size, time)),
            );
        }
    }
    some(all)
}

/// All values in the output of one of the OSU micro-benchmarks, which print a latency for each size.
///
/// # Errors
/// The output contains no value.
pub fn osu(text: &str) -> Result<Vec<Value>, OutputError> {
    let mut operation = String::new();
    let mut all = Vec::new();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        if let Some(name) = line.strip_prefix("# OSU MPI ") {
            operation = match name.split_once(" Latency") {
                Some((name, _)) => name.to_lowercase().replace("-", ""),
                // The first line of osu_latency is "# OSU MPI Latency Test".
                None => "pingpong".to_owned(),
            };
        } else if let [Some(size), Some(time)] = [words.next(), words.next()] {
            let numbers = size.parse().ok().zip(time.parse().ok());
            all.extend(numbers.and_then(|(size, time)| in_loop(&operation, size, time)));
        }
    }
    some(all)
}

/// All values in what NetPIPE 3 says on standard error: the best of its trials for each size.
///
/// # Errors
/// The output contains no value.
pub fn netpipe(text: &str) -> Result<Vec<Value>, OutputError> {
    let value = |line: &str| {
        let (head, time) = line.split_once(" times -->")?;
        let size = head.split_whitespace().nth(1)?.parse().ok()?;
        let time = time.split_once(" in ")?.1.trim().strip_suffix("usec")?;
        in_loop("pingpong", size, time.trim().parse().ok()?)
    };
    some(text.lines().filter_map(value).collect())
}

/// A loop's mean, in microseconds.
fn in_loop(operation: &str, size_bytes: u64, time: f64) -> Option<Value> {
    let quantity = Quantity {
        operation: operation.to_owned(),
        measure: "loop".to_owned(),
        size_bytes: Some(size_bytes),
        unit: "us".to_owned(),
    };
    Value::new(quantity, &[time]).filter(|_| time.is_finite() && !operation.is_empty())
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

/// Time and verification of a NAS Parallel Benchmark, from the last table that it prints.
///
/// # Errors
/// What is missing or wrong, in one sentence.
pub fn npb_seconds(text: &str) -> Result<f64, OutputError> {
    let field = |name: &str| {
        // Some say "Verification Successful" before their table.
        let mut values = text.lines().filter_map(|line| {
            let rest = line.trim_start().strip_prefix(name)?;
            Some(rest.trim_start().strip_prefix('=')?.trim())
        });
        values.next()
    };
    match field("Verification") {
        Some("SUCCESSFUL") => {}
        Some(other) => return Err(OutputError(format!("its verification says {other}"))),
        None => return Err(OutputError("it printed no verification".into())),
    }
    let seconds = field("Time in seconds").and_then(|text| text.parse::<f64>().ok());
    let seconds = seconds.filter(|seconds| seconds.is_finite() && *seconds >= 0.0);
    seconds.ok_or_else(|| OutputError("it printed no time".into()))
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
        let lu = format!(" Verification Successful\n{NPB}");
        assert_eq!(npb_seconds(&lu), Ok(3.19));
        let wrong = NPB.replace("SUCCESSFUL", "UNSUCCESSFUL");
        assert!(
            npb_seconds(&wrong)
                .unwrap_err()
                .to_string()
                .contains("UNSUCCESSFUL")
        );
        assert!(npb_seconds("killed").is_err());
    }

    /// The tables of IMB-MPI1 2021.
    const IMB: &str = "# Benchmarking PingPong \n# #processes = 2 \n#---\n       #bytes #repetitions      t[usec]   Mbytes/sec\n            0         1000      5912.5         0.00\n\
                       \n# Benchmarking Allreduce \n       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]\n            4  1000  1.5  3.5  2.5\n\
                       # Benchmarking Barrier \n #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]\n         1000         4.0         5.0         4.5\n# All processes entering\n";

    #[test]
    fn tables_of_other_benchmarks_give_loops() {
        let short = |values: Vec<Value>| -> Vec<(String, Option<u64>, f64)> {
            let all = values.into_iter();
            all.map(|value| {
                (
                    value.quantity.operation,
                    value.quantity.size_bytes,
                    value.summary.median,
                )
            })
            .collect()
        };
        let all = short(imb(IMB).unwrap());
        let wanted = [
            ("pingpong", 0, 5912.5),
            ("allreduce", 4, 2.5),
            ("barrier", 0, 4.5),
        ];
        assert_eq!(
            all,
            wanted.map(|(name, size, time)| (name.to_owned(), Some(size), time))
        );
        let text = "# OSU MPI Latency Test v7.4\n# Size          Latency (us)\n1     5.90\n";
        assert_eq!(short(osu(text).unwrap()), [("pingpong".to_owned(), Some(1), 5.9)]);
        let text = "# OSU MPI Allreduce Latency Test v7.4\n# Size       Avg Latency(us)\n4    7.5\n";
        assert_eq!(
            short(osu(text).unwrap()),
            [("allreduce".to_owned(), Some(4), 7.5)]
        );
        let text = "0: host\nNow starting the main loop\n  0:       1 bytes     10 times -->      0.00 Mbps in    5900.15 usec\n";
        assert_eq!(
            short(netpipe(text).unwrap()),
            [("pingpong".to_owned(), Some(1), 5900.15)]
        );
        assert!(imb("").is_err() && osu("killed").is_err() && netpipe("0: host").is_err());
    }
}
