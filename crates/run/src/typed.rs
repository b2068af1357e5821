//! What the user has typed: a launcher, its options, and programs. Hosts that a variable names, and programs
//! in a file, count as typed.

use super::directory::RunDirectory;
use super::distribution::Share;
use super::error::RunError;
use super::is_set;
use super::sites::Chosen;
use causeway_launchers::launcher::Launcher;
use causeway_launchers::programs::Programs;
use causeway_launchers::rewrite::{Libraries, Rewritten, rewrite};
use causeway_mpis::command_line::CommandLine;
use causeway_mpis::family::{Family, in_path};
use causeway_mpis::{Mpi, environment};
use causeway_remote::parts::Expected;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

/// See the module.
#[derive(Debug)]
pub struct Typed<'a> {
    /// The launcher's name or path.
    pub word: &'a OsString,
    /// The words after it.
    pub words: &'a [OsString],
    /// The launcher itself.
    pub launcher: Launcher,
    /// What the words mean.
    pub line: CommandLine,
    programs: Option<Programs>,
}

/// Refuses a program of another MPI than the launcher's: each rank would be a job by itself, and would end
/// successfully.
fn refuse_others(mpi: Mpi, programs: &[OsString]) -> Result<(), RunError> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let started = mpi.row().family;
    for program in programs {
        let family = in_path(&path, program).and_then(|file| Family::of(&file));
        if let Some(family) = family.filter(|family| *family != started) {
            let program = program.to_string_lossy().into_owned();
            return Err(RunError::OtherMpi(program, family.name(), mpi.name()));
        }
    }
    Ok(())
}

impl<'a> Typed<'a> {
    /// Reads a command line; with `--sites`, hosts in the user's variables do not count.
    ///
    /// # Errors
    /// There is no launcher, or a file of programs that cannot be read.
    pub fn read(command: &'a [OsString], names_sites: bool) -> Result<Typed<'a>, RunError> {
        let (word, words) = command.split_first().ok_or(RunError::NoCommand)?;
        let launcher = Launcher::find(word)?;
        let programs = Programs::read(launcher.mpi, words)?;
        let file = programs.as_ref().map(Programs::words);
        let mut line = CommandLine::parse(launcher.mpi, words, file.as_deref());
        refuse_others(launcher.mpi, &line.programs)?;
        if !names_sites {
            let set = environment::hosts(launcher.mpi)
                .iter()
                .filter_map(std::env::var_os);
            line.host_values.extend(set);
            line.names_hosts |= !line.host_values.is_empty();
        }
        Ok(Typed {
            word,
            words,
            launcher,
            line,
            programs,
        })
    }

    /// The launcher's MPI.
    pub fn mpi(&self) -> Mpi {
        self.launcher.mpi
    }

    /// Whether the choice of hosts is left to Causeway.
    fn leaves_hosts(&self) -> bool {
        !self.line.names_hosts && !self.line.starts_nothing
    }

    /// Writes the host list, if one is needed.
    ///
    /// # Errors
    /// The list cannot be written.
    pub fn host_file(&self, directory: &RunDirectory, shares: &[Share]) -> Result<Option<PathBuf>, RunError> {
        let written = { self.leaves_hosts() }.then(|| directory.write_hosts(self.mpi(), shares));
        written.transpose().map_err(RunError::Directory)
    }

    /// The user's variables that the launcher must not see.
    pub fn replaced(&self) -> Vec<&'static str> {
        let hosts = environment::hosts(self.mpi()).iter();
        let hosts = hosts.filter(|_| self.leaves_hosts());
        let all = environment::starters(self.mpi()).iter().chain(hosts).copied();
        all.filter(|name| is_set(name)).collect()
    }

    /// The words for the launcher. If words in a file of programs change, a new file is written in the run's
    /// directory.
    ///
    /// # Errors
    /// That file cannot be written.
    pub fn rewritten(
        &mut self,
        libraries: &Libraries,
        directory: &RunDirectory,
    ) -> Result<Rewritten, RunError> {
        let mpi = self.mpi();
        let mut rewritten = rewrite(mpi, self.words, libraries);
        if let Some(programs) = &mut self.programs {
            let (left_out, is_to_be_written) = programs.rewrite(mpi, libraries);
            rewritten.left_out.extend(left_out);
            if is_to_be_written {
                let file = directory.write_programs(programs).map_err(RunError::Directory)?;
                rewritten.words = Programs::naming(mpi, rewritten.words, &file);
            }
        }
        Ok(rewritten)
    }

    /// The command that calls the launcher with these words and variables, without what only one site may
    /// know.
    pub fn command(
        &self,
        extra: Vec<OsString>,
        words: Vec<OsString>,
        environment: &[(&'static str, OsString)],
    ) -> Command {
        let mut command = Command::new(&self.launcher.path);
        command.args(extra).args(words);
        for name in self.replaced().into_iter().chain([causeway_wire::env::SITE]) {
            command.env_remove(name);
        }
        command.envs(environment.iter().map(|(name, value)| (name, value)));
        command
    }

    /// The other sites at which the launcher must start something, with all names of their nodes that have
    /// ranks. If hosts are named by numbers, the launcher chooses, and nothing is expected.
    pub fn expected(&self, own_site: &str, chosen: &Chosen) -> Expected {
        let others = chosen.sites.iter().filter(|site| site.name != own_site);
        let others = others.filter(|_| !self.line.numbers_hosts);
        let nodes = |site: &str| {
            let shares = chosen.shares.iter().filter(|share| share.site == site);
            let names = shares.flat_map(|share| [share.node.name.clone(), share.node.address.to_string()]);
            names.collect()
        };
        Expected {
            sites: others
                .map(|site| (site.name.clone(), nodes(&site.name)))
                .collect(),
            leaves_ends: self.mpi().row().leaves_ends_of_nodes,
        }
    }
}
