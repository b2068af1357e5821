//! Sections that are measurements of `causeway bench`: its words, and the text about them for readers. The
//! bars are in results/bars.toml.

use super::{Bench, BenchError, MPIS};
use crate::results::Part;
use causeway_bench::lab::causeway;
use causeway_bench::program::io;
use causeway_bench::store;
use causeway_bench::summary::Summaries;
use causeway_bench::tables::tables;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A lab: its name, what the link loses, and lines for the gateways.
type Variant = (&'static str, &'static str, &'static [&'static str]);

const AS_IT_IS: &[Variant] = &[("rennes-nancy", "0%", &[])];

/// See the module.
pub struct Plan {
    title: &'static str,
    text: &'static str,
    labs: &'static [Variant],
    words: &'static [&'static str],
    /// Options for a trial, whose figures mean nothing.
    quick: &'static [&'static str],
    full: &'static [&'static str],
    /// The command that is timed, after `--`.
    command: &'static [&'static str],
}

const NONE: Plan = Plan {
    title: "",
    text: "",
    labs: AS_IT_IS,
    words: &[],
    quick: &[],
    full: &[],
    command: &[],
};

/// Sizes that are measured after a pause. They are few, because each costs its pauses.
const AFTER_PAUSES: &str = "1,16k,64k,256k,1M,4M";
const ONE_RUN: [&str; 4] = ["--least", "1", "--most", "1"];

pub const LATENCY: Plan = Plan {
    title: "Latency of 1 B",
    text: "One rank at each site, each on a core of its own. What the gateways add is the difference of the two ways; the \
           emulator's own error is in both. Section `plain` has what relays add that only copy.",
    words: &["pingpong", "--sizes", "1"],
    quick: &["--count", "50"],
    full: &["--count", "1000", "--seconds", "30", "--most", "5"],
    ..NONE
};

pub const PINGPONG: Plan = Plan {
    title: "Ping-pong, hot",
    text: "One rank at each site, each on a core of its own; one message after the other.",
    words: &["pingpong", "--settings", "default,tuned"],
    quick: &["--sizes", "1,64k,1M", "--count", "5"],
    full: &["--most", "5"],
    ..NONE
};

pub const IDLE: Plan = Plan {
    title: "Ping-pong after pauses of 300 ms",
    text: "Both ranks sleep before each message, for longer than any retransmission timeout, after which TCP forgets its \
           window.",
    words: &["pingpong", "--idle", "300", "--seconds", "60"],
    quick: &["--sizes", "1,64k", "--count", "5"],
    full: &["--sizes", AFTER_PAUSES, "--count", "10", "--most", "5"],
    ..NONE
};

pub const MANY: Plan = Plan {
    title: "Ping-pong among 8+8 connected processes",
    text: "Sixteen ranks, four on each of two nodes a site. Every rank has exchanged a message with every other before the \
           clock counts; then the first rank of one site and the last of the other measure, each on a core of its own, and \
           the others sleep.",
    words: &["pingpong", "--ranks", "8"],
    quick: &["--sizes", "1,64k,1M", "--count", "5"],
    full: &["--sizes", "1,64,1k,16k,64k,256k,1M,4M,16M", "--most", "5"],
    ..NONE
};

pub const LOSS: Plan = Plan {
    title: "Loss",
    text: "The link loses packets at random in both directions. Direct is CUBIC. A value is half a round trip: it suffers \
           the losses of two messages. In `twice` the gateways send small messages on two lanes.",
    labs: &[
        ("loss-0.1", "0.1%", &[]),
        ("loss-1", "1%", &[]),
        ("loss-1-twice", "1%", &["lanes = 2", "duplicate_small = true"]),
    ],
    words: &["pingpong"],
    quick: &["--sizes", "1k,64k", "--count", "5"],
    full: &["--sizes", "1k,64k,256k,1M,4M", "--seconds", "20", "--most", "3"],
    ..NONE
};

pub const ENCRYPTION: Plan = Plan {
    title: "Encryption",
    text: "Two labs side by side, whose gateways speak in clear text and under TLS 1.3; the same ping-pong in each in turn. \
           Both gateways and both ranks share two cores: on hosts of their own encryption would run beside the copying.",
    labs: &[("clear", "0%", &["insecure = true"]), ("encrypted", "0%", &[])],
    words: &["pingpong", "--ways", "causeway"],
    quick: &["--sizes", "1,64k,1M", "--count", "5"],
    full: &[
        "--sizes",
        "1,1k,16k,64k,256k,1M,4M,16M",
        "--least",
        "5",
        "--most",
        "5",
    ],
    ..NONE
};

