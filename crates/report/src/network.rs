//! What TCP did in the runs: segments sent again, timeouts, duplicate ACKs, restarts after silence.

use crate::measurement::Measurement;
use crate::page::Page;
use causeway_bench::table::Table;

/// Shows a row for each cell, with the means of its runs; nothing if nobody has counted.
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
        "gateways' processor time (s)",
    ]);
    for signals in &measured.summary.network {
        let shown = |count: f64| format!("{count:.1}");
        let optional = |count: Option<f64>| count.map_or_else(|| "-".to_owned(), shown);
        table.rows.push(vec![
            signals.cell.to_string(),
            shown(signals.segments),
            shown(signals.resent),
            format!("{:.3}", 100.0 * signals.resent / signals.segments.max(1.0)),
            shown(signals.timeouts),
            shown(signals.out_of_order),
            optional(signals.crossed_megabytes),
            optional(signals.idle_restarts),
            signals
                .gateways_seconds
                .map_or_else(|| "-".to_owned(), |time| format!("{time:.2}")),
        ]);
    }
    if table.rows.is_empty() {
        return;
    }
    page.subheading("What TCP did");
    page.text(
        "Means of the runs, over all that counted: the nodes' kernels on plain ways, the gateways' lanes through Causeway. A receiver \
         answers each segment that arrives out of order with a duplicate ACK, which is counted here; three of them have the sender take a segment for lost, send \
         it again and slow down. A restart is a send after 200 ms of silence; kernels do not count \
         these, and gateways, which keep their rate, lose nothing by them. Other connections of the nodes and of the gateways count too, \
         training of lanes among them.",
    );
    page.table(&table);
}
