//! Combines the parts of a report.

use crate::measurement::Measurement;
use crate::page::Page;
use crate::{features, messages, network, operations, programs};
use causeway_bench::row;
use causeway_bench::table::Table;
use causeway_bench::tables::tables;
use causeway_bench::verdict::verdicts;
use std::fmt::Write as _;

/// Most bytes of rows that are put into the page; if there are more, it names their files instead.
const MOST_ROWS_BYTES: usize = 400 << 10;

/// Makes the page.
pub fn html(title: &str, all: &[Measurement]) -> String {
    let mut page = Page::new(title);
    page.text(
        "Measured by causeway bench. The limit is R/2 + s/B: no message of s bytes arrives sooner over a link of round trip R and rate B. \
         A median stands for a cell; intervals hold the median in 95 of 100 cases (bootstrap). Conditions took turns.",
    );
    found(&mut page, all);
    for measured in all {
        page.heading(&format!("{}: {}", measured.head.plan.bench, measured.name));
        about(&mut page, measured);
        match measured.head.plan.bench.as_str() {
            "tcp" | "pingpong" => messages::show(&mut page, measured),
            "operations" => operations::show(&mut page, measured),
            _ => programs::show(&mut page, measured),
        }
        for (title, table) in tables(&measured.summary) {
            page.folded(&format!("Table: {title}"), &table);
        }
        failures(&mut page, measured);
        network::show(&mut page, measured);
    }
    page.heading("What MPIs have for grids");
    page.text(
        "Table I of Hablot et al. (2007), for the MPIs of today, each with its own means, and with Causeway.",
    );
    page.words(&features::table());
    page.heading("Environment");
    for measured in all {
        page.subheading(&measured.name);
        let mut table = Table::new(&["", ""]);
        let own = [
            ("command", measured.head.command.clone()),
            ("causeway", measured.head.version.clone()),
            ("runs", measured.rows.len().to_string()),
        ];
        let own = own.into_iter().map(|(what, value)| (what.to_owned(), value));
        let all = own.chain(measured.head.host.iter().cloned());
        table.rows = all.map(|(what, value)| vec![what, value]).collect();
        page.words(&table);
    }
    page.heading("Rows");
    let share = MOST_ROWS_BYTES / all.len().max(1);
    for measured in all {
        let text = row::csv(&measured.rows).unwrap_or_default();
        match text.len() <= share {
            true => page.folded_text(
                &format!("Rows of {}", measured.name),
                &String::from_utf8_lossy(&text),
            ),
            false => page.text(&format!(
                "Rows of {}: {} kB, too many for this page; they are in rows.csv of that directory.",
                measured.name,
                text.len() >> 10
            )),
        }
    }
    page.html()
}

/// Says in a line what each measurement has found.
fn found(page: &mut Page, all: &[Measurement]) {
    for measured in all {
        for verdict in verdicts(&measured.head.plan.cells, &measured.summary) {
            page.text(&format!("{}: {verdict}.", measured.name));
        }
    }
}

/// The beginning of the text of [`csv`].
pub const CSV_HEAD: &str = "measurement,";

/// The summaries of all measurements, each line with the name of its measurement.
pub fn csv(all: &[Measurement]) -> String {
    let mut text = String::new();
    for measured in all {
        let lines = measured.summary.csv();
        let mut lines = lines.lines();
        let head = lines.next().unwrap_or_default();
        if text.is_empty() {
            let _ = writeln!(text, "{CSV_HEAD}{head}");
        }
        for line in lines {
            let _ = writeln!(text, "{},{line}", measured.name.replace([',', '"', '\n'], " "));
        }
    }
    text
}

fn about(page: &mut Page, measured: &Measurement) {
    let plan = &measured.head.plan;
    let mut text = match &measured.head.link {
        Some(link) => format!(
            "Link: round trip {:.2} ms, {:.0} Mbit/s ({}).",
            link.round_trip_us / 1e3,
            link.rate_bits_per_second / 1e6,
            link.source
        ),
        None => "Nothing is known of the link: there is no limit.".to_owned(),
    };
    if !plan.lab.is_empty() {
        let _ = write!(text, " An emulated grid: {}.", plan.lab);
    }
    if !plan.sites.is_empty() {
        let _ = write!(text, " Ranks: {}.", plan.sites);
    }
    page.text(&text);
}

