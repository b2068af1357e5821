//! Bytes of a stream that arrived out of order, ahead of others. The stream's window limits them.

use crate::kept::kind;
use crate::steps;
use crate::touched::Touched;
use causeway_memory::{Journal, Key};
use serde_bytes::ByteBuf;
use std::collections::BTreeMap;

/// The length up to which adjacent segments are joined: so a large gap has few entries, and no copies are
/// long. A segment that grows is written to the journal again, and a far gateway may make any number of
/// segments grow by a byte.
const JOINED_BYTES: usize = 16 * 1024;

/// Most memory of one segment besides its bytes: 96 bytes were measured for segments of one byte.
pub(crate) const SEGMENT_BYTES: usize = 96;

/// Most segments of all open streams of a tunnel, which take 48 MiB besides their bytes: twice as many as
/// there can be frames of 16 bytes in flight on a lane (`Settings::lane_bytes`). Without this limit, a far
/// gateway that sends every second byte of a window could make it take fifty times its size.
pub(crate) const MAX_SEGMENTS: usize = 1 << 19;

/// Invariant: segments are not empty and do not overlap.
#[derive(Debug, Default, Clone, PartialEq)]
pub(crate) struct Segments {
    held: BTreeMap<u64, ByteBuf>,
    /// Where changed segments begin.
    touched: Touched<u64>,
}

impl Segments {
    /// Restores segments that were stored.
    pub(crate) fn of(held: BTreeMap<u64, ByteBuf>) -> Segments {
        Segments {
            held,
            touched: Touched::default(),
        }
    }

    /// Records everything present as changed, and records every change from now on.
    pub(crate) fn note_all(&mut self) {
        self.touched.turn_on();
        self.held.keys().for_each(|at| self.touched.note(*at));
    }

    /// Where segments begin that the journal may contain.
    pub(crate) fn written(&mut self) -> impl Iterator<Item = u64> {
        self.touched.take().into_iter().chain(self.held.keys().copied())
    }

    /// Writes to the journal what has changed in these segments, which belong to the stream `stream` of
    /// `owner`.
    pub(crate) fn write_down(&mut self, journal: &mut Journal, owner: u64, stream: u32) {
        for at in self.touched.take() {
            let key = Key {
                part: at,
                ..Key::new(kind::AHEAD, owner, stream.into())
            };
            match self.held.get(&at) {
                Some(bytes) => journal.put_bytes(key, bytes),
                None => journal.remove(key),
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.held.len()
    }

    /// How many bytes all segments have.
    pub(crate) fn bytes(&self) -> usize {
        self.held.values().map(|bytes| bytes.len()).sum()
    }

    /// Returns the position at which the last segment ends; 0 if there is none.
    pub(crate) fn end(&self) -> u64 {
        self.held
            .last_key_value()
            .map_or(0, |(at, bytes)| at + bytes.len() as u64)
    }

    /// Whether the invariant holds, and all segments are below `limit`.
    pub(crate) fn is_sound(&self, limit: u64) -> bool {
        let mut free = 0;
        self.held.iter().all(|(at, bytes)| {
            let follows = *at >= free && !bytes.is_empty();
            free = at.saturating_add(bytes.len() as u64);
            follows && free <= limit
        })
    }

    /// Keeps those of `bytes`, which begin at position `at`, that are new; returns how many that are.
    pub(crate) fn insert(&mut self, mut at: u64, mut bytes: &[u8]) -> usize {
        let mut kept = 0;
        while !bytes.is_empty() {
            steps::step();
            let before = self.held.range(..=at).next_back();
            let before_ends = before.map_or(0, |(start, held)| start + held.len() as u64);
            let known = before_ends.saturating_sub(at).min(bytes.len() as u64) as usize;
            if known == 0 {
                let next = self.held.range(at..).next().map_or(u64::MAX, |(next, _)| *next);
                let new = (next - at).min(bytes.len() as u64) as usize;
                self.append(at, &bytes[..new]);
                kept += new;
                (at, bytes) = (at + new as u64, &bytes[new..]);
            } else {
                (at, bytes) = (at + known as u64, &bytes[known..]);
            }
        }
        kept
    }

    fn append(&mut self, at: u64, bytes: &[u8]) {
        let before = self.held.range_mut(..at).next_back();
        let joins = before.filter(|(start, held)| {
            *start + held.len() as u64 == at && held.len() + bytes.len() <= JOINED_BYTES
        });
        match joins {
            Some((start, held)) => {
                held.extend_from_slice(bytes);
                self.touched.note(*start);
            }
            None => {
                self.held.insert(at, ByteBuf::from(bytes));
                self.touched.note(at);
            }
        }
    }

    /// Removes and returns the bytes that follow position `at`, if they have arrived. Drops segments before
    /// them.
    pub(crate) fn take(&mut self, at: u64) -> Option<Vec<u8>> {
        while let Some(first) = self.held.first_entry().filter(|first| *first.key() <= at) {
            steps::step();
            let (start, bytes) = first.remove_entry();
            self.touched.note(start);
            let mut bytes = bytes.into_vec();
            let known = (at - start).min(bytes.len() as u64) as usize;
            if known < bytes.len() {
                bytes.drain(..known);
                return Some(bytes);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_order_and_overlap_the_bytes_come_out_once() {
        let text: Vec<u8> = (0..5000_u32).map(|at| (at % 251) as u8).collect();
        for seed in 0..200_u64 {
            let mut random = seed;
            let mut below = |bound: u64| {
                random = random
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                (random >> 33) % bound
            };
            let mut segments = Segments::default();
            let (mut got, mut kept) = (Vec::new(), 0);
            while got.len() < text.len() {
                let at = below(text.len() as u64) as usize;
                let end = (at + 1 + below(700) as usize).min(text.len());
                let at = at.max(got.len().min(end - 1));
                if end > got.len() {
                    kept += segments.insert(at.max(got.len()) as u64, &text[at.max(got.len())..end]);
                }
                while let Some(bytes) = segments.take(got.len() as u64) {
                    got.extend(bytes);
                }
            }
            assert!(got == text && segments.is_empty(), "seed {seed}");
            assert_eq!(kept, text.len(), "seed {seed}");
        }
    }
}
