//! How a site starts MPI programs, if `causeway run` leaves that to it: `[mpi]`.

use super::reader::{Reader, Table};
use causeway_control::SiteMpi;

/// Most bytes of each entry: they become words of a command line on the way to a node.
const MAX_TEXT: usize = 4096;

/// Reads the section, which may be missing.
pub(super) fn read_mpi<'a>(reader: &mut Reader<'a>, root: &Table<'a>) -> SiteMpi {
    let Some(table) = reader.table(root, "mpi", false) else {
        return SiteMpi::default();
    };
    let one_line = |text: &str| match text {
        _ if text.trim().is_empty() => Err("is empty".into()),
        _ if text.len() > MAX_TEXT => Err(format!("is longer than {MAX_TEXT} bytes").into()),
        _ if text.contains(|character: char| character.is_control()) => {
            Err("is not one line: separate commands by ;".into())
        }
        _ => Ok(text.to_owned()),
    };
    let start = reader.string(&table, "start", |text| match one_line(text) {
        Ok(text) if !text.contains("{ranks}") => {
            Err("it does not contain {ranks}, so the launcher would not know how many to start".into())
        }
        read => read,
    });
    let setup = reader.string(&table, "setup", one_line);
    reader.no_other_keys(&table, &["start", "setup"]);
    SiteMpi { start, setup }
}

#[cfg(test)]
mod tests {
    use crate::config::Config;
    use causeway_control::SiteMpi;
    use std::path::Path;

    fn read(mpi: &str) -> Result<SiteMpi, String> {
        let text = format!(
            "[site]\nname = \"a\"\nsubnets = [\"10.1.0.0/24\"]\n[listen]\nlan = [\"10.1.0.9:7000\"]\n\
             [grid]\nmembership = \"m\"\n[mpi]\n{mpi}"
        );
        let config = Config::parse(&text, Path::new("gateway.toml"));
        config
            .map(|config| config.mpi)
            .map_err(|mistakes| mistakes.to_string())
    }

    #[test]
    fn a_site_says_how_it_starts_programs_in_one_line_each() {
        let mpi = read("start = \"srun -n {ranks}\"\nsetup = \"module load openmpi\"").unwrap();
        assert_eq!(mpi.start.as_deref(), Some("srun -n {ranks}"));
        assert_eq!(mpi.setup.as_deref(), Some("module load openmpi"));
        assert_eq!(read("").unwrap(), SiteMpi::default());
        for (mistake, reason) in [
            ("start = \"srun\"", "mpi.start: it does not contain {ranks}"),
            ("setup = \"a\\nb\"", "mpi.setup: is not one line"),
            ("setup = \" \"", "mpi.setup: is empty"),
            ("launcher = \"srun\"", "launcher"),
        ] {
            let said = read(mistake).unwrap_err();
            assert!(said.contains(reason), "{said}");
        }
    }
}
