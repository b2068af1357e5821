//! Locks of files that are released when they are dropped. Closing the file would not release them: a process
//! that another thread is just starting has the file open, too, until it executes its program.

use std::fs::{File, TryLockError};
use std::io;

/// A file's lock, held until this value is dropped or the process ends.
#[derive(Debug)]
pub struct Lock(File);

impl Lock {
    /// Takes a file's lock; `None` if somebody else has it.
    ///
    /// # Errors
    /// Those of the file system, which may not support locks.
    pub fn take(file: File) -> io::Result<Option<Lock>> {
        match file.try_lock() {
            Ok(()) => Ok(Some(Lock(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// The same, except that on a file system without locks it returns a lock that keeps nobody out.
    pub fn take_if_there_are_any(file: File) -> Option<Lock> {
        let is_taken = matches!(file.try_lock(), Err(TryLockError::WouldBlock));
        (!is_taken).then_some(Lock(file))
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // The lock is released with the end of the process in any case.
        let _ = self.0.unlock();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_was_dropped_is_free_though_another_process_has_the_file_open_still() {
        let directory = tempfile::tempdir().unwrap();
        let open = || File::create(directory.path().join("lock")).unwrap();
        let file = open();
        let duplicate = file.try_clone().unwrap();
        let lock = Lock::take(file).unwrap().unwrap();
        assert!(Lock::take(open()).unwrap().is_none());
        assert!(Lock::take_if_there_are_any(open()).is_none());
        drop(lock);
        assert!(Lock::take(open()).unwrap().is_some());
        assert!(Lock::take_if_there_are_any(open()).is_some());
        drop(duplicate);
    }
}
