//! Writes lines to standard error from a bounded queue, in a separate thread. So a stalled reader (a pager, a
//! full pipe, a network file system) blocks nobody who writes a line. A line that finds no room is dropped
//! and counted, and the log says so at that place. If no thread can be started, as under a limit on memory, a
//! line is written at once, provided that nobody has to wait for it.

use causeway_wire::shown::Line;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, SigmaskHow};
use std::collections::VecDeque;
use std::fmt::Display;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Most bytes of lines that may wait: enough for some seconds at one line in a millisecond, which is more
/// than any gateway has written.
const WAITING_BYTES: usize = 1 << 20;

/// Longest line: names and reasons come from elsewhere.
const LINE_BYTES: usize = 4095;

/// Lines that are written to one place. Clones write to the same place.
#[derive(Clone)]
pub struct Lines {
    queue: Arc<Queue>,
    /// Writes a line if that needs no wait; returns whether it did.
    at_once: fn(&str) -> bool,
}

struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<String>,
    bytes: usize,
    dropped: u64,
    /// Whether a line is being written.
    writing: bool,
    /// Whether no thread writes any more.
    closed: bool,
}

impl Lines {
    /// Lines for standard error. All lines of a process share one thread, which this starts.
    pub fn stderr() -> &'static Lines {
        static STDERR: OnceLock<Lines> = OnceLock::new();
        // Not eprintln!, which panics if standard error cannot be written: a full disk must end nothing.
        STDERR.get_or_init(|| Lines::begin(io::stderr(), start, |line| write_at_once(line, 0)))
    }

    /// Lines for `writer`.
    pub fn to(writer: impl Write + Send + 'static) -> Lines {
        Lines::begin(writer, start, |_| false)
    }

    fn begin<W: Write + Send + 'static>(
        writer: W,
        start: impl FnOnce(Box<dyn FnOnce() + Send>) -> io::Result<()>,
        at_once: fn(&str) -> bool,
    ) -> Lines {
        let queue = Arc::new(Queue {
            state: Mutex::default(),
            changed: Condvar::new(),
        });
        let lines = Lines {
            queue: Arc::clone(&queue),
            at_once,
        };
        if start(Box::new(move || queue.write_all(writer))).is_err() {
            lines.queue.lock().closed = true;
        }
        lines
    }

    /// Writes one line to standard error without the thread that writes the others, which may no longer work.
    /// Waits 200 ms at most for a reader.
    pub fn say_at_once(text: impl Display) {
        write_at_once(&as_line(text), 200);
    }

    /// Writes one line, given without its end. Never waits for a reader.
    pub fn say(&self, text: impl Display) {
        let line = as_line(text);
        let mut state = self.queue.lock();
        if state.closed {
            // Losing a line is better than waiting.
            state.dropped += u64::from(!(self.at_once)(&line));
            return;
        }
        if state.bytes + line.len() > WAITING_BYTES {
            state.dropped += 1;
            return;
        }
        if state.dropped > 0 {
            let told = told(std::mem::take(&mut state.dropped));
            state.push(told);
        }
        state.push(line);
        self.queue.changed.notify_all();
    }

    /// Waits until all lines are written, but no longer than `longest`, and returns whether they are. It must
    /// be called before the process ends or executes another program, because the process's threads end then.
    pub fn flush(&self, longest: Duration) -> bool {
        let deadline = Instant::now() + longest;
        let mut state = self.queue.lock();
        loop {
            if state.is_idle() {
                return true;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let waited = self.queue.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl State {
    fn push(&mut self, line: String) {
        self.bytes += line.len();
        self.waiting.push_back(line);
    }

    fn is_idle(&self) -> bool {
        self.waiting.is_empty() && !self.writing && (self.dropped == 0 || self.closed)
    }

    /// The next line to write; a note about lines that were dropped at the end comes last.
    fn next(&mut self) -> Option<String> {
        if let Some(line) = self.waiting.pop_front() {
            self.bytes -= line.len();
            return Some(line);
        }
        (self.dropped > 0).then(|| told(std::mem::take(&mut self.dropped)))
    }
}

/// Writes a line to standard error, without a thread, if there is room for it within `milliseconds`. No line
/// is longer than what a pipe accepts as a whole once it accepts anything (PIPE_BUF, pipe(7)).
fn write_at_once(line: &str, milliseconds: u8) -> bool {
    let stderr = io::stderr();
    let mut ready = [PollFd::new(stderr.as_fd(), PollFlags::POLLOUT)];
    let is_ready = poll(&mut ready, PollTimeout::from(milliseconds)).is_ok_and(|count| count > 0);
    is_ready && stderr.lock().write_all(line.as_bytes()).is_ok()
}

fn as_line(text: impl Display) -> String {
    let mut line = Line(text).to_string();
    line.truncate(line.floor_char_boundary(LINE_BYTES));
    line.push('\n');
    line
}

fn told(dropped: u64) -> String {
    format!("causeway: {dropped} lines were dropped here: nobody read them\n")
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_all(&self, mut writer: impl Write) {
        let mut state = self.lock();
        loop {
            let Some(line) = state.next() else {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            state.writing = true;
            drop(state);
            // If the line cannot be written, there is nobody to tell.
            let _ = writer.write_all(line.as_bytes());
            state = self.lock();
            state.writing = false;
            self.changed.notify_all();
        }
    }
}

/// Starts a thread that gets no signals: other threads wait for them, and a signal that this thread did not
/// block would end the process.
fn start(body: Box<dyn FnOnce() + Send>) -> io::Result<()> {
    let mut before = SigSet::empty();
    nix::sys::signal::pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::all()), Some(&mut before))?;
    let thread = std::thread::Builder::new().name("log".to_owned());
    let started = thread.spawn(body);
    nix::sys::signal::pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&before), None)?;
    started.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader, PipeReader, pipe};

    /// How long to wait: the machine may be busy with other tests.
    const DEADLINE: Duration = Duration::from_secs(20);

    fn lines() -> (Lines, BufReader<PipeReader>) {
        let (reader, writer) = pipe().unwrap();
        (Lines::to(writer), BufReader::new(reader))
    }

    fn next(reader: &mut impl BufRead) -> String {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        line
    }

    #[test]
    fn lines_come_in_their_order_and_none_makes_another() {
        let (lines, mut reader) = lines();
        lines.say("one");
        lines.say("two\nforged \x1b[2J");
        assert!(lines.flush(DEADLINE));
        assert_eq!(next(&mut reader), "one\n");
        assert_eq!(next(&mut reader), "two\\u000aforged \\u001b[2J\n");
    }

    #[test]
    fn a_reader_that_stands_still_stops_nobody_and_is_told_what_it_missed() {
        let (lines, mut reader) = lines();
        let long = "x".repeat(LINE_BYTES);
        // More than the queue and the pipe have room for.
        let said = 3 * WAITING_BYTES / LINE_BYTES;
        for _ in 0..said {
            lines.say(&long);
        }
        assert!(!lines.flush(Duration::ZERO), "nobody has read");
        // The thread writes meanwhile, so that after a dropped line others may find room again: each gap is
        // reported at its place.
        let (mut seen, mut dropped) = (0, 0);
        while seen + dropped < said {
            let line = next(&mut reader);
            let gap = line.strip_prefix("causeway: ");
            let gap = gap.and_then(|rest| rest.strip_suffix(" lines were dropped here: nobody read them\n"));
            match gap {
                Some(count) => dropped += count.parse::<usize>().unwrap(),
                None => {
                    assert!(line.starts_with('x'), "{line}");
                    seen += 1;
                }
            }
        }
        assert_eq!(seen + dropped, said);
        assert!(dropped > 0, "the queue is bounded");
        lines.say("again");
        assert_eq!(next(&mut reader), "again\n");
        assert!(lines.flush(DEADLINE));
    }

    #[test]
    fn a_reader_that_has_gone_costs_nothing() {
        let (lines, reader) = lines();
        drop(reader);
        lines.say("to nobody");
        assert!(lines.flush(DEADLINE));
    }

    #[test]
    fn without_a_thread_a_line_is_written_at_once_or_counts_as_dropped() {
        let no_thread = |_: Box<dyn FnOnce() + Send>| Err(io::ErrorKind::OutOfMemory.into());
        let lines = Lines::begin(io::sink(), no_thread, |line| line == "heard\n");
        lines.say("heard");
        lines.say("unheard");
        assert!(lines.flush(Duration::ZERO), "nothing is left to write");
        assert_eq!(lines.queue.lock().dropped, 1);
    }
}
