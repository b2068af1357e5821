//! The contents of the memory that a keeper shares with its workers.

use causeway_memory::SharedMemory;
use std::ffi::{CString, OsString};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

/// Numbers, by their positions.
const SERVING: usize = 0;
const ENDING: usize = 1;
const STREAMS: usize = 2;
const JOBS: usize = 3;
const STATE: usize = 4;
const PROGRAM_BYTES: usize = 5;
const CONFIG_BYTES: usize = 6;

/// Each path has a page.
const MOST_PATH_BYTES: usize = 4096;
const PROGRAM: usize = 0;
const CONFIG: usize = MOST_PATH_BYTES;

/// The end that a worker has announced.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// None: whatever ends the worker, it was not told to end.
    Unannounced,
    /// The worker was told to stop, or cannot start.
    Stops,
    /// Another program is to be executed, with this configuration, and goes on from the state in this
    /// descriptor.
    HandsOver {
        program: PathBuf,
        config: PathBuf,
        state: RawFd,
    },
}

/// The memory. A worker writes to it; the keeper reads it once the worker has ended, and writes to it before
/// making the next one.
pub(crate) struct Memory(SharedMemory);

impl Memory {
    /// # Errors
    /// Those of [`SharedMemory::new`].
    pub(crate) fn new() -> io::Result<Memory> {
        SharedMemory::new(2 * MOST_PATH_BYTES).map(Memory)
    }

    fn set(&self, index: usize, value: u64) {
        self.0.number(index).store(value, Ordering::Release);
    }

    fn get(&self, index: usize) -> u64 {
        self.0.number(index).load(Ordering::Acquire)
    }

    /// Makes the memory ready for the next worker.
    pub(crate) fn begin(&self) {
        self.set(SERVING, 0);
        self.set(ENDING, 0);
        self.count(0, 0);
    }

    pub(crate) fn set_serving(&self, serves: bool) {
        self.set(SERVING, serves.into());
    }

    pub(crate) fn has_served(&self) -> bool {
        self.get(SERVING) != 0
    }

    /// Sets how many streams and jobs there are.
    pub(crate) fn count(&self, streams: u64, jobs: u64) {
        self.set(STREAMS, streams);
        self.set(JOBS, jobs);
    }

    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.get(STREAMS), self.get(JOBS))
    }

    pub(crate) fn announce(&self, ending: Ending) {
        let number = match ending {
            Ending::Unannounced => 0,
            Ending::Stops => 1,
            Ending::HandsOver { .. } => 2,
        };
        self.set(ENDING, number);
    }

    /// Announces the end for another program. False if a path is too long or invalid.
    pub(crate) fn ask_for_hand_over(&self, program: &Path, config: &Path, state: BorrowedFd<'_>) -> bool {
        for (at, length, path) in [(PROGRAM, PROGRAM_BYTES, program), (CONFIG, CONFIG_BYTES, config)] {
            let bytes = path.as_os_str().as_bytes();
            let is_path = CString::new(bytes).is_ok() && bytes.len() < MOST_PATH_BYTES;
            if !is_path || !self.0.write(at, bytes) {
                return false;
            }
            self.set(length, bytes.len() as u64);
        }
        self.set(STATE, state.as_raw_fd() as u64);
        self.set(ENDING, 2);
        true
    }

    /// The end that the last worker announced.
    pub(crate) fn ending(&self) -> Ending {
        let path = |at, length| {
            let bytes = self.0.read(at, self.get(length) as usize);
            PathBuf::from(OsString::from_vec(bytes.unwrap_or_default()))
        };
        match self.get(ENDING) {
            0 => Ending::Unannounced,
            2 => Ending::HandsOver {
                program: path(PROGRAM, PROGRAM_BYTES),
                config: path(CONFIG, CONFIG_BYTES),
                state: self.get(STATE) as RawFd,
            },
            _ => Ending::Stops,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn an_end_is_unannounced_until_it_is_announced() {
        let memory = Memory::new().unwrap();
        assert_eq!(memory.ending(), Ending::Unannounced);
        let state = std::fs::File::open("/dev/null").unwrap();
        let (program, config) = (Path::new("/bin/causeway"), Path::new("/etc/gateway.toml"));
        assert!(memory.ask_for_hand_over(program, config, state.as_fd()));
        let asked = Ending::HandsOver {
            program: program.into(),
            config: config.into(),
            state: state.as_raw_fd(),
        };
        assert_eq!(memory.ending(), asked);
        memory.begin();
        assert_eq!(memory.ending(), Ending::Unannounced);
        let long = "x".repeat(MOST_PATH_BYTES);
        assert!(!memory.ask_for_hand_over(Path::new(&long), config, state.as_fd()));
        assert_eq!(memory.ending(), Ending::Unannounced);
        memory.announce(Ending::Stops);
        assert_eq!(memory.ending(), Ending::Stops);
    }
}
