//! The state machine of one tunnel, the same at both ends.
//!
//! A driver feeds it the pieces a [`crate::LaneReader`] cuts from a lane, acts on the events it returns, and sends
//! first what stands in [`Tunnel::control`], then data frames it makes by reading a local socket straight behind
//! a header from [`Tunnel::data_header`]: payload is never copied or kept here.

use crate::frame::{Header, Kind, MAX_PAYLOAD, Piece, ProtocolError};
use crate::open::OpenRequest;
use crate::stream::{Arrival, Stream};
use crate::window::{Budget, LEAST_BYTES, Limits};
use causeway_wire::Reason;
use std::collections::HashMap;

/// Longest message of the gateway to its peer: the description of a site with tens of thousands of nodes.
pub const MAX_MESSAGE: usize = 8 << 20;

/// Names a stream within its tunnel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamId(pub u32);

/// Which ids this end gives to the streams it opens: the ends never choose the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Odd ids.
    Odd,
    /// Even ids.
    Even,
}

/// What the driver has to know or do.
#[derive(Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// The far side opens a stream: answer with [`Tunnel::opened`] or [`Tunnel::reset`].
    Open(StreamId, OpenRequest),
    /// The far side reached the destination.
    Opened(StreamId),
    /// Bytes of a stream, in order. Tell [`Tunnel::consumed`] when they have been passed on.
    Data(StreamId, &'a [u8]),
    /// The far side's half has ended; all its bytes have been handed on.
    Finished(StreamId),
    /// The stream is gone.
    Reset(StreamId, Reason),
    /// A stream that could not send may send again.
    Sendable(StreamId),
    /// The far gateway says something to this one.
    Message(Vec<u8>),
    /// Answer to the ping with this value.
    Pong(u64),
}

/// One end of a tunnel.
#[derive(Debug)]
pub struct Tunnel {
    limits: Limits,
    budget: Budget,
    next_id: u32,
    side: Side,
    streams: HashMap<u32, Stream>,
    control: Vec<u8>,
    message: Vec<u8>,
}

impl Tunnel {
    /// An end without streams. The two ends need different sides; limits may differ.
    pub fn new(side: Side, limits: Limits) -> Tunnel {
        let next_id = match side {
            Side::Odd => 1,
            Side::Even => 2,
        };
        Tunnel {
            limits,
            budget: Budget::default(),
            next_id,
            side,
            streams: HashMap::new(),
            control: Vec::new(),
            message: Vec::new(),
        }
    }

    /// Streams that have not ended.
    pub fn streams(&self) -> usize {
        self.streams.len()
    }

    /// Frames to send before any further data. The driver takes the bytes out.
    pub fn control(&mut self) -> &mut Vec<u8> {
        &mut self.control
    }

    /// Opens a stream. Up to [`LEAST_BYTES`] may be sent before the answer.
    pub fn open(&mut self, request: &OpenRequest) -> StreamId {
        let id = self.free_id();
        let window = self.budget.first_window(&self.limits, self.streams.len());
        self.streams.insert(id, Stream::new(LEAST_BYTES, window, window));
        self.put(Kind::Open, 0, id, window, &request.encode());
        StreamId(id)
    }

    /// Answers [`Event::Open`]: the destination is reached.
    pub fn opened(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get_mut(&id.0) else {
            return;
        };
        let limit = stream.consumed + stream.window;
        stream.receive_limit = stream.receive_limit.max(limit);
        self.put(Kind::Opened, 0, id.0, limit, &[]);
    }

    /// How many bytes one data frame of this stream may carry now; 0 when it must wait for
    /// [`Event::Sendable`] or has ended.
    pub fn sendable(&self, id: StreamId) -> usize {
        // Fits: at most MAX_PAYLOAD.
        self.streams
            .get(&id.0)
            .map_or(0, |stream| stream.sendable().min(MAX_PAYLOAD as u64) as usize)
    }

