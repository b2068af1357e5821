//! Lets jobs of more sites run at a site that is set up already: adds the sites to its configuration, if that
//! is still as `causeway gateway --join` wrote it.

use causeway_gateway::Config;
use causeway_host::own_file;
use std::fs;

/// Adds the sites. The gateway adopts the configuration with `causeway gateway --drain`.
///
/// # Errors
/// One of the lists does not have a line of its own, or the file cannot be written.
pub fn accept(names: &[String]) -> Result<(), String> {
    let file = causeway_host::user_directories::gateway_config().map_err(|error| error.to_string())?;
    let text = fs::read_to_string(&file).map_err(|error| format!("read {}: {error}", file.display()))?;
    let new = added(&text, names).ok_or_else(|| {
        format!(
            "{} has been changed since it was written: add {} to jobs in [accept], and to from in [batch]",
            file.display(),
            names.join(", ")
        )
    })?;
    Config::parse(&new, &file).map_err(|mistakes| mistakes.to_string())?;
    own_file::keep(&file, new.as_bytes()).map_err(|error| format!("write {}: {error}", file.display()))
}

fn added(text: &str, names: &[String]) -> Option<String> {
    let mut section = "";
    let mut has_jobs = false;
    let mut lines = Vec::new();
    for line in text.lines() {
        if line.starts_with('[') {
            section = line;
        }
        let list = match section {
            "[accept]" => line.strip_prefix("jobs = ["),
            "[batch]" => line.strip_prefix("from = ["),
            _ => None,
        };
        let Some(list) = list else {
            lines.push(line.to_owned());
            continue;
        };
        let list = list.strip_suffix(']')?;
        has_jobs |= section == "[accept]";
        let key = line.split_once(" = ")?.0;
        let present = list.split(',').map(|name| name.trim().to_owned());
        let mut all: Vec<String> = present.filter(|name| !name.is_empty()).collect();
        for name in names.iter().map(|name| format!("\"{name}\"")) {
            if !all.contains(&name) {
                all.push(name);
            }
        }
        lines.push(format!("{key} = [{}]", all.join(", ")));
    }
    has_jobs.then(|| lines.join("\n") + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sites_are_added_where_the_lists_are_as_they_were_written_and_nowhere_else() {
        let text =
            "[site]\nname = \"a\"\n[accept]\njobs = [\"a\", \"b\"]\n[batch]\nsystem = \"slurm\"\nfrom = []\n";
        let names = ["b".to_owned(), "c".to_owned()];
        assert_eq!(
            added(text, &names).unwrap(),
            "[site]\nname = \"a\"\n[accept]\njobs = [\"a\", \"b\", \"c\"]\n[batch]\nsystem = \"slurm\"\nfrom = [\"b\", \"c\"]\n"
        );
        assert_eq!(added(&text.replace("\"b\"]", "\n\"b\"]"), &names), None);
        assert_eq!(added("[site]\nname = \"a\"\n", &names), None);
    }
}
