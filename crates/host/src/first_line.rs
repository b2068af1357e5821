//! The first line that a child prints, for a caller that waits until a deadline.

use std::io::{BufRead, BufReader, Read};
use std::process::ChildStdout;
use std::sync::mpsc::{Receiver, channel};

/// Longest line that is read.
const MAX_LINE: u64 = 256;

/// Reads the first line in a thread. Everything after it is discarded.
pub fn first_line(output: Option<ChildStdout>) -> Receiver<String> {
    let (sender, line) = channel();
    if let Some(output) = output {
        std::thread::spawn(move || {
            let mut line = String::new();
            let _ = BufReader::new(output.take(MAX_LINE)).read_line(&mut line);
            sender.send(line)
        });
    }
    line
}
