//! Runs the data test on this grid's own nodes: `causeway run` starts it with the user's MPI, and a step
//! shows its result.
//!
//! It is for MPIs and networks that nobody has tested. Whatever goes wrong through Causeway is tried once
//! more on this host without it, because the MPI itself may be at fault.

use super::Subject;
use super::steps::Step;
use causeway_control::NodeInfo;
use causeway_host::output::{Beyond, Output};
use causeway_host::say;
use causeway_launchers::launcher::Launcher;
use causeway_launchers::mpi_programs::MpiProgram;
use causeway_mpis::versions;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Time that a job has to start and to end, beyond the duration of the test itself: a large message of the
/// last turn may be crossing a slow link.
const GRACE: Duration = Duration::from_secs(90);

/// Time that `causeway run` has to end what it started once it is told to.
const ENDING: Duration = Duration::from_secs(15);

/// How long the test is tried without Causeway if something was wrong.
const ALONE_SECONDS: u32 = 15;

/// Most ranks at a site: more would show nothing new.
const MAX_RANKS: u32 = 8;

/// The most that is kept of the test's output.
const OUTPUT_BYTES: u64 = 256 * 1024;

/// Number of wrong cases that the step names.
const TOLD: usize = 3;

/// See the module. `seconds` is the duration of the test.
pub fn look(subject: &Subject, wanted: Option<&OsStr>, seconds: u32) -> Step {
    let word = wanted.unwrap_or(OsStr::new("mpirun"));
    let own = match std::env::current_exe() {
        Ok(own) => own,
        Err(error) => return Step::fail("data", error.to_string(), "is /proc mounted?"),
    };
    let launcher = match Launcher::find(word) {
        Ok(launcher) => launcher,
        Err(error) => {
            return Step::fail(
                "data",
                error.to_string(),
                "name the MPI's launcher, as in --mpi mpirun",
            );
        }
    };
    let Some(status) = subject.status() else {
        return Step::fail(
            "data",
            "no gateway answers on this host",
            "start 'causeway gateway'",
        );
    };
    let program = MpiProgram::new(&own, "data", &launcher);
    if let Some(file) = program.missing() {
        let remedy =
            "put it beside causeway on every node ('make build' makes it where the MPI's headers are)";
        return Step::fail("data", format!("{} is missing", file.display()), remedy);
    }
    let reached = status.sites.iter().filter(|site| site.unreachable.is_none());
    let nodes = reached.filter_map(|site| Some((site.name.as_str(), site.info.as_ref()?.nodes.as_slice())));
    let placed = placement(nodes);
    if placed.is_empty() {
        return Step::fail(
            "data",
            "no site that can be reached has a node",
            "name nodes with --node",
        );
    }
    Test {
        own,
        launcher,
        program,
        placed,
        seconds,
    }
    .step()
}

/// Ranks for each site: one more than it has nodes, as far as slots allow, so that two ranks share a node.
fn placement<'a>(sites: impl Iterator<Item = (&'a str, &'a [NodeInfo])>) -> Vec<(String, u32)> {
    let wish = |nodes: &[NodeInfo]| {
        let slots: u32 = nodes.iter().map(|node| node.slots).sum();
        (nodes.len() as u32 + 1).min(MAX_RANKS).min(slots)
    };
    let all = sites.map(|(name, nodes)| (name.to_owned(), wish(nodes)));
    all.filter(|(_, ranks)| *ranks > 0).collect()
}

struct Test {
    own: PathBuf,
    launcher: Launcher,
    program: MpiProgram,
    placed: Vec<(String, u32)>,
    seconds: u32,
}

/// How a run of the test ended.
enum Ran {
    /// The test printed its closing line; and the first cases that were wrong.
    Said {
        closing: String,
        wrong: Vec<String>,
    },
    /// The test ended without its closing line; this is the last line that it printed.
    Broken(String),
    Late,
    NotStarted(String),
}

impl Test {
    fn step(&self) -> Step {
        let known = versions::known(self.launcher.mpi, &self.launcher.version);
        let sites: Vec<String> = self
            .placed
            .iter()
            .map(|(name, n)| format!("{name}={n}"))
            .collect();
        let ranks: u32 = self.placed.iter().map(|(_, ranks)| ranks).sum();
        say::error(format_args!(
            "causeway check: testing data for {} s: {ranks} ranks, {}",
            self.seconds,
            sites.join(",")
        ));
        let mut command = Command::new(&self.own);
        command.args(["run", "--sites", &sites.join(",")]);
        if known.is_none() {
            command.arg("--tune-untested");
        }
        command.arg("--").arg(&self.launcher.path);
        self.test(&mut command, ranks, self.seconds);
        self.told(run(command, Duration::from_secs(self.seconds.into()) + GRACE))
    }

    /// The words that start the test, after the launcher.
    fn test(&self, command: &mut Command, ranks: u32, seconds: u32) {
        let known = versions::known(self.launcher.mpi, &self.launcher.version);
        command.arg("-n").arg(ranks.to_string());
        command.args(self.program.words());
        command.args(["--seconds", &seconds.to_string()]);
        command.args(known.map_or("", |known| &known.data).split_whitespace());
    }

