//! `causeway report`: one page of what `causeway bench` measured.

use causeway_bench::store;
use causeway_host::{own_file, say};
use causeway_report::{CSV_HEAD, GENERATOR, Measurement, csv, html};
use causeway_wire::TextError;
use std::path::PathBuf;
use std::process::ExitCode;

/// Make one HTML page from measurements, and a CSV file beside it.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Directories with results of causeway bench.
    #[arg(required = true, value_name = "DIR")]
    directories: Vec<PathBuf>,
    /// The file to write [default: report.html, in DIR if only one is given, else here]. The CSV file has the
    /// same name, with .csv. '-' prints the page and writes no CSV file.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Title of the page.
    #[arg(long, default_value = "One MPI job over several sites: what was measured")]
    title: String,
}

/// The status is 1 if a directory cannot be read or the page cannot be written.
pub fn main(args: &Args) -> ExitCode {
    match make(args) {
        Ok(Made::File(page)) => say::result(page.display()),
        Ok(Made::Page(text)) => say::result(text),
        Err(error) => {
            say::error(format_args!("causeway report: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// What the command makes.
enum Made {
    File(PathBuf),
    /// The page itself.
    Page(String),
}

fn make(args: &Args) -> Result<Made, TextError> {
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
    let text = html(&args.title, &all);
    let page = match (&args.out, args.directories.as_slice()) {
        (Some(out), _) if out.as_os_str() == "-" => return Ok(Made::Page(text)),
        (Some(out), _) => out.clone(),
        (None, [only]) => only.join("report.html"),
        (None, _) => "report.html".into(),
    };
    let beside = page.with_extension("csv");
    if beside == page {
        let page = page.display();
        return Err(format!(
            "--out names the page, but the CSV file beside it would have the same name, {page}"
        )
        .into());
    }
    // A device or a pipe has no directory for other files.
    if page
        .metadata()
        .map_or(true, |found| found.is_file() || found.is_dir())
    {
        own_file::write(&beside, csv(&all).as_bytes(), CSV_HEAD)?;
    }
    own_file::write(&page, text.as_bytes(), GENERATOR)?;
    Ok(Made::File(page))
}
