//! One of the two files of a journal.

use crate::mapping::{self, Mapping, PAGE};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::Ordering;

/// The least space for records in a half. It is small, so that they stay in a processor's cache.
pub(crate) const SHORTEST: usize = 256 * 1024;

#[derive(Debug)]
pub(crate) struct Half {
    pub(crate) file: OwnedFd,
    pub(crate) mapping: Mapping,
    /// The offset up to which it may have memory.
    reached: usize,
}

impl Half {
    pub(crate) fn from_file(file: OwnedFd) -> io::Result<Half> {
        let length = usize::try_from(nix::sys::stat::fstat(&file)?.st_size).unwrap_or(0);
        let length = length.next_multiple_of(PAGE).max(PAGE + SHORTEST);
        let mapping = Mapping::new(file.as_fd(), 0, length)?;
        Ok(Half {
            file,
            mapping,
            reached: length,
        })
    }

    pub(crate) fn get(&self, number: usize) -> u64 {
        self.mapping.number(number).load(Ordering::Acquire)
    }

    pub(crate) fn set(&self, number: usize, value: u64) {
        self.mapping.number(number).store(value, Ordering::Release);
    }

    /// Makes space up to byte `end`.
    pub(crate) fn reach(&mut self, end: usize) -> io::Result<()> {
        if end > self.mapping.len() {
            let length = end.max(2 * self.mapping.len()).next_multiple_of(PAGE);
            self.mapping = Mapping::new(self.file.as_fd(), 0, length)?;
        }
        self.reached = self.reached.max(end);
        Ok(())
    }

    /// Gives back the memory from offset `from` on.
    pub(crate) fn give_back(&mut self, from: usize) {
        let from = from.next_multiple_of(PAGE);
        if self.reached > from {
            let length = self.mapping.len().saturating_sub(from);
            mapping::forget(self.file.as_fd(), from as u64, length);
            self.reached = from;
        }
    }
}
