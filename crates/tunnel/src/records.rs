//! Writes a tunnel to a journal, so that another process can continue it if this one is killed.
//!
//! Only changes are written. The bytes that lanes carry are in blocks that outlive the process (`ring`);
//! records contain the rest. The driver writes the tunnel to the journal before it sends anything, so that
//! the far end never learns anything that only this process knew. After a kill, `recovery` reads it.

use crate::ids::Side;
use crate::kept::kind;
use crate::tunnel::Tunnel;
use causeway_memory::{Arena, Journal, Key};
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// The numbers of a tunnel.
#[derive(Serialize, Deserialize)]
pub(crate) struct Core {
    pub(crate) side: Side,
    pub(crate) next_id: u32,
    /// How many frames of messages were sent, and how many were received.
    pub(crate) messages: (u64, u64),
    /// The far side's lowest id that has not been seen.
    pub(crate) seen: u32,
    /// How long there has been no lane.
    pub(crate) dark: Duration,
}

impl Tunnel {
    /// Makes the next [`Tunnel::write_down`] write everything, and later ones only what has changed.
    pub(crate) fn note_changes(&mut self) {
        if !self.shelf.arena.is_shared() {
            return;
        }
        let map = std::mem::take(&mut self.streams).into_map();
        self.streams = crate::streams::Streams::new(map, true);
        self.seen.note_all();
        self.messages.note_all();
        self.pre_open.note_all();
    }

    /// Writes to the journal what has changed since the last time. It counts once the journal is committed;
    /// then [`Tunnel::written_down`] must be called.
    pub fn write_down(&mut self, journal: &mut Journal, now: Instant) {
        let owner = self.shelf.owner;
        let core = Core {
            side: self.side,
            next_id: self.next_id,
            messages: (self.messages.sent, self.messages.received),
            seen: self.seen.next(),
            dark: { self.dark_since }.map_or(Duration::ZERO, |since| now.saturating_duration_since(since)),
        };
        journal.put(Key::new(kind::CORE, owner, 0), &core);
        self.streams.write_down(journal, owner);
        self.seen.write_down(journal, owner);
        self.messages.write_down(journal, owner);
        self.pre_open.write_down(journal, owner);
        self.write_control_down(journal);
    }

    /// Writes the control frames. Frames that were moved onto a lane are in its memory, and may still be here
    /// as well: duplicates are harmless.
    fn write_control_down(&mut self, journal: &mut Journal) {
        let key = |begin: u64| Key::new(kind::CONTROL, self.shelf.owner, begin);
        let (taken, end) = self.control.positions();
        while let Some((begin, _)) = self.written.control.pop_front_if(|(_, end)| *end <= taken) {
            journal.remove(key(begin));
        }
        let begin = self.written.end.max(taken);
        if begin < end {
            journal.put_bytes(key(begin), self.control.since(begin));
            self.written.control.push_back((begin, end));
            self.written.end = end;
        }
    }

    /// Must be called once the journal is committed.
    pub fn written_down(&mut self) {
        self.lanes
            .iter_mut()
            .flatten()
            .for_each(|lane| lane.ring.reclaim());
    }

    /// The arena from which the memory of the tunnel's lanes comes.
    #[doc(hidden)]
    pub fn arena(&self) -> &Arena {
        &self.shelf.arena
    }

    /// The number under which the tunnel's records are stored.
    pub fn owner(&self) -> u64 {
        self.shelf.owner
    }

    /// Removes the records of a tunnel that has ended.
    pub fn forget(journal: &mut Journal, owner: u64) {
        journal.remove_all(0..=kind::BEYOND - 1, owner);
    }
}