    fn told(&self, ran: Ran) -> Step {
        let name = format!("data with {} {}", self.launcher.mpi.name(), self.launcher.version);
        match ran {
            Ran::Said { closing, wrong } if wrong.is_empty() && closing.ends_with("all right") => {
                Step::ok(name, closing)
            }
            Ran::Said { closing, wrong } => self.amiss(name, format!("{closing}\n{}", wrong.join("\n"))),
            Ran::Broken(last) => self.amiss(name, format!("the test failed: {last}")),
            Ran::Late => {
                let limit = u64::from(self.seconds) + GRACE.as_secs();
                self.amiss(
                    name,
                    format!("the test was still running after {limit} s, and was stopped"),
                )
            }
            Ran::NotStarted(why) => Step::fail(name, why, "can causeway be executed?"),
        }
    }

    /// Finds out whose fault it is: runs the same on this host, without any part of Causeway.
    fn amiss(&self, name: String, detail: String) -> Step {
        let mut command = Command::new(&self.launcher.path);
        command.env("PATH", Launcher::search_path(&self.launcher.path));
        self.test(&mut command, 2, ALONE_SECONDS);
        let limit = Duration::from_secs(ALONE_SECONDS.into()) + GRACE;
        let alone = |what: &str| format!("{detail}\n2 ranks on this host without Causeway: {what}");
        let own_fault = "the MPI makes errors without Causeway, too; ask its users which";
        match run(command, limit) {
            Ran::Said { closing, .. } if closing.ends_with("all right") => Step::fail(
                name,
                alone(&closing),
                "do not use this MPI with Causeway, and report this output to us",
            ),
            Ran::Said { closing, .. } => Step::warn(name, alone(&closing), own_fault),
            Ran::Broken(last) => Step::warn(name, alone(&last), own_fault),
            Ran::Late => Step::warn(name, alone("it did not end in time either"), own_fault),
            Ran::NotStarted(why) => Step::fail(name, alone(&why), "try it there by hand"),
        }
    }
}

/// Runs a command until it ends or the deadline passes; Ctrl-C reaches it, too.
fn run(mut command: Command, limit: Duration) -> Ran {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    causeway_host::processes::prepare(&mut command);
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            return Ran::NotStarted(format!("{}: {error}", command.get_program().to_string_lossy()));
        }
    };
    let mut output = Output::of(&mut child, OUTPUT_BYTES, Beyond::Forgotten);
    match output.all(Instant::now() + limit) {
        Some(said) => match child.wait() {
            Ok(status) => read(&said.concat(), status),
            Err(error) => Ran::Broken(error.to_string()),
        },
        None => {
            let _ = kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM);
            if output.all(Instant::now() + ENDING).is_none() {
                let _ = child.kill();
            }
            let _ = child.wait();
            Ran::Late
        }
    }
}

fn read(text: &str, status: ExitStatus) -> Ran {
    let lines = || {
        text.lines()
            .filter_map(|line| Some(&line[line.find("data: ")?..]))
    };
    let wrong = lines().filter(|line| line.starts_with("data: case ") || line.starts_with("data: call "));
    let wrong: Vec<String> = wrong.take(TOLD).map(str::to_owned).collect();
    let closing = lines().find(|line| line.contains(" ranks, seed "));
    match closing {
        Some(closing) if wrong.is_empty() && !status.success() => {
            Ran::Broken(format!("{} ({status})", closing.trim_start_matches("data: ")))
        }
        Some(closing) => Ran::Said {
            closing: closing.trim_start_matches("data: ").to_owned(),
            wrong,
        },
        None => {
            let last = text
                .lines()
                .rfind(|line| !line.trim().is_empty())
                .unwrap_or_default();
            let first = wrong.first().map_or(last, String::as_str);
            Ran::Broken(format!(
                "{} ({status})",
                first.chars().take(300).collect::<String>()
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    fn node(slots: u32) -> NodeInfo {
        NodeInfo {
            name: "n".into(),
            address: [10, 1, 0, 1].into(),
            slots,
        }
    }

    #[test]
    fn a_site_has_one_rank_more_than_nodes_as_far_as_its_slots_allow() {
        let (two, small, many) = (vec![node(4), node(4)], vec![node(1)], vec![node(16); 20]);
        let sites = [
            ("a", &two[..]),
            ("b", &small[..]),
            ("c", &many[..]),
            ("d", &[][..]),
        ];
        let placed = placement(sites.into_iter());
        assert_eq!(
            placed,
            [("a".into(), 3), ("b".into(), 1), ("c".into(), MAX_RANKS)]
        );
    }

    #[test]
    fn what_the_test_says_is_told_from_how_it_ended() {
        let (good, bad) = (ExitStatus::from_raw(0), ExitStatus::from_raw(256));
        let right = "data: 4 ranks, seed 1, 21 kinds: 0 wrong, all right\n";
        assert!(matches!(read(right, good), Ran::Said { wrong, .. } if wrong.is_empty()));
        assert!(matches!(read(right, bad), Ran::Broken(_)));
        let wrong = "data: case 7, rank 0 to 1: 3 bytes are wrong\ndata: 4 ranks, seed 1: 1 wrong\n";
        assert!(matches!(read(wrong, bad), Ran::Said { wrong, .. } if wrong.len() == 1));
        let crashed = "data: MPI_REAL16 left out\nsignal 11\n\n";
        assert!(matches!(read(crashed, bad), Ran::Broken(last) if last.contains("signal 11")));
    }
}
