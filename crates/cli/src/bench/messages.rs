//! `causeway bench messages`: counts what a program sends, and says what of it would cross between sites.
//!
//! The program runs as its launcher starts it, with a library preloaded that counts (mpi/messages). Each rank
//! writes its counts when it ends.

use super::options::Counting;
use super::{Failure, INTERRUPTED, stop_flag};
use crate::preload::{MESSAGES_MPICH, MESSAGES_OPEN_MPI};
use crate::run::environment;
use crate::run::launcher::{Launcher, LauncherError, Mpi};
use crate::say;
use causeway_bench::messages::split::{crossing, improved};
use causeway_bench::messages::{CountError, Counted, Messages, Operation};
use causeway_bench::table::Table;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::Serialize;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Tells the library where to write.
const DIRECTORY: &str = "CAUSEWAY_MESSAGES";
const PRELOAD: &str = "LD_PRELOAD";

/// How often the program is looked at.
const POLL: Duration = Duration::from_millis(20);

/// What was counted, as JSON has it.
#[derive(Debug, Serialize)]
struct Found {
    program: String,
    ranks: u32,
    /// Ranks that have left no counts.
    missing: Vec<u32>,
    /// The time from MPI_Init to MPI_Finalize.
    seconds: f64,
    /// Calls that were not counted for want of memory.
    lost: u64,
    /// Ranks of each site.
    sites: Vec<u32>,
    messages: Vec<Messages>,
    operations: Vec<Operation>,
    better: Option<Better>,
}

/// Two sites of the same sizes with other ranks at them.
#[derive(Debug, Serialize)]
struct Better {
    /// Ranks of each site.
    sites: [Vec<u32>; 2],
    /// Messages between them.
    messages: u64,
}

/// The status is 1 where the program failed or ranks are missing, and 130 after Ctrl-C.
pub fn main(task: &Counting) -> Result<ExitCode, Failure> {
    let starter = Starter::of(task.command.first().ok_or_else(|| Failure::usage("no program"))?)?;
    let out = std::path::absolute(&task.out).map_err(Failure::new)?;
    prepare(&out)?;
    let stop = stop_flag().map_err(Failure::new)?;
    let status = run(task, &starter, &out, &stop)?;
    if stop.load(Ordering::Relaxed) {
        say::error("causeway bench: stopped; nothing was counted");
        return Ok(ExitCode::from(INTERRUPTED));
    }
    let counted = Counted::read(&out).map_err(|error| explained(&error, &starter, status))?;
    let found = found(task, &counted)?;
    let json = serde_json::to_string_pretty(&found).map_err(Failure::new)?;
    write(&out.join("messages.json"), json.as_bytes())?;
    write(&out.join("messages.csv"), &counted.csv().map_err(Failure::new)?)?;
    let shown = say::result(match task.json {
        true => json,
        false => text(&found),
    });
    say::error(format_args!("causeway bench: counts are in {}", out.display()));
    if !status.success() {
        say::error(format_args!(
            "causeway bench: the program ended with {status}; these are its counts until then"
        ));
    }
    Ok(match status.success() && found.missing.is_empty() {
        true => shown,
        false => ExitCode::FAILURE,
    })
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    std::fs::write(path, bytes).map_err(|error| cannot("write", path, &error))
}

fn cannot(what: &str, path: &Path, error: &io::Error) -> Failure {
    Failure::new(format_args!("{what} {}: {error}", path.display()))
}

/// Makes the directory, and removes what an earlier run has left there.
fn prepare(out: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(out).map_err(|error| cannot("make", out, &error))?;
    for entry in out.read_dir().map_err(|error| cannot("read", out, &error))? {
        let path = entry.map_err(|error| cannot("read", out, &error))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with("rank-") && (name.ends_with(".csv") || name.ends_with(".part")) {
            std::fs::remove_file(&path).map_err(|error| cannot("remove", &path, &error))?;
        }
    }
    Ok(())
}

/// What the command begins with.
struct Starter {
    program: OsString,
    /// A launcher that says whose it is. Others, such as srun, start programs of any MPI.
    mpi: Option<Mpi>,
}

