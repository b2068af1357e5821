//! Blocks of bytes by number.
//!
//! ```text
//! file: [ page: which block is being read into | slot 0 | slot 1 | ... ]     slot: [ header | bytes ]
//! ```
//! A block that is given back is used again only after [`Arena::reclaim`], because a record that names it is
//! the next process's only way to its contents. Blocks of an arena without a file are ordinary memory.
#![allow(unsafe_code)]

use crate::free::{Free, SPARE};
use crate::mapping::{self, Mapping, PAGE};
use crate::place::{BLOCK_BYTES, HEADER_BYTES, Place, SLOT_BYTES, heap_block, number, release};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// How many slots are mapped at once: 8 MiB.
const SLOTS: usize = 32;

/// The owner of the blocks of all queues.
pub(crate) const QUEUES: u64 = u64::MAX;

/// Most slots: more than any gateway uses, 16 GiB.
const MOST_SLOTS: usize = 1 << 16;

// Positions of the numbers in a header.
const OWNER: usize = 0;
const SERIAL: usize = 1;
const FILLED: usize = 2;
const STREAM: usize = 3;
const POSITION: usize = 4;
const DONE: usize = 5;

/// The source of blocks. Clones are the same arena.
#[derive(Debug, Clone)]
pub struct Arena(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// `None` if blocks end with this process.
    file: Option<OwnedFd>,
    /// The first page of the file.
    front: Option<Mapping>,
    state: Mutex<State>,
    /// Whether nothing is written down any more, so that blocks end with this process.
    is_private: AtomicBool,
}

#[derive(Debug)]
struct State {
    extents: Vec<Mapping>,
    free: Free,
    /// Blocks that may be reused once everything that is known has been written down.
    given_back: Vec<Place>,
    serial: u64,
    /// Whether this process counts as killed: nothing is given back any more.
    is_abandoned: bool,
}

impl State {
    fn new() -> State {
        State {
            extents: Vec::new(),
            free: Free::new(),
            given_back: Vec::new(),
            serial: 0,
            is_abandoned: false,
        }
    }
}

/// A block, which only its holder may use. It is given back when this is dropped.
#[derive(Debug)]
pub struct Block {
    place: Place,
    arena: Arena,
}

// SAFETY: its memory is not tied to any thread.
unsafe impl Send for Block {}
// SAFETY: through a shared reference, only bytes and atomic numbers are read.
unsafe impl Sync for Block {}

/// What a process that has ended was reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// The stream.
    pub stream: u32,
    /// The first byte's position in it.
    pub position: u64,
    /// Where that byte was to be put, counted from the end of what the block is filled with.
    pub offset: usize,
}

/// A block that an earlier process has left.
#[derive(Debug)]
pub struct Found {
    /// The block, which may be used again when this is dropped.
    pub block: Block,
    /// The number of its owner.
    pub owner: u64,
    /// Its serial number: blocks that were taken earlier have lower ones.
    pub serial: u64,
    /// What was being read into it.
    pub reading: Option<Reading>,
}

impl Found {
    /// Whether it belonged to a queue.
    pub fn is_of_queue(&self) -> bool {
        self.owner == QUEUES
    }
}

impl Arena {
    /// An arena of ordinary memory.
    pub fn private() -> Arena {
        Arena(Arc::new(Inner {
            file: None,
            front: None,
            state: Mutex::new(State::new()),
            is_private: AtomicBool::new(true),
        }))
    }

    /// An arena whose blocks outlive this process, in a file of its own.
    ///
    /// # Errors
    /// Those of memfd_create(2), ftruncate(2) and mmap(2).
    pub fn shared() -> io::Result<Arena> {
        Arena::from_file(mapping::file("causeway-blocks")?)
    }

