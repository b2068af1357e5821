//! Records by keys, of which the next process finds those of the last commit.
//!
//! ```text
//! half: [ page: committed length, round | record | record | ... ]     record: [ key | length | value ]
//! ```
//! A record is appended; the last with a key counts, and one without a value means that there is none. When
//! a half has grown to several times what counts in it, that is copied into the other half. A commit is one
//! store of a number: whoever is killed before it leaves the commit before.

use crate::mapping::{self, Mapping, PAGE};
use serde::Serialize;
use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

const COMMITTED: usize = 0;
const ROUND: usize = 8;

const KEY_BYTES: usize = 32;
const HEAD_BYTES: usize = KEY_BYTES + 8;

/// In the place of a length: the record takes one away.
const NOTHING: u64 = u64::MAX;

/// A half is copied once it is this long, and this many times as long as what counts in it. Short, so that
/// it stays in a processor's cache.
const SHORTEST: usize = 256 * 1024;
const TIMES: usize = 4;

/// A half that is longer gives its memory back once this much time has gone by without another one: what is
/// written anew into memory that was given back costs twice.
const LONG: usize = 4 * (PAGE + SHORTEST);
const QUIET: Duration = Duration::from_secs(1);

/// What counts is at most this long; beyond, nothing is written down any more.
const MOST: usize = 1 << 30;

/// Names a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// What it tells of.
    pub kind: u8,
    /// The number of its owner.
    pub owner: u64,
    /// Which of the owner's.
    pub id: u64,
    /// Which part of that.
    pub part: u64,
}

impl Key {
    /// A key without parts.
    pub fn new(kind: u8, owner: u64, id: u64) -> Key {
        Key {
            kind,
            owner,
            id,
            part: 0,
        }
    }

    fn encode(self) -> [u8; KEY_BYTES] {
        let mut bytes = [0; KEY_BYTES];
        bytes[0] = self.kind;
        bytes[8..16].copy_from_slice(&self.owner.to_ne_bytes());
        bytes[16..24].copy_from_slice(&self.id.to_ne_bytes());
        bytes[24..].copy_from_slice(&self.part.to_ne_bytes());
        bytes
    }

    fn decode(bytes: &[u8; KEY_BYTES]) -> Key {
        Key {
            kind: bytes[0],
            owner: number_at(bytes, 8),
            id: number_at(bytes, 16),
            part: number_at(bytes, 24),
        }
    }
}

fn number_at(bytes: &[u8], at: usize) -> u64 {
    let mut number = [0; 8];
    number.copy_from_slice(&bytes[at..at + 8]);
    u64::from_ne_bytes(number)
}

/// A record that was found.
pub type Record = (Key, Vec<u8>);

/// Where the value of a record lies in the current half.
#[derive(Debug, Clone, Copy)]
struct Place {
    at: usize,
    length: usize,
}

#[derive(Debug)]
struct Half {
    file: OwnedFd,
    mapping: Mapping,
}

impl Half {
    fn of_file(file: OwnedFd) -> io::Result<Half> {
        let length = usize::try_from(nix::sys::stat::fstat(&file)?.st_size).unwrap_or(0);
        let length = length.next_multiple_of(PAGE).max(PAGE + SHORTEST);
        let mapping = Mapping::new(file.as_fd(), 0, length)?;
        Ok(Half { file, mapping })
    }

    fn get(&self, number: usize) -> u64 {
        self.mapping.number(number).load(Ordering::Acquire)
    }

    fn set(&self, number: usize, value: u64) {
        self.mapping.number(number).store(value, Ordering::Release);
    }

    /// Makes room up to so many bytes.
    fn reach(&mut self, end: usize) -> io::Result<()> {
        if end > self.mapping.len() {
            let length = end.max(2 * self.mapping.len()).next_multiple_of(PAGE);
            self.mapping = Mapping::new(self.file.as_fd(), 0, length)?;
        }
        Ok(())
    }
}

/// The journal of one process at a time.
#[derive(Debug)]
pub struct Journal {
    halves: [Half; 2],
    /// The half that is written, and where its next record goes.
    current: usize,
    end: usize,
    index: HashMap<Key, Place>,
    /// Bytes of the records that count.
    live: usize,
    scratch: Vec<u8>,
    /// When a half was left last that was long, until its memory is given back.
    was_long: Option<Instant>,
    /// Nothing is written down any more, and why.
    failed: Option<io::Error>,
}