impl Starter {
    fn of(word: &OsStr) -> Result<Starter, Failure> {
        let (program, mpi) = match Launcher::find(word) {
            Ok(launcher) => (launcher.path.into_os_string(), Some(launcher.mpi)),
            Err(LauncherError::Program(word)) => (word, None),
            Err(error) => return Err(Failure::usage(error)),
        };
        Ok(Starter { program, mpi })
    }

    fn is_open_mpi(&self) -> bool {
        self.mpi.is_some_and(Mpi::is_open_mpi)
    }

    /// The libraries that were built; each needs the headers of its interface. One hands on the calls of
    /// programs with another interface, and the one with the widest handles comes first.
    fn libraries(&self) -> Result<Vec<PathBuf>, Failure> {
        let names: &[&[&str]] = match self.mpi {
            Some(mpi) if mpi.is_open_mpi() => &[MESSAGES_OPEN_MPI],
            Some(_) => &[MESSAGES_MPICH],
            None => &[MESSAGES_OPEN_MPI, MESSAGES_MPICH],
        };
        let own = std::env::current_exe().map_err(Failure::new)?;
        let all: Vec<PathBuf> = names
            .concat()
            .iter()
            .map(|name| own.with_file_name(name))
            .collect();
        let found: Vec<PathBuf> = all.iter().filter(|path| path.is_file()).cloned().collect();
        match (found.is_empty(), all.last()) {
            (true, Some(path)) => Err(Failure::new(format_args!(
                "{} is not there: mpi/build.sh makes it where the headers of its MPI are installed",
                path.display()
            ))),
            _ => Ok(found),
        }
    }
}

/// Runs the program to its end, or to ours.
fn run(task: &Counting, starter: &Starter, out: &Path, stop: &AtomicBool) -> Result<ExitStatus, Failure> {
    let mut command = Command::new(&starter.program);
    // hydra and Slurm hand their environment on to all hosts, Open MPI what it is told to.
    if starter.is_open_mpi() {
        command.args(["-x", PRELOAD, "-x", DIRECTORY]);
    }
    let present = std::env::var_os(PRELOAD);
    let preload = environment::preload(&starter.libraries()?, present.as_deref(), &[]);
    command
        .args(&task.command[1..])
        .env(PRELOAD, preload)
        .env(DIRECTORY, out);
    let spawned = command.spawn();
    let mut child = spawned.map_err(|error| cannot("run", Path::new(&starter.program), &error))?;
    let mut told = false;
    loop {
        if let Some(status) = child.try_wait().map_err(Failure::new)? {
            return Ok(status);
        }
        // At a terminal Ctrl-C has reached it, too; a launcher takes the second one for impatience, but not
        // this signal.
        if stop.load(Ordering::Relaxed) && !told {
            told = true;
            let _ = kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGTERM);
        }
        std::thread::sleep(POLL);
    }
}

/// What to do where no rank has counted.
fn explained(error: &CountError, starter: &Starter, status: ExitStatus) -> Failure {
    match error {
        CountError::None(_) => Failure::new(format_args!(
            "{error}; the program ended with {status}. A program is counted where it calls MPI_Init, is linked \
             dynamically with {}, and its hosts can write to that directory (--out names another one)",
            starter.mpi.map_or("its MPI", Mpi::name)
        )),
        _ => Failure::new(error),
    }
}

/// Ranks of each site: as was asked for, or two halves.
fn sites_of(wanted: &[u32], ranks: u32) -> Result<Vec<u32>, Failure> {
    let sum: u64 = wanted.iter().copied().map(u64::from).sum();
    match (wanted.is_empty(), ranks) {
        (true, 1) => Ok(vec![1]),
        (true, _) => Ok(vec![ranks - ranks / 2, ranks / 2]),
        (false, _) if sum == u64::from(ranks) => Ok(wanted.to_vec()),
        (false, _) => Err(Failure::usage(format_args!(
            "--sites names {sum} ranks, and the program had {ranks}"
        ))),
    }
}

/// At which site a rank is when each takes the next ones.
fn site(sites: &[u32], rank: u32) -> usize {
    let mut end = 0;
    let ends = sites.iter().map(|ranks| {
        end += ranks;
        end
    });
    ends.take_while(|&end| end <= rank).count()
}

