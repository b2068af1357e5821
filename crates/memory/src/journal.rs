//! Records by key: the next process finds those of the last commit.
//!
//! ```text
//! half: [ page: committed length, round | record | record | ... ]     record: [ key, length | value ]
//! ```
//! Keys and lengths take as many bytes as they need, because a gateway has several records for each stream.
//! Records are appended; the last one with a key counts, and one without a value removes the key. When a half
//! has grown to several times the size of its live records, those are copied into the other half. A commit is
//! a single store of a number: if a process is killed before it, the previous commit is left.

use crate::half::{Half, SHORTEST};
use crate::mapping::{self, PAGE};
use crate::record::{Head, Key, Record};
use serde::Serialize;
use std::collections::HashMap;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

/// Where programs of state version 12 and earlier had the round of a half. Such a journal is refused: read in
/// the present form it would be empty, and everything in it would be silently lost.
const EARLIER_ROUND: usize = 8;

const COMMITTED: usize = 16;
const ROUND: usize = 24;

/// A half is copied once it is longer than `SHORTEST` and longer than its live records by this factor.
const TIMES: usize = 4;

/// How often the journal checks which memory it still needs: writing to memory that was given back costs
/// twice as much.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The journal is quiet if no more than this was written since the last check. Then only live records keep
/// their memory.
const LITTLE: usize = 4096;

/// The most bytes of live records; beyond that, nothing is written down any more.
const MOST: usize = 1 << 30;

/// Where the value of a record is in the current half.
#[derive(Debug, Clone, Copy)]
struct Place {
    at: usize,
    length: u32,
    /// Bytes of its head.
    head: u32,
}

impl Place {
    fn of(at: usize, head: &Head, value: &[u8]) -> Place {
        // Neither length is longer than one journal may be.
        Place {
            at: at + head.length,
            length: value.len() as u32,
            head: head.length as u32,
        }
    }

    fn value(self, half: &Half) -> &[u8] {
        half.mapping.bytes(self.at, self.length as usize)
    }

    /// The bytes that the record takes up.
    fn bytes(self) -> usize {
        self.head as usize + self.length as usize
    }
}

/// The journal, which one process uses at a time.
#[derive(Debug)]
pub struct Journal {
    halves: [Half; 2],
    /// The half that is being written, and where its next record is put.
    current: usize,
    end: usize,
    index: HashMap<Key, Place>,
    /// Bytes of the live records.
    live: usize,
    scratch: Vec<u8>,
    /// When the journal last checked which memory it needs; since then, the bytes that were written, and
    /// whether the other half became the current one.
    looked: Option<Instant>,
    written: usize,
    has_changed: bool,
    /// Why nothing is written down any more, if that is so.
    failed: Option<io::Error>,
}

impl Journal {
    /// An empty journal in files of its own.
    ///
    /// # Errors
    /// Those of memfd_create(2), ftruncate(2) and mmap(2).
    pub fn shared() -> io::Result<Journal> {
        let file = || mapping::file("causeway-journal");
        Journal::from_files([file()?, file()?])
    }

