//! Memory that outlives the process that fills it, so that the next process can go on where that one was
//! killed.
//!
//! Two kinds, each in a file in memory (memfd_create(2)) whose descriptor both processes have: [`Arena`] has
//! blocks for bytes in transit, some of them in a [`Queue`]; [`Journal`] has records of what is known. One
//! process writes at a time. Whatever it was doing when it was killed, the next one finds whole frames in
//! blocks and the records of the last commit.

mod arena;
mod free;
mod half;
mod heap;
mod journal;
mod mapping;
mod place;
mod queue;
mod record;
mod shared;

use std::io;
use std::os::fd::OwnedFd;

pub use arena::{Arena, Block, Found, Reading};
pub use heap::return_free_heap;
pub use journal::Journal;
pub use place::BLOCK_BYTES;
pub use queue::{Places, Queue};
pub use record::{Key, Record};
pub use shared::SharedMemory;

/// Makes the files of an arena and of a journal, empty.
///
/// # Errors
/// Those of memfd_create(2).
pub fn files() -> io::Result<[OwnedFd; 3]> {
    Ok([
        mapping::file("causeway-blocks")?,
        mapping::file("causeway-journal")?,
        mapping::file("causeway-journal")?,
    ])
}
