//! The streams of a tunnel, and which of them have changed.

use crate::kept::kind;
use crate::stream::Stream;
use crate::touched::Touched;
use causeway_memory::{Journal, Key};
use std::collections::HashMap;

#[derive(Debug, Default)]
pub(crate) struct Streams {
    map: HashMap<u32, Stream>,
    touched: Touched<u32>,
    /// Segments that the journal may contain, of streams that no longer exist.
    gone: Vec<(u32, u64)>,
}

impl Streams {
    /// Creates the set of these streams; with `noted`, changes are recorded.
    pub(crate) fn new(map: HashMap<u32, Stream>, noted: bool) -> Streams {
        let mut streams = Streams {
            map: HashMap::new(),
            touched: Touched::default(),
            gone: Vec::new(),
        };
        if noted {
            streams.touched.turn_on();
        }
        for (id, stream) in map {
            streams.insert(id, stream);
        }
        streams
    }

    #[cfg(test)]
    pub(crate) fn map(&self) -> &HashMap<u32, Stream> {
        &self.map
    }

    pub(crate) fn into_map(self) -> HashMap<u32, Stream> {
        self.map
    }

    pub(crate) fn len(&self) -> usize {
        self.map.len()
    }

    pub(crate) fn contains_key(&self, id: u32) -> bool {
        self.map.contains_key(&id)
    }

    pub(crate) fn get(&self, id: u32) -> Option<&Stream> {
        self.map.get(&id)
    }

    pub(crate) fn get_mut(&mut self, id: u32) -> Option<&mut Stream> {
        let stream = self.map.get_mut(&id)?;
        self.touched.note(id);
        Some(stream)
    }

    pub(crate) fn insert(&mut self, id: u32, mut stream: Stream) {
        if self.touched.is_on() {
            stream.ahead.note_all();
        }
        self.touched.note(id);
        self.map.insert(id, stream);
    }

    pub(crate) fn remove(&mut self, id: u32) -> Option<Stream> {
        let mut stream = self.map.remove(&id)?;
        if self.touched.is_on() {
            self.touched.note(id);
            self.gone.extend(stream.ahead.written().map(|at| (id, at)));
        }
        Some(stream)
    }

    /// Writes to the journal what has changed.
    pub(crate) fn write_down(&mut self, journal: &mut Journal, owner: u64) {
        for (id, part) in self.gone.drain(..) {
            journal.remove(Key {
                part,
                ..Key::new(kind::AHEAD, owner, id.into())
            });
        }
        for id in self.touched.take() {
            let key = Key::new(kind::STREAM, owner, id.into());
            match self.map.get_mut(&id) {
                Some(stream) => {
                    journal.put(key, stream.halves());
                    stream.ahead.write_down(journal, owner, id);
                }
                None => journal.remove(key),
            }
        }
    }
}