    /// Opens the journal in the files that an earlier process has written, given in the order of
    /// [`Journal::descriptors`]; returns the records of its last commit, by key.
    ///
    /// # Errors
    /// Those of fstat(2) and mmap(2), or that what was committed cannot be read.
    pub fn open(files: [OwnedFd; 2]) -> io::Result<(Journal, Vec<Record>)> {
        let mut journal = Journal::from_files(files)?;
        if journal.halves.iter().any(|half| half.get(EARLIER_ROUND) != 0) {
            let reason = "the journal is of state version 12 or before";
            return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
        }
        journal.current = usize::from(journal.halves[1].get(ROUND) > journal.halves[0].get(ROUND));
        let half = &journal.halves[journal.current];
        let committed = usize::try_from(half.get(COMMITTED)).unwrap_or(usize::MAX);
        let room = half.mapping.len() - PAGE;
        if committed > room {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let bytes = half.mapping.bytes(PAGE, committed);
        let mut left = bytes;
        while !left.is_empty() {
            let (key, length, rest) = Head::read(left).ok_or(io::ErrorKind::InvalidData)?;
            let value = match length {
                Some(length) => Some(rest.get(..length).ok_or(io::ErrorKind::InvalidData)?),
                None => None,
            };
            let gone = match value {
                Some(value) => {
                    let head = Head::new(key, Some(value));
                    let place = Place::of(PAGE + bytes.len() - rest.len() - head.length, &head, value);
                    journal.live += place.bytes();
                    journal.index.insert(key, place)
                }
                None => journal.index.remove(&key),
            };
            journal.live -= gone.map_or(0, Place::bytes);
            left = &rest[value.map_or(0, <[u8]>::len)..];
        }
        journal.end = PAGE + committed;
        let half = &journal.halves[journal.current];
        let records = journal.index.iter();
        let mut records: Vec<Record> = records
            .map(|(key, place)| (*key, place.value(half).to_vec()))
            .collect();
        records.sort_unstable_by_key(|(key, _)| *key);
        Ok((journal, records))
    }

    fn from_files([first, second]: [OwnedFd; 2]) -> io::Result<Journal> {
        Ok(Journal {
            halves: [Half::from_file(first)?, Half::from_file(second)?],
            current: 0,
            end: PAGE,
            index: HashMap::new(),
            live: 0,
            scratch: Vec::new(),
            looked: None,
            written: 0,
            has_changed: false,
            failed: None,
        })
    }

    /// The files' descriptors, through which another process can open them.
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

    /// Writes a record, unless it is the same as before.
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

    /// Writes a record with these bytes, unless it is the same as before.
    pub fn put_bytes(&mut self, key: Key, value: &[u8]) {
        if let Some(place) = self.index.get(&key)
            && place.value(&self.halves[self.current]) == value
        {
            return;
        }
        let head = Head::new(key, Some(value));
        if let Some(at) = self.append(&head, value) {
            let place = Place::of(at, &head, value);
            self.live += place.bytes();
            self.live -= self.index.insert(key, place).map_or(0, Place::bytes);
        }
    }

    /// Removes a record.
    pub fn remove(&mut self, key: Key) {
        if let Some(place) = self.index.remove(&key) {
            self.live -= place.bytes();
            self.append(&Head::new(key, None), &[]);
        }
    }

    /// Removes all records.
    pub fn clear(&mut self) {
        let keys: Vec<Key> = self.index.keys().copied().collect();
        keys.into_iter().for_each(|key| self.remove(key));
    }

    /// Removes all records of these kinds that an owner has.
    pub fn remove_all(&mut self, kinds: std::ops::RangeInclusive<u8>, owner: u64) {
        let belongs_to_owner = |key: &&Key| key.owner == owner && kinds.contains(&key.kind);
        let keys: Vec<Key> = self.index.keys().filter(belongs_to_owner).copied().collect();
        keys.into_iter().for_each(|key| self.remove(key));
    }

    /// Makes the next process find what has been written until `now`.
    ///
    /// # Errors
    /// There was no memory for it, or there is more than one journal may contain (`FileTooLarge`). Nothing is
    /// written any more. The next process finds the last commit, unless this one gives up.
    pub fn commit(&mut self, now: Instant) -> io::Result<()> {
        let length = self.end - PAGE;
        if self.failed.is_none() && length > SHORTEST && length > TIMES * self.live {
            self.failed = match self.live <= MOST {
                true => self.change_halves().err(),
                false => Some(io::ErrorKind::FileTooLarge.into()),
            };
        }
        if let Some(error) = &self.failed {
            return Err(error.kind().into());
        }
        self.halves[self.current].set(COMMITTED, (self.end - PAGE) as u64);
        if now.saturating_duration_since(*self.looked.get_or_insert(now)) >= LOOK_EVERY {
            self.looked = Some(now);
            self.look();
        }
        Ok(())
    }

    /// Makes the next process find nothing: what this one does from now on is not written, and half of what
    /// is known is worse than nothing.
    pub fn give_up(&self) {
        self.halves.iter().for_each(|half| half.set(COMMITTED, 0));
    }

    /// Gives back the memory that was not written since the last check.
    fn look(&mut self) {
        let is_quiet = std::mem::take(&mut self.written) <= LITTLE;
        let rest = self.end - PAGE - self.live;
        // If there is no memory for the other half, everything stays as it is.
        if is_quiet && rest > LITTLE.max(self.live / TIMES) && self.change_halves().is_err() {
            return;
        }
        let other_is_used = std::mem::take(&mut self.has_changed) && !is_quiet;
        let spare = if is_quiet { 0 } else { SHORTEST };
        self.halves[self.current].give_back(self.end.max(PAGE + spare));
        if !other_is_used {
            self.halves[1 - self.current].give_back(PAGE + spare);
        }
    }

    /// Copies the live records into the other half, which is the current one from then on.
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
            let value = place.value(from);
            let head = Head::new(*key, Some(value));
            let record = to.mapping.bytes_mut(at, head.length + value.len());
            write(record, &head, value);
            *place = Place::of(at, &head, value);
            at += place.bytes();
        }
        to.set(COMMITTED, (at - PAGE) as u64);
        to.set(ROUND, from.get(ROUND) + 1);
        self.has_changed = true;
        (self.current, self.end) = (1 - self.current, at);
        Ok(())
    }

    /// Appends a record, and returns where it begins; `None` if there is no memory for it.
    fn append(&mut self, head: &Head, value: &[u8]) -> Option<usize> {
        if self.failed.is_some() {
            return None;
        }
        if value.len() > MOST {
            self.failed = Some(io::ErrorKind::FileTooLarge.into());
            return None;
        }
        let (at, end) = (self.end, self.end + head.length + value.len());
        let half = &mut self.halves[self.current];
        if let Err(error) = half.reach(end) {
            self.failed = Some(error);
            return None;
        }
        write(half.mapping.bytes_mut(at, end - at), head, value);
        self.end = end;
        self.written += end - at;
        Some(at)
    }
}

