//! Open MPI's file of parameters in the home directory: what the user has set there, and what causeway tune
//! has.

use causeway_host::user_directories;
use std::path::PathBuf;

/// Precedes the lines of causeway tune, which come last in the file.
pub const MARK: &str = "# causeway tune --direct --apply; 'causeway tune --undo' takes it away";

/// The file's path below the home directory.
const PATH: &str = ".openmpi/mca-params.conf";

/// The path of this user's file.
pub fn path() -> Result<PathBuf, user_directories::NoHome> {
    Ok(user_directories::home()?.join(PATH))
}

/// The text of such a file.
#[derive(Debug, Default)]
pub struct McaFile(pub String);

impl McaFile {
    /// Reads this user's file; a missing one counts as empty.
    pub fn read() -> McaFile {
        let text = path().ok().and_then(|path| std::fs::read_to_string(path).ok());
        McaFile(text.unwrap_or_default())
    }

    /// Returns what the user has set. If there are several values, Open MPI takes the last.
    pub fn user_value(&self, name: &str) -> Option<&str> {
        value(self.0.split(MARK).next()?, name)
    }

    /// Returns what causeway tune has set.
    pub fn tune_value(&self, name: &str) -> Option<&str> {
        value(self.0.split_once(MARK)?.1, name)
    }
}

fn value<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let lines = text.lines().filter_map(|line| line.split_once('='));
    let mut found = lines.filter(|(other, _)| other.trim() == name);
    found.next_back().map(|(_, value)| value.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_lines_are_told_from_those_of_tune_and_the_last_value_counts() {
        let file = McaFile(format!("# a = 9\na = 1\n a=2\nabc = 3\n{MARK}\nb = 4\n"));
        assert_eq!((file.user_value("a"), file.tune_value("a")), (Some("2"), None));
        assert_eq!((file.user_value("b"), file.tune_value("b")), (None, Some("4")));
        assert_eq!(McaFile("a = 1".to_owned()).tune_value("a"), None);
    }
}