fn failures(page: &mut Page, measured: &Measurement) {
    let failures = &measured.summary.failures;
    if failures.is_empty() {
        return;
    }
    page.subheading("What failed");
    let mut table = Table::new(&["", "runs", "why, the last time"]);
    table.rows = failures
        .iter()
        .map(|(cell, runs, why)| vec![cell.to_string(), runs.to_string(), why.clone()])
        .collect();
    page.words(&table);
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_bench::cell::{Cell, Settings, Traffic, Way};
    use causeway_bench::plan::{Head, KnownLink, Plan};
    use causeway_bench::row::{Network, Outcome, Quantity, Row, Value};
    use causeway_bench::schedule::Bounds;

    fn cell(program: &str, way: Way) -> Cell {
        Cell {
            program: program.into(),
            mpi: "Open <MPI> 4.1.4".into(),
            lab: String::new(),
            way,
            settings: Settings::Tuned,
            traffic: Traffic::Quiet,
        }
    }

    fn measurement(bench: &str, quantity: &Quantity, ratio: f64) -> Measurement {
        let cells = vec![cell("", Way::Direct), cell("", Way::Causeway)];
        let bounds = Bounds {
            least: 1,
            most: 1,
            narrow: 0.02,
            seed: 1,
        };
        let rows = cells.iter().zip([1.0, ratio]).map(|(cell, factor)| Row {
            cell: cell.clone(),
            run: 0,
            seconds: 1.0,
            network: Some(Network::default()),
            cores: None,
            outcome: Outcome::Measured {
                values: Value::new(quantity.clone(), &[6000.0 * factor])
                    .into_iter()
                    .collect(),
            },
        });
        let rows: Vec<Row> = rows.collect();
        let head = Head {
            plan: Plan::new(bench, cells, bounds),
            command: "causeway bench".into(),
            version: "0".into(),
            host: vec![("kernel".into(), "Linux".into())],
            link: Some(KnownLink {
                round_trip_us: 11_600.0,
                rate_bits_per_second: 1e9,
                source: "scenario".into(),
            }),
        };
        Measurement::new(format!("bench-{bench}"), head, rows)
    }

    fn all() -> Vec<Measurement> {
        let quantity = |operation: &str, measure: &str, size_bytes, unit: &str| Quantity {
            operation: operation.into(),
            measure: measure.into(),
            size_bytes,
            unit: unit.into(),
        };
        vec![
            measurement(
                "pingpong",
                &quantity("pingpong", "one way", Some(1024), "us"),
                1.01,
            ),
            measurement("operations", &quantity("bcast", "once", Some(8), "us"), 0.9),
            measurement("npb", &quantity("cg.A", "time that it tells", None, "s"), 0.8),
        ]
    }

    #[test]
    fn a_report_has_every_part_and_is_one_page_that_loads_nothing() {
        let html = html("Two sites", &all());
        for part in [
            "One-way time",
            "limit R/2 + s/B",
            "8 B, once",
            "Relative times",
            "worth, each node",
            "timeouts (RTO)",
            "What MPIs have for grids",
            "Rows of bench-npb",
            "prefers-color-scheme:dark",
            "Open &lt;MPI&gt; 4.1.4",
        ] {
            assert!(html.contains(part), "{part:?} is missing");
        }
        for never in ["http:", "https:", "src=", "<link", "NaN", "Open <MPI>", "url("] {
            assert!(!html.contains(never), "{never:?} is there");
        }
        assert!(html.len() < 2 << 20);
    }

    #[test]
    fn the_csv_has_a_line_for_each_entry_and_one_head() {
        let text = csv(&all());
        assert_eq!(text.lines().count(), 1 + 6);
        assert!(text.starts_with("measurement,program,"));
    }
}