fn found(task: &Counting, counted: &Counted) -> Result<Found, Failure> {
    let sites = sites_of(&task.sites, counted.ranks)?;
    let words: Vec<_> = task.command.iter().map(|word| word.to_string_lossy()).collect();
    Ok(Found {
        program: words.join(" "),
        ranks: counted.ranks,
        missing: counted.missing(),
        seconds: counted.seconds(),
        lost: counted.lost(),
        messages: counted.messages(|rank| site(&sites, rank)),
        operations: counted.operations(),
        better: better(counted, &sites),
        sites,
    })
}

/// Other ranks at two sites, where that saves a tenth of the messages at least.
fn better(counted: &Counted, sites: &[u32]) -> Option<Better> {
    let [first, _] = *sites else { return None };
    let pairs = counted.pairs();
    let plain: Vec<bool> = (0..counted.ranks).map(|rank| rank >= first).collect();
    let split = improved(&pairs, counted.ranks, first)?;
    let ranks_of = |half: bool| {
        (0..)
            .zip(&split.second)
            .filter(move |(_, second)| **second == half)
    };
    let of = |half| ranks_of(half).map(|(rank, _)| rank).collect();
    (split.messages * 10 <= crossing(&pairs, &plain) * 9 && split.messages < crossing(&pairs, &plain)).then(
        || Better {
            sites: [of(false), of(true)],
            messages: split.messages,
        },
    )
}

/// `0 to 3, 6`: ranks in few words.
fn ranges(ranks: &[u32]) -> String {
    let runs = ranks.chunk_by(|one, next| one + 1 == *next);
    let words = runs.map(|run| match run {
        [first, .., last] => format!("{first} to {last}"),
        [only] => only.to_string(),
        [] => String::new(),
    });
    words.collect::<Vec<_>>().join(", ")
}

fn bytes(least: u64, most: u64) -> String {
    match least == most {
        true => least.to_string(),
        false => format!("{least} to {most}"),
    }
}

/// `312 B`, `1.32 kB`, `46.6 MB`, in powers of 1000.
fn amount(bytes: u64) -> String {
    let mut value = bytes as f64;
    let mut units = ["B", "kB", "MB", "GB", "TB"].into_iter();
    let mut unit = units.next().unwrap_or_default();
    for larger in units {
        if value < 999.5 {
            break;
        }
        value /= 1000.0;
        unit = larger;
    }
    let digits = match (unit, value) {
        ("B", _) => 0,
        (_, 0.0..9.995) => 2,
        (_, 0.0..99.95) => 1,
        _ => 0,
    };
    format!("{value:.digits$} {unit}")
}

fn text(found: &Found) -> String {
    let total = |of: fn(&Messages) -> u64| found.messages.iter().map(of).sum::<u64>();
    let count = total(|messages| messages.count);
    let mut parts = vec![format!(
        "{}\n{} ranks, {:.3} s from MPI_Init to MPI_Finalize",
        found.program, found.ranks, found.seconds
    )];
    if !found.missing.is_empty() {
        parts.push(format!(
            "Ranks {} have left no counts: they crashed, or cannot write to the directory.",
            ranges(&found.missing)
        ));
    }
    if found.lost > 0 {
        parts.push(format!(
            "{} calls were not counted, for want of memory.",
            found.lost
        ));
    }
    if count > 0 {
        let every = found.seconds * f64::from(found.ranks) / count as f64;
        parts.push(messages_table(found).markdown().trim_end().to_owned());
        parts.push(format!(
            "In all {count} messages, {}; a rank sends one every {:.3} ms.\n{}",
            amount(total(|messages| messages.bytes)),
            every * 1e3,
            between(found, total(|messages| messages.count_between))
        ));
    }
    if !found.operations.is_empty() {
        parts.push(operations_table(found).markdown().trim_end().to_owned());
    }
    parts.join("\n\n")
}

