//! A row: what one run of one cell gave.

use crate::cell::Cell;
use crate::samples::{Summary, summary};
use serde::{Deserialize, Serialize};

/// What a value measures.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Quantity {
    /// The operation: `pingpong`, `alltoall`; of an application its name.
    pub operation: String,
    /// What of it: `one way`, `once` (last end minus first start), `loop` (mean of a rank's own time),
    /// `run time`.
    pub measure: String,
    /// Bytes of a message; `None` where there is no such thing.
    pub size_bytes: Option<u64>,
    /// `us` or `s`.
    pub unit: String,
}

/// The values of one quantity in one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Value {
    /// See [`Quantity`].
    #[serde(flatten)]
    pub quantity: Quantity,
    /// All values of the run.
    #[serde(flatten)]
    pub summary: Summary,
}

impl Value {
    /// Summarises a run's values; `None` when there are none.
    pub fn new(quantity: Quantity, values: &[f64]) -> Option<Value> {
        let summary = summary(values)?;
        Some(Value { quantity, summary })
    }
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "result")]
pub enum Outcome {
    /// It gave values.
    Measured {
        /// There is at least one.
        values: Vec<Value>,
    },
    /// It crashed, took too long or printed no result.
    Failed {
        /// One line.
        reason: String,
    },
}

/// See the module.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// What was run.
    #[serde(flatten)]
    pub cell: Cell,
    /// The number of this run of the cell, from 0.
    pub run: u32,
    /// How long it took with start and end of the job, in seconds.
    pub seconds: f64,
    /// See [`Outcome`].
    #[serde(flatten)]
    pub outcome: Outcome,
}

impl Row {
    /// Its values; none where it failed.
    pub fn values(&self) -> &[Value] {
        match &self.outcome {
            Outcome::Measured { values } => values,
            Outcome::Failed { .. } => &[],
        }
    }

    /// Why it failed.
    pub fn failure(&self) -> Option<&str> {
        match &self.outcome {
            Outcome::Measured { .. } => None,
            Outcome::Failed { reason } => Some(reason),
        }
    }
}

/// Head of [`csv`].
const HEAD: [&str; 19] = [
    "program",
    "mpi",
    "way",
    "settings",
    "traffic",
    "run",
    "seconds",
    "result",
    "reason",
    "operation",
    "measure",
    "size_bytes",
    "unit",
    "count",
    "min",
    "median",
    "mean",
    "p99",
    "max",
];

/// All rows as CSV (RFC 4180), a line for each value, one for each failure.
///
/// # Errors
/// Those of the writer; none in memory.
pub fn csv(rows: &[Row]) -> Result<Vec<u8>, csv::Error> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(HEAD)?;
    for row in rows {
        let cell = &row.cell;
        let result = if row.failure().is_some() {
            "failed"
        } else {
            "measured"
        };
        let mut head: Vec<String> = [&cell.program, &cell.mpi].map(String::clone).into();
        head.extend([cell.way.name(), cell.settings.name(), cell.traffic.name()].map(str::to_owned));
        head.extend([
            row.run.to_string(),
            format!("{:.3}", row.seconds),
            result.to_owned(),
        ]);
        head.push(row.failure().unwrap_or_default().to_owned());
        if let Some(empty) = row
            .failure()
            .map(|_| vec![String::new(); HEAD.len() - head.len()])
        {
            writer.write_record(head.iter().chain(&empty))?;
        }
        for value in row.values() {
            let (quantity, summary) = (&value.quantity, &value.summary);
            let size = quantity
                .size_bytes
                .map(|size| size.to_string())
                .unwrap_or_default();
            let mut all = head.clone();
            all.extend([quantity.operation.clone(), quantity.measure.clone(), size]);
            all.extend([quantity.unit.clone(), summary.count.to_string()]);
            let numbers = [
                summary.min,
                summary.median,
                summary.mean,
                summary.p99,
                summary.max,
            ];
            all.extend(numbers.map(|number| format!("{number:.3}")));
            writer.write_record(&all)?;
        }
    }
    writer
        .into_inner()
        .map_err(|error| csv::Error::from(error.into_error()))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::cell::{Settings, Traffic, Way};

    pub(crate) fn cell(way: Way) -> Cell {
        Cell {
            program: String::new(),
            mpi: "Open MPI 4.1.4".into(),
            way,
            settings: Settings::Tuned,
            traffic: Traffic::Quiet,
        }
    }

    pub(crate) fn quantity(size_bytes: u64) -> Quantity {
        Quantity {
            operation: "pingpong".into(),
            measure: "one way".into(),
            size_bytes: Some(size_bytes),
            unit: "us".into(),
        }
    }

    pub(crate) fn measured(way: Way, run: u32, times: &[(u64, f64)]) -> Row {
        let values = times
            .iter()
            .filter_map(|&(size, us)| Value::new(quantity(size), &[us]));
        Row {
            cell: cell(way),
            run,
            seconds: 2.0,
            outcome: Outcome::Measured {
                values: values.collect(),
            },
        }
    }

    pub(crate) fn failed(way: Way, run: u32) -> Row {
        Row {
            cell: cell(way),
            run,
            seconds: 1.0,
            outcome: Outcome::Failed {
                reason: "it ended with status 1, \"badly\"".into(),
            },
        }
    }

    #[test]
    fn a_row_is_the_same_when_it_is_read_again() {
        for row in [
            measured(Way::Direct, 3, &[(1, 5900.125), (1024, 6000.0)]),
            failed(Way::Causeway, 0),
        ] {
            let text = serde_json::to_string(&row).unwrap();
            assert_eq!(serde_json::from_str::<Row>(&text).unwrap(), row, "{text}");
        }
    }

    #[test]
    fn every_line_of_the_csv_has_as_many_fields_as_its_head() {
        let rows = [
            measured(Way::Direct, 0, &[(1, 5900.0), (8, 5901.0)]),
            failed(Way::Causeway, 0),
        ];
        let text = csv(&rows).unwrap();
        let mut reader = csv::Reader::from_reader(&text[..]);
        let lines: Vec<_> = reader.records().collect::<Result<_, _>>().unwrap();
        assert_eq!(lines.len(), 3);
        assert_eq!(&lines[2][8], "it ended with status 1, \"badly\"");
        assert_eq!(&lines[1][11], "8");
    }
}
