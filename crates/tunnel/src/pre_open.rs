//! Keeps what arrives for streams before their open does, or before the messages that must precede the open.

use crate::frame::ProtocolError;
use crate::kept;
use crate::kept::kind;
use crate::open::OpenRequest;
use crate::segments::{SEGMENT_BYTES, Segments};
use crate::steps;
use crate::stream::{Arrival, Halves, Stream};
use crate::touched::Touched;
use crate::window::MIN_BYTES;
use causeway_memory::{Journal, Key};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashMap};

/// Most streams that are known before their open: as many as are opened while one lane waits for a
/// retransmission.
const STREAMS: usize = 65_536;

/// Most bytes that are kept for all of them, including overhead.
const BYTES: usize = 64 << 20;

/// Invariant: `due` has the streams whose open has arrived, each with what it waits for.
#[derive(Debug, Default, Clone, PartialEq)]
pub(crate) struct PreOpen {
    streams: HashMap<u32, Waiting>,
    bytes: usize,
    /// [`Open::after`] and the stream's id. A far gateway may make any number of streams wait for a message
    /// that it does not send, so nothing iterates over all of them.
    due: BTreeSet<(u64, u32)>,
    touched: Touched<u32>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Waiting {
    stream: Stream,
    bytes: usize,
    open: Option<Open>,
}

/// `Waiting` in the form of the journal, where its bytes have separate records.
#[derive(Serialize, Deserialize)]
struct WrittenWaiting<H> {
    halves: H,
    bytes: usize,
    open: Option<Open>,
}

impl Waiting {
    /// Reads a record; `ahead` are the stream's bytes that were stored.
    pub(crate) fn read(record: &[u8], ahead: Segments) -> Option<Waiting> {
        let written: WrittenWaiting<Halves> = postcard::from_bytes(record).ok()?;
        Some(Waiting {
            stream: Stream::of(written.halves, ahead),
            bytes: written.bytes,
            open: written.open,
        })
    }
}

/// An open that has arrived.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Open {
    #[serde(with = "kept::request")]
    pub(crate) request: OpenRequest,
    /// How many frames of messages precede the open.
    pub(crate) after: u64,
    pub(crate) send_limit: u64,
}

impl PreOpen {
    /// Restores what was stored.
    pub(crate) fn of(streams: HashMap<u32, Waiting>) -> PreOpen {
        let bytes = streams.values().map(|waiting| waiting.bytes);
        let due = { streams.iter() }.filter_map(|(id, waiting)| Some((waiting.open.as_ref()?.after, *id)));
        PreOpen {
            bytes: bytes.fold(0, usize::saturating_add),
            due: due.collect(),
            streams,
            touched: Touched::default(),
        }
    }

    /// Records everything present as changed, and records every change from now on.
    pub(crate) fn note_all(&mut self) {
        self.touched.turn_on();
        for (id, waiting) in &mut self.streams {
            self.touched.note(*id);
            waiting.stream.ahead.note_all();
        }
    }

    /// Writes to the journal what has changed. The bytes of a stream whose open arrives stay there.
    pub(crate) fn write_down(&mut self, journal: &mut Journal, owner: u64) {
        for id in self.touched.take() {
            let key = Key::new(kind::PRE_OPEN, owner, id.into());
            let Some(waiting) = self.streams.get_mut(&id) else {
                journal.remove(key);
                continue;
            };
            let written = WrittenWaiting {
                halves: waiting.stream.halves(),
                bytes: waiting.bytes,
                open: waiting.open.clone(),
            };
            journal.put(key, &written);
            waiting.stream.ahead.write_down(journal, owner, id);
        }
    }

    /// Whether the state is consistent.
    pub(crate) fn is_sound(&self) -> bool {
        let is_sound = |waiting: &Waiting| {
            let segments = &waiting.stream.ahead;
            waiting.stream.is_sound() && waiting.bytes <= segments.bytes() + segments.len() * SEGMENT_BYTES
        };
        self.streams.values().all(is_sound)
    }

    /// The stream `id`, to record what has arrived for it. Its data must be passed to [`PreOpen::on_data`].
    ///
    /// # Errors
    /// [`ProtocolError::Early`] if there are too many streams.
    pub(crate) fn stream(&mut self, id: u32) -> Result<&mut Stream, ProtocolError> {
        Ok(&mut self.waiting(id)?.stream)
    }

    pub(crate) fn on_data(&mut self, id: u32, position: u64, payload: &[u8]) -> Result<(), ProtocolError> {
        let left = BYTES.saturating_sub(self.bytes);
        let waiting = self.waiting(id)?;
        if payload.len() + SEGMENT_BYTES > left {
            return Err(ProtocolError::Early);
        }
        let segments = waiting.stream.ahead.len();
        if let Arrival::Kept(count) = waiting.stream.on_data(id, position, payload, true)? {
            let count = count + (waiting.stream.ahead.len() - segments) * SEGMENT_BYTES;
            waiting.bytes += count;
            self.bytes += count;
        }
        Ok(())
    }

    pub(crate) fn on_open(&mut self, id: u32, open: Open) -> Result<(), ProtocolError> {
        let after = open.after;
        let waiting = self.waiting(id)?;
        if waiting.open.is_none() {
            waiting.open = Some(open);
            self.due.insert((after, id));
        }
        Ok(())
    }

    /// Removes and returns a stream whose open may be reported after `messages` message frames: first the one
    /// whose open must follow the fewest.
    pub(crate) fn take_ready(&mut self, messages: u64) -> Option<(u32, Stream, Open)> {
        steps::step();
        let (after, id) = *self.due.first()?;
        if after > messages {
            return None;
        }
        self.due.pop_first();
        let waiting = self.streams.remove(&id)?;
        self.touched.note(id);
        self.bytes -= waiting.bytes;
        Some((id, waiting.stream, waiting.open?))
    }

    fn waiting(&mut self, id: u32) -> Result<&mut Waiting, ProtocolError> {
        if self.streams.len() >= STREAMS && !self.streams.contains_key(&id) {
            return Err(ProtocolError::Early);
        }
        self.touched.note(id);
        Ok(self.streams.entry(id).or_insert_with(|| {
            let mut stream = Stream::new(0, MIN_BYTES, MIN_BYTES);
            if self.touched.is_on() {
                stream.ahead.note_all();
            }
            Waiting {
                stream,
                bytes: 0,
                open: None,
            }
        }))
    }
}
