//! Runs commands of a batch system.

use causeway_batch::offer::{Limit, Offer};
use causeway_batch::{Node, System};
use causeway_control::NodeInfo;
use causeway_host::say;
use causeway_wire::Cidr;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::{Pid, User, getuid};
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::net::{IpAddr, ToSocketAddrs};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

/// Most characters of a command's error message that are passed on.
const COMPLAINT: usize = 300;

/// The program that runs commands with more than one program.
const SHELL: &str = "/bin/sh";

/// The beginning of the names of holders' allocations.
pub const NAME: &str = "causeway-";

/// How long a command may take. Slurm's own give up after 10 s if its controller does not answer.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Which batch system it is.
#[derive(Debug, Clone, clap::Args)]
pub struct Batch {
    /// The batch system.
    #[arg(long)]
    pub system: System,
    /// Its configuration.
    #[arg(long)]
    pub conf: Option<PathBuf>,
    /// Ranges in which the site's nodes have addresses.
    #[arg(long = "subnet")]
    pub subnets: Vec<Cidr>,
}

/// What a command has printed.
pub struct Said {
    /// The command's standard output.
    pub output: String,
    /// The command's standard error.
    pub errors: String,
}

impl Batch {
    /// Runs a command with this text as its standard input.
    ///
    /// # Errors
    /// The command cannot be run, fails or takes too long; the error ends with its last words.
    pub fn run(&self, words: &[String], input: &str) -> Result<Said, String> {
        let (program, arguments) = words.split_first().ok_or("no command")?;
        let mut command = Command::new(program);
        command.args(arguments);
        for (name, value) in self.environment(std::env::vars_os()) {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        // SAFETY: prctl is one system call; nothing is allocated or locked between fork and exec.
        unsafe {
            command.pre_exec(|| Ok(nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?));
        }
        command
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let failed = |error: std::io::Error| format!("run {program}: {error}");
        let mut child = command.spawn().map_err(failed)?;
        if let Some(mut stdin) = child.stdin.take() {
            // A command that does not read its input says why.
            let _ = stdin.write_all(input.as_bytes());
        }
        let process = Pid::from_raw(child.id().cast_signed());
        let (ended, end) = channel();
        let thread = std::thread::Builder::new().name("command".to_owned());
        thread
            .spawn(move || drop(ended.send(child.wait_with_output())))
            .map_err(failed)?;
        let Ok(output) = end.recv_timeout(PATIENCE) else {
            let _ = killpg(process, Signal::SIGKILL);
            return Err(format!("{} did not end within {PATIENCE:?}", words.join(" ")));
        };
        judge(words, &output.map_err(failed)?)
    }

    /// Lists the changes to this environment for the commands, in order: their output must have the format
    /// that is parsed here, whatever the user has set, and no command may run in the user's allocation.
    fn environment(
        &self,
        own: impl Iterator<Item = (OsString, OsString)>,
    ) -> Vec<(OsString, Option<OsString>)> {
        let configuration = self.system.configuration();
        let mut conf = self.conf.as_ref().map(|conf| conf.as_os_str().to_owned());
        let mut changes = Vec::new();
        for (name, value) in own {
            if configuration.is_some_and(|configuration| name == configuration) {
                conf.get_or_insert(value);
            } else if self.system.is_of_a_process(&name) || is_of_a_language(&name) {
                changes.push((name, None));
            }
        }
        let answers = self.system.answers().iter().copied();
        changes.extend(answers.map(|(name, value)| (name.into(), Some(value.into()))));
        changes.extend(
            configuration
                .zip(conf)
                .map(|(name, conf)| (name.into(), Some(conf))),
        );
        changes
    }

    /// Runs these commands; returns what each has printed.
    ///
    /// # Errors
    /// Those of [`Batch::run`], for the first command that has any.
    pub fn run_all(&self, commands: &[Vec<String>]) -> Result<Vec<String>, String> {
        let said = commands.iter().map(|words| Ok(self.run(words, "")?.output));
        said.collect()
    }

    /// What the batch system has, and how much of it is free.
    ///
    /// # Errors
    /// Its commands fail, or their answers are not understood; the error is one sentence.
    pub fn offer(&self) -> Result<Offer, String> {
        let answers = self.run_all(&self.system.offer_words())?;
        let mut offer = { self.system.offer(&answers) }.map_err(|error| error.to_string())?;
        // Jobs run even if the accounting database is down.
        offer.limits = self.limits().unwrap_or_else(|why| {
            say::error(format_args!("causeway: limits of accounts are not known: {why}"));
            Vec::new()
        });
        Ok(offer)
    }

    /// What the batch system allows this user's accounts.
    fn limits(&self) -> Result<Vec<Limit>, String> {
        let Some(words) = self.system.set_up_words() else {
            return Ok(Vec::new());
        };
        let set_up = self.run(&words, "")?.output;
        let user = User::from_uid(getuid()).ok().flatten();
        let user = user.ok_or("this user has no name")?.name;
        let Some(words) = self.system.limit_words(&user, &set_up) else {
            return Ok(Vec::new());
        };
        let answers = self.run_all(&words)?;
        { self.system.limits(&answers) }.map_err(|error| error.to_string())
    }

    /// The nodes of a running allocation that a holder or a user has obtained.
    ///
    /// # Errors
    /// The allocation is not running, or its nodes do not belong to the site.
    pub fn nodes(&self, id: &str, is_holders: bool) -> Result<Vec<NodeInfo>, String> {
        let listed = self.run(&self.system.list_words(), "")?.output;
        let mut all = self.system.listed(&listed).into_iter();
        if !is_holders && all.any(|listed| listed.id == id && listed.name.starts_with(NAME)) {
            return Err(format!("allocation {id} is held for another run"));
        }
        let list = self
            .system
            .running(id, &listed)
            .map_err(|error| error.to_string())?;
        let answers = self.run_all(&self.system.describe_words(id, &list))?;
        let nodes = self.system.nodes(id, &list, &answers);
        let nodes = nodes.map_err(|error| error.to_string())?;
        nodes.into_iter().map(|node| self.info(id, node)).collect()
    }

    /// Describes a node by its address in the site.
    fn info(&self, id: &str, node: Node) -> Result<NodeInfo, String> {
        let resolved: Vec<IpAddr> = match node.address.parse() {
            Ok(address) => vec![address],
            Err(_) => { (node.address.as_str(), 0).to_socket_addrs() }
                .map_err(|error| format!("address {} of node {}: {error}", node.address, node.name))?
                .map(|address| address.ip())
                .collect(),
        };
        let is_inside = |address: &&IpAddr| self.subnets.iter().any(|subnet| subnet.contains(**address));
        let address = resolved.iter().find(is_inside).copied().ok_or_else(|| {
            format!(
                "node {} of allocation {id} is at {}, which is not in the site's subnets; add its network to subnets in [site]",
                node.name, node.address
            )
        })?;
        Ok(NodeInfo {
            name: node.name,
            address,
            slots: node.slots,
        })
    }
}

/// Whether a variable chooses the language of messages or the format of numbers.
fn is_of_a_language(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    name.starts_with("LC_") || name == "LANG" || name == "LANGUAGE"
}

/// What a command has printed.
///
/// # Errors
/// The command has failed; the error is its last words, after the program's name.
pub fn judge(words: &[String], output: &Output) -> Result<Said, String> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let said = Said {
        output: text(&output.stdout),
        errors: text(&output.stderr),
    };
    if output.status.success() {
        return Ok(said);
    }
    let lines = said.errors.lines().map(str::trim);
    let last = { lines }
        .rfind(|line| !line.is_empty())
        .unwrap_or("it printed nothing");
    let last: String = last.chars().take(COMPLAINT).collect();
    let program = words.first().map_or("", String::as_str);
    // Some programs print their own name, and so does a program that a shell runs.
    let last = last.strip_prefix(&format!("{program}: ")).unwrap_or(&last);
    match program {
        SHELL => Err(format!("{last} ({})", output.status)),
        _ => Err(format!("{program}: {last} ({})", output.status)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    /// The environment of a batch system's commands, if this process had one of these variables.
    fn asked_in(system: System, conf: Option<&str>, own: &[(&str, &str)]) -> HashMap<String, String> {
        let batch = Batch {
            system,
            conf: conf.map(PathBuf::from),
            subnets: Vec::new(),
        };
        let text = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let mut all: HashMap<String, String> = own.iter().map(text).collect();
        let own = own.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        for (name, value) in batch.environment(own) {
            let name = name.into_string().unwrap();
            match value {
                Some(value) => all.insert(name, value.into_string().unwrap()),
                None => all.remove(&name),
            };
        }
        all
    }

    #[test]
    fn a_batch_system_answers_in_the_form_that_is_read_whatever_its_user_wants_to_see() {
        let own = [
            ("PATH", "/usr/bin"),
            ("SQUEUE_FORMAT", "%i"),
            ("SLURM_TIME_FORMAT", "relative"),
            ("SBATCH_TIMELIMIT", "1"),
            ("SLURM_CONF", "/etc/one.conf"),
            ("LC_TIME", "de_DE.UTF-8"),
            ("LC_ALL", "de_DE.UTF-8"),
            ("LANGUAGE", "de"),
        ];
        let all = asked_in(System::Slurm, None, &own);
        let has = |name: &str| all.get(name).map(String::as_str);
        assert_eq!(has("SLURM_TIME_FORMAT"), Some("%s"));
        assert_eq!((has("LC_ALL"), has("PATH")), (Some("C"), Some("/usr/bin")));
        assert_eq!(has("SLURM_CONF"), Some("/etc/one.conf"));
        assert_eq!(all.len(), 4, "{all:?}");
        let all = asked_in(System::Slurm, Some("/etc/site.conf"), &own);
        assert_eq!(all["SLURM_CONF"], "/etc/site.conf", "the site's own comes first");
        let own = [
            ("PBS_DEFAULT", "other"),
            ("TZ", "Europe/Paris"),
            ("LANG", "fr_FR"),
        ];
        let all = asked_in(System::Pbs, None, &own);
        assert_eq!(
            (all["TZ"].as_str(), all["LC_ALL"].as_str(), all.len()),
            ("UTC", "C", 2)
        );
        let all = asked_in(
            System::Oar,
            None,
            &[("OARDO_USER", "other"), ("HOME", "/home/ada")],
        );
        assert_eq!(
            (all["LC_ALL"].as_str(), all["HOME"].as_str(), all.len()),
            ("C", "/home/ada", 2)
        );
    }
}
