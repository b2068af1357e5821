//! This process's standard input on its way to a command on a node, no more at a time than it gives back.

use super::frame::{Frame, MAX_DATA, STDIN_WINDOW};
use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::sync::{Condvar, Mutex};

/// Bytes of standard input under way, see [`STDIN_WINDOW`].
#[derive(Default)]
pub struct Window {
    used: Mutex<usize>,
    changed: Condvar,
}

impl Window {
    /// Waits for room and returns how much there is.
    fn room(&self) -> usize {
        let used = self.used.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let used = self.changed.wait_while(used, |used| *used >= STDIN_WINDOW);
        STDIN_WINDOW - *used.unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn take(&self, bytes: usize) {
        *self.used.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) += bytes;
    }

    /// The command has taken so many.
    pub fn give_back(&self, bytes: usize) {
        let mut used = self.used.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        *used = used.saturating_sub(bytes);
        self.changed.notify_all();
    }
}

/// Sends standard input until its end, or until the stream's.
pub fn send(writer: &Mutex<UnixStream>, window: &Window) {
    let mut buffer = vec![0; MAX_DATA];
    loop {
        let room = window.room().min(MAX_DATA);
        let read = match io::stdin().read(&mut buffer[..room]) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read.unwrap_or(0),
        };
        window.take(read);
        let frame = if read == 0 {
            Frame::StdinEnd
        } else {
            Frame::Stdin(buffer[..read].to_vec())
        };
        let mut writer = writer.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        // The reading side reports a broken stream.
        if frame.write(&mut *writer).is_err() || read == 0 {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn standard_input_waits_for_credit() {
        let window = Window::default();
        window.take(STDIN_WINDOW - 1);
        assert_eq!(window.room(), 1);
        window.take(1);
        window.give_back(5);
        assert_eq!(window.room(), 5);
    }
}
