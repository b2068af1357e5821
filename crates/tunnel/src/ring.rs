//! The bytes that one lane must carry: `[acknowledged | sent | unsent]`. They are kept until the far side has
//! them, so that nothing is lost with a lane.
//!
//! The bytes are in blocks that are reused once these are acknowledged. A frame never crosses the end of a
//! block, so that one socket can be read straight into the place from which another is written.

use crate::frame::{HEADER_BYTES, Header, MAX_PAYLOAD};
use crate::steps;
use causeway_memory::{Arena, BLOCK_BYTES};
use std::collections::VecDeque;

const _: () = assert!(BLOCK_BYTES >= 4 * (HEADER_BYTES + MAX_PAYLOAD));

/// The arena from which a tunnel's blocks come, and the number that marks them as the tunnel's.
#[derive(Debug, Clone)]
pub(crate) struct Shelf {
    pub(crate) arena: Arena,
    pub(crate) owner: u64,
}

impl Shelf {
    pub(crate) fn private() -> Shelf {
        Shelf {
            arena: Arena::private(),
            owner: 1,
        }
    }
}

#[derive(Debug)]
struct Block {
    memory: causeway_memory::Block,
    filled: usize,
    /// The position of its first byte in the lane.
    start: u64,
}

impl Block {
    fn end(&self) -> u64 {
        self.start + self.filled as u64
    }

    fn good(&self) -> &[u8] {
        &self.memory.bytes()[..self.filled]
    }
}

/// Invariants: `acked <= sent <= end`; the blocks contain every byte from `acked` to `end`, and each begins
/// with a frame.
#[derive(Debug)]
pub(crate) struct Ring {
    shelf: Shelf,
    blocks: VecDeque<Block>,
    acked: u64,
    sent: u64,
    end: u64,
}

impl Ring {
    pub(crate) fn new(shelf: Shelf) -> Ring {
        Ring {
            shelf,
            blocks: VecDeque::new(),
            acked: 0,
            sent: 0,
            end: 0,
        }
    }

    pub(crate) fn acked(&self) -> u64 {
        self.acked
    }

    pub(crate) fn sent_up_to(&self) -> u64 {
        self.sent
    }

    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// How many bytes the far side has not acknowledged, sent or not.
    pub(crate) fn kept(&self) -> u64 {
        self.end - self.acked
    }

    pub(crate) fn unsent_bytes(&self) -> u64 {
        self.end - self.sent
    }

    /// Returns space of at least `least` bytes for the next frame. [`Ring::commit`] says how many of them the
    /// frame has.
    pub(crate) fn space(&mut self, least: usize) -> &mut [u8] {
        debug_assert!(least <= BLOCK_BYTES);
        let fits = |block: &Block| BLOCK_BYTES - block.filled >= least;
        if !self.blocks.back().is_some_and(fits) {
            self.blocks.push_back(Block {
                memory: self.shelf.arena.block(self.shelf.owner),
                filled: 0,
                start: self.end,
            });
        }
        self.blocks.back_mut().map_or(&mut [], |block| {
            let filled = block.filled;
            &mut block.memory.bytes_mut()[filled..]
        })
    }

    /// Does the same as [`Ring::space`], for bytes of a stream that are about to be read: if this process is
    /// killed before it commits them as a frame, the next one finds them.
    pub(crate) fn space_for(&mut self, least: usize, stream: u32, position: u64) -> &mut [u8] {
        self.space(least);
        let Some(block) = self.blocks.back_mut() else {
            return &mut [];
        };
        block.memory.note_reading(stream, position);
        let filled = block.filled;
        &mut block.memory.bytes_mut()[filled..]
    }

    /// Records that no read is in progress any more.
    pub(crate) fn end_reading(&self) {
        if let Some(block) = self.blocks.back() {
            block.memory.end_reading();
        }
    }

    /// Says that the first `count` bytes of the last [`Ring::space`] are a complete frame.
    pub(crate) fn commit(&mut self, count: usize) {
        if let Some(block) = self.blocks.back_mut() {
            block.filled += count;
            block.memory.set_filled(block.filled);
            self.end += count as u64;
        }
    }

    /// Appends a frame.
    pub(crate) fn put(&mut self, frame: &[u8]) {
        self.space(frame.len())[..frame.len()].copy_from_slice(frame);
        self.commit(frame.len());
    }

    /// The next bytes for the kernel, as many as are contiguous.
    pub(crate) fn unsent(&self) -> &[u8] {
        let sent = self.sent;
        let Some(first) = self.blocks.iter().rposition(|block| block.start <= sent) else {
            return &[];
        };
        let block = &self.blocks[first];
        // If all of it is sent and there is a next block, that one starts at `sent` and was found first.
        &block.good()[(sent - block.start) as usize..]
    }

    /// Records that the kernel has accepted `count` bytes of [`Ring::unsent`].
    pub(crate) fn sent(&mut self, count: usize) {
        self.sent += count as u64;
        debug_assert!(self.sent <= self.end);
    }

    /// Records that the far side has every byte up to `position`. Returns false if that many were never sent.
    pub(crate) fn on_ack(&mut self, position: u64) -> bool {
        if position > self.sent {
            return false;
        }
        self.acked = self.acked.max(position);
        while self.blocks.len() > 1 && self.blocks.front().is_some_and(|block| block.end() <= self.acked) {
            steps::step();
            if let Some(mut block) = self.blocks.pop_front() {
                block.memory.set_done(block.filled);
            }
        }
        if let Some(block) = self.blocks.front_mut() {
            // The number fits: a block is shorter.
            let done = self.acked.saturating_sub(block.start).min(block.filled as u64);
            block.memory.set_done(done as usize);
        }
        if !self.shelf.arena.is_shared() {
            self.reclaim();
        }
        true
    }

