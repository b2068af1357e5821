//! Counts the turns of loops that a far gateway's bytes drive, so that a test can say that the work for a
//! byte is bounded. It counts where debug assertions are on, each thread for itself; elsewhere it does
//! nothing.

#[cfg(debug_assertions)]
use std::cell::Cell;

#[cfg(debug_assertions)]
thread_local! {
    static TAKEN: Cell<u64> = const { Cell::new(0) };
}

/// A loop turns once more.
pub(crate) fn step() {
    #[cfg(debug_assertions)]
    TAKEN.with(|taken| taken.set(taken.get() + 1));
}

/// Steps of this thread so far, where they are counted; for tests and the fuzz target.
#[doc(hidden)]
pub fn taken() -> u64 {
    #[cfg(debug_assertions)]
    return TAKEN.with(Cell::get);
    #[cfg(not(debug_assertions))]
    0
}
