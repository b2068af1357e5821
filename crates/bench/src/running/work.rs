//! What runs in a cell: the words after `causeway run`, and what is read from the output.

use super::Grid;
use super::mpis::NamedMpi;
use super::npb::Sources;
use super::wanted::Rounds;
use crate::cell::{Cell, Settings, Way};
use crate::output;
use crate::program::Ended;
use crate::row::{Quantity, Value};
use causeway_launchers::mpi_programs::MpiProgram;
use causeway_wire::TextError;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Ports that neither gateways nor the kernel choose for connections.
const PORTS: std::ops::Range<u64> = 61_000..65_000;

/// See the module.
#[derive(Debug)]
pub enum Work {
    /// Messages without an MPI.
    Tcp(Vec<String>),
    /// Programs of `mpi/programs/bench`: `pingpong` or `operations`, and their arguments.
    Ours(&'static str, Vec<String>),
    /// IMB, OSU or NetPIPE programs, and the arguments of IMB.
    Others(Vec<PathBuf>, Vec<String>),
    /// The user's launcher and its arguments.
    App(Vec<OsString>),
    /// Names of NAS Parallel Benchmarks.
    Npb(Sources, Vec<String>),
}

/// Sizes that are powers of two and half-way between, up to 4 MB; its file is not read, and may be at another
/// site.
const NETPIPE: [&str; 6] = ["-p", "0", "-u", "4194304", "-o", "/dev/null"];

/// Names of the operations, as `mpi/programs/bench/operations.c` and IMB spell them, in any case.
pub const OPERATIONS: [&str; 14] = [
    "PingPong",
    "PingPing",
    "Sendrecv",
    "Exchange",
    "Allreduce",
    "Reduce",
    "Reduce_scatter",
    "Allgather",
    "Allgatherv",
    "Alltoall",
    "Bcast",
    "Gather",
    "Scatter",
    "Barrier",
];

/// The arguments of our programs for sizes and rounds; `usual` are the default rounds and seconds.
pub fn message_words(sizes: &[u64], rounds: &Rounds, usual: (u32, f64), idle: u64) -> Vec<String> {
    let sizes: Vec<String> = sizes.iter().map(u64::to_string).collect();
    let words = [
        ["--sizes".to_owned(), sizes.join(",")],
        ["--count".to_owned(), rounds.count.unwrap_or(usual.0).to_string()],
        [
            "--seconds".to_owned(),
            rounds.seconds.unwrap_or(usual.1).to_string(),
        ],
        ["--idle".to_owned(), idle.to_string()],
    ];
    words.into_iter().flatten().collect()
}

impl Work {
    /// The word on the command line.
    pub fn name(&self) -> &'static str {
        match self {
            Work::Tcp(_) => "tcp",
            Work::Ours(name, _) => name,
            Work::Others(..) => "operations",
            Work::App(_) => "app",
            Work::Npb(..) => "npb",
        }
    }

    /// Everything that distinguishes it from other work of the same name.
    pub fn arguments(&self) -> String {
        match self {
            Work::Tcp(words) | Work::Ours(_, words) => words.join(" "),
            Work::Others(_, operations) => operations.join(" "),
            Work::App(words) => {
                let words = words.iter().map(|word| word.to_string_lossy());
                words.collect::<Vec<_>>().join(" ")
            }
            Work::Npb(sources, _) => format!("{} {}", sources.class, sources.fflags),
        }
    }

    /// The programs of the matrix; a single one without a name if there is no choice.
    pub fn programs(&self) -> Vec<String> {
        match self {
            Work::Others(paths, _) => paths.iter().map(|path| file_name(path)).collect(),
            Work::Npb(sources, names) => names
                .iter()
                .map(|name| format!("{name}.{}", sources.class))
                .collect(),
            _ => vec![String::new()],
        }
    }

