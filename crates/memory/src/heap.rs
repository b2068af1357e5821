//! The process's heap.

/// Returns the free memory in this process's heap to the system. Otherwise, glibc keeps freed blocks in the
/// hope that they are needed again. This is for when something large has gone that will not come back.
pub fn return_free_heap() {
    // SAFETY: it takes no pointers, and takes glibc's own locks.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::malloc_trim(0);
    }
}
