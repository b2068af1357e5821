//! `causeway run --send app --send input/ --fetch 'out-*'`: the files of a job, for sites whose homes are
//! separate.
//!
//! On each node a keeper makes the job's directory, which has the same path everywhere, and removes it when
//! the job ends, however it ends: the keeper is a process of the job. If nodes share a home, the first keeper
//! makes it for all. Files are sent and fetched through the tunnel as standard input and output of `tar` on
//! the nodes. So a site permits no more than the job's programs could do there. Scripts are sent in the same
//! way: no command line then shows other users of a host the name of the directory, and any login shell will
//! do.

pub mod again;
mod archive;
mod arrived;
mod beneath;
pub mod coming;
mod failures;
mod fetching;
mod keeper;
mod left;
mod long_names;
mod parcel;
mod progress;
mod sending;
mod sent;

use super::error::RunError;
use super::meant::FilesWanted;
use causeway_control::{self as control, JobReply};
use causeway_host::first_line::first_line;
use causeway_host::{for_any_shell, say};
use causeway_remote::tree;
use causeway_wire::env::TOKEN;
use coming::Asked;
use fetching::NotFetched;
use keeper::{KEEPER, MAKE};
use parcel::Parcel;
use sent::Sent;
use std::env::current_dir;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a keeper may take to make its directory, and to remove it.
const KEEPS_WITHIN: Duration = Duration::from_secs(60);
const REMOVES_WITHIN: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// How many nodes are asked at once.
const AT_ONCE: usize = 16;

/// A host that has the job's directory.
struct Host {
    /// The host's site, for the names of fetched files.
    site: String,
    /// The name by which a launcher calls the node; `None` for this host.
    node: Option<String>,
    keeper: Child,
    /// Whether this keeper has made the directory; if not, another host's keeper has.
    is_made: bool,
    /// Most bytes that another site may send there.
    bound: Option<u64>,
}

/// The job's directories. Dropping this removes them.
pub struct Files {
    name: String,
    token: String,
    program: PathBuf,
    /// The user's current directory.
    here: PathBuf,
    hosts: Vec<Host>,
    fetch: Vec<String>,
}

/// Copies the files to this host and to these nodes, each with its site; `None` if there is nothing to send.
///
/// # Errors
/// A path or pattern that leads elsewhere; a node that does not accept the files.
pub fn send(
    wanted: &FilesWanted,
    token: &str,
    own_site: &str,
    nodes: &[(String, String)],
) -> Result<Option<Files>, RunError> {
    if wanted.send.is_empty() {
        return Ok(None);
    }
    let here = current_dir().map_err(|error| failed("read the current directory", error))?;
    let mut files = Files {
        name: name()?,
        token: token.to_owned(),
        program: std::env::current_exe().map_err(RunError::Own)?,
        here,
        hosts: Vec::new(),
        fetch: wanted.fetch.clone(),
    };
    let own = (own_site.to_owned(), None);
    let far = nodes
        .iter()
        .map(|(site, node)| (site.clone(), Some(node.clone())));
    let all: Vec<(String, Option<String>)> = std::iter::once(own).chain(far).collect();
    let mut sites = Vec::new();
    for (site, _) in &all {
        if !sites.contains(&site.as_str()) {
            sites.push(site.as_str());
        }
    }
    let sent = read(wanted)?;
    Sent::check(&sent, &sites)?;
    for some in all.chunks(AT_ONCE) {
        files.keep(some, MAKE)?;
    }
    files.copy_out(sent, !wanted.send_anew)?;
    Ok(Some(files))
}

/// The same for a run whose nodes Causeway chooses.
///
/// # Errors
/// Those of [`send`]; the user has chosen the nodes.
pub fn send_to_chosen(
    wanted: &FilesWanted,
    job: &JobReply,
    own_site: &str,
    nodes: Vec<(String, String)>,
) -> Result<Option<Files>, RunError> {
    if nodes.is_empty() && !wanted.send.is_empty() {
        return Err(RunError::Files(
            "--send: name the sites with --sites, and not hosts to the launcher".to_owned(),
        ));
    }
    send(wanted, &job.token, own_site, &nodes)
}

/// Where a run starts its processes: in the job's directory, or in the user's current one.
pub fn directory(files: Option<&Files>) -> PathBuf {
    files.map_or_else(|| current_dir().unwrap_or_default(), Files::directory)
}

