//! Files of labs that differ in some lines from the usual two sites.

use super::BenchError;
use causeway_bench::program::io;
use std::path::{Path, PathBuf};

/// Two sites, as every section has them.
const SITES: &str = include_str!("../../../../scenarios/rennes-nancy.toml");

/// Writes the file of a lab of this name, with other values of some keys of the link, and with lines for the
/// grid table of every gateway.
///
/// # Errors
/// The file cannot be written.
pub fn two_sites(
    name: &str,
    link: &[(&str, &str)],
    grid: &[&str],
    out: &Path,
) -> Result<PathBuf, BenchError> {
    let file = out.join(format!("{name}.toml"));
    std::fs::write(&file, text(name, link, grid)).map_err(io(format!("write {}", file.display())))?;
    Ok(file)
}

fn text(name: &str, link: &[(&str, &str)], grid: &[&str]) -> String {
    let grid: Vec<String> = grid.iter().map(|line| format!("{line:?}")).collect();
    let lines = SITES.lines().map(|line| {
        let key = line.split_once(" = ").map_or("", |(key, _)| key);
        match link.iter().find(|(other, _)| *other == key) {
            Some((_, value)) => format!("{key} = {value:?}\n"),
            None if line == "name = \"rennes-nancy\"" => {
                format!("name = {name:?}\ngrid = [{}]\n", grid.join(", "))
            }
            None => format!("{line}\n"),
        }
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lab_differs_from_the_two_sites_in_what_is_asked_for_and_in_nothing_else() {
        let changed = text("x", &[("queue", "256kB"), ("loss", "1%")], &["lanes = 2"]);
        let lines: Vec<_> = changed.lines().filter(|line| !SITES.contains(line)).collect();
        let wanted = [
            "name = \"x\"",
            "grid = [\"lanes = 2\"]",
            "queue = \"256kB\"",
            "loss = \"1%\"",
        ];
        assert_eq!(lines, wanted);
        assert_eq!(changed.lines().count(), SITES.lines().count() + 1);
    }
}
