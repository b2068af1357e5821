//! The data of which a report is made.

use causeway_bench::plan::Head;
use causeway_bench::row::Row;
use causeway_bench::summary::Summaries;

/// The data of a directory of `causeway bench`.
#[derive(Debug)]
pub struct Measurement {
    /// The directory's name.
    pub name: String,
    /// The description of what was measured.
    pub head: Head,
    /// The measured values.
    pub rows: Vec<Row>,
    /// What the rows show.
    pub summary: Summaries,
}

impl Measurement {
    /// Sums the rows up.
    pub fn new(name: String, head: Head, rows: Vec<Row>) -> Measurement {
        let summary = Summaries::of(&head, &rows);
        Measurement {
            name,
            head,
            rows,
            summary,
        }
    }
}
