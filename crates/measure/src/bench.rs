//! `make bench`: direct and Causeway in turn (A B A B) in one lab whose sites do have a route, so that both are
//! possible; results/DATE-NAME/ gets every row, the commands, versions and host, a table and an HTML page.

use crate::pingpong;
use crate::program::{Program, ProgramError, io, repository};
use crate::results::{Results, Way};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// `causeway-measure bench`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Directory of the results; by default results/DATE-rennes-nancy.
    #[arg(long)]
    out: Option<PathBuf>,
    /// Fewer and smaller messages: to see whether it works, not what it gives.
    #[arg(long)]
    quick: bool,
    /// Set by the bench itself for its part on the head node of the lab.
    #[arg(long, hide = true)]
    inside: bool,
}

/// Why there are no results.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// A program of the bench.
    #[error("{0}")]
    Program(#[from] ProgramError),
    /// The rows of the ping-pong.
    #[error("{0}")]
    PingPong(#[from] pingpong::NotPingPong),
}

/// Launchers measured, with the directory of their programs.
const MPIS: [(&str, &str, &str); 2] = [
    ("Open MPI 4.1.4", "mpirun.openmpi", "debian-openmpi"),
    ("MPICH 4.0.2", "mpirun.mpich", "debian-mpich"),
];

/// A run of the ping-pong up to 64 MB takes a minute on the emulated link; five hang.
const DEADLINE: Duration = Duration::from_secs(300);

/// Pause before each message of the idle run: longer than any retransmission timeout, after which TCP forgets.
const IDLE_MILLISECONDS: u32 = 300;

/// Times each way is started; the median counts.
const STARTS: u32 = 5;

/// As many connections as two hundred ranks open that all talk to all, half of them at each site.
const STREAMS: u32 = 10_000;

/// Runs the bench.
///
/// # Errors
/// The first program that fails, with all it printed.
pub fn main(args: &Args) -> Result<(), BenchError> {
    let out = match &args.out {
        Some(out) => out.clone(),
        None => PathBuf::from("results").join(format!("{}-rennes-nancy", today()?)),
    };
    std::fs::create_dir_all(&out).map_err(io(format!("create {}", out.display())))?;
    let out = out
        .canonicalize()
        .map_err(io(format!("find {}", out.display())))?;
    if args.inside {
        return Bench {
            inside: Inside { out },
            quick: args.quick,
        }
        .run();
    }
    let quick = if args.quick { " --quick" } else { "" };
    println!(
        "bench: direct and Causeway in turn, rennes-nancy with a route, into {}",
        out.display()
    );
    Ok(lab(
        &format!("bench{quick}"),
        &["--routed", "true", "rennes-nancy"],
        &out,
        Duration::from_secs(3600),
    )?)
}

fn today() -> Result<String, ProgramError> {
    let output = Command::new("date")
        .args(["-u", "+%Y-%m-%d"])
        .output()
        .map_err(io("ask for the date"))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Runs this program's `task --inside --out OUT` on the head node of a lab and passes its output through.
///
/// # Errors
/// The lab cannot be started, does not end within `deadline`, or ends badly; what it said has been seen.
pub fn lab(task: &str, scenario: &[&str], out: &Path, deadline: Duration) -> Result<(), ProgramError> {
    let me = std::env::current_exe().map_err(io("find this program"))?;
    let causeway = me.with_file_name("causeway");
    // A lab of the user's own under the same name must not be in the way: the state of ours lies elsewhere.
    let state = std::env::temp_dir().join(format!(
        "causeway-{}-{}",
        task.split(' ').next().unwrap_or(task),
        std::process::id()
    ));
    std::fs::create_dir_all(&state).map_err(io(format!("create {}", state.display())))?;
    let status = Command::new("timeout")
        .arg("--foreground")
        .arg("--kill-after=20")
        .arg(deadline.as_secs().to_string())
        .arg(&causeway)
        .args(["lab", "run"])
        .args(scenario)
        .arg("--")
        .arg(&me)
        .args(task.split(' '))
        .args(["--inside", "--out"])
        .arg(out)
        .env("XDG_RUNTIME_DIR", &state)
        .status()
        .map_err(io(format!("start {}", causeway.display())));
    let _ = std::fs::remove_dir_all(&state);
    let status = status?;
    if status.success() {
        return Ok(());
    }
    Err(ProgramError::Failed {
        command: format!(
            "causeway lab run {} -- causeway-measure {task}",
            scenario.join(" ")
        ),
        directory: out.display().to_string(),
        status,
        stdout: "(above)".into(),
        stderr: "(above)".into(),
    })
}

/// On the head node of the lab.
pub struct Inside {
    /// Where results go.
    pub out: PathBuf,
}

impl Inside {
    /// What `causeway status --json` says; `null` where it says something else.
    ///
    /// # Errors
    /// It fails.
    pub fn status(directory: &Path) -> Result<serde_json::Value, ProgramError> {
        let ended = Program::new("causeway status --json", directory, Duration::from_secs(20)).succeed()?;
        Ok(serde_json::from_str(&ended.stdout).unwrap_or_default())
    }

    fn scratch(&self, name: &str) -> Result<PathBuf, ProgramError> {
        let directory = self.out.join("raw").join(name);
        std::fs::create_dir_all(&directory).map_err(io(format!("create {}", directory.display())))?;
        Ok(directory)
    }
}

struct Bench {
    inside: Inside,
    quick: bool,
}

impl Bench {
    fn run(self) -> Result<(), BenchError> {
        let mut results = Results::default();
        for (name, launcher, programs) in MPIS {
            for run in 0..if self.quick { 1 } else { 2 } {
                for way in Way::BOTH {
                    self.pingpong(&mut results, (name, launcher, programs), way, run, 0)?;
                }
            }
            for way in Way::BOTH {
                self.pingpong(
                    &mut results,
                    (name, launcher, programs),
                    way,
                    0,
                    IDLE_MILLISECONDS,
                )?;
            }
            self.starts(&mut results, name, launcher)?;
        }
        self.streams(&mut results)?;
        let launchers: Vec<_> = MPIS.iter().map(|(_, launcher, _)| *launcher).collect();
        results.write(&self.inside.out, &crate::host::describe(&launchers))?;
        println!("bench: {}", self.inside.out.join("README.md").display());
        Ok(())
    }

    fn pingpong(
        &self,
        results: &mut Results,
        (name, launcher, programs): (&str, &str, &str),
        way: Way,
        run: u32,
        idle: u32,
    ) -> Result<(), BenchError> {
        let label = format!(
            "{programs}-{}-{run}{}",
            way.name(),
            if idle > 0 { "-idle" } else { "" }
        );
        println!(
            "bench: ping-pong, {name}, {}, run {run}, pause before each message {idle} ms",
            way.name()
        );
        let directory = self.inside.scratch(&label)?;
        let (most, count) = match (self.quick, idle > 0) {
            (true, _) => (1 << 20, 5),
            (false, true) => (4 << 20, 10),
            (false, false) => (64 << 20, 30),
        };
        let command = format!(
            "causeway run {} --sites rennes=1,nancy=1 -- {launcher} -n 2 {} {} rows.csv --most {most} --count {count} \
             --idle {idle}",
            way.option(),
            repository().join("tests/mpi/own-core.sh").display(),
            program(programs, "pingpong")
        );
        Program::new(&command, &directory, DEADLINE).succeed()?;
        results.command(&command);
        let rows = directory.join("rows.csv");
        let text = std::fs::read_to_string(&rows).map_err(io(format!("read {}", rows.display())))?;
        Ok(results.pingpong(name, way, run, idle, &text)?)
    }

    fn starts(&self, results: &mut Results, name: &str, launcher: &str) -> Result<(), BenchError> {
        println!("bench: start of 4 ranks, {name}, {STARTS} times each way");
        for run in 0..STARTS {
            for way in Way::BOTH {
                let directory = self
                    .inside
                    .scratch(&format!("start-{launcher}-{}-{run}", way.name()))?;
                let command = format!("causeway run {} -- {launcher} -n 4 hostname", way.option());
                let ended = Program::new(&command, &directory, DEADLINE).succeed()?;
                results.command(&command);
                results.start(name, way, run, ended.elapsed.as_secs_f64());
            }
        }
        Ok(())
    }

    /// Both ends' memory would need a way to ask the far gateway; the near one carries the same streams.
    fn streams(&self, results: &mut Results) -> Result<(), BenchError> {
        println!("bench: {STREAMS} streams open at once");
        let directory = self.inside.scratch("streams")?;
        let at = self.inside.scratch("status")?;
        for left in ["address", "open", "release"] {
            let _ = std::fs::remove_file(directory.join(left));
        }
        let before = Inside::status(&at)?;
        let command = format!(
            "causeway run --sites rennes=1,nancy=1 -- mpirun.mpich -n 2 {} $PWD {STREAMS} --hold",
            program("debian-mpich", "streams")
        );
        results.command(&command);
        let mut running = Program::new(&command, &directory, DEADLINE).start()?;
        let end = Instant::now() + DEADLINE;
        while !directory.join("open").exists() && running.ended()?.is_none() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(20));
        }
        let open = Inside::status(&at)?;
        std::fs::write(directory.join("release"), "").map_err(io("let the streams go"))?;
        let ended = running.succeed()?;
        let after = Inside::status(&at)?;
        results.streams(&before, &open, &after, ended.stdout.trim());
        Ok(())
    }
}

fn program(mpi: &str, name: &str) -> String {
    repository()
        .join("target/mpi")
        .join(mpi)
        .join(name)
        .display()
        .to_string()
}
