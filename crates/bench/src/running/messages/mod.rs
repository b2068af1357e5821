//! `causeway bench messages`: counts what a program sends, and says what of it would cross between sites.
//!
//! The program runs as its launcher starts it, with a library preloaded that counts (mpi/messages). Each rank
//! writes its counts when it ends. `starter` runs it, `found` sums the counts up, `text` shows it.

mod found;
mod starter;
mod text;

use super::wanted::Counting;
use super::{Failure, INTERRUPTED, stop_flag};
use crate::messages::{CountError, Counted};
use causeway_host::{own_file, say};
use causeway_mpis::Mpi;
use found::found;
use starter::{Starter, run};
use std::io;
use std::path::Path;
use std::process::{ExitCode, ExitStatus};
use std::sync::atomic::Ordering;
use text::text;

const CSV: &str = "messages.csv";
const JSON: &str = "messages.json";

/// How earlier files of these kinds begin.
const CSV_MARK: &str = "from,call,to,ranks,";
const JSON_MARK: &str = "{\n  \"program\": ";
const RANK_MARK: &str = "causeway-messages,";

/// The status is 1 if the program failed or ranks are missing, and 130 after Ctrl-C.
pub fn main(task: &Counting) -> Result<ExitCode, Failure> {
    let starter = Starter::of(task.command.first().ok_or_else(|| Failure::usage("no program"))?)?;
    let out = std::path::absolute(&task.out).map_err(Failure::new)?;
    prepare(&out)?;
    let stop = stop_flag().map_err(Failure::new)?;
    let status = run(task, &starter, &out, &stop)?;
    if stop.load(Ordering::Relaxed) {
        say::error("causeway bench: stopped before anything was counted");
        return Ok(ExitCode::from(INTERRUPTED));
    }
    let counted = Counted::read(&out).map_err(|error| explained(&error, &starter, status))?;
    let (found, mistake) = found(task, &counted);
    let json = serde_json::to_string_pretty(&found).map_err(Failure::new)?;
    // The counts are shown even if the disk is full.
    let shown = say::result(match task.json {
        true => json.clone(),
        false => text(&found),
    });
    own_file::write(&out.join(JSON), json.as_bytes(), JSON_MARK).map_err(Failure::new)?;
    let csv = counted.csv().map_err(Failure::new)?;
    own_file::write(&out.join(CSV), &csv, CSV_MARK).map_err(Failure::new)?;
    say::error(format_args!("causeway bench: counts are in {}", out.display()));
    if !status.success() {
        say::error(format_args!(
            "causeway bench: the program ended with {status}; these are its counts until then"
        ));
    }
    match mistake {
        Some(mistake) => Err(mistake),
        None if status.success() && found.missing.is_empty() => Ok(shown),
        None => Ok(ExitCode::FAILURE),
    }
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
        let is_of_a_rank = name.starts_with("rank-") && (name.ends_with(".csv") || name.ends_with(".part"));
        let mark = match is_of_a_rank {
            true => RANK_MARK,
            false if name == CSV => CSV_MARK,
            false if name == JSON => JSON_MARK,
            false => continue,
        };
        match own_file::is_ours(&path, mark).map_err(|error| cannot("read", &path, &error))? {
            true => std::fs::remove_file(&path).map_err(|error| cannot("remove", &path, &error))?,
            false => {
                return Err(Failure::usage(format_args!(
                    "{} was not written by causeway, which does not replace it; name another directory with --out",
                    path.display()
                )));
            }
        }
    }
    Ok(())
}

/// What to do if no rank has counted.
fn explained(error: &CountError, starter: &Starter, status: ExitStatus) -> Failure {
    match error {
        CountError::None(_) => Failure::new(format_args!(
            "{error}; the program ended with {status}. A program is counted where it calls MPI_Init, is linked \
             dynamically with {}, keeps LD_PRELOAD, and its hosts can write to that directory (--out names another one)",
            starter.mpi.map_or("its MPI", Mpi::name)
        )),
        _ => Failure::new(error),
    }
}
