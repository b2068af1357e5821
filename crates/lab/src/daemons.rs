//! Starts the daemons of a batch system on the nodes of a site. They are processes of the nodes, and end with
//! these.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::enter::{NodeCommand, Session, Stdio};
use crate::error::LabError;
use crate::plan::{Node, SitePlan};
use crate::signals::Signals;
use crate::state::LabState;

/// From the first daemon until nodes are idle, Slurm takes a second and OpenPBS six; a busy machine may be
/// ten times as slow.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

/// How often the site is asked whether its nodes are idle.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// When it must be finished, and the signals that end it earlier.
pub(crate) type Limit<'a> = (Instant, &'a Signals);

/// The batch system that they belong to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Daemons {
    /// Its name, for messages.
    pub(crate) title: &'static str,
    /// The directory below the lab's state directory that has the files of its sites.
    pub(crate) place: &'static str,
}

impl Daemons {
    /// The directory for a site's daemons, below the lab's state directory.
    pub(crate) fn place(self, dir: &Path, site: &str) -> PathBuf {
        dir.join(self.place).join(site)
    }

    /// Runs a script that starts daemons on a node.
    ///
    /// # Errors
    /// The program fails, or takes too long.
    pub(crate) fn run(
        self,
        state: &LabState,
        node: &Node,
        script: &str,
        limit: Limit<'_>,
    ) -> Result<(), LabError> {
        if self.succeeds(state, node, script, limit)? {
            return Ok(());
        }
        Err(LabError::Setup {
            step: format!("start {} on {}", self.title, node.name),
            reason: last_lines(&self.log(state, node)),
        })
    }

    /// Waits until a script on the site's head node, which looks for idle nodes, succeeds.
    ///
    /// # Errors
    /// The script does not succeed in time; the reason is in this log.
    pub(crate) fn await_nodes(
        self,
        state: &LabState,
        site: &SitePlan,
        (script, log): (&str, &str),
        (until, signals): Limit<'_>,
    ) -> Result<(), LabError> {
        let Some(head) = site.nodes.first() else {
            return Ok(());
        };
        while !self.succeeds(state, head, script, (until, signals))? {
            if Instant::now() > until {
                let log = self.place(&state.dir, &site.site.name).join(log);
                return Err(LabError::Setup {
                    step: format!("start {} at {}", self.title, site.site.name),
                    reason: format!("its nodes are not idle within {DEADLINE:?}: {}", last_lines(&log)),
                });
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }

    fn log(self, state: &LabState, node: &Node) -> PathBuf {
        self.place(&state.dir, &node.site)
            .join(format!("{}.start", node.name))
    }

    /// Runs a script to its end. Its daemons do not delay that, because their output goes to a file.
    fn succeeds(
        self,
        state: &LabState,
        node: &Node,
        script: &str,
        (until, signals): Limit<'_>,
    ) -> Result<bool, LabError> {
        let log = self.log(state, node);
        let setup = |error: io::Error| LabError::Setup {
            step: format!("start {}", self.title),
            reason: error.to_string(),
        };
        let output = OpenOptions::new()
            .create(true)
            .append(true)
            .open(log)
            .map_err(setup)?;
        let errors = output.try_clone().map_err(setup)?;
        let mut child = state.spawn(NodeCommand {
            node: node.name.clone(),
            argv: vec!["/bin/sh".into(), "-c".into(), script.into()],
            env: vec![("PATH".into(), "/usr/sbin:/usr/bin:/sbin:/bin".into())],
            stdin: Stdio::Null,
            stdout: Stdio::Fd(output.into()),
            stderr: Stdio::Fd(errors.into()),
            session: Session::Own,
            ..NodeCommand::default()
        })?;
        loop {
            if let Some(status) = child.try_wait().map_err(setup)? {
                return Ok(status.success());
            }
            let signal = signals.next().map(|signal| LabError::Signal(signal.number));
            let late = (Instant::now() > until).then(|| LabError::Deadline {
                what: format!("{} on {}", self.title, node.name),
                seconds: DEADLINE.as_secs(),
            });
            if let Some(why) = signal.or(late) {
                let _ = child.signal(libc::SIGKILL);
                let _ = child.wait();
                return Err(why);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn last_lines(file: &Path) -> String {
    let text = fs::read_to_string(file).unwrap_or_default();
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    match &lines[lines.len().saturating_sub(3)..] {
        [] => format!("{} has no line", file.display()),
        last => last.join("; "),
    }
}
