//! Where a block is: in a slot of a file, or in ordinary memory.
#![allow(unsafe_code)]

use crate::mapping::PAGE;
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

/// Bytes of a block: room for four of the largest frames of a tunnel, enough to keep the kernel busy between
/// two rounds of a driver.
pub const BLOCK_BYTES: usize = 4 * (16 + 60 * 1024);

pub(crate) const HEADER_BYTES: usize = 64;
pub(crate) const SLOT_BYTES: usize = (HEADER_BYTES + BLOCK_BYTES).next_multiple_of(PAGE);

/// A block's address and number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) begin: NonNull<u8>,
    pub(crate) number: u32,
}

// SAFETY: an address is not tied to any thread; whoever has it has the block.
unsafe impl Send for Place {}

/// A number of a block's header.
pub(crate) fn number<'a>(place: Place, index: usize) -> &'a AtomicU64 {
    // SAFETY: the number is within the header, which is aligned and lasts as long as the arena; every bit
    // pattern is a number.
    unsafe { place.begin.cast::<AtomicU64>().add(index).as_ref() }
}

fn layout() -> Layout {
    Layout::from_size_align(SLOT_BYTES, HEADER_BYTES).unwrap_or(Layout::new::<u64>())
}

/// A block of ordinary memory, whose number no block in a file has.
pub(crate) fn heap_block() -> Place {
    // SAFETY: the layout has a size.
    let begin = unsafe { alloc_zeroed(layout()) };
    let Some(begin) = NonNull::new(begin) else {
        handle_alloc_error(layout())
    };
    Place {
        begin,
        number: u32::MAX,
    }
}

/// Frees a block of ordinary memory.
pub(crate) fn release(place: Place) {
    // SAFETY: the memory comes from `heap_block`, and nobody uses it any more.
    unsafe { dealloc(place.begin.as_ptr(), layout()) };
}