impl Journal {
    /// An empty journal in files of its own.
    ///
    /// # Errors
    /// Those of memfd_create(2), ftruncate(2) and mmap(2).
    pub fn shared() -> io::Result<Journal> {
        let file = || mapping::file("causeway-journal");
        Journal::of_files([file()?, file()?])
    }

    /// The journal in the files that a process before this one has written, in the order of
    /// [`Journal::descriptors`], and the records of its last commit, by key.
    ///
    /// # Errors
    /// Those of fstat(2) and mmap(2); what is committed cannot be read.
    pub fn open(files: [OwnedFd; 2]) -> io::Result<(Journal, Vec<Record>)> {
        let mut journal = Journal::of_files(files)?;
        journal.current = usize::from(journal.halves[1].get(ROUND) > journal.halves[0].get(ROUND));
        let half = &journal.halves[journal.current];
        let committed = usize::try_from(half.get(COMMITTED)).unwrap_or(usize::MAX);
        let room = half.mapping.len() - PAGE;
        if committed > room {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let bytes = half.mapping.bytes(PAGE, committed);
        let mut at = 0;
        while at < committed {
            let head = bytes.get(at..at + HEAD_BYTES).ok_or(io::ErrorKind::InvalidData)?;
            let mut key = [0; KEY_BYTES];
            key.copy_from_slice(&head[..KEY_BYTES]);
            let (key, length) = (Key::decode(&key), number_at(head, KEY_BYTES));
            at += HEAD_BYTES;
            if length == NOTHING {
                if let Some(place) = journal.index.remove(&key) {
                    journal.live -= place.length + HEAD_BYTES;
                }
                continue;
            }
            let length = usize::try_from(length).unwrap_or(usize::MAX);
            if length > committed - at {
                return Err(io::ErrorKind::InvalidData.into());
            }
            let place = Place {
                at: PAGE + at,
                length,
            };
            journal.live += length + HEAD_BYTES;
            if let Some(place) = journal.index.insert(key, place) {
                journal.live -= place.length + HEAD_BYTES;
            }
            at += length;
        }
        journal.end = PAGE + committed;
        let half = &journal.halves[journal.current];
        let records = journal.index.iter();
        let value = |place: &Place| half.mapping.bytes(place.at, place.length).to_vec();
        let mut records: Vec<Record> = records.map(|(key, place)| (*key, value(place))).collect();
        records.sort_unstable_by_key(|(key, _)| *key);
        Ok((journal, records))
    }

    fn of_files([first, second]: [OwnedFd; 2]) -> io::Result<Journal> {
        Ok(Journal {
            halves: [Half::of_file(first)?, Half::of_file(second)?],
            current: 0,
            end: PAGE,
            index: HashMap::new(),
            live: 0,
            scratch: Vec::new(),
            was_long: None,
            failed: None,
        })
    }

    /// The files' descriptors, by which another process opens it.
    pub fn descriptors(&self) -> [RawFd; 2] {
        [0, 1].map(|half| self.halves[half].file.as_raw_fd())
    }

    /// Other descriptors of the files.
    ///
    /// # Errors
    /// Those of dup(2).
    pub fn duplicate(&self) -> io::Result<[OwnedFd; 2]> {
        Ok([self.halves[0].file.try_clone()?, self.halves[1].file.try_clone()?])
    }

    /// Writes a record down, unless it is the same as before.
    pub fn put(&mut self, key: Key, value: &impl Serialize) {
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        match postcard::to_extend(value, scratch) {
            Ok(bytes) => {
                self.put_bytes(key, &bytes);
                self.scratch = bytes;
            }
            Err(_) => self.failed = Some(io::ErrorKind::InvalidData.into()),
        }
    }

    /// Writes a record of these bytes down, unless it is the same as before.
    pub fn put_bytes(&mut self, key: Key, value: &[u8]) {
        if let Some(place) = self.index.get(&key)
            && self.halves[self.current].mapping.bytes(place.at, place.length) == value
        {
            return;
        }
        if let Some(at) = self.append(key, value.len() as u64, value) {
            let place = Place {
                at: at + HEAD_BYTES,
                length: value.len(),
            };
            self.live += HEAD_BYTES + value.len();
            if let Some(place) = self.index.insert(key, place) {
                self.live -= HEAD_BYTES + place.length;
            }
        }
    }

    /// Takes a record away.
    pub fn remove(&mut self, key: Key) {
        if let Some(place) = self.index.remove(&key) {
            self.live -= HEAD_BYTES + place.length;
            self.append(key, NOTHING, &[]);
        }
    }

    /// Takes away all records.
    pub fn clear(&mut self) {
        let keys: Vec<Key> = self.index.keys().copied().collect();
        keys.into_iter().for_each(|key| self.remove(key));
    }

    /// Takes away all records of these kinds that an owner has.
    pub fn remove_all(&mut self, kinds: std::ops::RangeInclusive<u8>, owner: u64) {
        let of_owner = |key: &&Key| key.owner == owner && kinds.contains(&key.kind);
        let keys: Vec<Key> = self.index.keys().filter(of_owner).copied().collect();
        keys.into_iter().for_each(|key| self.remove(key));
    }

    /// Has the next process find what has been written down until now.
    ///
    /// # Errors
    /// There was no memory for it: the next process finds nothing.
    pub fn commit(&mut self) -> io::Result<()> {
        if let Some(error) = &self.failed {
            let kind = error.kind();
            // Half of what is known is worse than nothing.
            self.halves.iter().for_each(|half| half.set(COMMITTED, 0));
            return Err(kind.into());
        }
        let length = self.end - PAGE;
        if length > SHORTEST && length > TIMES * self.live {
            let moved = self.live <= MOST && self.change_halves().is_ok();
            if !moved {
                self.failed = Some(io::ErrorKind::OutOfMemory.into());
                return self.commit();
            }
        }
        self.halves[self.current].set(COMMITTED, (self.end - PAGE) as u64);
        if self.was_long.is_some_and(|since| since.elapsed() >= QUIET) {
            self.was_long = None;
            self.give_back();
        }
        Ok(())
    }

    /// Gives the memory back that nothing is written to.
    fn give_back(&self) {
        for (index, half) in self.halves.iter().enumerate() {
            let used = if index == self.current { self.end } else { 0 };
            let from = used.max(PAGE + SHORTEST).next_multiple_of(PAGE);
            if let Some(length) = half.mapping.len().checked_sub(from).filter(|length| *length > 0) {
                mapping::forget(half.file.as_fd(), from as u64, length);
            }
        }
    }

    /// Copies what counts into the other half, which counts from then on.
    fn change_halves(&mut self) -> io::Result<()> {
        let [first, second] = &mut self.halves;
        let (from, to) = if self.current == 0 {
            (first, second)
        } else {
            (second, first)
        };
        to.reach(PAGE + self.live)?;
        let mut at = PAGE;
        for (key, place) in &mut self.index {
            let value = from.mapping.bytes(place.at, place.length);
            let record = to.mapping.bytes_mut(at, HEAD_BYTES + value.len());
            write(record, *key, value.len() as u64, value);
            place.at = at + HEAD_BYTES;
            at += record.len();
        }
        to.set(COMMITTED, (at - PAGE) as u64);
        to.set(ROUND, from.get(ROUND) + 1);
        if from.mapping.len() > LONG {
            self.was_long = Some(Instant::now());
        }
        (self.current, self.end) = (1 - self.current, at);
        Ok(())
    }

    /// Where a record begins that was appended; none where there is no memory for it.
    fn append(&mut self, key: Key, length: u64, value: &[u8]) -> Option<usize> {
        if self.failed.is_some() {
            return None;
        }
        let (at, end) = (self.end, self.end + HEAD_BYTES + value.len());
        let half = &mut self.halves[self.current];
        if let Err(error) = half.reach(end) {
            self.failed = Some(error);
            return None;
        }
        write(half.mapping.bytes_mut(at, end - at), key, length, value);
        self.end = end;
        Some(at)
    }
}

fn write(record: &mut [u8], key: Key, length: u64, value: &[u8]) {
    record[..KEY_BYTES].copy_from_slice(&key.encode());
    record[KEY_BYTES..HEAD_BYTES].copy_from_slice(&length.to_ne_bytes());
    record[HEAD_BYTES..].copy_from_slice(value);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn again(journal: &Journal) -> (Journal, BTreeMap<Key, Vec<u8>>) {
        let files = journal.duplicate().unwrap();
        let (journal, records) = Journal::open(files).unwrap();
        (journal, records.into_iter().collect())
    }

    #[test]
    fn the_next_process_finds_the_last_commit_wherever_this_one_was_killed() {
        for seed in 0..20 {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut journal = Journal::shared().unwrap();
            let (mut known, mut committed) = (BTreeMap::new(), BTreeMap::new());
            for step in 0..3000 {
                let key = Key::new(random.u8(0..3), random.u64(0..4), random.u64(0..20));
                match random.u8(0..10) {
                    0 => {
                        journal.commit().unwrap();
                        committed.clone_from(&known);
                    }
                    1 | 2 => {
                        journal.remove(key);
                        known.remove(&key);
                    }
                    3 if random.u8(0..20) == 0 => {
                        journal.remove_all(1..=2, 3);
                        known.retain(|key: &Key, _| key.owner != 3 || key.kind == 0);
                    }
                    4 if random.u8(0..20) == 0 => {
                        // As if killed: the next one goes on from the commit.
                        let (next, found) = again(&journal);
                        assert_eq!(found, committed, "seed {seed}, step {step}");
                        (journal, known) = (next, found);
                    }
                    _ => {
                        let value = vec![random.u8(..); random.usize(0..3000)];
                        journal.put_bytes(key, &value);
                        known.insert(key, value);
                    }
                }
            }
            assert!(journal.halves.iter().map(|half| half.get(ROUND)).max() > Some(2));
            let live: usize = known.values().map(|value| value.len() + HEAD_BYTES).sum();
            assert_eq!(journal.live, live);
        }
    }

    #[test]
    fn a_journal_that_was_long_gives_memory_back_when_it_is_quiet_and_keeps_what_counts() {
        let mut journal = Journal::shared().unwrap();
        let key = |id| Key::new(1, 2, id);
        let value = vec![7; 100_000];
        for round in 0..10 {
            (0..30).for_each(|id| journal.put_bytes(key(id), &[&value[..], &[round]].concat()));
            journal.commit().unwrap();
        }
        (1..30).for_each(|id| journal.remove(key(id)));
        journal.commit().unwrap();
        let took = |journal: &Journal| -> i64 {
            let stats = journal
                .halves
                .iter()
                .map(|half| nix::sys::stat::fstat(&half.file).unwrap());
            stats.map(|stat| stat.st_blocks * 512).sum()
        };
        assert!(took(&journal) > 3_000_000 && journal.was_long.is_some());
        journal.was_long = Instant::now().checked_sub(QUIET);
        journal.commit().unwrap();
        let most = 2 * (PAGE + SHORTEST) + PAGE + (journal.end - PAGE);
        assert!(took(&journal) <= most as i64, "{} bytes", took(&journal));
        let (_, found) = again(&journal);
        assert_eq!((found.len(), found[&key(0)].len()), (1, value.len() + 1));
    }

    #[test]
    fn what_is_written_down_again_the_same_takes_no_room() {
        let mut journal = Journal::shared().unwrap();
        let key = Key::new(1, 2, 3);
        journal.put(key, &(7_u64, "nancy"));
        let end = journal.end;
        journal.put(key, &(7_u64, "nancy"));
        journal.remove(Key::new(1, 2, 4));
        assert_eq!(journal.end, end);
        journal.commit().unwrap();
        let (_, found) = again(&journal);
        let value: (u64, String) = postcard::from_bytes(&found[&key]).unwrap();
        assert_eq!(value, (7, "nancy".to_owned()));
    }

    #[test]
    fn a_journal_that_is_damaged_is_refused_and_never_panics() {
        let mut journal = Journal::shared().unwrap();
        for id in 0..5 {
            journal.put_bytes(Key::new(1, 1, id), &[id as u8; 10]);
        }
        journal.commit().unwrap();
        let committed = journal.halves[0].get(COMMITTED) as usize;
        for at in 0..committed {
            let byte = &mut journal.halves[0].mapping.bytes_mut(PAGE + at, 1)[0];
            let before = std::mem::replace(byte, 0xff);
            let files = journal.duplicate().unwrap();
            let _ = Journal::open(files);
            journal.halves[0].mapping.bytes_mut(PAGE + at, 1)[0] = before;
        }
        journal.halves[0].set(COMMITTED, u64::MAX);
        let files = journal.duplicate().unwrap();
        assert!(Journal::open(files).is_err());
    }
}
