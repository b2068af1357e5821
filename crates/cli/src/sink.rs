//! `causeway sink`: reads its input to the end, and reports how many bytes arrived. A gateway starts it for
//! `causeway probe --measure`.

use causeway_host::say;
use nix::sys::signal::{SigSet, SigmaskHow, sigprocmask};
use std::io;
use std::process::ExitCode;

/// Size of one read.
const BUFFER_BYTES: usize = 256 * 1024;

/// Reads and reports.
pub fn main() -> ExitCode {
    // As in start-node: the gateway's signals are blocked.
    let _ = sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None);
    if let Err(error) = causeway_remote::parent::end_with_parent() {
        say::error(error);
        return ExitCode::FAILURE;
    }
    match count(io::stdin().lock()) {
        Ok(bytes) => say::result(bytes),
        // The stream was reset: nobody is left to be told.
        Err(_) => ExitCode::FAILURE,
    }
}

fn count(mut input: impl io::Read) -> io::Result<u64> {
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut bytes = 0;
    loop {
        match input.read(&mut buffer) {
            Ok(0) => return Ok(bytes),
            Ok(more) => bytes += more as u64,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_counts() {
        assert_eq!(
            count(io::Read::take(io::repeat(7), 1_000_003)).unwrap(),
            1_000_003
        );
        assert_eq!(count(io::empty()).unwrap(), 0);
    }
}
