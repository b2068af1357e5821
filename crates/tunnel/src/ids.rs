//! Stream ids: which side may choose which, and which have been seen.
//!
//! Ids only rise, so that a late frame of a closed stream is not mistaken for one of a new stream. After two
//! billion streams they start again and skip those in use.

use crate::frame::ProtocolError;
use crate::kept::kind;
use crate::steps;
use crate::touched::Touched;
use causeway_memory::{Journal, Key};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

/// Which ids this end gives the streams that it opens: the two ends never choose the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Side {
    /// Odd ids.
    Odd,
    /// Even ids.
    Even,
}

/// How far opens may overtake each other. More than a million streams during one stall of a lane would exceed
/// the open files of any machine.
const MAX_AHEAD: u32 = 2 << 20;

impl Side {
    pub(crate) fn first(self) -> u32 {
        match self {
            Side::Odd => 1,
            Side::Even => 2,
        }
    }

    pub(crate) fn next(self, id: u32) -> u32 {
        id.checked_add(2).unwrap_or(self.first())
    }

    pub(crate) fn other(self) -> Side {
        match self {
            Side::Odd => Side::Even,
            Side::Even => Side::Odd,
        }
    }

    /// Whether an end on this side may choose `id`.
    pub(crate) fn chooses(self, id: u32) -> bool {
        id != 0 && id % 2 == self.first() % 2
    }
}

/// The far side's ids that were opened or skipped.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Seen {
    side: Side,
    /// The lowest id that has not been seen.
    next: u32,
    beyond: HashSet<u32>,
    touched: Touched<u32>,
}

impl Seen {
    pub(crate) fn new(side: Side) -> Seen {
        Seen {
            side,
            next: side.first(),
            beyond: HashSet::new(),
            touched: Touched::default(),
        }
    }

    /// Restores what was stored.
    pub(crate) fn of(side: Side, next: u32, beyond: HashSet<u32>) -> Seen {
        Seen {
            side,
            next,
            beyond,
            touched: Touched::default(),
        }
    }

    /// Records everything present as changed, and records every change from now on.
    pub(crate) fn note_all(&mut self) {
        self.touched.turn_on();
        self.beyond.iter().for_each(|id| self.touched.note(*id));
    }

    /// The lowest id that has not been seen.
    pub(crate) fn next(&self) -> u32 {
        self.next
    }

    /// Writes to the journal which ids beyond that have changed.
    pub(crate) fn write_down(&mut self, journal: &mut Journal, owner: u64) {
        for id in self.touched.take() {
            let key = Key::new(kind::SEEN, owner, id.into());
            if self.beyond.contains(&id) {
                journal.put_bytes(key, &[]);
            } else {
                journal.remove(key);
            }
        }
    }

    /// Whether all its ids belong to `side`.
    pub(crate) fn is_of(&self, side: Side) -> bool {
        let ids = self.beyond.iter().chain([&self.next]);
        self.side == side && ids.into_iter().all(|id| side.chooses(*id))
    }

    /// Whether `id` has been seen.
    ///
    /// # Errors
    /// The far side may not choose the id now.
    pub(crate) fn contains(&self, id: u32) -> Result<bool, ProtocolError> {
        let ahead = id.wrapping_sub(self.next);
        let past = ahead > u32::MAX / 2;
        if !self.side.chooses(id) || (!past && ahead > MAX_AHEAD) {
            return Err(ProtocolError::StreamId(id));
        }
        Ok(past || self.beyond.contains(&id))
    }

    pub(crate) fn insert(&mut self, id: u32) {
        self.beyond.insert(id);
        self.touched.note(id);
        while self.beyond.remove(&self.next) {
            steps::step();
            self.touched.note(self.next);
            self.next = self.side.next(self.next);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_seen_once_in_any_order_and_round_the_end_of_the_numbers() {
        for side in [Side::Odd, Side::Even] {
            let mut seen = Seen::new(side);
            seen.next = side
                .first()
                .wrapping_sub(2 * 50)
                .max(u32::MAX - 101 + side.first() % 2);
            let mut ids = vec![seen.next];
            for at in 0..99 {
                ids.push(side.next(ids[at]));
            }
            for id in ids.iter().rev() {
                assert_eq!(seen.contains(*id), Ok(false), "{side:?} {id}");
                seen.insert(*id);
                assert_eq!(seen.contains(*id), Ok(true), "{side:?} {id}");
            }
            assert!(seen.beyond.is_empty());
            assert!(seen.contains(side.other().first()).is_err());
            assert!(seen.contains(0).is_err());
        }
    }
}
