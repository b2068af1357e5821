//! Says how a measurement turned out, in one line for each way through Causeway: for users who read no table.

use crate::cell::Cell;
use crate::interval::Interval;
use crate::row::Quantity;
use crate::samples::median;
use crate::summary::Summaries;

/// Operations in which one rank sends to all, or all to one. In a loop, their ranks run ahead of each other
/// by as much as the MPI buffers.
const ROOTED: [&str; 5] = ["bcast", "gather", "gatherv", "scatter", "reduce"];

/// Whether two conditions can be compared by this quantity. The loop time of a rooted operation says how far
/// ranks run ahead, not how long the operation takes.
pub fn is_comparable(quantity: &Quantity) -> bool {
    let is_rooted = || ROOTED.contains(&quantity.operation.to_lowercase().as_str());
    quantity.measure != "loop" || !is_rooted()
}

/// One line for each condition through Causeway, in the order of the cells.
pub fn verdicts(cells: &[Cell], summary: &Summaries) -> Vec<String> {
    let mut compared: Vec<(String, Vec<Interval>)> = Vec::new();
    for entry in summary
        .entries
        .iter()
        .filter(|entry| entry.cell.way.has_gateways())
    {
        let is_time = ["us", "ms", "s"].contains(&entry.quantity.unit.as_str());
        let (Some(base), Some(ratio)) = (Summaries::base(cells, &entry.cell), entry.of_base) else {
            continue;
        };
        if !is_time || !is_comparable(&entry.quantity) {
            continue;
        }
        let who = format!("{} beside {}", entry.cell.condition(), base.condition());
        match compared.iter_mut().find(|(other, _)| *other == who) {
            Some((_, ratios)) => ratios.push(ratio),
            None => compared.push((who, vec![ratio])),
        }
    }
    compared.iter().map(|(who, ratios)| line(who, ratios)).collect()
}

fn line(who: &str, ratios: &[Interval]) -> String {
    let less = ratios.iter().filter(|ratio| ratio.high < 1.0).count();
    let more = ratios.iter().filter(|ratio| ratio.low > 1.0).count();
    let medians: Vec<f64> = ratios.iter().map(|ratio| ratio.median).collect();
    format!(
        "{who}: less time in {less} of {} comparisons, more in {more}; median ratio {:.2}, and below 1 is less time",
        ratios.len(),
        median(&medians).unwrap_or(f64::NAN)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::tests::head;
    use crate::summary::tests::rows;

    #[test]
    fn a_measurement_comes_to_one_line_for_each_way_through_causeway() {
        let head = head();
        let summary = Summaries::of(&head, &rows());
        let lines = verdicts(&head.plan.cells, &summary);
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(
            lines[0].ends_with(
                "less time in 2 of 2 comparisons, more in 0; median ratio 0.53, and below 1 is less time"
            ),
            "{lines:?}"
        );
    }

    #[test]
    fn a_rooted_operation_in_a_loop_compares_nothing() {
        let quantity = |operation: &str, measure: &str| Quantity {
            operation: operation.into(),
            measure: measure.into(),
            size_bytes: Some(8),
            unit: "us".into(),
        };
        for (operation, measure, is) in [
            ("bcast", "loop", false),
            ("Reduce", "loop", false),
            ("bcast", "once", true),
            ("allreduce", "loop", true),
        ] {
            assert_eq!(
                is_comparable(&quantity(operation, measure)),
                is,
                "{operation}, {measure}"
            );
        }
    }
}
