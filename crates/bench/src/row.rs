//! A row: what one run of one cell gave.

use crate::cell::Cell;
use crate::samples::{Summary, summary};
use serde::{Deserialize, Serialize};

/// What a value measures.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Quantity {
    /// The operation: `pingpong`, `alltoall`; of an application its name.
    pub operation: String,
    /// Which measure of it: `one way`, `once` (last end minus first start), `loop` (mean of a rank's own
    /// time), `run time`.
    pub measure: String,
    /// Bytes of a message; `None` if there is no such thing.
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

/// What TCP between the sites did in a run: differences of counters, summed over everything that counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Network {
    /// Segments sent.
    pub segments: u64,
    /// Segments sent again.
    pub resent: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Segments that arrived out of order; each is answered with a duplicate ACK.
    pub out_of_order: u64,
    /// Bytes of the job that crossed between sites, both ways; `None` if nobody counts them.
    #[serde(default)]
    pub crossed_bytes: Option<u64>,
    /// Sends after 200 ms or more of silence; `None` if nobody counts them: only gateways do.
    pub idle_restarts: Option<u64>,
    /// Processor time of the gateways; `None` if none took part.
    #[serde(default)]
    pub gateways_microseconds: Option<u64>,
}

impl Network {
    /// What has happened since an earlier reading. A counter that has gone down belongs to another
    /// connection.
    pub fn since(self, earlier: Network) -> Network {
        let less = |now: Option<u64>, before: Option<u64>| Some(now?.saturating_sub(before?));
        Network {
            segments: self.segments.saturating_sub(earlier.segments),
            resent: self.resent.saturating_sub(earlier.resent),
            timeouts: self.timeouts.saturating_sub(earlier.timeouts),
            out_of_order: self.out_of_order.saturating_sub(earlier.out_of_order),
            crossed_bytes: less(self.crossed_bytes, earlier.crossed_bytes),
            idle_restarts: less(self.idle_restarts, earlier.idle_restarts),
            gateways_microseconds: less(self.gateways_microseconds, earlier.gateways_microseconds),
        }
    }

    /// Both together.
    pub fn and(self, other: Network) -> Network {
        let sum = |one: Option<u64>, two: Option<u64>| Some(one? + two?);
        Network {
            segments: self.segments + other.segments,
            resent: self.resent + other.resent,
            timeouts: self.timeouts + other.timeouts,
            out_of_order: self.out_of_order + other.out_of_order,
            crossed_bytes: sum(self.crossed_bytes, other.crossed_bytes),
            idle_restarts: sum(self.idle_restarts, other.idle_restarts),
            gateways_microseconds: sum(self.gateways_microseconds, other.gateways_microseconds),
        }
    }

    /// What a kernel has counted, from the texts of /proc/net/snmp and /proc/net/netstat; `None` if a counter
    /// is missing.
    pub fn from_kernel(text: &str) -> Option<Network> {
        // Each group has a line of names and a line of values.
        let count = |group: &str, name: &str| -> Option<u64> {
            let mut lines = text
                .lines()
                .filter_map(|line| line.strip_prefix(group)?.strip_prefix(": "));
            let at = lines.next()?.split(' ').position(|word| word == name)?;
            lines.next()?.split(' ').nth(at)?.parse().ok()
        };
        Some(Network {
            segments: count("Tcp", "OutSegs")?,
            resent: count("Tcp", "RetransSegs")?,
            timeouts: count("TcpExt", "TCPTimeouts")?,
            out_of_order: count("TcpExt", "TCPOFOQueue")?,
            crossed_bytes: None,
            idle_restarts: None,
            gateways_microseconds: None,
        })
    }
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "result")]
pub enum Outcome {
    /// The run gave values.
    Measured {
        /// The values, at least one.
        values: Vec<Value>,
    },
    /// The run crashed, took too long or printed no result.
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
    /// How long it took, including the start and end of the job, in seconds.
    pub seconds: f64,
    /// What TCP did meanwhile, if it can be seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
    /// On how many cores its ranks may compute together; `None` if nobody has checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores: Option<u32>,
    /// See [`Outcome`].
    #[serde(flatten)]
    pub outcome: Outcome,
}

impl Row {
    /// Its values; empty if it failed.
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
const HEAD: [&str; 28] = [
    "program",
    "mpi",
    "lab",
    "way",
    "settings",
    "traffic",
    "run",
    "seconds",
    "result",
    "reason",
    "segments",
    "resent",
    "timeouts",
    "out_of_order",
    "crossed_bytes",
    "idle_restarts",
    "gateways_us",
    "cores",
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
        let mut head: Vec<String> = [&cell.program, &cell.mpi, &cell.lab].map(String::clone).into();
        head.extend([cell.way.name(), cell.settings.name(), cell.traffic.name()].map(str::to_owned));
        head.extend([
            row.run.to_string(),
            format!("{:.3}", row.seconds),
            result.to_owned(),
        ]);
        head.push(row.failure().unwrap_or_default().to_owned());
        head.extend(counts(row).map(|count| count.map(|count| count.to_string()).unwrap_or_default()));
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

/// What was counted in a run, in the order of [`HEAD`].
fn counts(row: &Row) -> [Option<u64>; 8] {
    let count_of = |count: fn(Network) -> Option<u64>| row.network.and_then(count);
    [
        count_of(|network| Some(network.segments)),
        count_of(|network| Some(network.resent)),
        count_of(|network| Some(network.timeouts)),
        count_of(|network| Some(network.out_of_order)),
        count_of(|network| network.crossed_bytes),
        count_of(|network| network.idle_restarts),
        count_of(|network| network.gateways_microseconds),
        row.cores.map(u64::from),
    ]
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::cell::{Settings, Traffic, Way};

    pub(crate) fn cell(way: Way) -> Cell {
        Cell {
            program: String::new(),
            mpi: "Open MPI 4.1.4".into(),
            lab: String::new(),
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
            network: None,
            cores: Some(2),
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
            network: None,
            cores: Some(2),
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
        assert_eq!(&lines[2][9], "it ended with status 1, \"badly\"");
        assert_eq!((&lines[1][17], &lines[1][20]), ("2", "8"));
    }

    #[test]
    fn counters_of_a_kernel_are_found_by_their_names() {
        let text = "Tcp: RtoMin OutSegs RetransSegs\nTcp: 200 70 3\nUdp: OutSegs\nUdp: 9\n\
                    TcpExt: TCPTimeouts TCPOFOQueue\nTcpExt: 2 5\nIpExt: InOctets\nIpExt: 1\n";
        let now = Network::from_kernel(text).unwrap();
        assert_eq!(
            (now.segments, now.resent, now.timeouts, now.out_of_order),
            (70, 3, 2, 5)
        );
        let before = Network {
            segments: 60,
            ..Network::default()
        };
        assert_eq!(now.since(before).segments, 10);
        assert_eq!(now.since(before).idle_restarts, None);
        assert_eq!(Network::from_kernel("Tcp: OutSegs\nTcp: 7\n"), None);
    }
}
