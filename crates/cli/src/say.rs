//! Lines for the user. `println!` and `eprintln!` panic when nobody can read them, as in `causeway status |
//! head -1`: the crate denies both, and says everything through here.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

/// What shells report for a program that SIGPIPE ends, the usual fate of one whose reader has gone.
pub const READER_GONE: u8 = 128 + libc::SIGPIPE as u8;

/// A line on standard error. There is nobody to tell when it cannot be written, and no reason to stop.
pub fn error(text: impl Display) {
    // One write, so that lines of several processes do not mix.
    let _ = io::stderr().write_all(format!("{text}\n").as_bytes());
}

/// A line on standard output.
///
/// # Errors
/// The status to end with: quietly where the reader has gone, with the reason for anything else.
pub fn output(text: impl Display) -> Result<(), ExitCode> {
    let mut stdout = io::stdout().lock();
    let written = writeln!(stdout, "{text}").and_then(|()| stdout.flush());
    written.map_err(|reason| match reason.kind() {
        ErrorKind::BrokenPipe => ExitCode::from(READER_GONE),
        _ => {
            error(format_args!("causeway: write to standard output: {reason}"));
            ExitCode::FAILURE
        }
    })
}

/// The last of the output, and with it the status of the command.
pub fn result(text: impl Display) -> ExitCode {
    output(text).err().unwrap_or(ExitCode::SUCCESS)
}