    /// Reuses a block that is acknowledged to its end: what it contained is in the journal by now.
    pub(crate) fn reclaim(&mut self) {
        if let Some(block) = self.blocks.front_mut().filter(|_| self.acked == self.end) {
            (block.start, block.filled) = (self.end, 0);
            block.memory.set_filled(0);
            block.memory.set_done(0);
        }
    }

    /// Hands over the blocks, which must be kept until their frames are elsewhere.
    pub(crate) fn into_blocks(self) -> impl Iterator<Item = causeway_memory::Block> {
        self.blocks.into_iter().map(|block| block.memory)
    }

    /// The frames that end beyond `from` (at least [`Ring::acked`]), in order.
    pub(crate) fn frames_beyond(&self, from: u64) -> impl Iterator<Item = &[u8]> {
        let all = self
            .blocks
            .iter()
            .flat_map(|block| frames(block.good()).map(|(at, frame)| (block.start + at, frame)));
        all.filter(move |(start, frame)| start + frame.len() as u64 > from)
            .map(|(_, frame)| frame)
    }
}

/// Splits bytes into whole frames, each with the place where it begins.
pub(crate) fn frames(bytes: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let length = frame_length(&bytes[at..])?;
        let frame = (at as u64, bytes.get(at..at + length)?);
        at += length;
        Some(frame)
    })
}

/// The length of the frame with which `bytes` begin; `None` at the end.
pub(crate) fn frame_length(bytes: &[u8]) -> Option<usize> {
    let header = Header::decode(bytes.first_chunk()?).ok()?;
    Some(HEADER_BYTES + usize::from(header.length))
}

/// Frames that wait for a lane, in order.
#[derive(Debug, Default, Clone)]
pub(crate) struct Backlog {
    bytes: Vec<u8>,
    start: usize,
    /// How many bytes were removed in all.
    taken: u64,
}

impl Backlog {
    pub(crate) fn is_empty(&self) -> bool {
        self.start == self.bytes.len()
    }

    pub(crate) fn len(&self) -> u64 {
        (self.bytes.len() - self.start) as u64
    }

    /// How many bytes were removed, and how many were put in, in all.
    pub(crate) fn positions(&self) -> (u64, u64) {
        (self.taken, self.taken + self.len())
    }

    /// What was put in from `position` on, which is not beyond the end.
    pub(crate) fn since(&self, position: u64) -> &[u8] {
        let skipped = position.saturating_sub(self.taken) as usize;
        self.bytes.get(self.start + skipped..).unwrap_or_default()
    }

    pub(crate) fn push(&mut self, header: &[u8], payload: &[u8]) {
        self.bytes.extend_from_slice(header);
        self.bytes.extend_from_slice(payload);
    }

    /// Moves frames into `ring` until it has `unsent` bytes to send; true if no frames are left.
    pub(crate) fn move_to(&mut self, ring: &mut Ring, unsent: u64) -> bool {
        while ring.unsent_bytes() < unsent {
            let Some(length) = frame_length(&self.bytes[self.start..]) else {
                break;
            };
            ring.put(&self.bytes[self.start..self.start + length]);
            self.start += length;
            self.taken += length as u64;
        }
        if self.is_empty() {
            self.start = 0;
            self.bytes.clear();
            // After a cut the backlog may have had megabytes.
            self.bytes.shrink_to(BLOCK_BYTES);
        }
        self.is_empty()
    }
}

/// Compares what has not been removed yet.
impl PartialEq for Backlog {
    fn eq(&self, other: &Backlog) -> bool {
        self.since(0) == other.since(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Kind;

    fn frame(number: u32, length: usize) -> Vec<u8> {
        let header = Header {
            kind: Kind::Data,
            detail: 0,
            length: length as u16,
            stream: number,
            position: 0,
        };
        let mut bytes = header.encode().to_vec();
        bytes.resize(HEADER_BYTES + length, number as u8);
        bytes
    }

    #[test]
    fn bytes_leave_in_order_and_their_memory_is_used_again_once_acknowledged() {
        let mut ring = Ring::new(Shelf::private());
        let (mut wanted, mut got) = (Vec::new(), Vec::new());
        for number in 0..200 {
            let frame = frame(number, (number as usize * 7919) % MAX_PAYLOAD);
            ring.put(&frame);
            wanted.extend(frame);
            while ring.unsent_bytes() > 0 {
                let some = ring.unsent().len().min(50_000);
                got.extend_from_slice(&ring.unsent()[..some]);
                ring.sent(some);
            }
            assert!(ring.on_ack(ring.sent_up_to() - (number as u64 % 3) * 16));
            assert!(ring.blocks.len() <= 3);
        }
        assert!(got == wanted);
        assert!(ring.on_ack(ring.end()) && ring.kept() == 0);
        assert!(!ring.on_ack(ring.end() + 1));
    }

    #[test]
    fn frames_not_wholly_acknowledged_are_found_again() {
        let mut ring = Ring::new(Shelf::private());
        for number in 0..20 {
            ring.put(&frame(number, 50_000));
        }
        while ring.unsent_bytes() > 0 {
            ring.sent(ring.unsent().len());
        }
        let into_the_eighth = 7 * 50_016 + 20;
        assert!(ring.on_ack(into_the_eighth));
        let left: Vec<u8> = ring.frames_beyond(ring.acked()).map(|frame| frame[16]).collect();
        assert_eq!(left, (7..20).collect::<Vec<u8>>());
    }
}