    /// Ranks at each site, unless the user says something else.
    pub fn ranks(&self) -> u32 {
        match self {
            Work::Tcp(_) | Work::Ours("pingpong", _) => 1,
            _ => 2,
        }
    }

    /// The launcher and its arguments, for one run.
    ///
    /// # Errors
    /// There is no such program; the error says why.
    pub fn command(
        &self,
        (cell, run): (&Cell, u32),
        mpi: &NamedMpi,
        grid: &Grid,
        stop: &Arc<AtomicBool>,
    ) -> Result<Vec<String>, TextError> {
        let launcher = mpi.launcher.path.display().to_string();
        if let Work::App(words) = self {
            let rest = words
                .iter()
                .skip(1)
                .map(|word| word.to_string_lossy().into_owned());
            return Ok(std::iter::once(launcher).chain(rest).collect());
        }
        let mut words = vec![launcher, "-n".into(), grid.ranks().to_string()];
        match self {
            Work::Tcp(arguments) => {
                words.extend(tcp_words(grid, cell, run));
                words.extend(arguments.iter().cloned());
            }
            Work::Ours(name, arguments) => {
                let program = MpiProgram::new(&grid.causeway, "bench", &mpi.launcher);
                if let Some(missing) = program.missing() {
                    let path = missing.display();
                    return Err(format!("{path} is missing; 'make build' makes it").into());
                }
                words.extend(program.words().map(|word| word.to_string_lossy().into_owned()));
                words.push((*name).to_owned());
                words.extend(arguments.iter().cloned());
                // Ranks that wait busily would keep the ranks between them from running.
                if self.keeps_to_cores(grid) {
                    words.extend(["--own-cores".into(), "1".into()]);
                }
            }
            Work::Others(paths, operations) => {
                let path = paths.iter().find(|path| file_name(path) == cell.program);
                words.extend(path.map(|path| path.display().to_string()));
                if is_imb(&cell.program) {
                    words.extend(operations.iter().cloned());
                } else if is_netpipe(&cell.program) {
                    words.extend(NETPIPE.map(str::to_owned));
                }
            }
            Work::Npb(sources, names) => {
                let name = names
                    .iter()
                    .find(|name| cell.program.starts_with(&format!("{name}.")));
                let name = name.ok_or("it is not one of the requested benchmarks")?;
                let program = sources.program((name, grid.ranks()), mpi, stop)?;
                words.push(program.display().to_string());
            }
            Work::App(_) => {}
        }
        Ok(words)
    }

    /// The same launcher with a program that reports on which cores its ranks may compute; `None` if that
    /// cannot be asked, or if the ranks keep to cores of their own anyway.
    pub fn cores_command(&self, mpi: &NamedMpi, grid: &Grid) -> Option<Vec<String>> {
        let launcher = mpi.launcher.path.display().to_string();
        let mut words = match self {
            Work::Tcp(_) => return None,
            Work::Ours(..) if self.keeps_to_cores(grid) => return None,
            Work::App(words) => {
                let rest = words.get(1..)?;
                let options = rest.iter().take_while(|word| !Path::new(word).is_file());
                let options: Vec<String> = options.map(|word| word.to_string_lossy().into_owned()).collect();
                if options.len() == rest.len() {
                    return None;
                }
                [vec![launcher], options].concat()
            }
            Work::Ours(..) | Work::Others(..) | Work::Npb(..) => {
                vec![launcher, "-n".into(), grid.ranks().to_string()]
            }
        };
        words.extend([
            grid.causeway.display().to_string(),
            "bench-part".into(),
            "cores".into(),
        ]);
        Some(words)
    }

    /// Whether the two ranks that measure each keep to a core of their own; they can, because all others
    /// sleep meanwhile.
    fn keeps_to_cores(&self, grid: &Grid) -> bool {
        grid.shares_cores && (grid.ranks() == 2 || matches!(self, Work::Ours("pingpong", _)))
    }

