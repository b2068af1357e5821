//! A part of a file in memory, where this process can read and write it.
#![allow(unsafe_code)]

use nix::sys::memfd::{MFdFlags, memfd_create};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, AtomicU64};

/// Bytes of a page.
pub(crate) const PAGE: usize = 4096;

/// A file that takes no memory yet.
pub(crate) fn file(name: &str) -> io::Result<OwnedFd> {
    Ok(memfd_create(name, MFdFlags::MFD_CLOEXEC)?)
}

/// Mapped bytes, which do not move until this is dropped.
#[derive(Debug)]
pub(crate) struct Mapping {
    begin: NonNull<u8>,
    bytes: usize,
}

impl Mapping {
    /// Maps `bytes` from an offset on, both in whole pages; the file is made long enough.
    ///
    /// # Errors
    /// Those of ftruncate(2) and mmap(2).
    pub(crate) fn new(file: BorrowedFd<'_>, offset: u64, bytes: usize) -> io::Result<Mapping> {
        let (from, until) = (signed(offset)?, signed(offset + bytes as u64)?);
        if nix::sys::stat::fstat(file)?.st_size < until {
            nix::unistd::ftruncate(file, until)?;
        }
        // SAFETY: this makes a new mapping at an address that the kernel chooses.
        let begin = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                from,
            )
        };
        if begin == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let begin = NonNull::new(begin.cast()).ok_or(io::ErrorKind::AddrNotAvailable)?;
        Ok(Mapping { begin, bytes })
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes
    }

    /// The address of a byte.
    pub(crate) fn at(&self, offset: usize) -> NonNull<u8> {
        assert!(offset < self.bytes, "beyond the mapping");
        // SAFETY: the offset is within the mapping.
        unsafe { self.begin.add(offset) }
    }

    /// Lends a number at an offset that is a multiple of its size.
    pub(crate) fn number(&self, offset: usize) -> &AtomicU64 {
        assert!(offset.is_multiple_of(8) && offset + 8 <= self.bytes);
        // SAFETY: the number is within the mapping, which is aligned to pages and lasts as long as this;
        // every bit pattern is a number.
        unsafe { self.at(offset).cast().as_ref() }
    }

    /// Lends bytes that another process may be writing; `None` if there are fewer.
    pub(crate) fn atomic_bytes(&self, from: usize, length: usize) -> Option<&[AtomicU8]> {
        if from.checked_add(length)? > self.bytes {
            return None;
        }
        // SAFETY: the bytes are within the mapping, which lasts as long as this; every bit pattern is a byte.
        Some(unsafe { std::slice::from_raw_parts(self.begin.add(from).cast().as_ptr(), length) })
    }

    /// Lends bytes.
    pub(crate) fn bytes(&self, from: usize, length: usize) -> &[u8] {
        assert!(from + length <= self.bytes, "beyond the mapping");
        // SAFETY: the bytes are within the mapping. Whoever writes has `&mut self`.
        unsafe { std::slice::from_raw_parts(self.begin.add(from).as_ptr(), length) }
    }

    /// Lends bytes to be written.
    pub(crate) fn bytes_mut(&mut self, from: usize, length: usize) -> &mut [u8] {
        assert!(from + length <= self.bytes, "beyond the mapping");
        // SAFETY: the bytes are within the mapping, and nobody else in this process refers to them.
        unsafe { std::slice::from_raw_parts_mut(self.begin.add(from).as_ptr(), length) }
    }
}

// SAFETY: the mapping is not tied to any thread.
unsafe impl Send for Mapping {}
// SAFETY: through a shared reference, only atomic numbers are written.
unsafe impl Sync for Mapping {}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping belongs to this value, and references to it end with it.
        unsafe { libc::munmap(self.begin.as_ptr().cast(), self.bytes) };
    }
}

/// Gives back the memory of a part of a file, whose bytes are then zero.
pub(crate) fn forget(file: BorrowedFd<'_>, offset: u64, bytes: usize) {
    let (Ok(offset), Ok(bytes)) = (signed(offset), signed(bytes as u64)) else {
        return;
    };
    let flags =
        nix::fcntl::FallocateFlags::FALLOC_FL_PUNCH_HOLE | nix::fcntl::FallocateFlags::FALLOC_FL_KEEP_SIZE;
    // If that is refused, the memory is kept, and used again.
    let _ = nix::fcntl::fallocate(file, flags, offset, bytes);
}

fn signed(number: u64) -> io::Result<i64> {
    i64::try_from(number).map_err(|_| io::ErrorKind::FileTooLarge.into())
}
