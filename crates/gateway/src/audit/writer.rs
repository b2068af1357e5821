//! The thread that writes the audit: if a file system hangs, this thread stops, and nothing else.

use super::file::AuditFile;
use causeway_control::audit::{connections, refusals};
use mio::net::UnixStream;
use std::io::{self, ErrorKind, Read, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, SyncSender, TrySendError, channel, sync_channel};
use std::time::{Duration, Instant};

/// Most lines of at most 2 kB each that wait for the thread.
const MOST_WAITING: usize = 1024;

/// If this many wait, there is room only for starts.
pub(super) const MANY_WAITING: usize = MOST_WAITING / 2;

/// Which file a line is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A process that another site started.
    Start,
    /// A connection of another site. However many of these and of refusals there are, they take no room from
    /// the starts, neither on the disk nor in the queue.
    Connection,
    /// A request of another site that was refused.
    Refusal,
}

/// The outcome of a line.
pub(crate) struct Word {
    pub(crate) number: u64,
    pub(crate) written: io::Result<()>,
}

/// The loop's end of the thread.
pub(super) struct Writer {
    lines: SyncSender<(u64, Kind, Vec<u8>)>,
    words: Receiver<Word>,
    bell: UnixStream,
}

impl Writer {
    /// Starts the thread. Call this after the gateway has taken its signals.
    ///
    /// # Errors
    /// Those of socketpair and of starting a thread.
    pub(super) fn begin(file: &Path) -> io::Result<Writer> {
        let (near, far) = std::os::unix::net::UnixStream::pair()?;
        near.set_nonblocking(true)?;
        // If the socket is full, the loop is woken anyway.
        far.set_nonblocking(true)?;
        let (lines, waiting) = sync_channel(MOST_WAITING);
        let (word, words) = channel();
        let files = [file.to_owned(), connections(file), refusals(file)].map(AuditFile);
        let thread = std::thread::Builder::new().name("audit".to_owned());
        thread.spawn(move || work(&files, &waiting, &word, far))?;
        Ok(Writer {
            lines,
            words,
            bell: UnixStream::from_std(near),
        })
    }

    /// Wakes the loop with each outcome.
    pub(super) fn bell(&mut self) -> &mut UnixStream {
        &mut self.bell
    }

    /// Queues a line, whose outcome arrives under this number.
    ///
    /// # Errors
    /// [`ErrorKind::WouldBlock`] when too many wait, [`ErrorKind::BrokenPipe`] when the thread is gone.
    pub(super) fn write(&self, number: u64, kind: Kind, line: Vec<u8>) -> io::Result<()> {
        self.lines
            .try_send((number, kind, line))
            .map_err(|error| match error {
                TrySendError::Full(_) => io::Error::new(
                    ErrorKind::WouldBlock,
                    format!("{MOST_WAITING} lines wait for the disk already"),
                ),
                TrySendError::Disconnected(_) => ErrorKind::BrokenPipe.into(),
            })
    }

    /// The outcomes since the last call.
    pub(super) fn words(&mut self) -> Vec<Word> {
        let mut bytes = [0; 64];
        while matches!(self.bell.read(&mut bytes), Ok(1..)) {}
        self.words.try_iter().collect()
    }

    /// The next outcome, if it arrives by `until`.
    pub(super) fn await_word(&self, until: Instant) -> Option<Word> {
        let left = until.saturating_duration_since(Instant::now());
        self.words.recv_timeout(left.max(Duration::from_millis(1))).ok()
    }
}

/// Ends when the sender of the lines or the receiver of the outcomes is dropped.
fn work(
    files: &[AuditFile; 3],
    lines: &Receiver<(u64, Kind, Vec<u8>)>,
    words: &Sender<Word>,
    mut bell: std::os::unix::net::UnixStream,
) {
    for (number, kind, line) in lines {
        let [starts, connections, refusals] = files;
        let file = match kind {
            Kind::Start => starts,
            Kind::Connection => connections,
            Kind::Refusal => refusals,
        };
        let written = file.write(&line);
        if words.send(Word { number, written }).is_err() {
            return;
        }
        let _ = bell.write(&[0]);
    }
}