pub const ALLTOALL: Plan = Plan {
    title: "All-to-all over 4+4 ranks",
    text: "`once` is from the first start to the last end over all ranks, which start at one instant of the clock they \
           share. Eight ranks that busy-wait share the cores of this machine, all ways alike.",
    words: &[
        "operations",
        "--operations",
        "alltoall",
        "--ranks",
        "4",
        "--settings",
        "default,tuned",
    ],
    quick: &["--sizes", "64k", "--count", "3"],
    full: &[
        "--sizes",
        "64k,2M",
        "--count",
        "10",
        "--seconds",
        "30",
        "--most",
        "5",
    ],
    ..NONE
};

pub const START: Plan = Plan {
    title: "Start of 4 ranks on 4 nodes",
    text: "`mpirun -n 4 hostname` from start to end.",
    words: &["app", "--sites", "rennes,nancy"],
    full: &["--least", "5", "--most", "5"],
    command: &["mpirun", "-n", "4", "hostname"],
    ..NONE
};

impl Plan {
    /// Runs `causeway bench`, and reads its rows.
    ///
    /// # Errors
    /// The command does not succeed.
    pub fn measure(&self, name: &str, bench: &Bench) -> Result<Part, BenchError> {
        let out = bench.out.join("raw").join(name);
        if !bench.resume && out.exists() {
            std::fs::remove_dir_all(&out).map_err(io(format!("remove {}", out.display())))?;
        }
        std::fs::create_dir_all(&out).map_err(io(format!("create {}", out.display())))?;
        let mut words = vec!["bench".to_owned()];
        words.extend(self.words.iter().map(|&word| word.to_owned()));
        let rest: Vec<&str> = match bench.quick {
            true => self.quick.iter().chain(&ONE_RUN).copied().collect(),
            false => self.full.to_vec(),
        };
        words.extend(rest.into_iter().map(str::to_owned));
        for lab in self.labs {
            words.extend(["--lab".into(), scenario(lab, &out)?.display().to_string()]);
        }
        for mpi in &MPIS {
            words.extend(["--mpi".into(), mpi.path()]);
        }
        words.extend(["--out".into(), out.display().to_string()]);
        if !self.command.is_empty() {
            words.push("--".into());
            words.extend(self.command.iter().map(|&word| word.to_owned()));
        }
        let status = Command::new(causeway()?)
            .args(&words)
            .stdout(Stdio::null())
            .status();
        let status = status.map_err(io("start causeway bench"))?;
        // 1: a cell has no value, which the tables show.
        if !matches!(status.code(), Some(0 | 1)) {
            let said = format!("{status}");
            return Err(BenchError::output("causeway bench", &said, "status 0"));
        }
        let (head, rows) = store::read(&out)?;
        let summary = Summaries::of(&head, &rows);
        let mut part = Part::new(self.title, self.text);
        part.tables = tables(&summary);
        let failures = summary.failures.iter();
        part.text
            .extend(failures.map(|(cell, count, reason)| format!("{cell}: failed {count} times: {reason}")));
        let csv = out.join("rows.csv");
        let csv = std::fs::read_to_string(&csv).map_err(io(format!("read {}", csv.display())))?;
        part.files.push((format!("{name}.csv"), csv));
        part.command(&format!("causeway {}", words.join(" ")));
        Ok(part)
    }
}

/// The file of a lab.
fn scenario((name, loss, grid): &Variant, out: &Path) -> Result<PathBuf, BenchError> {
    super::scenario::two_sites(name, &[("loss", loss)], grid, out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lab_differs_from_the_two_sites_in_what_it_says() {
        let directory = std::env::temp_dir().join(format!("causeway-plans-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let plans = [&LATENCY, &LOSS, &ENCRYPTION];
        for variant in plans.iter().flat_map(|plan| plan.labs) {
            let text = std::fs::read_to_string(scenario(variant, &directory).unwrap()).unwrap();
            let (name, loss, grid) = variant;
            for part in [format!("name = {name:?}"), format!("loss = {loss:?}")] {
                assert!(text.contains(&part), "{part} is missing in {text}");
            }
            assert!(grid.iter().all(|line| text.contains(line)), "{text}");
        }
        std::fs::remove_dir_all(directory).unwrap();
    }
}
