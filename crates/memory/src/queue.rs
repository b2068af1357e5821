//! Bytes in order, in blocks of an arena: the next process finds them by the numbers of the blocks.

use crate::arena::{Arena, Block, Found, QUEUES};
use crate::place::BLOCK_BYTES;
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, VecDeque};

/// The first byte is at `head` in the first block, and `length` bytes follow; no block is without one.
#[derive(Debug)]
pub struct Queue {
    arena: Arena,
    blocks: VecDeque<Block>,
    head: usize,
    length: usize,
}

/// Where the bytes of a queue are.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Places {
    blocks: Vec<u32>,
    head: usize,
    length: usize,
}

impl Queue {
    /// An empty queue, which has no block.
    pub fn new(arena: &Arena) -> Queue {
        Queue {
            arena: arena.clone(),
            blocks: VecDeque::new(),
            head: 0,
            length: 0,
        }
    }

    /// Its number of bytes.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether the queue is empty.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Appends bytes.
    pub fn extend(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let end = (self.head + self.length) % BLOCK_BYTES;
            if self.head + self.length == self.blocks.len() * BLOCK_BYTES {
                self.blocks.push_back(self.arena.block(QUEUES));
            }
            let Some(last) = self.blocks.back_mut() else {
                return;
            };
            let count = bytes.len().min(BLOCK_BYTES - end);
            last.bytes_mut()[end..end + count].copy_from_slice(&bytes[..count]);
            bytes = &bytes[count..];
            self.length += count;
        }
    }

    /// The first bytes, as many as are contiguous.
    pub fn first(&self) -> &[u8] {
        let end = (self.head + self.length).min(BLOCK_BYTES);
        { self.blocks.front() }.map_or(&[], |first| &first.bytes()[self.head..end])
    }

    /// Removes bytes from the front.
    pub fn take(&mut self, count: usize) {
        let count = count.min(self.length);
        (self.head, self.length) = (self.head + count, self.length - count);
        while self.head >= BLOCK_BYTES {
            self.blocks.pop_front();
            self.head -= BLOCK_BYTES;
        }
        if self.length == 0 {
            self.blocks.clear();
            self.head = 0;
        }
    }

    /// Copies all of it.
    pub fn to_vec(&self) -> Vec<u8> {
        copy(
            self.blocks.iter().map(|block| Some(block.bytes())),
            self.head,
            self.length,
        )
        .unwrap_or_default()
    }

    /// Where the bytes are, for a record.
    pub fn places(&self) -> Places {
        Places {
            blocks: self.blocks.iter().map(Block::id).collect(),
            head: self.head,
            length: self.length,
        }
    }
}

impl Places {
    /// How many bytes are there.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Copies the bytes out of the blocks that an earlier process left, by number; `None` if some are
    /// missing.
    pub fn read(&self, found: &HashMap<u32, &Found>) -> Option<Vec<u8>> {
        let block = |number: &u32| {
            let found = found.get(number).filter(|found| found.owner == QUEUES)?;
            Some(found.block.bytes())
        };
        copy(self.blocks.iter().map(block), self.head, self.length)
    }
}

fn copy<'a>(blocks: impl Iterator<Item = Option<&'a [u8]>>, head: usize, length: usize) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut from = head;
    for block in blocks {
        let until = from.checked_add(length - bytes.len())?.min(BLOCK_BYTES);
        bytes.extend_from_slice(block?.get(from..until)?);
        from = 0;
    }
    (bytes.len() == length).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_out_in_order_and_are_found_by_the_next_process() {
        let arena = Arena::shared().unwrap();
        let mut queue = Queue::new(&arena);
        let mut random = fastrand::Rng::with_seed(1);
        let mut expected = VecDeque::new();
        for round in 0..400 {
            let bytes = vec![round as u8; random.usize(0..100_000)];
            queue.extend(&bytes);
            expected.extend(bytes);
            for _ in 0..random.usize(0..4) {
                let count = random.usize(0..=queue.first().len());
                assert!(queue.first()[..count].iter().eq(expected.iter().take(count)));
                queue.take(count);
                expected.drain(..count);
            }
            if round % 40 == 0 {
                let (_, found) = Arena::open(arena.duplicate().unwrap()).unwrap();
                let found = found.iter().map(|found| (found.block.id(), found)).collect();
                assert!(queue.places().read(&found).unwrap().iter().eq(&expected));
                assert!(queue.to_vec().iter().eq(&expected));
            }
            assert_eq!(queue.len(), expected.len());
            arena.reclaim();
        }
        queue.take(usize::MAX);
        assert!(queue.is_empty() && queue.blocks.is_empty());
    }

    #[test]
    fn places_that_lead_nowhere_have_no_bytes() {
        let places = Places {
            blocks: vec![3],
            head: usize::MAX / 2,
            length: 7,
        };
        assert_eq!(places.read(&HashMap::new()), None);
    }
}
