//! What a program that gets this gateway needs to know about the connections carried for other sites. A
//! killed worker leaves nothing of it: the bytes that it had read would be missing.

use crate::book::{Book, Records, kind};
use crate::inherited::StateError;
use crate::traversal::Traversal;
use crate::traversal::relay::server::KeptSplice;
use crate::traversal::relay::splice::KEPT_BYTES;
use causeway_memory::Key;

impl Traversal {
    /// Writes down what is carried.
    pub(crate) fn write_down(&mut self, book: &mut Book) {
        for (key, splice) in self.relay.keep() {
            book.put(kind::SPLICE, key, &splice);
        }
    }
}

/// Reads what was written down, with its keys.
///
/// # Errors
/// A record cannot be read, or has more bytes than are ever kept.
pub(crate) fn follow(records: &Records) -> Result<Vec<(usize, KeptSplice)>, StateError> {
    let (from, until) = (Key::new(kind::SPLICE, 0, 0), Key::new(kind::SPLICE, 0, u64::MAX));
    let mut splices = Vec::new();
    for (key, value) in records.range(from..=until) {
        let splice: KeptSplice = postcard::from_bytes(value)?;
        if splice.ways.iter().any(|way| way.kept.len() > KEPT_BYTES) {
            return Err(StateError::Contradiction(
                "more is kept of what is carried than is ever",
            ));
        }
        // The number fits: it was a usize before.
        splices.push((key.id as usize, splice));
    }
    Ok(splices)
}

/// A record of what is carried, for tests of the layout.
#[cfg(test)]
pub(crate) fn put_samples(book: &mut Book) {
    use crate::traversal::relay::splice::KeptWay;
    let way = |kept: &[u8], ended| KeptWay {
        kept: kept.to_vec(),
        ended,
        finished: ended,
    };
    let splice = KeptSplice {
        generation: 10,
        sites: ["lyon".into(), "nancy".into()],
        ends: [9, 10],
        ways: [way(b"on its way", false), way(b"", true)],
    };
    book.put(kind::SPLICE, 0, &splice);
}
