//! Plain tables for terminals and Markdown alike: the unit is in the head, numbers are aligned right.

/// A table of text cells.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Table {
    /// Column heads, each with its unit.
    pub head: Vec<String>,
    /// Rows, each as long as the head.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// An empty table under `head`.
    pub fn new(head: &[&str]) -> Table {
        Table {
            head: head.iter().map(|&cell| cell.to_owned()).collect(),
            rows: Vec::new(),
        }
    }

    /// Markdown that is also aligned, to be read as it stands.
    pub fn markdown(&self) -> String {
        let widths: Vec<usize> = (0..self.head.len())
            .map(|column| {
                let cells = std::iter::once(&self.head)
                    .chain(&self.rows)
                    .filter_map(|row| row.get(column));
                cells.map(|cell| cell.chars().count()).max().unwrap_or(0).max(3)
            })
            .collect();
        let line = |row: &[String]| {
            let cells: Vec<_> = row
                .iter()
                .zip(&widths)
                .map(|(cell, &width)| format!("{cell:>width$}"))
                .collect();
            format!("| {} |\n", cells.join(" | "))
        };
        let rule: Vec<_> = widths
            .iter()
            .map(|&width| format!("{}:", "-".repeat(width - 1)))
            .collect();
        let body: String = self.rows.iter().map(|row| line(row)).collect();
        format!("{}{}{body}", line(&self.head), line(&rule))
    }
}

/// `1 B`, `64 kB`, `8 MB` for powers of two and their like; exact if it does not come out even.
pub fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        _ if bytes.is_multiple_of(1 << 20) => format!("{} MB", bytes >> 20),
        _ if bytes.is_multiple_of(1 << 10) => format!("{} kB", bytes >> 10),
        _ => format!("{bytes} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_align_and_are_markdown() {
        let mut table = Table::new(&["size", "time (ms)"]);
        table.rows.push(vec!["1 B".into(), "5.900".into()]);
        assert_eq!(
            table.markdown(),
            "| size | time (ms) |\n| ---: | --------: |\n|  1 B |     5.900 |\n"
        );
    }

    #[test]
    fn sizes_are_short_where_they_come_out_even() {
        assert_eq!(
            [size(1), size(65_536), size(8 << 20), size(1025)],
            ["1 B", "64 kB", "8 MB", "1025 B"]
        );
    }
}
