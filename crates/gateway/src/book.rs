//! What the next worker needs to know if this one is killed: records in memory that the keeper preserves.
//!
//! Once in each turn of the loop, owners write down what has changed, before any effect of it leaves this
//! process (`gateway`). `lifecycle::takeup` reads it.

use causeway_memory::{Arena, Found, Journal, Key};
use causeway_tunnel::BEYOND;
use nix::unistd::ftruncate;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Instant;

/// What a record describes. Those below `BEYOND` are a tunnel's.
pub(crate) mod kind {
    use super::BEYOND;

    /// The layout's version, and the numbers of the gateway.
    pub(crate) const GATEWAY: u8 = BEYOND;
    pub(crate) const SITES: u8 = BEYOND + 1;
    pub(crate) const PEER: u8 = BEYOND + 2;
    pub(crate) const PAIR: u8 = BEYOND + 3;
    pub(crate) const JOB: u8 = BEYOND + 4;
    pub(crate) const COMMAND: u8 = BEYOND + 5;
    pub(crate) const STARTERS: u8 = BEYOND + 6;
    pub(crate) const LEG: u8 = BEYOND + 7;
    pub(crate) const SITE: u8 = BEYOND + 8;
    /// Written only in a hand-over.
    pub(crate) const SPLICE: u8 = BEYOND + 9;
    pub(crate) const REFUSED: u8 = BEYOND + 10;
}

/// Numbers of a gateway, which follow the layout's version.
#[derive(Serialize, Deserialize)]
pub(crate) struct Numbers {
    pub(crate) handed_over: u64,
    pub(crate) generations: u64,
    pub(crate) carried_bytes: u64,
}

/// Records by key, as an earlier worker left them.
pub(crate) type Records = BTreeMap<Key, Vec<u8>>;

pub(crate) struct Book {
    journal: Journal,
    arena: Arena,
    /// What the previous worker left, until everything in it that still counts is written down anew.
    old: Vec<Found>,
}

impl Book {
    /// An empty book in files of these descriptors.
    ///
    /// # Errors
    /// Those of dup(2), ftruncate(2) and mmap(2).
    pub(crate) fn begin(files: [OwnedFd; 3]) -> io::Result<Book> {
        for file in &files {
            ftruncate(file.as_fd(), 0)?;
        }
        Book::open(files).map(|(book, _, _)| book)
    }

    /// The book in these files, and what an earlier worker left in it: records, and the memory of lanes.
    ///
    /// # Errors
    /// Those of dup(2) and mmap(2), or that the files are damaged.
    pub(crate) fn open([blocks, first, second]: [OwnedFd; 3]) -> io::Result<(Book, Records, Vec<Found>)> {
        let (arena, found) = Arena::open(blocks)?;
        let (journal, records) = Journal::open([first, second])?;
        let book = Book {
            journal,
            arena,
            old: Vec::new(),
        };
        Ok((book, records.into_iter().collect(), found))
    }

    pub(crate) fn arena(&self) -> &Arena {
        &self.arena
    }

    /// Lends the journal, to which tunnels write.
    pub(crate) fn journal(&mut self) -> &mut Journal {
        &mut self.journal
    }

    /// Keeps these blocks until the next commit.
    pub(crate) fn keep_until_written(&mut self, old: Vec<Found>) {
        self.old = old;
    }

    /// Removes all records.
    pub(crate) fn clear(&mut self) {
        self.journal.clear();
    }

    pub(crate) fn put(&mut self, kind: u8, id: usize, value: &impl Serialize) {
        self.journal.put(Key::new(kind, 0, id as u64), value);
    }

    pub(crate) fn remove(&mut self, kind: u8, id: usize) {
        self.journal.remove(Key::new(kind, 0, id as u64));
    }

    /// Writes a record whose name is a number of 128 bits.
    pub(crate) fn put_named(&mut self, kind: u8, name: u128, value: &impl Serialize) {
        self.journal.put(named(kind, name), value);
    }

    pub(crate) fn remove_named(&mut self, kind: u8, name: u128) {
        self.journal.remove(named(kind, name));
    }

    /// Makes the next worker find what was written until `now`.
    ///
    /// # Errors
    /// There was no memory for it: if this worker ends now, the next one finds the last commit.
    pub(crate) fn commit(&mut self, now: Instant) -> io::Result<()> {
        self.journal.commit(now)?;
        self.old.clear();
        Ok(())
    }

    /// Makes the next worker find nothing.
    pub(crate) fn give_up(self) {
        self.journal.give_up();
        // The arena's blocks must not wait for a commit.
        self.arena.end_sharing();
    }
}

fn named(kind: u8, name: u128) -> Key {
    Key {
        kind,
        owner: (name >> 64) as u64,
        id: name as u64,
        part: 0,
    }
}
