//! What TCP did in the runs: segments sent again, timeouts, duplicate ACKs, restarts after silence.

use crate::measurement::Measurement;
use crate::page::Page;
use causeway_bench::row::Network;
use causeway_bench::table::Table;

/// A row for each cell, as means of its runs; nothing where nobody counted.
pub fn show(page: &mut Page, measured: &Measurement) {
    let mut table = Table::new(&[
        "",
        "segments",
        "sent again",
        "% of them",
        "timeouts (RTO)",
        "duplicate ACKs",
        "MB across",
        "restarts after silence",
    ]);
    for cell in &measured.head.plan.cells {
        let own = measured.rows.iter().filter(|row| row.cell == *cell);
        let all: Vec<Network> = own.filter_map(|row| row.network).collect();
        let Some(sum) = all.iter().copied().reduce(Network::and) else {
            continue;
        };
        let runs = all.len() as f64;
        let mean = |count: u64| format!("{:.1}", count as f64 / runs);
        table.rows.push(vec![
            cell.to_string(),
            mean(sum.segments),
            mean(sum.resent),
            format!("{:.3}", 100.0 * sum.resent as f64 / (sum.segments.max(1)) as f64),
            mean(sum.timeouts),
            mean(sum.out_of_order),
            sum.crossed_bytes.map_or_else(
                || "-".to_owned(),
                |bytes| format!("{:.1}", bytes as f64 / 1e6 / runs),
            ),
            sum.idle_restarts.map_or_else(|| "-".to_owned(), mean),
        ]);
    }
    if table.rows.is_empty() {
        return;
    }
    page.subheading("What TCP did");
    page.text(
        "Means of the runs, over all that counted: the nodes' kernels on plain ways, the gateways' lanes through Causeway. A duplicate \
         ACK is counted for each segment that arrived out of order. A restart is a send after 200 ms of silence; kernels do not count \
         these, and gateways, which keep their rate, lose nothing by them. Other connections of the nodes and of the gateways count too, \
         training of lanes among them.",
    );
    page.table(&table);
}
