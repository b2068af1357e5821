//! Tells the driver what has arrived, one event at a time.
//!
//! An event counts as told only when the driver receives it: otherwise a driver that writes a tunnel to its
//! journal before it has received all events would lose the others if its process were killed then.

use crate::dues::Due;
use crate::event::{Event, StreamId};
use crate::frame::ProtocolError;
use crate::steps;
use crate::tunnel::Tunnel;
use std::borrow::Cow;

impl Tunnel {
    /// Returns the next event that no input causes now: see [`Tunnel::on_time`].
    pub fn poll_event(&mut self) -> Option<Event<'static>> {
        // The next input reports the fault. Until then, lanes still die and the tunnel still expires.
        self.next_event().unwrap_or_else(|_| self.dues.take_noted())
    }

    /// Returns the next event.
    ///
    /// # Errors
    /// The far side has broken the protocol; the error is repeated until the tunnel ends.
    pub(crate) fn next_event(&mut self) -> Result<Option<Event<'static>>, ProtocolError> {
        while let Some(due) = self.dues.take() {
            let event = match due {
                Due::Event(event) => return Ok(Some(event)),
                Due::Stream(id) => self.next_of_stream(id),
                Due::Opens => self.next_open(),
                Due::Messages => match self.messages.next() {
                    Ok(message) => message.map(Event::Message),
                    Err(error) => {
                        self.dues.put_back(due);
                        return Err(error);
                    }
                },
            };
            if event.is_some() {
                // There may be more of what is due.
                self.dues.put_back(due);
                return Ok(event);
            }
        }
        Ok(None)
    }

    /// Returns the next event that is due for a stream: bytes that were kept, its end, or its reset.
    fn next_of_stream(&mut self, id: u32) -> Option<Event<'static>> {
        steps::step();
        let chooses = self.side.chooses(id);
        let stream = self.streams.get_mut(id)?;
        // Bytes or an end that overtook the answer to our open imply that answer; a reset may be a refusal.
        let answered = stream.received > 0 || stream.end.is_some() || !stream.ahead.is_empty();
        if answered && chooses && !std::mem::replace(&mut stream.opened, true) {
            return Some(Event::Opened(StreamId(id)));
        }
        let segments = stream.ahead.len();
        let bytes = stream.take_ahead();
        self.segments -= segments - stream.ahead.len();
        if let Some(bytes) = bytes {
            return Some(Event::Data(StreamId(id), Cow::Owned(bytes)));
        }
        if stream.has_all() && !std::mem::replace(&mut stream.end_told, true) {
            return Some(Event::Finished(StreamId(id)));
        }
        if let Some(reason) = stream.due_reset().filter(|_| !stream.is_done()) {
            self.remove(id);
            return Some(Event::Reset(StreamId(id), reason));
        }
        self.remove_if_done(id);
        None
    }

    /// Begins a stream whose open, and the messages before it, have arrived.
    fn next_open(&mut self) -> Option<Event<'static>> {
        let (id, stream, open) = self.pre_open.take_ready(self.messages.received)?;
        Some(self.begin(id, stream, open))
    }
}
