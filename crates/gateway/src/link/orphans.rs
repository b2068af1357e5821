//! Processes that an earlier worker has started: the keeper is their parent, and reports their ends to the
//! worker.

use crate::sys::process::Ended;
use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use nix::unistd::Pid;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};

/// One end: process, code and status, each in the machine's byte order. A pipe takes it whole or not at all.
const RECORD_BYTES: usize = 12;

/// The keeper's part: reports that a child has ended. It must not have been collected yet, so that its number
/// belongs to nobody else when the worker reads this.
///
/// # Errors
/// [`io::ErrorKind::WouldBlock`] while the worker does not read.
pub(crate) fn tell(mut pipe: &File, ended: Ended) -> io::Result<()> {
    let mut record = [0; RECORD_BYTES];
    let numbers = [ended.process.as_raw(), ended.code, ended.status];
    for (place, number) in record.chunks_exact_mut(4).zip(numbers) {
        place.copy_from_slice(&number.to_ne_bytes());
    }
    pipe.write_all(&record)
}

/// The worker's part.
#[derive(Default)]
pub(crate) struct Orphans {
    /// `None` if there is no keeper.
    pipe: Option<File>,
    ended: HashMap<Pid, Ended>,
}

impl Orphans {
    /// Reads reports of ended processes from this end of a pipe, which does not block.
    pub(crate) fn new(pipe: OwnedFd) -> Orphans {
        Orphans {
            pipe: Some(pipe.into()),
            ended: HashMap::new(),
        }
    }

    /// Makes such reports wake the loop under this token.
    ///
    /// # Errors
    /// Those of registering the pipe.
    pub(crate) fn register(&self, registry: &Registry, token: Token) -> io::Result<()> {
        let Some(pipe) = &self.pipe else {
            return Ok(());
        };
        registry.register(&mut SourceFd(&pipe.as_raw_fd()), token, Interest::READABLE)
    }

    /// How a process has ended that the keeper collects, if it has ended.
    pub(crate) fn end_of(&mut self, process: Pid) -> Option<Ended> {
        self.read();
        self.ended.remove(&process)
    }

    fn read(&mut self) {
        let Some(mut pipe) = self.pipe.as_ref() else {
            return;
        };
        let mut record = [0; RECORD_BYTES];
        while matches!(pipe.read(&mut record), Ok(RECORD_BYTES)) {
            let number = |at: usize| {
                let mut bytes = [0; 4];
                bytes.copy_from_slice(&record[at..at + 4]);
                i32::from_ne_bytes(bytes)
            };
            let ended = Ended {
                process: Pid::from_raw(number(0)),
                code: number(4),
                status: number(8),
            };
            self.ended.insert(ended.process, ended);
        }
    }

    /// Forgets the ends of processes that nobody asks for, such as children of those that were started.
    pub(crate) fn keep_only(&mut self, mut asked_for: impl FnMut(Pid) -> bool) {
        self.read();
        self.ended.retain(|process, _| asked_for(*process));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::fcntl::OFlag;

    #[test]
    fn an_end_is_heard_of_once_and_a_full_pipe_says_so() {
        let (reader, writer) = nix::unistd::pipe2(OFlag::O_NONBLOCK | OFlag::O_CLOEXEC).unwrap();
        let (mut orphans, writer) = (Orphans::new(reader), File::from(writer));
        let ended = |process| Ended {
            process: Pid::from_raw(process),
            code: libc::CLD_EXITED,
            status: 3,
        };
        tell(&writer, ended(7)).unwrap();
        tell(&writer, ended(8)).unwrap();
        assert_eq!(orphans.end_of(Pid::from_raw(9)), None);
        assert_eq!(orphans.end_of(Pid::from_raw(8)), Some(ended(8)));
        assert_eq!(orphans.end_of(Pid::from_raw(8)), None);
        orphans.keep_only(|process| process != Pid::from_raw(7));
        assert_eq!(orphans.end_of(Pid::from_raw(7)), None);
        let mut told = 0;
        while tell(&writer, ended(told + 1)).is_ok() {
            told += 1;
        }
        assert!(told > 1000);
        assert_eq!(orphans.end_of(Pid::from_raw(told)), Some(ended(told)));
        tell(&writer, ended(told + 1)).unwrap();
    }
}
