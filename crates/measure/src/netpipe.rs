//! Reads the file that NetPIPE 3.7 leaves (`-o FILE`): columns of bytes, Mbit/s and one-way seconds, the best
//! of its trials.

/// The row of one size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Row {
    /// Size of the message.
    pub size_bytes: u64,
    /// Half of the round trip.
    pub one_way_us: f64,
}

/// A line that is not NetPIPE's.
#[derive(Debug, thiserror::Error, PartialEq)]
#[error("NetPIPE output, line {line}: {text:?} is not 'bytes Mbit/s seconds'")]
pub struct NotNetPipe {
    line: usize,
    text: String,
}

/// Rows in the order measured.
///
/// # Errors
/// The first line that is neither blank nor three positive numbers.
pub fn parse(text: &str) -> Result<Vec<Row>, NotNetPipe> {
    let rows = text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty());
    rows.map(|(index, line)| {
        row(line).ok_or_else(|| NotNetPipe {
            line: index + 1,
            text: line.chars().take(80).collect(),
        })
    })
    .collect()
}

fn row(line: &str) -> Option<Row> {
    let mut words = line.split_whitespace();
    let size_bytes = words.next()?.parse().ok()?;
    let mbit_per_second: f64 = words.next()?.parse().ok()?;
    let seconds: f64 = words.next()?.parse().ok()?;
    if words.next().is_some() || !mbit_per_second.is_finite() || !seconds.is_finite() || seconds <= 0.0 {
        return None;
    }
    Some(Row {
        size_bytes,
        one_way_us: seconds * 1e6,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The output of Debian 12's NPopenmpi on one host.
    const CAPTURED: &str = "       1 25.600000   0.00000030\n       2 19.692308   0.00000077\n\
                            12582912 11876.098571   0.00808346\n16777216 6401.112559   0.01999652\n";

    #[test]
    fn a_real_file_gives_its_sizes_and_times() {
        let rows = parse(CAPTURED).unwrap();
        assert_eq!(rows.len(), 4);
        assert_eq!(rows[2].size_bytes, 12_582_912);
        assert!((rows[3].one_way_us - 19_996.52).abs() < 1e-6);
    }

    #[test]
    fn a_foreign_line_is_named() {
        let error = parse("       1 25.6 0.0000003\nSegmentation fault\n").unwrap_err();
        assert_eq!(
            error.to_string(),
            "NetPIPE output, line 2: \"Segmentation fault\" is not 'bytes Mbit/s seconds'"
        );
        assert!(parse("1 2 0").is_err() && parse("1 2 nan").is_err() && parse("1 2 3 4").is_err());
    }
}
