//! Tables of a summary, for a terminal.

use crate::cell::{Cell, Way};
use crate::interval::Interval;
use crate::summary::{Entry, Summaries};
use crate::table::{Table, size};
use std::collections::BTreeMap;

/// All tables, each under its title. Messages have one for each operation, measure and MPI: sizes as rows,
/// conditions as columns. Programs have one for each MPI: programs as rows.
pub fn tables(summary: &Summaries) -> Vec<(String, Table)> {
    let mut messages: BTreeMap<(&str, &str, &str, &str), Vec<&Entry>> = BTreeMap::new();
    let mut programs: BTreeMap<(&str, &str), Vec<&Entry>> = BTreeMap::new();
    for entry in &summary.entries {
        let (cell, quantity) = (&entry.cell, &entry.quantity);
        let (operation, measure) = (quantity.operation.as_str(), quantity.measure.as_str());
        match quantity.size_bytes {
            Some(_) => {
                let key = (operation, measure, cell.program.as_str(), cell.mpi.as_str());
                messages.entry(key).or_default().push(entry);
            }
            None => programs.entry((measure, &cell.mpi)).or_default().push(entry),
        }
    }
    let mut all = Vec::new();
    for ((operation, measure, program, mpi), entries) in messages {
        let program = match program.is_empty() {
            true => String::new(),
            false => format!(" by {program}"),
        };
        all.push((
            format!("{operation}{program}, {measure}, {mpi}"),
            message_table(&entries),
        ));
    }
    for ((measure, mpi), entries) in programs {
        all.push((format!("{measure}, {mpi}"), program_table(&entries)));
    }
    all
}

fn message_table(entries: &[&Entry]) -> Table {
    let mut sizes: Vec<Option<u64>> = entries.iter().map(|entry| entry.quantity.size_bytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let mut cells: Vec<&Cell> = Vec::new();
    for entry in entries {
        if !cells.contains(&&entry.cell) {
            cells.push(&entry.cell);
        }
    }
    let has_limit = entries.iter().any(|entry| entry.limit.is_some());
    let has_ratio = |cell: &Cell| has_limit && cell.way != Way::Site;
    let mut table = Table::new(&["size"]);
    table.head.extend(has_limit.then(|| "limit (ms)".to_owned()));
    for &cell in &cells {
        let beside = if has_ratio(cell) { "of limit" } else { "+-" };
        table
            .head
            .extend([format!("{} (ms)", cell.condition()), beside.to_owned()]);
    }
    let shown = |us: f64| format!("{:.3}", us / 1e3);
    for bytes in sizes {
        let entry_of = |cell: &Cell| {
            let mut own = entries.iter().filter(|entry| entry.cell == *cell);
            own.find(|entry| entry.quantity.size_bytes == bytes)
        };
        let mut row = vec![bytes.map(size).unwrap_or_default()];
        if has_limit {
            let limit = cells.iter().find_map(|cell| entry_of(cell)?.limit);
            row.push(limit.map_or_else(missing, shown));
        }
        for &cell in &cells {
            row.push(entry_of(cell).map_or_else(missing, |entry| shown(entry.interval.median)));
            row.push(match entry_of(cell) {
                Some(entry) if has_ratio(cell) => entry.ratio_to_limit().map_or_else(missing, ratio),
                Some(entry) => width(&entry.interval),
                None => missing(),
            });
        }
        table.rows.push(row);
    }
    table
}

/// The best run is what the papers quote; the median and its interval say what a user will see.
fn program_table(entries: &[&Entry]) -> Table {
    let (mut names, mut conditions) = (Vec::new(), Vec::new());
    for entry in entries {
        let (name, condition) = (entry.quantity.operation.as_str(), entry.cell.condition());
        if !names.contains(&name) {
            names.push(name);
        }
        if !conditions.contains(&condition) {
            conditions.push(condition);
        }
    }
    let mut table = Table::new(&["program"]);
    for (at, condition) in conditions.iter().enumerate() {
        table.head.extend([
            format!("{condition}: best (s)"),
            "median (s)".to_owned(),
            "+-".to_owned(),
        ]);
        table.head.extend((at > 0).then(|| "ratio".to_owned()));
    }
    for name in names {
        let mut row = vec![name.to_owned()];
        for (at, condition) in conditions.iter().enumerate() {
            let mut own = entries.iter().filter(|entry| entry.quantity.operation == name);
            let found = own.find(|entry| entry.cell.condition() == *condition);
            row.push(found.map_or_else(missing, |entry| format!("{:.2}", entry.min)));
            row.push(found.map_or_else(missing, |entry| format!("{:.2}", entry.interval.median)));
            row.push(found.map_or_else(missing, |entry| width(&entry.interval)));
            let times_base = found.and_then(|entry| entry.of_base);
            row.extend((at > 0).then(|| times_base.map_or_else(missing, |base| ratio(base.median))));
        }
        table.rows.push(row);
    }
    table
}

fn missing() -> String {
    "-".to_owned()
}

fn ratio(ratio: f64) -> String {
    format!("{ratio:.3}")
}

fn width(interval: &Interval) -> String {
    format!("{:.1} %", interval.relative_half_width() * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::tests::head;
    use crate::row::tests::measured;
    use crate::row::{Outcome, Quantity, Row, Value};
    use crate::summary::tests::rows;

    #[test]
    fn messages_have_a_row_for_each_size_and_a_place_for_every_value() {
        let tables = tables(&Summaries::of(&head(), &rows()));
        let (title, table) = &tables[0];
        assert_eq!(
            (tables.len(), title.as_str()),
            (1, "pingpong, one way, Open MPI 4.1.4")
        );
        assert_eq!(table.rows.len(), 2);
        assert!(table.rows.iter().all(|row| row.len() == table.head.len()));
    }

    #[test]
    fn programs_stand_in_one_table_with_the_ratio_to_the_first_condition() {
        let run = |way, name: &str, seconds: f64| {
            let quantity = Quantity {
                operation: name.into(),
                measure: "run time".into(),
                size_bytes: None,
                unit: "s".into(),
            };
            let mut row: Row = measured(way, 0, &[]);
            let values = Value::new(quantity, &[seconds]).into_iter().collect();
            row.outcome = Outcome::Measured { values };
            row
        };
        let rows = [
            run(Way::Direct, "cg.A", 4.0),
            run(Way::Causeway, "cg.A", 3.0),
            run(Way::Direct, "is.A", 2.0),
        ];
        let tables = tables(&Summaries::of(&head(), &rows));
        let (title, table) = &tables[0];
        assert_eq!((tables.len(), title.as_str()), (1, "run time, Open MPI 4.1.4"));
        let wanted = ["cg.A", "4.00", "4.00", "0.0 %", "3.00", "3.00", "0.0 %", "0.750"];
        assert_eq!(table.rows[0], wanted);
        assert_eq!(table.rows[1][4..], ["-", "-", "-", "-"]);
    }
}
