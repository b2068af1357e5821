//! A lab of our own, driven from outside: started under a name nobody else uses, ended with this value or
//! this process.

use crate::program::{Program, ProgramError, Running, io};
use causeway_host::quoted;
use serde_json::Value;
use std::fs::File;
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Namespaces, gateways and a tunnel that is trained for up to 2 s; a lab that takes longer will not come up.
const START: Duration = Duration::from_secs(60);

/// The supervisor lives as long as this process unless it is stopped earlier.
const LIFE: Duration = Duration::from_secs(7200);

/// How long `causeway status` and the like may take on a busy machine.
const ANSWER: Duration = Duration::from_secs(20);

/// A running lab.
pub struct Lab {
    name: String,
    /// The lab as a user would type it, for results.
    shape: String,
    directory: PathBuf,
    /// Nobody reads this: dropping it ends the lab.
    _supervisor: Running,
}

static STARTED: AtomicU32 = AtomicU32::new(0);

impl Lab {
    /// Starts `causeway lab up` with the options and the scenario of `shape`; its messages go to `directory`.
    ///
    /// # Errors
    /// The lab ends, or is not up in time; the error contains what it printed.
    pub fn start(shape: &[&str], directory: &Path) -> Result<Lab, ProgramError> {
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let name = format!("measure-{}-{number}", std::process::id());
        std::fs::create_dir_all(directory).map_err(io(format!("create {}", directory.display())))?;
        // The lab's output file may contain the word that is waited for, from an earlier run.
        let _ = std::fs::remove_file(directory.join("stdout"));
        let words: Vec<_> = shape.iter().map(quoted).collect();
        let shape = words.join(" ");
        // The kernel stops the lab if this process is killed: a lab left behind would disturb whatever is
        // measured next.
        let command = format!(
            "exec setpriv --pdeathsig TERM {} lab up --foreground --name {name} {shape}",
            quoted(&causeway()?)
        );
        let mut supervisor = Program::new(command, directory, LIFE).start()?;
        let end = Instant::now() + START;
        while !is_ready(directory) {
            if supervisor.ended()?.is_some() {
                supervisor.succeed()?;
                return Err(gone("the lab ended before it was up"));
            }
            if Instant::now() > end {
                return Err(gone("the lab was not up in time"));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(Lab {
            name,
            shape,
            directory: directory.to_owned(),
            _supervisor: supervisor,
        })
    }

    /// The command that makes such a lab, as a user would type it.
    pub fn shape(&self) -> String {
        format!("causeway lab run {} -- ...", self.shape)
    }

    /// `command`, a bash command line, on `node` and in `directory`.
    ///
    /// # Errors
    /// The path of this program is not known.
    pub fn program(
        &self,
        node: &str,
        command: &str,
        directory: &Path,
        deadline: Duration,
    ) -> Result<Program, ProgramError> {
        let line = format!(
            "exec {} lab exec --lab {} {node} -- bash -c {}",
            quoted(&causeway()?),
            self.name,
            quoted(command)
        );
        Ok(Program::new(line, directory, deadline))
    }

    /// Changes the link between rennes and nancy: `--loss 1%`.
    ///
    /// # Errors
    /// The lab refuses.
    pub fn link(&self, change: &str) -> Result<(), ProgramError> {
        let line = format!(
            "{} lab link --lab {} rennes nancy {change}",
            quoted(&causeway()?),
            self.name
        );
        Program::new(line, &self.aside()?, ANSWER).succeed()?;
        Ok(())
    }

    /// Runs `causeway status --json` on `node`, and returns its object; `null` if it prints something else.
    ///
    /// # Errors
    /// The command fails.
    pub fn status(&self, node: &str) -> Result<Value, ProgramError> {
        let program = self.program(node, "causeway status --json", &self.aside()?, ANSWER)?;
        Ok(serde_json::from_str(&program.succeed()?.stdout).unwrap_or_default())
    }

    /// Reads files of `node`, one after the other.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn read(&self, node: &str, paths: &[&str]) -> Result<String, ProgramError> {
        let command = format!("cat {}", paths.join(" "));
        let program = self.program(node, &command, &self.aside()?, ANSWER)?;
        Ok(program.succeed()?.stdout)
    }

    /// Returns the address at which other sites reach `node`.
    ///
    /// # Errors
    /// The lab does not know the node.
    pub fn wan_address(&self, node: &str) -> Result<String, ProgramError> {
        let line = format!("{} lab list --json", quoted(&causeway()?));
        let listed = Program::new(line, &self.aside()?, ANSWER).succeed()?.stdout;
        let labs: Value = serde_json::from_str(&listed).unwrap_or_default();
        let lab = find_named(&labs, &self.name);
        let address = find_named(&lab["nodes"], node)["wan"].as_str();
        address
            .map(str::to_owned)
            .ok_or_else(|| gone(&format!("the lab knows no WAN address of {node}")))
    }

    /// A directory for outputs that are not results.
    fn aside(&self) -> Result<PathBuf, ProgramError> {
        let directory = self.directory.join("aside");
        std::fs::create_dir_all(&directory).map_err(io(format!("create {}", directory.display())))?;
        Ok(directory)
    }
}

fn find_named<'a>(list: &'a Value, name: &str) -> &'a Value {
    let mut entries = list.as_array().into_iter().flatten();
    entries
        .find(|entry| entry["name"] == name)
        .unwrap_or(&Value::Null)
}

fn is_ready(directory: &Path) -> bool {
    File::open(directory.join("stdout"))
        .and_then(std::io::read_to_string)
        .is_ok_and(|said| said.lines().any(|line| line == "ready"))
}

fn gone(what: &str) -> ProgramError {
    io(what)(Error::from(ErrorKind::NotFound))
}

/// The command under test: the one built beside this program.
///
/// # Errors
/// The path of this program is not known.
pub fn causeway() -> Result<String, ProgramError> {
    let me = std::env::current_exe().map_err(io("find this program"))?;
    Ok(me.with_file_name("causeway").display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_found_by_name_and_missing_ones_are_null() {
        let list = serde_json::json!([{"name": "a", "wan": null}, {"name": "b", "wan": "198.51.100.5"}]);
        assert_eq!(find_named(&list, "b")["wan"], "198.51.100.5");
        assert!(find_named(&list, "c")["wan"].is_null() && find_named(&Value::Null, "a").is_null());
    }
}
