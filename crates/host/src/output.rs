//! Reads what a child prints on both of its outputs, up to a bound, until a deadline.

use std::io::Read;
use std::process::Child;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::Instant;

/// What happens to an output that is longer than what is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beyond {
    /// It is closed, which ends most programs.
    Closed,
    /// It is read to its end and discarded: a full pipe would block the child.
    Forgotten,
}

/// What a child has printed on its standard output and its standard error.
pub type Said = [String; 2];

/// The outputs of a child, which threads read.
pub struct Output {
    texts: Receiver<(usize, String)>,
    readers: Vec<JoinHandle<()>>,
    said: Said,
}

impl Output {
    /// Begins to read those outputs of a child that are pipes. Keeps at most `most_bytes` of each.
    pub fn of(child: &mut Child, most_bytes: u64, beyond: Beyond) -> Output {
        let (sender, texts) = mpsc::channel();
        let outputs: [Option<Box<dyn Read + Send>>; 2] = [
            child.stdout.take().map(|out| Box::new(out) as _),
            child.stderr.take().map(|err| Box::new(err) as _),
        ];
        let mut readers = Vec::new();
        for (number, output) in outputs.into_iter().enumerate() {
            let Some(mut output) = output else { continue };
            let sender = sender.clone();
            readers.push(std::thread::spawn(move || {
                let mut text = Vec::new();
                let _ = output.by_ref().take(most_bytes).read_to_end(&mut text);
                if beyond == Beyond::Forgotten {
                    let _ = std::io::copy(&mut output, &mut std::io::sink());
                }
                let _ = sender.send((number, String::from_utf8_lossy(&text).into_owned()));
            }));
        }
        Output {
            texts,
            readers,
            said: Said::default(),
        }
    }

    /// Returns everything that the child printed, once all processes that have its outputs open have closed
    /// them; then no thread is left. `None` at the deadline: a later call waits for the rest.
    pub fn all(&mut self, deadline: Instant) -> Option<Said> {
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.texts.recv_timeout(left) {
                Ok((number, text)) => self.said[number] = text,
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => return None,
            }
        }
        for reader in self.readers.drain(..) {
            let _ = reader.join();
        }
        Some(std::mem::take(&mut self.said))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};
    use std::time::Duration;

    fn shell(script: &str) -> Child {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command.spawn().unwrap()
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(20)
    }

    #[test]
    fn both_outputs_are_read_up_to_the_bound_and_the_rest_holds_nobody_up() {
        let mut child = shell("head -c 1000000 /dev/zero | tr '\\0' x; echo error >&2");
        let said = Output::of(&mut child, 100, Beyond::Forgotten)
            .all(soon())
            .unwrap();
        assert_eq!(said, ["x".repeat(100), "error\n".to_owned()]);
        assert!(child.wait().unwrap().success());
    }

    #[test]
    fn a_child_that_speaks_without_end_loses_its_output() {
        let mut child = shell("exec yes");
        let said = Output::of(&mut child, 100, Beyond::Closed).all(soon()).unwrap();
        assert_eq!(said[0].len(), 100);
        assert!(!child.wait().unwrap().success());
    }

    #[test]
    fn after_a_deadline_the_rest_can_be_waited_for() {
        let mut child = shell("echo first; read line; echo second");
        let mut output = Output::of(&mut child, 100, Beyond::Forgotten);
        assert_eq!(output.all(Instant::now()), None);
        drop(child.stdin.take());
        assert_eq!(output.all(soon()).unwrap()[0], "first\nsecond\n");
        child.wait().unwrap();
    }
}
