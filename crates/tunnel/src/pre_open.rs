//! What arrived of streams before their open did, or before the messages the open must follow.

use crate::frame::ProtocolError;
use crate::kept;
use crate::open::OpenRequest;
use crate::segments::SEGMENT_BYTES;
use crate::stream::{Arrival, Stream};
use crate::window::MIN_BYTES;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// Streams known before their open. As many as are opened while one lane waits for a retransmission.
const STREAMS: usize = 65_536;

/// Bytes kept for all of them, and what keeping them takes.
const BYTES: usize = 64 << 20;

#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct PreOpen {
    streams: HashMap<u32, Waiting>,
    bytes: usize,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Waiting {
    stream: Stream,
    bytes: usize,
    open: Option<Open>,
}

/// An open that has arrived.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Open {
    #[serde(with = "kept::request")]
    pub(crate) request: OpenRequest,
    /// Frames of messages that go before it.
    pub(crate) after: u64,
    pub(crate) send_limit: u64,
}

impl PreOpen {
    /// Whether what it says of itself is so.
    pub(crate) fn is_sound(&self) -> bool {
        let bytes = self.streams.values().map(|waiting| waiting.bytes);
        let bytes = bytes.fold(0, usize::saturating_add);
        bytes == self.bytes && self.streams.values().all(|waiting| waiting.stream.is_sound())
    }

    /// The stream `id`, to note what arrived of it. Its data goes through [`PreOpen::on_data`].
    ///
    /// # Errors
    /// [`ProtocolError::Early`] when there are too many.
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
        self.waiting(id)?.open.get_or_insert(open);
        Ok(())
    }

    /// Streams whose open may be handed on once `messages` frames of messages were, lowest first.
    pub(crate) fn ready(&self, messages: u64) -> Vec<u32> {
        let is_ready = |waiting: &Waiting| waiting.open.as_ref().is_some_and(|open| open.after <= messages);
        let ready = self.streams.iter().filter(|(_, waiting)| is_ready(waiting));
        let mut ready: Vec<u32> = ready.map(|(id, _)| *id).collect();
        ready.sort_unstable();
        ready
    }

    /// Takes a stream out; its open must have arrived.
    pub(crate) fn take(&mut self, id: u32) -> Option<(Stream, Open)> {
        let waiting = self.streams.remove(&id)?;
        self.bytes -= waiting.bytes;
        Some((waiting.stream, waiting.open?))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.streams.is_empty()
    }

    pub(crate) fn contains(&self, id: u32) -> bool {
        self.streams.contains_key(&id)
    }

    fn waiting(&mut self, id: u32) -> Result<&mut Waiting, ProtocolError> {
        if self.streams.len() >= STREAMS && !self.streams.contains_key(&id) {
            return Err(ProtocolError::Early);
        }
        Ok(self.streams.entry(id).or_insert_with(|| Waiting {
            stream: Stream::new(0, MIN_BYTES, MIN_BYTES),
            bytes: 0,
            open: None,
        }))
    }
}
