//! Reads the rows of a ping-pong without an MPI: `size_bytes,iteration,one_way_us`, one row for every round
//! trip.

use std::collections::BTreeMap;

/// One-way times in microseconds, by size in bytes.
pub type Times = BTreeMap<u64, Vec<f64>>;

/// A line that does not have our form.
#[derive(Debug, thiserror::Error, PartialEq)]
#[error("ping-pong rows, line {line}: {text:?} is not 'size_bytes,iteration,one_way_us'")]
pub struct NotPingPong {
    line: usize,
    text: String,
}

/// The first line of a file.
const HEAD: &str = "size_bytes,iteration,one_way_us";

/// Adds the rows of `text` to `times`.
///
/// # Errors
/// The first line that is wrong; rows before it have been added.
pub fn parse(text: &str, times: &mut Times) -> Result<(), NotPingPong> {
    let wrong = |index: usize, line: &str| NotPingPong {
        line: index + 1,
        text: line.chars().take(80).collect(),
    };
    let mut lines = text.lines().enumerate();
    match lines.next() {
        Some((_, HEAD)) => {}
        other => return Err(wrong(0, other.map_or("", |(_, line)| line))),
    }
    for (index, line) in lines {
        let (size, one_way_us) = row(line).ok_or_else(|| wrong(index, line))?;
        times.entry(size).or_default().push(one_way_us);
    }
    Ok(())
}

fn row(line: &str) -> Option<(u64, f64)> {
    let mut fields = line.split(',');
    let size = fields.next()?.parse().ok()?;
    let _iteration: u64 = fields.next()?.parse().ok()?;
    let one_way_us: f64 = fields.next()?.parse().ok()?;
    (fields.next().is_none() && one_way_us.is_finite()).then_some((size, one_way_us))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_two_runs_come_together_by_size() {
        let mut times = Times::new();
        parse(
            "size_bytes,iteration,one_way_us\n1,0,5912.5\n4,0,6000.0\n",
            &mut times,
        )
        .unwrap();
        parse("size_bytes,iteration,one_way_us\n1,0,5900.0\n", &mut times).unwrap();
        assert_eq!(times[&1], [5912.5, 5900.0]);
        assert_eq!(times[&4].len(), 1);
    }

    #[test]
    fn a_cut_row_and_a_foreign_file_are_named() {
        let mut times = Times::new();
        let error = parse("size_bytes,iteration,one_way_us\n1,0\n", &mut times).unwrap_err();
        assert!(error.to_string().contains("line 2"), "{error}");
        assert!(parse("", &mut times).is_err());
    }
}
