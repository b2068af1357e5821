//! What names a record, and how one begins.

/// A key and a length take at most this many bytes.
const MAX_HEAD: usize = 1 + 4 * 10;

/// Names a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// What the record describes.
    pub kind: u8,
    /// The number of its owner.
    pub owner: u64,
    /// Which of the owner's things.
    pub id: u64,
    /// Which part of that thing.
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
}

/// The beginning of a record: its key, and one more than the length of its value, or 0 for a removal.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Head {
    bytes: [u8; MAX_HEAD],
    pub(crate) length: usize,
}

impl Head {
    pub(crate) fn new(key: Key, value: Option<&[u8]>) -> Head {
        let length = value.map_or(0, |value| value.len() as u64 + 1);
        let mut bytes = [0; MAX_HEAD];
        let numbers = (key.kind, key.owner, key.id, key.part, length);
        let length = postcard::to_slice(&numbers, &mut bytes).map_or(0, |head| head.len());
        Head { bytes, length }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// Reads one from the front: returns the key, the length of the value, and what follows.
    pub(crate) fn read(bytes: &[u8]) -> Option<(Key, Option<usize>, &[u8])> {
        let read = postcard::take_from_bytes::<(u8, u64, u64, u64, u64)>(bytes);
        let ((kind, owner, id, part, length), rest) = read.ok()?;
        let key = Key {
            kind,
            owner,
            id,
            part,
        };
        match length.checked_sub(1) {
            Some(length) => Some((key, Some(usize::try_from(length).ok()?), rest)),
            None => Some((key, None, rest)),
        }
    }
}

/// A record that was found.
pub type Record = (Key, Vec<u8>);
