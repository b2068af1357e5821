//! What was counted, as text.

use super::found::Found;
use crate::messages::Messages;
use crate::table::Table;

/// `0 to 3, 6`: ranks, written briefly.
fn ranges(ranks: &[u32]) -> String {
    let runs = ranks.chunk_by(|one, next| one + 1 == *next);
    let words = runs.map(|run| match run {
        [first, .., last] => format!("{first} to {last}"),
        [only] => only.to_string(),
        [] => String::new(),
    });
    words.collect::<Vec<_>>().join(", ")
}

fn bytes(least: u64, most: u64) -> String {
    match least == most {
        true => least.to_string(),
        false => format!("{least} to {most}"),
    }
}

/// `312 B`, `1.32 kB`, `46.6 MB`, in powers of 1000.
fn amount(bytes: u64) -> String {
    let mut value = bytes as f64;
    let mut units = ["B", "kB", "MB", "GB", "TB"].into_iter();
    let mut unit = units.next().unwrap_or_default();
    for larger in units {
        if value < 999.5 {
            break;
        }
        value /= 1000.0;
        unit = larger;
    }
    let digits = match (unit, value) {
        ("B", _) => 0,
        (_, 0.0..9.995) => 2,
        (_, 0.0..99.95) => 1,
        _ => 0,
    };
    format!("{value:.digits$} {unit}")
}

pub fn text(found: &Found) -> String {
    let total = |of: fn(&Messages) -> u64| found.messages.iter().map(of).sum::<u64>();
    let count = total(|messages| messages.count);
    let mut parts = vec![format!(
        "{}\n{} ranks, {:.3} s from MPI_Init to MPI_Finalize",
        found.program, found.ranks, found.seconds
    )];
    if !found.missing.is_empty() {
        parts.push(format!(
            "Ranks {} left no counts: they crashed, or could not write to the directory.",
            ranges(&found.missing)
        ));
    }
    if found.lost > 0 {
        parts.push(format!(
            "{} calls were not counted, because memory ran out.",
            found.lost
        ));
    }
    if count > 0 {
        let every = found.seconds * f64::from(found.ranks) / count as f64;
        parts.push(messages_table(found).markdown().trim_end().to_owned());
        parts.push(format!(
            "In all {count} messages, {}; a rank sends one every {:.3} ms.\n{}",
            amount(total(|messages| messages.bytes)),
            every * 1e3,
            between(found, total(|messages| messages.count_between))
        ));
    }
    if !found.operations.is_empty() {
        parts.push(operations_table(found).markdown().trim_end().to_owned());
    }
    parts.join("\n\n")
}

fn messages_table(found: &Found) -> Table {
    let mut table = Table::new(&[
        "bytes of a message",
        "messages",
        "together",
        "between sites",
        "together",
    ]);
    for messages in &found.messages {
        table.rows.push(vec![
            bytes(messages.least, messages.most),
            messages.count.to_string(),
            amount(messages.bytes),
            messages.count_between.to_string(),
            amount(messages.bytes_between),
        ]);
    }
    table
}

fn operations_table(found: &Found) -> Table {
    let mut table = Table::new(&[
        "operation",
        "ranks",
        "calls of all",
        "bytes of a rank",
        "together",
    ]);
    for operation in &found.operations {
        table.rows.push(vec![
            operation.call.clone(),
            operation.ranks.to_string(),
            operation.calls.to_string(),
            bytes(operation.least, operation.most),
            amount(operation.bytes),
        ]);
    }
    table
}

/// What crosses between sites that take the ranks in their order, and what would cross with other ranks at
/// them.
fn between(found: &Found, count: u64) -> String {
    let mut next = 0;
    let sites = found.sites.iter().map(|&ranks| {
        let all: Vec<u32> = (next..next + ranks).collect();
        next += ranks;
        ranges(&all)
    });
    let sites: Vec<String> = sites.collect();
    if sites.len() < 2 {
        return "There is one site.".to_owned();
    }
    let plain = format!(
        "Between sites of ranks {}: {count} of them, operations apart.",
        sites.join(" and ")
    );
    match &found.better {
        None => plain,
        Some(better) => format!(
            "{plain} With ranks {} at one site and {} at the other it would be {}.",
            ranges(&better.sites[0]),
            ranges(&better.sites[1]),
            better.messages
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::found::Better;
    use super::*;

    #[test]
    fn amounts_have_three_digits() {
        let amounts = [0, 999, 1000, 1_320, 46_628_694, 999_600_000, 5_900_000_000_000];
        let said = amounts.map(amount);
        assert_eq!(
            said,
            [
                "0 B", "999 B", "1.00 kB", "1.32 kB", "46.6 MB", "1.00 GB", "5.90 TB"
            ]
        );
    }

    #[test]
    fn ranks_are_told_in_few_words() {
        assert_eq!(ranges(&[0, 1, 2, 5, 7, 8]), "0 to 2, 5, 7 to 8");
        assert_eq!(ranges(&[4]), "4");
    }

    fn found(better: Option<Better>) -> Found {
        Found {
            program: "mpirun -n 4 ./app".into(),
            ranks: 4,
            missing: vec![3],
            seconds: 2.0,
            lost: 0,
            sites: vec![2, 2],
            messages: vec![Messages {
                least: 8,
                most: 12,
                count: 1000,
                bytes: 10_000,
                count_between: 600,
                bytes_between: 6000,
            }],
            operations: Vec::new(),
            better,
        }
    }

    #[test]
    fn the_text_has_what_crosses_who_is_missing_and_how_often_a_rank_sends() {
        let said = text(&found(None));
        assert!(said.contains("|            8 to 12 |     1000 |"), "{said}");
        assert!(
            said.contains("Between sites of ranks 0 to 1 and 2 to 3: 600 of them"),
            "{said}"
        );
        assert!(said.contains("Ranks 3 left no counts"), "{said}");
        assert!(said.contains("every 8.000 ms"), "{said}");
    }

    #[test]
    fn other_ranks_are_named_where_they_would_save_messages() {
        let better = Better {
            sites: [vec![0, 2], vec![1, 3]],
            messages: 40,
        };
        let said = text(&found(Some(better)));
        assert!(
            said.contains("With ranks 0, 2 at one site and 1, 3 at the other it would be 40."),
            "{said}"
        );
    }
}