    /// The header of a data frame with `length` bytes of the stream; at most [`Tunnel::sendable`] of them.
    pub fn data_header(&mut self, id: StreamId, length: usize) -> [u8; crate::frame::HEADER_BYTES] {
        debug_assert!(length <= self.sendable(id));
        let position = self.streams.get_mut(&id.0).map_or(0, |stream| {
            stream.sent += length as u64;
            stream.sent - length as u64
        });
        // Fits: sendable never exceeds MAX_PAYLOAD.
        Header {
            kind: Kind::Data,
            detail: 0,
            length: length as u16,
            stream: id.0,
            position,
        }
        .encode()
    }

    /// Ends this side's half of the stream.
    pub fn finish(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get_mut(&id.0) else {
            return;
        };
        if !std::mem::replace(&mut stream.finished, true) {
            let end = stream.sent;
            self.put(Kind::Finish, 0, id.0, end, &[]);
        }
        self.remove_if_done(id.0);
    }

    /// Ends the stream both ways at once, or refuses to open it.
    pub fn reset(&mut self, id: StreamId, reason: Reason) {
        if self.remove(id.0) {
            self.put(Kind::Reset, reason as u8, id.0, 0, &[]);
        }
    }

    /// `bytes` that arrived have left this gateway: the sender may send as many more.
    pub fn consumed(&mut self, id: StreamId, bytes: usize) {
        let Some(stream) = self.streams.get_mut(&id.0) else {
            return;
        };
        stream.consumed += bytes as u64;
        debug_assert!(stream.consumed <= stream.received);
        if stream.end.is_some() {
            return;
        }
        let keeps_up = stream.held() * 4 <= stream.window;
        if keeps_up && stream.consumed - stream.grown_at >= stream.window {
            stream.grown_at = stream.consumed;
            stream.window = self.budget.grown_window(&self.limits, stream.window);
        }
        let limit = stream.consumed + stream.window;
        // A quarter of the window at a time: few credits, and the sender still sees the window open in time.
        if limit >= stream.receive_limit + stream.window / 4 {
            stream.receive_limit = limit;
            self.put(Kind::Credit, 0, id.0, limit, &[]);
        }
    }

    /// Sends bytes to the far gateway itself, at most [`MAX_MESSAGE`].
    pub fn message(&mut self, bytes: &[u8]) {
        let mut parts = bytes.chunks(MAX_PAYLOAD).peekable();
        while let Some(part) = parts.next() {
            let more = u8::from(parts.peek().is_some());
            self.put(Kind::Message, more, 0, 0, part);
        }
    }

    /// Asks the far side for a [`Event::Pong`] with the same value.
    pub fn ping(&mut self, value: u64) {
        self.put(Kind::Ping, 0, 0, value, &[]);
    }

