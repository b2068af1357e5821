//! One stream's two halves: how far each has come, and how far each may go.
//!
//! Invariants: `sent <= send_limit`; `consumed <= received <= receive_limit`;
//! `receive_limit <= consumed + window`.

use crate::frame::ProtocolError;

#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) sent: u64,
    pub(crate) send_limit: u64,
    /// Our half has ended at `sent`.
    pub(crate) finished: bool,
    pub(crate) received: u64,
    pub(crate) consumed: u64,
    pub(crate) receive_limit: u64,
    pub(crate) window: u64,
    /// Where the peer's half ends, once it said so.
    pub(crate) end: Option<u64>,
    /// Position at which the window was last enlarged.
    pub(crate) grown_at: u64,
}

/// What to do with a piece of data.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// Its last `n` bytes are new and follow what is here.
    New(usize),
    /// Nothing of it is new.
    Known,
}

impl Stream {
    pub(crate) fn new(send_limit: u64, window: u64, receive_limit: u64) -> Stream {
        Stream {
            sent: 0,
            send_limit,
            finished: false,
            received: 0,
            consumed: 0,
            receive_limit,
            window,
            end: None,
            grown_at: 0,
        }
    }

    /// Bytes that may be sent now.
    pub(crate) fn sendable(&self) -> u64 {
        if self.finished {
            0
        } else {
            self.send_limit - self.sent
        }
    }

    pub(crate) fn on_data(
        &mut self,
        id: u32,
        position: u64,
        length: usize,
    ) -> Result<Arrival, ProtocolError> {
        let wrong = ProtocolError::Position(id, position);
        let end = position.checked_add(length as u64).ok_or(wrong)?;
        if position > self.received || self.end.is_some_and(|last| end > last) {
            return Err(wrong);
        }
        if end > self.receive_limit {
            return Err(ProtocolError::Window(id));
        }
        if end <= self.received {
            return Ok(Arrival::Known);
        }
        // Fits: at most `length`.
        let new = (end - self.received) as usize;
        self.received = end;
        Ok(Arrival::New(new))
    }

    /// The peer's half ends at `position`. True when this is news and all of it is here.
    pub(crate) fn on_finish(&mut self, id: u32, position: u64) -> Result<bool, ProtocolError> {
        if self.end.is_some_and(|end| end != position) || position != self.received {
            return Err(ProtocolError::Position(id, position));
        }
        Ok(self.end.replace(position).is_none())
    }

    pub(crate) fn on_credit(&mut self, position: u64) {
        self.send_limit = self.send_limit.max(position);
    }

    /// Both halves have ended and arrived.
    pub(crate) fn is_done(&self) -> bool {
        self.finished && self.end == Some(self.received)
    }

    /// Bytes that arrived and that the reader has not taken.
    pub(crate) fn held(&self) -> u64 {
        self.received - self.consumed
    }
}
