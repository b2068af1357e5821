//! How a job starts the gateways of sites at which none runs: `[start]`.

use super::reader::{Reader, Table};
use causeway_wire::grid::is_site_name;
use std::collections::BTreeMap;

/// Reads the section, which may be missing: a command for each site, word by word.
pub(super) fn read_start<'a>(reader: &mut Reader<'a>, root: &Table<'a>) -> BTreeMap<String, Vec<String>> {
    let Some(table) = reader.table(root, "start", false) else {
        return BTreeMap::new();
    };
    let mut commands = BTreeMap::new();
    for site in table.keys() {
        if !is_site_name(&site) {
            reader.mistake_at(&table, &site, "is not the name of a site");
        }
        let word = |text: &str| match text.contains('\0') {
            true => Err("holds a zero byte".into()),
            false => Ok(text.to_owned()),
        };
        if let Some(words) = reader.list(&table, &site, word) {
            commands.insert(site, words);
        }
    }
    commands
}

#[cfg(test)]
mod tests {
    use crate::config::Config;
    use std::path::Path;

    #[test]
    fn a_site_says_how_the_gateways_of_others_are_started() {
        let read = |start: &str| {
            let text = format!(
                "[site]\nname = \"a\"\nsubnets = [\"10.1.0.0/24\"]\n[listen]\nlan = [\"10.1.0.9:7000\"]\n\
                 [grid]\nmembership = \"m\"\n{start}"
            );
            let config = Config::parse(&text, Path::new("gateway.toml"));
            config
                .map(|config| config.start)
                .map_err(|mistakes| mistakes.to_string())
        };
        assert!(read("").unwrap().is_empty());
        let start =
            read("[start]\nnancy = [\"ssh\", \"login.nancy\", \"causeway gateway --background\"]").unwrap();
        assert_eq!(
            start["nancy"],
            ["ssh", "login.nancy", "causeway gateway --background"]
        );
        for (mistake, reason) in [
            ("[start]\nnancy = []", "start.nancy: is empty"),
            ("[start]\nnancy = \"ssh\"", "start.nancy: is not a list"),
            ("[start]\n\"no site\" = [\"ssh\"]", "is not the name of a site"),
        ] {
            let said = read(mistake).unwrap_err();
            assert!(said.contains(reason), "{said}");
        }
    }
}
