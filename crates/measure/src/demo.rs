//! `make demo`: two emulated sites without a route between them, an MPI program that first fails over them
//! and then does not, a gateway that is killed under it, and NetPIPE beside the physical limit. There are six
//! parts, which are shown on the terminal, in a log and in one HTML page.

use crate::checkout::repository;
use causeway_bench::lab::Lab;
use causeway_bench::limit::Link;
use causeway_bench::output::{OutputError, netpipe};
use causeway_bench::program::{Ended, Program, ProgramError, io};
use causeway_bench::table::{Table, size};
use causeway_report::page::Page;
use causeway_report::plot::{Plot, Series};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// `causeway-measure demo`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Directory of the log and the report.
    #[arg(long, default_value = "target/demo")]
    out: PathBuf,
}

/// Why the demo stopped.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// A program of the demo failed.
    #[error("{0}")]
    Program(#[from] ProgramError),
    /// NetPIPE's file is wrong.
    #[error("NetPIPE: {0}")]
    NetPipe(#[from] OutputError),
    /// Something that should have failed did not, or the other way round.
    #[error("{0}")]
    Unexpected(String),
}

/// Longest NetPIPE message.
const MAX_BYTES: u64 = 16 << 20;

/// No part takes a minute on two cores; a part that takes three hangs.
const DEADLINE: Duration = Duration::from_secs(180);

/// A warning that Open MPI 4's launcher sometimes prints if ssh was fast, with and without Causeway. Under
/// `causeway run` the shim prevents it; a plain launcher has no shim.
const FALSE_ALARM: &str = "plm:rsh: Warning: setpgid(";

/// A launcher, the NetPIPE that belongs to it, and its program directory.
const MPIS: [(&str, &str, &str, &str); 2] = [
    ("Open MPI", "mpirun.openmpi", "NPopenmpi", "debian-openmpi"),
    ("MPICH", "mpirun.mpich", "NPmpich2", "debian-mpich"),
];

/// Runs the demo.
///
/// # Errors
/// The first part that does not show what it should, with everything that its programs printed.
pub fn main(args: &Args) -> Result<(), DemoError> {
    std::fs::create_dir_all(&args.out).map_err(io(format!("create {}", args.out.display())))?;
    let out = args
        .out
        .canonicalize()
        .map_err(io(format!("find {}", args.out.display())))?;
    let log = out.join("demo.log");
    let file = File::create(&log).map_err(io(format!("create {}", log.display())))?;
    println!("Starting two emulated sites on this machine (network namespaces, a WAN in user space) ...");
    let lab = Lab::start(&["rennes-nancy"], &out.join("lab"))?;
    let demo = Demo {
        out,
        lab,
        log: file,
        page: Page::new("Causeway: one MPI job over two sites"),
        start: Instant::now(),
    };
    demo.run()
}

/// The node on which a user of rennes types commands.
const HEAD: &str = "rennes-head";

struct Demo {
    out: PathBuf,
    lab: Lab,
    log: File,
    page: Page,
    start: Instant,
}

impl Demo {
    fn run(mut self) -> Result<(), DemoError> {
        self.sites()?;
        self.plain()?;
        self.through_causeway()?;
        self.killed()?;
        self.netpipe()?;
        self.files()
    }

    fn say(&mut self, text: &str) {
        println!("{text}");
        // The log is a convenience: a full disk must not end the demo.
        let _ = writeln!(self.log, "{text}");
    }

    fn part(&mut self, number: u32, title: &str) {
        let elapsed = self.start.elapsed().as_secs();
        self.say(&format!("\n=== {number} of 6  {title}  [{elapsed} s]\n"));
        self.page.heading(&format!("{number}. {title}"));
    }

    fn note(&mut self, text: &str) {
        self.say(&format!("{text}\n"));
        self.page.text(text);
    }

    /// Runs `command` in a new directory, and shows it with everything that it printed, except lines with
    /// `hidden`, which stay in the raw outputs.
    fn show(&mut self, name: &str, command: &str, hidden: Option<&str>) -> Result<Ended, DemoError> {
        let directory = self.directory(name)?;
        self.say(&format!("$ {command}"));
        let ended = self.program(command, &directory)?.run()?;
        let output = format!("{}{}", ended.stdout, ended.stderr);
        let is_shown = |line: &&str| hidden.is_none_or(|hidden| !line.contains(hidden));
        let output: Vec<&str> = output.lines().filter(is_shown).collect();
        let output = output.join("\n");
        self.say(&format!(
            "{}\n(status {}, {:.1} s)\n",
            output.trim(),
            code(&ended),
            ended.elapsed.as_secs_f64()
        ));
        self.page.verbatim(&format!("$ {command}\n{}", output.trim()));
        Ok(ended)
    }

    fn program(&self, command: &str, directory: &Path) -> Result<Program, ProgramError> {
        self.lab
            .program(HEAD, &format!("{AS_ROOT} {command}"), directory, DEADLINE)
    }

    fn directory(&self, name: &str) -> Result<PathBuf, DemoError> {
        let directory = self.out.join(name);
        std::fs::create_dir_all(&directory).map_err(io(format!("create {}", directory.display())))?;
        Ok(directory)
    }

    fn sites(&mut self) -> Result<(), DemoError> {
        self.part(1, "Two sites, their private networks, the link between them");
        let status = self.lab.status(HEAD)?;
        let mut table = Table::new(&["site", "private network", "compute nodes", "gateway"]);
        for site in status["sites"].as_array().into_iter().flatten() {
            let info = &site["info"];
            let list = |values: &serde_json::Value, key: Option<&str>| {
                let values = values.as_array().into_iter().flatten();
                let texts = values.filter_map(|value| key.map_or(value, |key| &value[key]).as_str());
                texts.collect::<Vec<_>>().join(", ")
            };
            table.rows.push(vec![
                site["name"].as_str().unwrap_or("?").to_owned(),
                list(&info["subnets"], None),
                list(&info["nodes"], Some("name")),
                list(&info["gateways"], None),
            ]);
        }
        self.say(&table.markdown());
        self.page.table(&table);
        self.note(
            "The link: 11.6 ms round trip, 1 Gbit/s, as between Rennes and Nancy in Hablot et al. 2007. Each site has its \
             own private network; only the two head nodes can reach each other, on one TCP port. Every node is a set of \
             namespaces with its own network, processes, hostname, /tmp and /dev/shm.",
        );
        Ok(())
    }

    fn plain(&mut self) -> Result<(), DemoError> {
        self.part(2, "A plain mpirun over both sites fails");
        let ended = self.show(
            "plain",
            &format!("mpirun.openmpi {HOSTS} -n 4 {}", hello(MPIS[0].3)),
            Some(FALSE_ALARM),
        )?;
        if ended.status.success() {
            return Err(DemoError::Unexpected(
                "the plain mpirun did not fail: the sites are not separate".into(),
            ));
        }
        self.note(
            "Why: mpirun starts a daemon on every node by ssh, and the daemons and ranks connect to each other directly. \
             There is no route from rennes to the private addresses of nancy, so already the ssh to nancy-1 fails.",
        );
        Ok(())
    }

    fn through_causeway(&mut self) -> Result<(), DemoError> {
        self.part(
            3,
            "The same command behind 'causeway run --' succeeds, with ranks at both sites",
        );
        for (name, launcher, _, programs) in MPIS {
            self.say(&format!("{name}:"));
            let hosts = if launcher.ends_with("openmpi") { HOSTS } else { "" };
            let ended = self.show(
                programs,
                &format!("causeway run -- {launcher} {hosts} -n 4 {}", hello(programs)),
                None,
            )?;
            let at = |site: &str| ended.stdout.contains(&format!(" on {site}-"));
            if !ended.status.success() || !at("rennes") || !at("nancy") {
                return Err(DemoError::Unexpected(format!(
                    "{name} did not run with ranks at both sites"
                )));
            }
        }
        Ok(())
    }

    fn killed(&mut self) -> Result<(), DemoError> {
        self.part(4, "A gateway is killed under a job, which goes on");
        let (_, launcher, _, programs) = MPIS[0];
        let gap = repository().join("target/mpi").join(programs).join("gap");
        // The worker is the process of a gateway that carries the streams.
        let script = format!(
            r#"causeway run -- {launcher} {HOSTS} -n 4 {} 6 &
for kill in 1 2 3; do
    sleep 1.4
    kill -9 "$(causeway status --json | sed -n 's/.*"worker": *\([0-9]*\),.*/\1/p')"
done
wait $!
"#,
            gap.display()
        );
        let file = self.directory("killed")?.join("kill.sh");
        std::fs::write(&file, &script).map_err(io(format!("write {}", file.display())))?;
        self.say(&script);
        self.page.verbatim(&script);
        let ended = self.show("killed", "sh kill.sh", None)?;
        let is_right = ended.status.success() && ended.stdout.contains("all right");
        if !is_right {
            return Err(DemoError::Unexpected(
                "the job did not outlive the gateway that was killed under it".into(),
            ));
        }
        let status = self.lab.status(HEAD)?;
        let ends = status["worker_ends"].as_u64().unwrap_or(0);
        let longest = ended.stdout.split("the longest ").nth(1);
        let longest = longest.and_then(|rest| rest.split(',').next()).unwrap_or("?");
        self.note(&format!(
            "kill -9 ended the worker of rennes' gateway {ends} times. The next one went on with its streams each time. \
             The longest time in which nothing crossed, beside the usual round trip, was {longest}."
        ));
        Ok(())
    }

    fn netpipe(&mut self) -> Result<(), DemoError> {
        self.part(
            5,
            "NetPIPE across the sites, 1 B to 16 MB, beside the physical limit R/2 + s/B",
        );
        let mut curves = Vec::new();
        for (name, launcher, program, _) in MPIS {
            let directory = self.directory(program)?;
            let command = format!(
                "causeway run --sites rennes=1,nancy=1 -- {launcher} -n 2 {program} -u {MAX_BYTES} -p 0 -n 3"
            );
            self.say(&format!("$ {command}"));
            let ended = self.program(&command, &directory)?.succeed()?;
            self.say(&format!("({name}: {:.1} s)\n", ended.elapsed.as_secs_f64()));
            curves.push((name, curve(&ended.stderr)?));
        }
        let verdict = verdict(&curves);
        self.say(&format!("{verdict}\n"));
        self.page.lead(&verdict);
        let table = times(&curves);
        self.say(&table.markdown());
        self.page.table(&table);
        self.page.plot(&time_plot(&curves));
        self.page.plot(&rate_plot(&curves));
        self.note(
            "'of limit' is the measured time divided by R/2 + s/B: no message can arrive sooner on this link. NetPIPE \
             gives the best of its trials, half of each round trip.",
        );
        Ok(())
    }

    fn files(mut self) -> Result<(), DemoError> {
        self.part(6, "Where the log and the report are");
        let report = self.out.join("report.html");
        self.say(&format!("log:          {}", self.out.join("demo.log").display()));
        self.say(&format!("HTML report:  {}", report.display()));
        self.say(&format!("raw outputs:  {}/*/", self.out.display()));
        let log = self.out.join("demo.log").display().to_string();
        self.page.text(&format!("Full log: {log}"));
        std::fs::write(&report, self.page.html()).map_err(io(format!("write {}", report.display())))?;
        Ok(())
    }
}

/// Open MPI refuses to run as root unless told twice; the demo may be run by either.
const AS_ROOT: &str = "export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1;";

/// The nodes of both sites, as a user would name them.
const HOSTS: &str = "-H rennes-1,rennes-2,nancy-1,nancy-2";

fn hello(programs: &str) -> String {
    repository()
        .join("target/mpi")
        .join(programs)
        .join("hello_f08")
        .display()
        .to_string()
}

fn code(ended: &Ended) -> String {
    ended
        .status
        .code()
        .map_or_else(|| ended.status.to_string(), |code| code.to_string())
}

/// One-way times in microseconds, by size in bytes.
type Times = Vec<(u64, f64)>;

type Curve = (&'static str, Times);

/// What NetPIPE printed: the best of its trials for each size.
fn curve(said: &str) -> Result<Times, OutputError> {
    let values = netpipe(said)?.into_iter();
    let times = values.filter_map(|value| Some((value.quantity.size_bytes?, value.summary.median)));
    Ok(times.collect())
}

/// Sums up the curves in one line.
fn verdict(curves: &[Curve]) -> String {
    let range = |(name, rows): &Curve| {
        let ratios = rows
            .iter()
            .map(|(bytes, us)| us / Link::RENNES_NANCY.one_way_us(*bytes));
        let (least, most) = ratios.fold((f64::INFINITY, 0.0), |(least, most), ratio| {
            (ratio.min(least), ratio.max(most))
        });
        format!("{name} {least:.2} to {most:.2}")
    };
    let all: Vec<String> = curves.iter().map(range).collect();
    format!(
        "Both MPIs ran over two sites as one job; a message took these multiples of the physical limit, over all sizes: {}.",
        all.join(", ")
    )
}

fn times(curves: &[Curve]) -> Table {
    let mut head = vec!["size".to_owned(), "limit (ms)".to_owned()];
    for (name, _) in curves {
        head.extend([format!("{name} (ms)"), "of limit".to_owned(), "Mbit/s".to_owned()]);
    }
    let mut table = Table {
        head,
        rows: Vec::new(),
    };
    let sizes = (0..=24).step_by(2).map(|power| 1u64 << power);
    for bytes in sizes {
        let limit = Link::RENNES_NANCY.one_way_us(bytes);
        let mut row = vec![size(bytes), format!("{:.3}", limit / 1e3)];
        for (_, rows) in curves {
            match rows.iter().find(|(size, _)| *size == bytes) {
                Some((_, us)) => row.extend([
                    format!("{:.3}", us / 1e3),
                    format!("{:.2}", us / limit),
                    format!("{:.1}", causeway_bench::limit::mbit_per_second(bytes, *us)),
                ]),
                None => row.extend(["-".to_owned(), "-".to_owned(), "-".to_owned()]),
            }
        }
        table.rows.push(row);
    }
    table
}

fn time_plot(curves: &[Curve]) -> Plot {
    plot("One-way time", "one-way time (ms)", true, curves, |_, us| {
        us / 1e3
    })
}

fn rate_plot(curves: &[Curve]) -> Plot {
    plot(
        "Throughput",
        "throughput (Mbit/s)",
        false,
        curves,
        causeway_bench::limit::mbit_per_second,
    )
}

fn plot(
    title: &str,
    vertical: &str,
    logarithmic: bool,
    curves: &[Curve],
    value: fn(u64, f64) -> f64,
) -> Plot {
    let mut series: Vec<Series> = curves
        .iter()
        .map(|(name, rows)| {
            let point = |(bytes, us): &(u64, f64)| (*bytes as f64, value(*bytes, *us));
            Series::measured(
                format!("{name} through Causeway"),
                rows.iter().map(point).collect(),
            )
        })
        .collect();
    let limit = |bytes: u64| (bytes as f64, value(bytes, Link::RENNES_NANCY.one_way_us(bytes)));
    let points = (0..=MAX_BYTES.ilog2()).map(|power| limit(1 << power)).collect();
    series.push(Series::limit(points));
    Plot {
        title: title.into(),
        horizontal: "message size".into(),
        vertical: vertical.into(),
        logarithmic,
        series,
    }
}
