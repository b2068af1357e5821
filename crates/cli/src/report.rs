//! `causeway report`: one page of what `causeway bench` measured.

use crate::say;
use causeway_bench::store;
use causeway_report::{Measurement, csv, html};
use causeway_wire::TextError;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Make one HTML page of measurements, and a CSV file beside it.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Directories of causeway bench.
    #[arg(required = true, value_name = "DIR")]
    directories: Vec<PathBuf>,
    /// The page [default: report.html, in the directory where there is one, else here]. The CSV file has the
    /// same name with .csv.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Its title.
    #[arg(long, default_value = "One MPI job over several sites: what was measured")]
    title: String,
}

/// The status is 1 where a directory cannot be read or the page not be written.
pub fn main(args: &Args) -> ExitCode {
    match make(args) {
        Ok(page) => say::result(page.display()),
        Err(error) => {
            say::error(format_args!("causeway report: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn make(args: &Args) -> Result<PathBuf, TextError> {
    let read = |directory: &PathBuf| {
        let (head, rows) = store::read(directory).map_err(|error| {
            format!("{error}; a directory of 'causeway bench' holds plan.json and rows.jsonl")
        })?;
        let absolute = std::path::absolute(directory).unwrap_or_else(|_| directory.clone());
        let name = absolute.file_name().unwrap_or(absolute.as_os_str());
        Ok(Measurement::new(name.to_string_lossy().into_owned(), head, rows))
    };
    let all: Vec<Measurement> = args
        .directories
        .iter()
        .map(read)
        .collect::<Result<_, TextError>>()?;
    let page = match (&args.out, args.directories.as_slice()) {
        (Some(out), _) => out.clone(),
        (None, [only]) => only.join("report.html"),
        (None, _) => "report.html".into(),
    };
    write(&page.with_extension("csv"), csv(&all))?;
    write(&page, html(&args.title, &all))?;
    Ok(page)
}

/// Written beside and renamed: nobody reads half of it, also where the disk is full.
fn write(path: &Path, text: String) -> Result<(), TextError> {
    let part = path.with_extension("part");
    let failed = |error: &dyn Display| {
        let _ = std::fs::remove_file(&part);
        TextError::from(format!("write {}: {error}", path.display()))
    };
    std::fs::write(&part, text).map_err(|error| failed(&error))?;
    std::fs::rename(&part, path).map_err(|error| failed(&error))
}