/// Fetches the files of a job with this status. Returns that status, or that of a signal that has stopped the
/// fetching.
///
/// # Errors
/// Something could not be fetched, or nothing matches, after a job that ended well.
pub fn fetched(files: Option<&Files>, status: u8, asked: Asked<'_>) -> Result<u8, RunError> {
    let Some(Err(NotFetched { why, signal })) = files.map(|files| files.fetch(asked)) else {
        return Ok(status);
    };
    let status = match (status, signal) {
        (0, None) => return Err(RunError::Files(why)),
        (0, Some(signal)) => 128 + signal as u8,
        // The job's own status says more.
        (status, _) => status,
    };
    say::error(format_args!("causeway: {why}"));
    Ok(status)
}

/// Refuses what cannot be sent or fetched, before any job is started. Relative paths begin at the current
/// directory.
///
/// # Errors
/// The first such path or pattern.
pub fn check(wanted: &FilesWanted) -> Result<(), RunError> {
    read(wanted)?;
    for pattern in &wanted.fetch {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.,+=@%/*?[]".contains(&byte);
        let is_inner = !pattern.starts_with(['/', '-']) && !pattern.split('/').any(|part| part == "..");
        if pattern.is_empty() || !is_inner || !pattern.bytes().all(is_plain) {
            return Err(RunError::Files(format!(
                "--fetch {pattern}: give a pattern of letters, digits and -_.,+=@%/*?[], without '..'"
            )));
        }
    }
    Ok(())
}

fn read(wanted: &FilesWanted) -> Result<Vec<Sent>, RunError> {
    wanted.send.iter().map(|typed| Sent::read(typed)).collect()
}

impl Files {
    /// Where the job runs, on every host.
    pub fn directory(&self) -> PathBuf {
        Path::new("/tmp").join(&self.name).join("job")
    }

    /// Has a launcher start in the directory. Launchers use the name in the variable PWD, if it is right.
    pub fn enter(&self, command: &mut Command) {
        command.current_dir(self.directory()).env("PWD", self.directory());
    }

    /// A command that runs an sh script on a host, with the directory's name in place of NAME, and the
    /// beginning of the command's standard input.
    fn script(&self, node: Option<&str>, script: &str) -> (Command, Vec<u8>) {
        let script = script.replace("NAME", &self.name).into_bytes();
        // The line is read byte by byte: what follows is the script's own input.
        let line = format!("eval \"$(dd bs=1 count={} 2>/dev/null)\"", script.len());
        let Some(node) = node else {
            let mut command = Command::new("sh");
            command.args(["-c", &line]);
            return (command, script);
        };
        let mut command = Command::new(&self.program);
        let line = for_any_shell(&line);
        command.args(["agent", "--", node, &line]);
        command
            .env(TOKEN, &self.token)
            .env(control::SOCKET_ENV, control::socket());
        (command, script)
    }

    /// Starts a keeper on each of these hosts; `words` replace BEGIN in its script.
    fn keep(&mut self, hosts: &[(String, Option<String>)], words: &str) -> Result<(), RunError> {
        let keeper = KEEPER.replace("BEGIN", words);
        let mut begun = Vec::new();
        for (site, node) in hosts {
            let (mut command, script) = self.script(node.as_deref(), &keeper);
            // Ctrl-C at a terminal must not reach the keeper.
            command
                .process_group(0)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped());
            let mut keeper = { command.spawn() }.map_err(|error| failed("start sh", error))?;
            tree::spare(&keeper);
            // If the keeper has ended, it does not answer, which is reported below.
            let _ = keeper.stdin.as_ref().map(|mut to| to.write_all(&script));
            let said = first_line(keeper.stdout.take());
            let host = Host {
                site: site.clone(),
                node: node.clone(),
                keeper,
                is_made: false,
                bound: None,
            };
            begun.push((host, said));
        }
        let until = Instant::now() + KEEPS_WITHIN;
        let mut refusal = None;
        for (mut host, said) in begun {
            let left = until.saturating_duration_since(Instant::now());
            let said = said.recv_timeout(left).unwrap_or_default();
            let mut words = said.split_whitespace();
            match words.next() {
                Some("made") => host.is_made = true,
                Some("found") => {}
                _ => refusal = Some(host.describe()),
            }
            host.bound = words.next().and_then(|bytes| bytes.parse().ok());
            self.hosts.push(host);
        }
        match refusal {
            None => Ok(()),
            Some(host) => Err(RunError::Files(format!(
                "{host} has not answered about the job's directory within {KEEPS_WITHIN:?}, or has none"
            ))),
        }
    }
}

impl Host {
    /// Tells the keeper what to do with the directory. A keeper that has ended has removed it.
    fn tell(&self, word: &[u8]) {
        let _ = self.keeper.stdin.as_ref().map(|mut to| to.write_all(word));
    }

    fn describe(&self) -> String {
        match &self.node {
            Some(node) => format!("node {node} of {}", self.site),
            None => "this host".to_owned(),
        }
    }

    /// Checks that a parcel does not exceed the site's limit.
    fn accepts(&self, parcel: &Parcel) -> Result<(), RunError> {
        let (site, node) = (&self.site, self.describe());
        let entries = parcel.without(site, &[]);
        let bytes: u64 = entries.iter().map(|entry| entry.bytes).sum();
        match self.bound {
            Some(bound) if bytes > bound => Err(RunError::Files(format!(
                "--send: {bytes} bytes are too many for {node}: whoever runs {site} lets other sites' jobs send \
                 {bound}, by files in [accept] of its gateway.toml"
            ))),
            _ => Ok(()),
        }
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        for host in &mut self.hosts {
            drop(host.keeper.stdin.take());
        }
        let until = Instant::now() + REMOVES_WITHIN;
        for host in &mut self.hosts {
            while matches!(host.keeper.try_wait(), Ok(None)) && Instant::now() < until {
                std::thread::sleep(LOOK_EVERY);
            }
            let _ = host.keeper.kill();
            let _ = host.keeper.wait();
        }
    }
}

fn name() -> Result<String, RunError> {
    let mut bytes = [0_u8; 8];
    getrandom::fill(&mut bytes).map_err(|error| RunError::Files(format!("random bytes: {error}")))?;
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("causeway-files-{digits}"))
}

fn failed(what: &str, error: io::Error) -> RunError {
    RunError::Files(format!("{what}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(send: &[&str], fetch: &[&str]) -> FilesWanted {
        FilesWanted {
            send: send.iter().map(PathBuf::from).collect(),
            fetch: fetch.iter().map(|pattern| (*pattern).to_owned()).collect(),
            send_anew: false,
        }
    }

    #[test]
    fn no_command_line_has_the_directorys_name_before_it_is_made_nor_a_line_that_csh_cannot_read() {
        let files = Files {
            name: "causeway-files-0123".to_owned(),
            token: "token".to_owned(),
            program: "causeway".into(),
            here: "/".into(),
            hosts: Vec::new(),
            fetch: Vec::new(),
        };
        for node in [None, Some("nancy-1")] {
            let (command, script) = files.script(node, KEEPER);
            let words = command
                .get_args()
                .chain(command.get_envs().filter_map(|(_, value)| value));
            for word in words.map(|word| word.to_string_lossy().into_owned()) {
                assert!(!word.contains("files") && !word.contains('\n'), "{word}");
            }
            assert!(
                String::from_utf8(script)
                    .unwrap()
                    .contains("/tmp/causeway-files-0123")
            );
        }
        let (mut command, script) = files.script(None, "read -r line; echo \"$line of NAME\"");
        let mut sh = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut to = sh.stdin.take().unwrap();
        to.write_all(&[&script[..], b"what follows\nmore\n"].concat())
            .unwrap();
        drop(to);
        let output = sh.wait_with_output().unwrap();
        assert_eq!(output.stdout, b"what follows of causeway-files-0123\n");
    }

    #[test]
    fn only_what_is_below_the_directory_is_sent_and_only_a_plain_pattern_is_fetched() {
        // Tests run in the directory of their crate.
        check(&wanted(&["src", "./Cargo.toml"], &["out-*", "logs/[0-9]?.txt"])).unwrap();
        assert!(check(&wanted(&["src", "nowhere"], &[])).is_err());
        for pattern in [
            "/etc/passwd",
            "../*",
            "a/../..",
            "$(id)",
            "a b",
            "-x",
            "a;b",
            "",
            "`id`",
        ] {
            assert!(check(&wanted(&["src"], &[pattern])).is_err(), "{pattern}");
        }
    }
}