    /// Opens the arena in a file that an earlier process has filled; returns the blocks in it that have an
    /// owner.
    ///
    /// # Errors
    /// Those of fstat(2) and mmap(2), or that the file does not contain an arena.
    pub fn open(file: OwnedFd) -> io::Result<(Arena, Vec<Found>)> {
        let length = nix::sys::stat::fstat(&file)?.st_size;
        let length = usize::try_from(length).unwrap_or(0).saturating_sub(PAGE);
        let extents = length / (SLOTS * SLOT_BYTES);
        let is_arena = length.is_multiple_of(SLOTS * SLOT_BYTES) && extents <= MOST_SLOTS / SLOTS;
        if !is_arena {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let arena = Arena::from_file(file)?;
        let mut found = Vec::new();
        let mut state = arena.state();
        for _ in 0..extents {
            arena.extend(&mut state)?;
        }
        let all = state.free.take_all();
        drop(state);
        let reading = arena.0.front.as_ref();
        let reading = reading.map_or(0, |front| front.number(0).load(Ordering::Acquire));
        for place in all {
            let block = Block {
                place,
                arena: arena.clone(),
            };
            let owner = block.number(OWNER).load(Ordering::Acquire);
            if owner == 0 {
                continue;
            }
            let get = |index| block.number(index).load(Ordering::Acquire);
            let is_read_into = reading == u64::from(place.number) + 1;
            found.push(Found {
                owner,
                serial: get(SERIAL),
                reading: is_read_into.then(|| Reading {
                    stream: get(STREAM) as u32,
                    position: get(POSITION),
                    offset: block.filled(),
                }),
                block,
            });
        }
        // Blocks without an owner can be used at once.
        arena.reclaim();
        found.sort_unstable_by_key(|found| found.serial);
        arena.state().serial = found.last().map_or(0, |found| found.serial);
        Ok((arena, found))
    }

    fn from_file(file: OwnedFd) -> io::Result<Arena> {
        let front = Mapping::new(file.as_fd(), 0, PAGE)?;
        Ok(Arena(Arc::new(Inner {
            file: Some(file),
            front: Some(front),
            state: Mutex::new(State::new()),
            is_private: AtomicBool::new(false),
        })))
    }

    /// The file's descriptor, through which another process can open it.
    pub fn descriptor(&self) -> Option<RawFd> {
        self.0.file.as_ref().map(AsRawFd::as_raw_fd)
    }

    /// Another descriptor of the file.
    ///
    /// # Errors
    /// Those of dup(2), or that there is no file.
    pub fn duplicate(&self) -> io::Result<OwnedFd> {
        let file = self.0.file.as_ref();
        file.ok_or(io::ErrorKind::NotFound)?.try_clone()
    }

    /// Makes blocks end with this process: from now on, nobody writes down what is in them.
    pub fn end_sharing(&self) {
        self.0.is_private.store(true, Ordering::Relaxed);
        self.reclaim();
    }

    /// Makes this process change nothing more, as if it had been killed. This is for tests of what follows.
    pub fn abandon(&self) {
        self.state().is_abandoned = true;
    }

    /// Whether its blocks outlive this process.
    pub fn is_shared(&self) -> bool {
        !self.0.is_private.load(Ordering::Relaxed)
    }

    /// Gives an empty block to an owner, whose number is not 0. If the file cannot grow, the block's memory
    /// belongs to this process alone, and ends with it.
    pub fn block(&self, owner: u64) -> Block {
        let mut state = self.state();
        if state.free.is_empty() && self.extend(&mut state).is_err() {
            state.free.put(heap_block());
        }
        let place = state.free.take().unwrap_or_else(heap_block);
        state.serial += 1;
        let serial = state.serial;
        drop(state);
        let block = Block {
            place,
            arena: self.clone(),
        };
        block.number(FILLED).store(0, Ordering::Release);
        block.number(DONE).store(0, Ordering::Release);
        block.number(SERIAL).store(serial, Ordering::Release);
        block.number(OWNER).store(owner, Ordering::Release);
        block
    }

    /// Allows blocks that were given back to be used again, because everything that is known has been written
    /// down.
    pub fn reclaim(&self) {
        self.reclaim_at(Instant::now());
    }

    fn reclaim_at(&self, now: Instant) {
        let mut state = self.state();
        for place in std::mem::take(&mut state.given_back) {
            self.free(&mut state, place);
        }
        if let Some(file) = &self.0.file {
            let idle = state.free.idle(now).iter();
            for place in idle.filter(|place| place.number != u32::MAX) {
                mapping::forget(file.as_fd(), offset_of(place.number), SLOT_BYTES);
            }
        }
    }

    fn free(&self, state: &mut State, place: Place) {
        number(place, OWNER).store(0, Ordering::Release);
        if place.number == u32::MAX && state.free.warm() >= SPARE {
            return release(place);
        }
        state.free.put(place);
    }

    fn extend(&self, state: &mut State) -> io::Result<()> {
        let Some(file) = &self.0.file else {
            state.free.put(heap_block());
            return Ok(());
        };
        let first = state.extents.len() * SLOTS;
        if first >= MOST_SLOTS {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        // The number fits: it is below MOST_SLOTS.
        let extent = Mapping::new(file.as_fd(), offset_of(first as u32), SLOTS * SLOT_BYTES)?;
        for slot in (0..SLOTS).rev() {
            state.free.put(Place {
                begin: extent.at(slot * SLOT_BYTES),
                number: (first + slot) as u32,
            });
        }
        state.extents.push(extent);
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        let all = state
            .free
            .take_all()
            .into_iter()
            .chain(state.given_back.drain(..));
        all.filter(|place| place.number == u32::MAX).for_each(release);
    }
}

impl Block {
    /// Returns its number, for a record: the next process finds it under this number.
    pub fn id(&self) -> u32 {
        self.place.number
    }

    /// Lends all of its bytes.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: only the holder may use the block's bytes.
        unsafe { std::slice::from_raw_parts(self.place.begin.add(HEADER_BYTES).as_ptr(), BLOCK_BYTES) }
    }

    /// Lends all of its bytes to be written.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: only the holder may use the block's bytes.
        unsafe { std::slice::from_raw_parts_mut(self.place.begin.add(HEADER_BYTES).as_ptr(), BLOCK_BYTES) }
    }