fn write(record: &mut [u8], head: &Head, value: &[u8]) {
    let (front, back) = record.split_at_mut(head.length);
    front.copy_from_slice(head.bytes());
    back.copy_from_slice(value);
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
                        journal.commit(Instant::now()).unwrap();
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
                        // This is as if the process had been killed: the next one goes on from the commit.
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
            let record = |(key, value): (&Key, &Vec<u8>)| value.len() + Head::new(*key, Some(value)).length;
            let live: usize = known.iter().map(record).sum();
            assert_eq!(journal.live, live);
        }
    }

    #[test]
    fn a_journal_that_is_quiet_keeps_the_memory_of_what_counts_alone() {
        let mut journal = Journal::shared().unwrap();
        let key = |id| Key::new(1, 2, id);
        let value = vec![7; 100_000];
        let mut now = Instant::now();
        for round in 0..10 {
            (0..30).for_each(|id| journal.put_bytes(key(id), &[&value[..], &[round]].concat()));
            journal.commit(now).unwrap();
        }
        (1..30).for_each(|id| journal.remove(key(id)));
        journal.commit(now).unwrap();
        let took = |journal: &Journal| -> usize {
            let blocks = |half: &Half| nix::sys::stat::fstat(&half.file).unwrap().st_blocks;
            journal.halves.iter().map(blocks).sum::<i64>() as usize * 512
        };
        assert!(took(&journal) > 3_000_000);
        // Two seconds in which something is written, one in which nothing is, and a later one.
        let all = 4 * PAGE + value.len();
        for (put, most) in [
            (Some(11), usize::MAX),
            (Some(12), 4 * SHORTEST),
            (None, all),
            (None, all),
        ] {
            if let Some(last) = put {
                journal.put_bytes(key(0), &[&value[..], &[last]].concat());
            }
            now += LOOK_EVERY;
            journal.commit(now).unwrap();
            assert!(took(&journal) <= most, "{} bytes, {most} at most", took(&journal));
            let (_, found) = again(&journal);
            assert_eq!((found.len(), found[&key(0)][100_000]), (1, put.unwrap_or(12)));
        }
        let rounds = |journal: &Journal| [0, 1].map(|half| journal.halves[half].get(ROUND));
        let before = rounds(&journal);
        now += LOOK_EVERY;
        journal.commit(now).unwrap();
        assert_eq!(rounds(&journal), before, "there is nothing to be gained");
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
        journal.commit(Instant::now()).unwrap();
        let (_, found) = again(&journal);
        let value: (u64, String) = postcard::from_bytes(&found[&key]).unwrap();
        assert_eq!(value, (7, "nancy".to_owned()));
    }

    #[test]
    fn the_last_commit_stays_after_one_that_failed_until_the_journal_is_given_up() {
        let mut journal = Journal::shared().unwrap();
        journal.put(Key::new(1, 2, 3), &7);
        journal.commit(Instant::now()).unwrap();
        journal.failed = Some(io::ErrorKind::OutOfMemory.into());
        journal.put(Key::new(1, 2, 4), &8);
        let failed = journal.commit(Instant::now()).unwrap_err();
        assert_eq!(failed.kind(), io::ErrorKind::OutOfMemory);
        let (_, found) = again(&journal);
        assert_eq!(found.into_keys().collect::<Vec<_>>(), [Key::new(1, 2, 3)]);
        journal.give_up();
        assert!(again(&journal).1.is_empty());
    }

    #[test]
    fn a_journal_of_an_earlier_form_is_refused_and_not_taken_for_an_empty_one() {
        for half in 0..2 {
            let journal = Journal::shared().unwrap();
            journal.halves[half].set(EARLIER_ROUND, 7);
            let refused = Journal::open(journal.duplicate().unwrap()).unwrap_err();
            assert!(refused.to_string().contains("version 12"), "{refused}");
        }
    }

    #[test]
    fn a_journal_that_is_damaged_is_refused_and_never_panics() {
        let mut journal = Journal::shared().unwrap();
        for id in 0..5 {
            journal.put_bytes(Key::new(1, 1, id), &[id as u8; 10]);
        }
        journal.commit(Instant::now()).unwrap();
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
