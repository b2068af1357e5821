//! A head node as `causeway up` reaches it: through ssh, or directly if it is this host.

use causeway_host::{for_any_shell, own_file};
use causeway_run::batch::commands::judge;
use std::ffi::OsString;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

/// How long a step may take; copying over a slow line may take longer.
pub const PATIENCE: Duration = Duration::from_secs(120);
pub const COPY_PATIENCE: Duration = Duration::from_secs(1800);

/// Most bytes that a command there may print: whoever has that host must not be able to fill this one's
/// memory.
const MOST_SAID: u64 = 1 << 20;

/// The word for this host in place of a destination for ssh.
pub const THIS_HOST: &str = ".";

/// One head node.
#[derive(Debug, Clone)]
pub struct Host {
    /// The name of its site.
    pub site: String,
    /// Where ssh finds it: `[USER@]HOST`, or [`THIS_HOST`].
    pub destination: String,
    /// The directory in which ssh keeps its connections, so that a password is asked for only once.
    pub connections: std::path::PathBuf,
}

impl Host {
    /// Whether it is this host.
    pub fn is_here(&self) -> bool {
        self.destination == THIS_HOST
    }

    /// The words that run a line of sh on the host.
    fn words(&self, line: &str) -> Vec<OsString> {
        if self.is_here() {
            return ["sh", "-c", line].map(OsString::from).into();
        }
        let mut path = OsString::from("ControlPath=");
        path.push(self.connections.join("%C"));
        let mut words = [
            "ssh",
            "-T",
            "-o",
            "ControlMaster=auto",
            "-o",
            "ControlPersist=60",
            "-o",
        ]
        .map(OsString::from)
        .to_vec();
        words.push(path);
        // The user may have any shell there.
        let line = for_any_shell(line);
        words.extend(["--".into(), self.destination.clone().into(), line.into()]);
        words
    }

    fn command(&self, line: &str) -> Command {
        let words = self.words(line);
        let mut command = Command::new(&words[0]);
        command
            .args(&words[1..])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        command
    }

    /// Runs a line of sh on the host, with this standard input, and returns what it prints.
    ///
    /// # Errors
    /// The command fails, or takes longer than `patience`; the error is a sentence.
    pub fn run(&self, line: &str, input: &[u8], patience: Duration) -> Result<String, String> {
        let mut command = self.command(line);
        command.stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| self.failed(&error))?;
        let stdin = child.stdin.take();
        let input = input.to_vec();
        std::thread::spawn(move || {
            // A command that does not read its input reports why.
            stdin.map(|mut stdin| stdin.write_all(&input))
        });
        self.said(line, child, patience)
    }

    /// Runs a line of sh on the host whose input is what this child prints.
    ///
    /// # Errors
    /// Those of [`Host::run`].
    pub fn feed(&self, line: &str, from: &mut Child, patience: Duration) -> Result<String, String> {
        let output = from.stdout.take().ok_or("it has no output")?;
        let mut command = self.command(line);
        command.stdin(output).stderr(Stdio::piped());
        let child = command.spawn().map_err(|error| self.failed(&error))?;
        self.said(line, child, patience)
    }

    /// Starts a line of sh on the host that runs until its standard input ends.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(&self, line: &str) -> Result<Child, String> {
        let mut command = self.command(line);
        command.stderr(Stdio::null());
        command.spawn().map_err(|error| self.failed(&error))
    }

    fn said(&self, line: &str, child: Child, patience: Duration) -> Result<String, String> {
        let process = child.id();
        let (ended, end) = channel();
        std::thread::spawn(move || drop(ended.send(output_of(child))));
        let Ok(output) = end.recv_timeout(patience) else {
            let process = nix::unistd::Pid::from_raw(process.cast_signed());
            let _ = nix::sys::signal::kill(process, nix::sys::signal::Signal::SIGKILL);
            return Err(format!(
                "{}: '{line}' has not ended within {patience:?}",
                self.site
            ));
        };
        let output = output.map_err(|error| self.failed(&error))?;
        judge(std::slice::from_ref(&self.site), &output).map(|said| said.output)
    }

    fn failed(&self, error: &std::io::Error) -> String {
        match self.is_here() {
            true => format!("{}: run sh: {error}", self.site),
            false => format!("{}: run ssh: {error}", self.site),
        }
    }

    /// The name by which ssh itself looks for the host, after reading the user's configuration; `None` if ssh
    /// goes through another host.
    pub fn dialled_name(&self) -> Option<String> {
        if self.is_here() {
            return None;
        }
        let output = Command::new("ssh")
            .args(["-G", "--", &self.destination])
            .output()
            .ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let value = |key: &str| {
            text.lines()
                .find_map(|line| line.strip_prefix(key)?.strip_prefix(' '))
        };
        let is_behind = |key: &str| value(key).is_some_and(|value| value != "none");
        (!is_behind("proxyjump") && !is_behind("proxycommand"))
            .then(|| value("hostname").map(str::to_owned))
            .flatten()
    }
}

/// What a child prints, and how it ends. If it prints too much, it is stopped.
fn output_of(mut child: Child) -> std::io::Result<Output> {
    let stderr = child.stderr.take();
    let stderr = std::thread::spawn(move || stderr.map_or(Ok(Vec::new()), bounded));
    let stdout = child.stdout.take().map_or(Ok(Vec::new()), bounded);
    if stdout.is_err() {
        let _ = child.kill();
    }
    let stderr = stderr.join().unwrap_or_else(|_| Ok(Vec::new()));
    let status = child.wait()?;
    Ok(Output {
        status,
        stdout: stdout?,
        stderr: stderr?,
    })
}

fn bounded(from: impl Read) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(MOST_SAID + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > MOST_SAID {
        true => Err(std::io::Error::other(format!(
            "it printed more than {MOST_SAID} bytes"
        ))),
        false => Ok(bytes),
    }
}

/// A directory for ssh's connections. Its path is short, because that of a socket must be.
///
/// # Errors
/// Errors of the file system.
pub fn connections() -> std::io::Result<tempfile::TempDir> {
    match own_file::directory("cw-", &std::env::temp_dir()) {
        Ok(directory) if directory.path().as_os_str().len() < 40 => Ok(directory),
        _ => own_file::directory("cw-", Path::new("/tmp")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn here() -> Host {
        Host {
            site: "rennes".to_owned(),
            destination: THIS_HOST.to_owned(),
            connections: "/tmp/c".into(),
        }
    }

    #[test]
    fn a_line_runs_with_its_input_and_its_failure_has_its_last_words() {
        let said = here().run("cat; echo \"it's $((1 + 1))\"", b"token\n", PATIENCE);
        assert_eq!(said.as_deref(), Ok("token\nit's 2\n"));
        let failed = here().run("echo no room >&2; exit 3", b"", PATIENCE).unwrap_err();
        assert_eq!(failed, "rennes: no room (exit status: 3)");
        let late = here().run("sleep 60", b"", Duration::from_millis(1)).unwrap_err();
        assert!(late.contains("has not ended"), "{late}");
        for line in ["yes", "yes >&2"] {
            let endless = here().run(line, b"", PATIENCE).unwrap_err();
            assert!(
                endless.contains("it printed more than 1048576 bytes"),
                "{endless}"
            );
        }
    }

    #[test]
    fn a_line_reaches_the_other_host_as_one_word() {
        let far = Host {
            destination: "ada@login".to_owned(),
            ..here()
        };
        let words = far.words("echo \"a  b\"");
        assert_eq!(
            words[words.len() - 3..],
            ["--", "ada@login", "exec /bin/sh -c 'echo \"a  b\"'"]
        );
    }
}
