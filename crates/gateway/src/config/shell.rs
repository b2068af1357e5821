//! The remote shell of a site: the words of the command that runs another one on a node.

use super::Config;
use super::reader::{Reader, Table};
use super::values::find_program;
use causeway_control::spawned::REMOTE_SHELL;
use std::path::PathBuf;

/// The placeholder for the name of the site at which a job began.
const SITE: &str = "{site}";

impl Config {
    /// Words of the remote shell for jobs that began at a site. One of them contains `{node}`.
    pub fn remote_shell_of(&self, site: &str) -> Vec<String> {
        let words = self.remote_shell.iter();
        words.map(|word| word.replace(SITE, site)).collect()
    }

    /// Whether jobs of each site run under an account for that site.
    pub fn has_accounts_of_sites(&self) -> bool {
        self.remote_shell.iter().any(|word| word.contains(SITE))
    }

    /// Files that decide what a remote shell does: its program, and the files that it is given, such as a
    /// script, a key or a configuration. With `jobs = ["all"]`, the sites are not known in advance.
    pub(super) fn files_of_remote_shells(&self) -> Vec<PathBuf> {
        let program = self.remote_shell.first().and_then(|word| find_program(word));
        let sites = self.accept.jobs.iter().chain([&self.site]);
        let words = sites.flat_map(|site| self.remote_shell_of(site).into_iter().skip(1));
        let given = words
            .map(PathBuf::from)
            .filter(|word| word.is_absolute() && word.exists());
        let mut files: Vec<PathBuf> = program.into_iter().chain(given).collect();
        files.sort_unstable();
        files.dedup();
        files
    }
}

/// Reads `remote_shell` of `[site]`, or gives the default.
pub(super) fn read_shell<'a>(reader: &mut Reader<'a>, site: &Table<'a>) -> Vec<String> {
    let words = reader.list(site, "remote_shell", |word| Ok(word.to_owned()));
    let words = words.unwrap_or_else(|| REMOTE_SHELL.map(str::to_owned).to_vec());
    if !words.iter().any(|word| word.contains("{node}")) {
        reader.mistake_at(
            site,
            "remote_shell",
            "no word contains {node}, so the shell would not know the node",
        );
    }
    if words.first().is_some_and(|word| word.contains(SITE)) {
        reader.mistake_at(
            site,
            "remote_shell",
            "the first word is the program, which a site's name must not choose",
        );
    }
    words
}
