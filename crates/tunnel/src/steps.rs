//! Counts the turns of loops that a far gateway's bytes drive, so that a test can check that the work per
//! byte is bounded. It counts only with debug assertions, and separately for each thread.

#[cfg(debug_assertions)]
use std::cell::Cell;

#[cfg(debug_assertions)]
thread_local! {
    static TAKEN: Cell<u64> = const { Cell::new(0) };
}

/// Counts one turn of a loop.
pub(crate) fn step() {
    #[cfg(debug_assertions)]
    TAKEN.with(|taken| taken.set(taken.get() + 1));
}

/// How many steps this thread has taken, if they are counted; for tests and the fuzz target.
#[doc(hidden)]
pub fn taken() -> u64 {
    #[cfg(debug_assertions)]
    return TAKEN.with(Cell::get);
    #[cfg(not(debug_assertions))]
    0
}
