//! `causeway profile`: checks the profile of a job, and prints it in its other form. What a profile may say
//! is in crates/profile.

use causeway_host::failure::Failure;
use causeway_host::{say, text_file};
use causeway_profile::{MAX_BYTES, Unsaid, is_xml, read, to_toml, to_xml};
use std::path::PathBuf;
use std::process::ExitCode;

/// Check the profile of a job, and print it in its other form, TOML or QCG's XML (docs/profile.md).
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The profile, in either form.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Print XML, whatever the form of FILE.
    #[arg(long, conflicts_with = "toml")]
    xml: bool,
    /// Print TOML, whatever the form of FILE.
    #[arg(long)]
    toml: bool,
}

/// The status is 2 if the profile has mistakes or cannot be written as XML; 1 if it cannot be read.
pub fn main(args: &Args) -> ExitCode {
    match converted(args) {
        Ok(text) => say::result(text.trim_end()),
        Err(failure) => {
            say::error(format_args!("causeway profile: {failure}"));
            ExitCode::from(failure.code)
        }
    }
}

fn converted(args: &Args) -> Result<String, Failure> {
    let text = text_file::read(&args.file, MAX_BYTES).map_err(Failure::new)?;
    let file = args.file.display().to_string();
    let found = read(&text, &file).finish().map_err(Failure::usage)?;
    for warning in &found.warnings {
        say::error(format_args!("causeway profile: {warning}"));
    }
    if args.toml || !args.xml && is_xml(&text) {
        return Ok(to_toml(&found.value));
    }
    to_xml(&found.value).map_err(|Unsaid(keys)| {
        let keys = keys.join("\n");
        Failure::usage(format_args!(
            "{file} is right, but XML cannot say all of it; --toml prints it:\n{keys}"
        ))
    })
}