    /// How many of its bytes are valid.
    pub fn filled(&self) -> usize {
        (self.number(FILLED).load(Ordering::Acquire) as usize).min(BLOCK_BYTES)
    }

    /// Sets how many of its bytes are valid.
    pub fn set_filled(&mut self, filled: usize) {
        self.number(FILLED).store(filled as u64, Ordering::Release);
    }

    /// How many of the valid bytes, from the first one on, are no longer needed.
    pub fn done(&self) -> usize {
        (self.number(DONE).load(Ordering::Acquire) as usize).min(BLOCK_BYTES)
    }

    /// Sets how many of the valid bytes, from the first one on, are no longer needed.
    pub fn set_done(&mut self, done: usize) {
        self.number(DONE).store(done as u64, Ordering::Release);
    }

    /// Notes that bytes of a stream, from this position on, are about to be read to the place where its valid
    /// bytes end.
    pub fn note_reading(&mut self, stream: u32, position: u64) {
        let Some(front) = &self.arena.0.front else {
            return;
        };
        // A process that finds the block's number also finds the rest.
        front.number(0).store(0, Ordering::Release);
        self.number(STREAM).store(stream.into(), Ordering::Release);
        self.number(POSITION).store(position, Ordering::Release);
        let number = u64::from(self.place.number) + 1;
        front.number(0).store(number, Ordering::Release);
    }

    /// Clears the note: the read was completed, or nothing was read.
    pub fn end_reading(&self) {
        if let Some(front) = &self.arena.0.front {
            front.number(0).store(0, Ordering::Release);
        }
    }

    fn number(&self, index: usize) -> &AtomicU64 {
        number(self.place, index)
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        let mut state = self.arena.state();
        if state.is_abandoned {
            // The file now belongs to the next process.
        } else if self.arena.is_shared() && self.place.number != u32::MAX {
            state.given_back.push(self.place);
        } else {
            self.arena.free(&mut state, self.place);
        }
    }
}

fn offset_of(slot: u32) -> u64 {
    (PAGE + slot as usize * SLOT_BYTES) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::BorrowedFd;
    use std::time::Duration;

    fn again(arena: &Arena) -> (Arena, Vec<Found>) {
        let file = arena.0.file.as_ref().unwrap().try_clone().unwrap();
        Arena::open(file).unwrap()
    }

    #[test]
    fn what_lies_in_a_block_is_found_by_whoever_opens_the_file() {
        let arena = Arena::shared().unwrap();
        let mut blocks: Vec<Block> = (1..=40).map(|owner| arena.block(owner)).collect();
        for (index, block) in blocks.iter_mut().enumerate() {
            block.bytes_mut()[..3].copy_from_slice(&[index as u8; 3]);
            block.set_filled(3);
        }
        blocks[7].note_reading(9, 1000);
        drop(blocks.remove(0));
        let (_, found) = again(&arena);
        assert_eq!(
            found.len(),
            40,
            "one given back is kept until what is known is written down"
        );
        for found in &found {
            let number = found.owner as u8 - 1;
            assert_eq!(found.block.bytes()[..found.block.filled()], [number; 3]);
            let reading = (number == 7).then_some(Reading {
                stream: 9,
                position: 1000,
                offset: 3,
            });
            assert_eq!(found.reading, reading);
        }
        arena.reclaim();
        let (next, found) = again(&arena);
        assert_eq!(found.len(), 39);
        let serials: Vec<u64> = found.iter().map(|found| found.serial).collect();
        assert!(serials.is_sorted());
        assert!(next.block(5).number(SERIAL).load(Ordering::Acquire) > 40);
    }

    #[test]
    fn blocks_are_used_again_and_their_memory_is_given_back() {
        for arena in [Arena::shared().unwrap(), Arena::private()] {
            for _ in 0..3 {
                let mut blocks: Vec<Block> = (0..100).map(|_| arena.block(1)).collect();
                for block in &mut blocks {
                    assert_eq!(block.filled(), 0);
                    block.bytes_mut().fill(1);
                    block.set_filled(BLOCK_BYTES);
                }
                drop(blocks);
                arena.reclaim();
            }
            let now = Instant::now();
            (10..13).for_each(|seconds| arena.reclaim_at(now + Duration::from_secs(seconds)));
            let Some(file) = arena.descriptor() else { continue };
            assert!(arena.state().extents.len() <= 4);
            // SAFETY: the arena has the file open.
            let stat = nix::sys::stat::fstat(unsafe { BorrowedFd::borrow_raw(file) }).unwrap();
            let kept = stat.st_blocks as usize * 512 / SLOT_BYTES;
            assert!(kept <= SPARE + 1, "{kept} blocks keep their memory");
        }
    }

    #[test]
    fn a_file_that_is_no_arena_is_refused() {
        let file = mapping::file("other").unwrap();
        nix::unistd::ftruncate(&file, 12_345).unwrap();
        assert!(Arena::open(file).is_err());
    }
}
