//! Memory that two processes share, and that outlives either: a file in memory that both have mapped.
//!
//! One process writes at a time. The other reads it when that one has ended, or reads single numbers.
#![allow(unsafe_code)]

use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::unistd::ftruncate;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// The numbers at its beginning, which are read and written whole.
pub(crate) const NUMBERS: usize = 64;

const NUMBERS_BYTES: usize = NUMBERS * size_of::<AtomicU64>();

/// Memory that the children of this process share with it.
#[derive(Debug)]
pub(crate) struct SharedMemory {
    begin: NonNull<u8>,
    /// The length of what lies behind the numbers.
    bytes: usize,
}

impl SharedMemory {
    /// Maps that many bytes, zero at first, behind [`NUMBERS`]. Pages that nobody writes take no memory.
    ///
    /// # Errors
    /// Those of memfd_create(2), ftruncate(2) and mmap(2).
    pub(crate) fn new(bytes: usize) -> io::Result<SharedMemory> {
        let length = NUMBERS_BYTES + bytes;
        let file = memfd_create("causeway-keeper", MFdFlags::MFD_CLOEXEC)?;
        ftruncate(&file, length as libc::off_t)?;
        // SAFETY: a new mapping at an address that the kernel chooses.
        let begin = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        if begin == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let begin = NonNull::new(begin.cast()).ok_or(io::ErrorKind::AddrNotAvailable)?;
        Ok(SharedMemory { begin, bytes })
    }

    /// Lends a number.
    pub(crate) fn number(&self, index: usize) -> &AtomicU64 {
        assert!(index < NUMBERS, "there are {NUMBERS} numbers");
        // SAFETY: it lies within the mapping, which is aligned to pages and lasts as long as this; every bit
        // pattern is a number.
        unsafe { &*self.begin.cast::<AtomicU64>().add(index).as_ptr() }
    }

    /// Writes bytes at an offset behind the numbers; false where they do not fit.
    pub(crate) fn write(&self, at: usize, bytes: &[u8]) -> bool {
        let Some(places) = self.places(at, bytes.len()) else {
            return false;
        };
        for (place, byte) in places.iter().zip(bytes) {
            place.store(*byte, Ordering::Relaxed);
        }
        true
    }

    /// Reads so many bytes at an offset behind the numbers; none where there are not as many.
    pub(crate) fn read(&self, at: usize, length: usize) -> Option<Vec<u8>> {
        let places = self.places(at, length)?;
        Some(places.iter().map(|place| place.load(Ordering::Relaxed)).collect())
    }

    fn places(&self, at: usize, length: usize) -> Option<&[AtomicU8]> {
        if at.checked_add(length)? > self.bytes {
            return None;
        }
        // SAFETY: they lie within the mapping, which lasts as long as this; every bit pattern is a byte.
        let places =
            unsafe { NonNull::slice_from_raw_parts(self.begin.add(NUMBERS_BYTES + at).cast(), length) };
        // SAFETY: as above; nobody refers to these bytes in another way.
        Some(unsafe { places.as_ref() })
    }
}

// SAFETY: the mapping belongs to no thread.
unsafe impl Send for SharedMemory {}
// SAFETY: all of it is read and written atomically.
unsafe impl Sync for SharedMemory {}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        // SAFETY: the mapping is this one's, and references to it end with it.
        unsafe { libc::munmap(self.begin.as_ptr().cast(), NUMBERS_BYTES + self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    #[test]
    fn what_is_written_is_read_and_what_does_not_fit_is_refused() {
        let memory = SharedMemory::new(100).unwrap();
        memory.number(NUMBERS - 1).store(u64::MAX, Ordering::Release);
        assert!(memory.write(90, b"0123456789"));
        assert_eq!(memory.read(90, 10).as_deref(), Some(&b"0123456789"[..]));
        assert_eq!(memory.read(0, 2).as_deref(), Some(&[0, 0][..]));
        assert!(!memory.write(91, b"0123456789"));
        assert_eq!(memory.read(usize::MAX, 2), None);
        assert_eq!(memory.number(NUMBERS - 1).load(Ordering::Acquire), u64::MAX);
    }
}