    /// Takes in one piece of a lane's input.
    ///
    /// # Errors
    /// When the far side breaks the protocol; the lane must then be closed.
    pub fn on_piece<'a>(&mut self, piece: Piece<'a>) -> Result<Option<Event<'a>>, ProtocolError> {
        let Header {
            kind,
            detail,
            stream,
            position,
            ..
        } = piece.header;
        let id = StreamId(stream);
        match kind {
            Kind::Data => self.on_data(stream, position, piece.payload),
            Kind::Open => self.on_open(stream, position, piece.payload).map(Some),
            Kind::Message => self.on_message(detail, piece.payload),
            Kind::Finish => self.on_finish(stream, position),
            Kind::Credit | Kind::Opened => Ok(self.on_credit(kind, id, position)),
            Kind::Reset => {
                let reason = Reason::from_code(detail).unwrap_or(Reason::Reset);
                Ok(self.remove(stream).then_some(Event::Reset(id, reason)))
            }
            Kind::Ping => {
                self.put(Kind::Pong, 0, 0, position, &[]);
                Ok(None)
            }
            Kind::Pong => Ok(Some(Event::Pong(position))),
        }
    }

    fn on_data<'a>(
        &mut self,
        id: u32,
        position: u64,
        payload: &'a [u8],
    ) -> Result<Option<Event<'a>>, ProtocolError> {
        // Bytes of a stream that this side has reset meanwhile are on their way: they end here.
        let Some(stream) = self.streams.get_mut(&id) else {
            return Ok(None);
        };
        Ok(match stream.on_data(id, position, payload.len())? {
            Arrival::Known => None,
            Arrival::New(count) => Some(Event::Data(StreamId(id), &payload[payload.len() - count..])),
        })
    }

    fn on_open<'a>(&mut self, id: u32, send_limit: u64, payload: &[u8]) -> Result<Event<'a>, ProtocolError> {
        let request = OpenRequest::decode(payload).ok_or(ProtocolError::Open(id))?;
        let theirs = match self.side {
            Side::Odd => 0,
            Side::Even => 1,
        };
        if id == 0 || id % 2 != theirs || self.streams.contains_key(&id) {
            return Err(ProtocolError::StreamId(id));
        }
        let window = self.budget.first_window(&self.limits, self.streams.len());
        self.streams
            .insert(id, Stream::new(send_limit, window, LEAST_BYTES));
        Ok(Event::Open(StreamId(id), request))
    }

    fn on_message<'a>(&mut self, more: u8, payload: &[u8]) -> Result<Option<Event<'a>>, ProtocolError> {
        if self.message.len() + payload.len() > MAX_MESSAGE {
            return Err(ProtocolError::Message(MAX_MESSAGE));
        }
        self.message.extend_from_slice(payload);
        Ok((more == 0).then(|| Event::Message(std::mem::take(&mut self.message))))
    }

    fn on_finish<'a>(&mut self, id: u32, position: u64) -> Result<Option<Event<'a>>, ProtocolError> {
        let Some(stream) = self.streams.get_mut(&id) else {
            return Ok(None);
        };
        let news = stream.on_finish(id, position)?;
        self.remove_if_done(id);
        Ok(news.then_some(Event::Finished(StreamId(id))))
    }

    fn on_credit<'a>(&mut self, kind: Kind, id: StreamId, position: u64) -> Option<Event<'a>> {
        let stream = self.streams.get_mut(&id.0)?;
        let was_blocked = stream.sendable() == 0;
        stream.on_credit(position);
        if kind == Kind::Opened {
            return Some(Event::Opened(id));
        }
        (was_blocked && stream.sendable() > 0).then_some(Event::Sendable(id))
    }

    fn put(&mut self, kind: Kind, detail: u8, stream: u32, position: u64, payload: &[u8]) {
        debug_assert!(payload.len() <= MAX_PAYLOAD);
        // Fits: callers pass at most MAX_PAYLOAD.
        let header = Header {
            kind,
            detail,
            length: payload.len() as u16,
            stream,
            position,
        };
        self.control.extend_from_slice(&header.encode());
        self.control.extend_from_slice(payload);
    }

    /// Ids go up so that a late frame of a closed stream does not meet a new one; after two thousand million
    /// streams they start again and pass over those in use.
    fn free_id(&mut self) -> u32 {
        loop {
            let id = self.next_id;
            self.next_id = id.checked_add(2).unwrap_or(match self.side {
                Side::Odd => 1,
                Side::Even => 2,
            });
            if !self.streams.contains_key(&id) {
                return id;
            }
        }
    }

    fn remove_if_done(&mut self, id: u32) {
        if self.streams.get(&id).is_some_and(Stream::is_done) {
            self.remove(id);
        }
    }

    fn remove(&mut self, id: u32) -> bool {
        let removed = self.streams.remove(&id);
        if let Some(stream) = &removed {
            self.budget.release(&self.limits, stream.window);
        }
        removed.is_some()
    }
}
