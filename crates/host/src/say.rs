//! Lines for the user. `println!` and `eprintln!` panic if nobody can read them, as in `causeway status |
//! head -1`: the crate denies both, and prints everything through this module. So text that others chose is
//! escaped here. The output of a job's processes does not pass through here, and stays as it is.

use causeway_wire::shown::Block;
use std::fmt::{Arguments, Display};
use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

/// The status that shells report for a program that SIGPIPE has ended, as happens when its reader has gone.
pub const READER_GONE: u8 = 128 + libc::SIGPIPE as u8;

/// Writes a line to standard error. Lines within it are indented, so that none looks like a separate message.
/// A line that cannot be written is lost: that is no reason to stop.
pub fn error(text: impl Display) {
    let lines = text.to_string().replace('\n', "\n    ");
    // In one write, so that lines of several processes do not mix.
    let _ = io::stderr().write_all(format!("{}\n", Block(lines)).as_bytes());
}

/// Writes lines to standard output, each composed by this program.
///
/// # Errors
/// The status to end with: if the reader has gone, without a message; otherwise with the reason.
pub fn output(text: impl Display) -> Result<(), ExitCode> {
    write(format_args!("{}\n", Block(text)))
}

/// Clears a terminal and goes to its first line (ECMA-48: ED, CUP).
///
/// # Errors
/// Those of [`output`].
pub fn clear() -> Result<(), ExitCode> {
    write(format_args!("\x1b[2J\x1b[H"))
}

fn write(text: Arguments<'_>) -> Result<(), ExitCode> {
    let mut stdout = io::stdout().lock();
    let written = stdout.write_fmt(text).and_then(|()| stdout.flush());
    written.map_err(|reason| match reason.kind() {
        ErrorKind::BrokenPipe => ExitCode::from(READER_GONE),
        _ => {
            error(format_args!("causeway: write to standard output: {reason}"));
            ExitCode::FAILURE
        }
    })
}

/// Writes the last of the output, and returns the status of the command.
pub fn result(text: impl Display) -> ExitCode {
    output(text).err().unwrap_or(ExitCode::SUCCESS)
}
