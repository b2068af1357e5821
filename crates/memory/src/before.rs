//! The form in which programs of state version 12 and before wrote their journals, read once when this one
//! takes over from one of them: all numbers of a key in eight bytes each.

use crate::mapping::{Mapping, PAGE};
use crate::record::{Key, Record};
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::Ordering;

const COMMITTED: usize = 0;
const ROUND: usize = 8;
const HEAD_BYTES: usize = 5 * 8;

/// In place of a length: the record is a removal.
const NOTHING: u64 = u64::MAX;

/// Which half counts, and the records of its last commit.
///
/// # Errors
/// What is committed cannot be read.
pub(crate) fn read(halves: [&Mapping; 2]) -> io::Result<(usize, Vec<Record>)> {
    let [first, second] = halves.map(|half| half.number(ROUND).load(Ordering::Acquire));
    let current = usize::from(second > first);
    let half = halves[current];
    let committed = usize::try_from(half.number(COMMITTED).load(Ordering::Acquire)).unwrap_or(usize::MAX);
    if committed > half.len() - PAGE {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let records = records(half.bytes(PAGE, committed)).ok_or(io::ErrorKind::InvalidData)?;
    Ok((current, records))
}

fn records(mut bytes: &[u8]) -> Option<Vec<Record>> {
    let mut found = BTreeMap::new();
    while !bytes.is_empty() {
        let (head, rest) = bytes.split_first_chunk::<HEAD_BYTES>()?;
        let (numbers, _) = head.as_chunks::<8>();
        let number = |at: usize| u64::from_ne_bytes(numbers[at]);
        let key = Key {
            kind: head[0],
            owner: number(1),
            id: number(2),
            part: number(3),
        };
        if number(4) == NOTHING {
            found.remove(&key);
            bytes = rest;
            continue;
        }
        let (value, rest) = rest.split_at_checked(usize::try_from(number(4)).ok()?)?;
        found.insert(key, value.to_vec());
        bytes = rest;
    }
    Some(found.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Journal, mapping};
    use std::os::fd::{AsFd, OwnedFd};

    fn record(key: Key, value: Option<&[u8]>) -> Vec<u8> {
        let length = value.map_or(NOTHING, |value| value.len() as u64);
        let numbers = [u64::from(key.kind), key.owner, key.id, key.part, length];
        let head = numbers.map(u64::to_le_bytes).concat();
        [&head, value.unwrap_or_default()].concat()
    }

    /// Files of which one half has such a journal.
    fn files(half: usize, bytes: &[u8]) -> [OwnedFd; 2] {
        let files = [(); 2].map(|()| mapping::file("test").unwrap());
        let mut half = Mapping::new(files[half].as_fd(), 0, 4 * PAGE).unwrap();
        half.bytes_mut(PAGE, bytes.len()).copy_from_slice(bytes);
        half.number(COMMITTED)
            .store(bytes.len() as u64, Ordering::Release);
        half.number(ROUND).store(7, Ordering::Release);
        files
    }

    #[test]
    fn a_journal_of_the_form_before_is_taken_over_whole_and_goes_on() {
        let key = |id| Key::new(3, 4, id);
        let bytes = [
            record(key(1), Some(b"one")),
            record(key(2), Some(b"two")),
            record(key(1), Some(b"once more")),
            record(key(2), None),
            record(key(1 << 40), Some(b"")),
        ]
        .concat();
        for half in 0..2 {
            let (mut journal, found) = Journal::open(files(half, &bytes)).unwrap();
            let expected = [(key(1), b"once more".to_vec()), (key(1 << 40), Vec::new())];
            assert_eq!(found, expected);
            journal.put_bytes(key(5), b"five");
            journal.commit(std::time::Instant::now()).unwrap();
            let (_, found) = Journal::open(journal.duplicate().unwrap()).unwrap();
            let five = (key(5), b"five".to_vec());
            assert_eq!(found, [expected[0].clone(), five, expected[1].clone()]);
        }
    }

    #[test]
    fn who_is_killed_while_it_takes_over_leaves_what_was_there() {
        let key = Key::new(3, 4, 1);
        let files = files(0, &record(key, Some(b"one")));
        // What the commit of the other half stores, before its round.
        let half = Mapping::new(files[1].as_fd(), 0, 4 * PAGE).unwrap();
        half.number(16).store(3, Ordering::Release);
        let (_, found) = Journal::open(files).unwrap();
        assert_eq!(found, [(key, b"one".to_vec())]);
    }

    #[test]
    fn a_damaged_journal_of_the_form_before_is_refused_and_never_panics() {
        let whole = record(Key::new(1, 2, 3), Some(b"value"));
        assert_eq!(records(&whole).unwrap().len(), 1);
        for length in 1..whole.len() {
            assert_eq!(records(&whole[..length]), None);
        }
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] = 0xff;
            let _ = records(&damaged);
        }
    }
}
