//! The process's heap.

/// Returns to the system what is free in this process's heap. glibc keeps freed blocks otherwise, in the hope
/// that they are needed again. For after something large has gone that will not come back.
pub fn return_free_heap() {
    // SAFETY: it takes no pointers, and holds glibc's own locks.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::malloc_trim(0);
    }
}