    /// Options of `causeway run`.
    pub fn options(&self, cell: &Cell, mpi: &NamedMpi) -> Vec<&'static str> {
        if !cell.way.has_gateways() {
            return vec!["--direct"];
        }
        let is_tcp = matches!(self, Work::Tcp(_));
        // Without an MPI there is no call to speed up.
        let without = (is_tcp || cell.way == Way::NoCollectives).then_some("--no-collectives");
        let tune = match cell.settings {
            _ if is_tcp => None,
            Settings::Default => Some("--no-tune"),
            Settings::Tuned => (!mpi.is_tested()).then_some("--tune-untested"),
        };
        without.into_iter().chain(tune).collect()
    }

    /// What a run that ended well has measured.
    ///
    /// # Errors
    /// The program's output has no result; the error says why.
    pub fn values(&self, cell: &Cell, ended: &Ended) -> Result<Vec<Value>, TextError> {
        match self {
            Work::Tcp(_) | Work::Ours(..) => output::values(&ended.stdout).map_err(TextError::of),
            Work::Others(..) if is_imb(&cell.program) => output::imb(&ended.stdout).map_err(TextError::of),
            Work::Others(..) if is_netpipe(&cell.program) => {
                output::netpipe(&ended.stderr).map_err(TextError::of)
            }
            Work::Others(..) => output::osu(&ended.stdout).map_err(TextError::of),
            Work::App(words) => {
                let name = words
                    .get(1..)
                    .and_then(program_name)
                    .unwrap_or_else(|| "app".into());
                seconds(&name, "run time", ended.elapsed.as_secs_f64())
            }
            Work::Npb(..) => {
                let time = output::npb_seconds(&ended.stdout).map_err(TextError::of)?;
                seconds(&cell.program, "time that it tells", time)
            }
        }
    }
}

/// The words that start our two ends of a TCP connection, without the plan of what they send.
fn tcp_words(grid: &Grid, cell: &Cell, run: u32) -> Vec<String> {
    let port = PORTS.start + grid.seed.wrapping_add(run.into()) % (PORTS.end - PORTS.start);
    let to = format!("{}:{port}", grid.second_rank(cell.way));
    let mut words = vec![
        grid.causeway.display().to_string(),
        "bench-part".into(),
        "tcp".into(),
        to,
    ];
    words.extend(grid.shares_cores.then(|| "--own-cores".to_owned()));
    words
}

fn seconds(operation: &str, measure: &str, time: f64) -> Result<Vec<Value>, TextError> {
    let quantity = Quantity {
        operation: operation.to_owned(),
        measure: measure.to_owned(),
        size_bytes: None,
        unit: "s".to_owned(),
    };
    Ok(Value::new(quantity, &[time]).into_iter().collect())
}

fn is_imb(program: &str) -> bool {
    program.starts_with("IMB")
}

fn is_netpipe(program: &str) -> bool {
    program.starts_with("NP")
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    name.to_string_lossy().into_owned()
}

/// The first word after a launcher's options that is a file: what the user calls the program.
fn program_name(words: &[OsString]) -> Option<String> {
    let mut files = words.iter().map(Path::new).filter(|path| path.is_file());
    files.next().map(file_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_rounds_are_words_of_our_programs() {
        let rounds = Rounds {
            count: None,
            seconds: Some(0.5),
        };
        assert_eq!(
            message_words(&[1, 1024], &rounds, (200, 4.0), 0).join(" "),
            "--sizes 1,1024 --count 200 --seconds 0.5 --idle 0"
        );
    }

    #[test]
    fn the_name_of_a_program_is_that_of_its_file() {
        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join("heat");
        std::fs::write(&program, "").unwrap();
        let words = ["-n".into(), "4".into(), program.into_os_string(), "8".into()];
        assert_eq!(program_name(&words).as_deref(), Some("heat"));
        assert_eq!(program_name(&["-n".into()]), None);
    }
}