fn messages_table(found: &Found) -> Table {
    let mut table = Table::new(&[
        "bytes of a message",
        "messages",
        "together",
        "between sites",
        "together",
    ]);
    for messages in &found.messages {
        table.rows.push(vec![
            bytes(messages.least, messages.most),
            messages.count.to_string(),
            amount(messages.bytes),
            messages.count_between.to_string(),
            amount(messages.bytes_between),
        ]);
    }
    table
}

fn operations_table(found: &Found) -> Table {
    let mut table = Table::new(&["operation", "ranks", "times", "bytes of a rank", "together"]);
    for operation in &found.operations {
        table.rows.push(vec![
            operation.call.clone(),
            operation.ranks.to_string(),
            format!("{:.0}", operation.times),
            bytes(operation.least, operation.most),
            amount(operation.bytes),
        ]);
    }
    table
}

/// What crosses between sites that take the ranks in their order, and what would with others.
fn between(found: &Found, count: u64) -> String {
    let mut next = 0;
    let sites = found.sites.iter().map(|&ranks| {
        let all: Vec<u32> = (next..next + ranks).collect();
        next += ranks;
        ranges(&all)
    });
    let sites: Vec<String> = sites.collect();
    if sites.len() < 2 {
        return "There is one site.".to_owned();
    }
    let plain = format!(
        "Between sites of ranks {}: {count} of them, operations apart.",
        sites.join(" and ")
    );
    match &found.better {
        None => plain,
        Some(better) => format!(
            "{plain} With ranks {} at one site and {} at the other it would be {}.",
            ranges(&better.sites[0]),
            ranges(&better.sites[1]),
            better.messages
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sites_take_ranks_in_their_order() {
        assert_eq!(sites_of(&[], 5).ok(), Some(vec![3, 2]));
        assert_eq!(sites_of(&[], 1).ok(), Some(vec![1]));
        assert_eq!(sites_of(&[1, 4], 5).ok(), Some(vec![1, 4]));
        let wrong = sites_of(&[2, 2], 5).unwrap_err();
        assert!(wrong.code == 2 && wrong.text.contains("4 ranks, and the program had 5"));
        let at = |rank| site(&[3, 2], rank);
        assert_eq!([0, 2, 3, 4].map(at), [0, 0, 1, 1]);
    }

    #[test]
    fn amounts_have_three_digits() {
        let of = [0, 999, 1000, 1_320, 46_628_694, 999_600_000, 5_900_000_000_000];
        let said = of.map(amount);
        assert_eq!(
            said,
            [
                "0 B", "999 B", "1.00 kB", "1.32 kB", "46.6 MB", "1.00 GB", "5.90 TB"
            ]
        );
    }

    #[test]
    fn ranks_are_told_in_few_words() {
        assert_eq!(ranges(&[0, 1, 2, 5, 7, 8]), "0 to 2, 5, 7 to 8");
        assert_eq!(ranges(&[4]), "4");
    }

    fn found(better: Option<Better>) -> Found {
        Found {
            program: "mpirun -n 4 ./app".into(),
            ranks: 4,
            missing: vec![3],
            seconds: 2.0,
            lost: 0,
            sites: vec![2, 2],
            messages: vec![Messages {
                least: 8,
                most: 12,
                count: 1000,
                bytes: 10_000,
                count_between: 600,
                bytes_between: 6000,
            }],
            operations: Vec::new(),
            better,
        }
    }

    #[test]
    fn the_text_has_what_crosses_who_is_missing_and_how_often_a_rank_sends() {
        let said = text(&found(None));
        assert!(said.contains("|            8 to 12 |     1000 |"), "{said}");
        assert!(
            said.contains("Between sites of ranks 0 to 1 and 2 to 3: 600 of them"),
            "{said}"
        );
        assert!(said.contains("Ranks 3 have left no counts"), "{said}");
        assert!(said.contains("every 8.000 ms"), "{said}");
    }

    #[test]
    fn other_ranks_are_named_where_they_would_save_messages() {
        let better = Better {
            sites: [vec![0, 2], vec![1, 3]],
            messages: 40,
        };
        let said = text(&found(Some(better)));
        assert!(
            said.contains("With ranks 0, 2 at one site and 1, 3 at the other it would be 40."),
            "{said}"
        );
    }
}
