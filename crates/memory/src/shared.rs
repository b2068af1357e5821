//! Numbers and a few bytes that two processes share.
//!
//! One process writes at a time. The other one reads after that has ended, or reads single numbers.

use crate::mapping::{self, Mapping};
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::AtomicU64;

/// How many numbers are at the beginning; each is read and written as a whole.
const NUMBERS: usize = 64;
const NUMBERS_BYTES: usize = NUMBERS * size_of::<AtomicU64>();

/// Memory that the children of this process share with it.
#[derive(Debug)]
pub struct SharedMemory(Mapping);

impl SharedMemory {
    /// Maps `bytes` bytes, which are zero at first, after 64 numbers. Pages that nobody writes take no
    /// memory.
    ///
    /// # Errors
    /// Those of memfd_create(2), ftruncate(2) and mmap(2).
    pub fn new(bytes: usize) -> io::Result<SharedMemory> {
        let file = mapping::file("causeway-keeper")?;
        let length = (NUMBERS_BYTES + bytes).next_multiple_of(mapping::PAGE);
        Ok(SharedMemory(Mapping::new(file.as_fd(), 0, length)?))
    }

    /// Lends a number.
    pub fn number(&self, index: usize) -> &AtomicU64 {
        assert!(index < NUMBERS, "there are {NUMBERS} numbers");
        self.0.number(index * size_of::<AtomicU64>())
    }

    /// Writes bytes at an offset after the numbers; false if they do not fit.
    pub fn write(&self, at: usize, bytes: &[u8]) -> bool {
        let places = self.0.atomic_bytes(NUMBERS_BYTES.saturating_add(at), bytes.len());
        let Some(places) = places else {
            return false;
        };
        for (place, byte) in places.iter().zip(bytes) {
            place.store(*byte, std::sync::atomic::Ordering::Relaxed);
        }
        true
    }

    /// Reads `length` bytes at an offset after the numbers; `None` if there are fewer.
    pub fn read(&self, at: usize, length: usize) -> Option<Vec<u8>> {
        let places = self.0.atomic_bytes(NUMBERS_BYTES.saturating_add(at), length)?;
        let load = |place: &std::sync::atomic::AtomicU8| place.load(std::sync::atomic::Ordering::Relaxed);
        Some(places.iter().map(load).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    #[test]
    fn what_is_written_is_read_and_what_does_not_fit_is_refused() {
        let memory = SharedMemory::new(mapping::PAGE - NUMBERS_BYTES).unwrap();
        let last = mapping::PAGE - NUMBERS_BYTES - 10;
        memory.number(NUMBERS - 1).store(u64::MAX, Ordering::Release);
        assert!(memory.write(last, b"0123456789"));
        assert_eq!(memory.read(last, 10).as_deref(), Some(&b"0123456789"[..]));
        assert_eq!(memory.read(0, 2).as_deref(), Some(&[0, 0][..]));
        assert!(!memory.write(last + 1, b"0123456789"));
        assert_eq!(memory.read(usize::MAX, 2), None);
        assert_eq!(memory.number(NUMBERS - 1).load(Ordering::Acquire), u64::MAX);
    }
}
