//! The two halves of one stream: how far each has got, and how far each may go.
//!
//! Invariants: `sent <= send_limit`; `consumed <= received <= receive_limit`; `receive_limit <= consumed +
//! window`; what is ahead of `received` is below `receive_limit`.

use crate::frame::ProtocolError;
use crate::kept;
use crate::segments::Segments;
use crate::window::MIN_BYTES;
use causeway_wire::Reason;
use serde::{Deserialize, Serialize};
use std::ops::{Deref, DerefMut};

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Stream {
    halves: Halves,
    pub(crate) ahead: Segments,
}

/// The state of a stream without its bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Halves {
    pub(crate) sent: u64,
    pub(crate) send_limit: u64,
    /// Whether our half has ended, at `sent`.
    pub(crate) finished: bool,
    /// Whether the far side has answered our open.
    pub(crate) opened: bool,
    pub(crate) received: u64,
    pub(crate) consumed: u64,
    pub(crate) receive_limit: u64,
    pub(crate) window: u64,
    /// Where the peer's half ends, once the peer has said so.
    pub(crate) end: Option<u64>,
    /// Whether the driver knows about the end.
    pub(crate) end_told: bool,
    /// The position after which the stream ends in both directions, once the bytes up to there have arrived,
    /// and the reason.
    #[serde(with = "kept::reset")]
    pub(crate) reset: Option<(u64, Reason)>,
    /// The position at which the window was last enlarged.
    pub(crate) grown_at: u64,
}

impl Deref for Stream {
    type Target = Halves;

    fn deref(&self) -> &Halves {
        &self.halves
    }
}

impl DerefMut for Stream {
    fn deref_mut(&mut self) -> &mut Halves {
        &mut self.halves
    }
}

/// What to do with a piece of data.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// Its last `n` bytes are new, and follow what has arrived.
    New(usize),
    /// `n` bytes of it are kept until those before them arrive; none of it follows what has arrived.
    Kept(usize),
}

impl Stream {
    pub(crate) fn new(send_limit: u64, window: u64, receive_limit: u64) -> Stream {
        let halves = Halves {
            sent: 0,
            send_limit,
            finished: false,
            opened: false,
            received: 0,
            consumed: 0,
            receive_limit,
            window,
            end: None,
            end_told: false,
            reset: None,
            grown_at: 0,
        };
        Stream::of(halves, Segments::default())
    }

    /// Restores a stream that was stored, and what was ahead of it.
    pub(crate) fn of(halves: Halves, ahead: Segments) -> Stream {
        Stream { halves, ahead }
    }

    /// The state without what is ahead.
    pub(crate) fn halves(&self) -> &Halves {
        &self.halves
    }

    /// Whether the invariants hold, so that nothing below overflows.
    pub(crate) fn is_sound(&self) -> bool {
        self.sent <= self.send_limit
            && self.consumed <= self.received
            && self.received <= self.receive_limit
            && self.grown_at <= self.consumed
            && (MIN_BYTES..=kept::MAX_WINDOW).contains(&self.window)
            && self.receive_limit <= kept::MAX_POSITION
            && self.ahead.is_sound(self.receive_limit)
    }

    /// How many bytes may be sent now.
    pub(crate) fn sendable(&self) -> u64 {
        if self.finished {
            0
        } else {
            self.send_limit - self.sent
        }
    }

    /// Receives data. With `hold`, keeps all of it, even what is next in order.
    pub(crate) fn on_data(
        &mut self,
        id: u32,
        position: u64,
        payload: &[u8],
        hold: bool,
    ) -> Result<Arrival, ProtocolError> {
        let wrong = ProtocolError::Position(id, position);
        let end = position.checked_add(payload.len() as u64).ok_or(wrong)?;
        if self.end.is_some_and(|last| end > last) || self.reset.is_some_and(|(last, _)| end > last) {
            return Err(wrong);
        }
        if end > self.receive_limit {
            return Err(ProtocolError::Window(id));
        }
        if end <= self.received {
            return Ok(Arrival::Kept(0));
        }
        if position > self.received || hold {
            return Ok(Arrival::Kept(self.ahead.insert(position, payload)));
        }
        // The number fits: it is at most the payload's length.
        let new = (end - self.received) as usize;
        self.received = end;
        Ok(Arrival::New(new))
    }

    /// Bytes that were kept earlier and now follow what has arrived.
    pub(crate) fn take_ahead(&mut self) -> Option<Vec<u8>> {
        let bytes = self.ahead.take(self.halves.received)?;
        self.received += bytes.len() as u64;
        Some(bytes)
    }

    /// Records that the peer's half ends at `position`.
    pub(crate) fn on_finish(&mut self, id: u32, position: u64) -> Result<(), ProtocolError> {
        self.check_end(id, position)?;
        if self.end.is_some_and(|end| end != position) {
            return Err(ProtocolError::Position(id, position));
        }
        self.end = Some(position);
        Ok(())
    }

    /// Records that the peer has ended the stream after sending the bytes up to `position`.
    pub(crate) fn on_reset(&mut self, id: u32, position: u64, reason: Reason) -> Result<(), ProtocolError> {
        self.check_end(id, position)?;
        self.halves.reset.get_or_insert((position, reason));
        Ok(())
    }

    fn check_end(&self, id: u32, position: u64) -> Result<(), ProtocolError> {
        if position < self.received.max(self.ahead.end()) {
            return Err(ProtocolError::Position(id, position));
        }
        if position > self.receive_limit {
            return Err(ProtocolError::Window(id));
        }
        Ok(())
    }

    pub(crate) fn on_credit(&mut self, position: u64) {
        self.send_limit = self.send_limit.max(position);
    }

    /// Lets the peer send as many more bytes as were consumed, but at least a quarter of the window at a
    /// time, so that credits are few and the sender still sees the window open in time. Returns the new
    /// limit, which the peer must be told.
    pub(crate) fn widen(&mut self) -> Option<u64> {
        let limit = self.consumed + self.window;
        let is_due = self.end.is_none() && limit >= self.receive_limit + self.window / 4;
        is_due.then(|| {
            self.receive_limit = limit;
            limit
        })
    }

    /// Whether the peer's half has ended and all of it has arrived.
    pub(crate) fn has_all(&self) -> bool {
        self.end == Some(self.received)
    }

    /// The peer's reset, once what it sent before has arrived.
    pub(crate) fn due_reset(&self) -> Option<Reason> {
        self.reset
            .filter(|(position, _)| *position <= self.received)
            .map(|(_, reason)| reason)
    }

    /// Whether both halves have ended and arrived, and the driver knows it.
    pub(crate) fn is_done(&self) -> bool {
        self.finished && self.has_all() && self.end_told
    }

    /// How many bytes have arrived that the reader has not consumed.
    pub(crate) fn held(&self) -> u64 {
        self.received - self.consumed
    }
}
