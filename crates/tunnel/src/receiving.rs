//! Receives what arrives on the lanes, in whatever order and however often, and acts on it.

use crate::event::{Event, StreamId};
use crate::frame::{Header, Kind, Piece, ProtocolError};
use crate::open::OpenRequest;
use crate::pre_open::Open;
use crate::segments::MAX_SEGMENTS;
use crate::settings::MAX_WAITING_BYTES;
use crate::steps;
use crate::stream::{Arrival, Stream};
use crate::tunnel::Tunnel;
use causeway_wire::Reason;
use std::borrow::Cow;
use std::time::Instant;

type Handed<'a> = Result<Option<Event<'a>>, ProtocolError>;

impl Tunnel {
    /// Reads a lane's bytes from the front of `input` until there is something to report; returns `None` if
    /// more bytes are needed. The lane must be up.
    ///
    /// # Errors
    /// The far side breaks the protocol; the lane must then be closed.
    pub fn on_input<'a>(&mut self, lane: usize, input: &mut &'a [u8], now: Instant) -> Handed<'a> {
        loop {
            steps::step();
            if let Some(event) = self.next_event()? {
                return Ok(Some(event));
            }
            if self.control.len() > MAX_WAITING_BYTES {
                return Err(ProtocolError::Unread(self.control.len()));
            }
            let Some(state) = self.lanes.get_mut(lane).and_then(Option::as_mut) else {
                return Ok(None);
            };
            let before = input.len();
            let piece = state.reader.next(input)?;
            let taken = before - input.len();
            if taken > 0 {
                let asks = piece.as_ref().is_none_or(|piece| piece.header.kind != Kind::Ack);
                state.on_received(taken as u64, asks, now);
            }
            let Some(piece) = piece else { return Ok(None) };
            if let Some(event) = self.on_piece(lane, piece, now)? {
                return Ok(Some(event));
            }
        }
    }

    fn on_piece<'a>(&mut self, lane: usize, piece: Piece<'a>, now: Instant) -> Handed<'a> {
        let Header {
            kind,
            detail,
            stream,
            position,
            ..
        } = piece.header;
        match kind {
            Kind::Data => return self.on_data(stream, position, piece.payload),
            Kind::Ack => {
                if let Some(state) = &mut self.lanes[lane] {
                    state.on_ack(position, now)?;
                }
            }
            Kind::Credit | Kind::Opened => return Ok(self.on_credit(kind, StreamId(stream), position)),
            Kind::Open => self.on_open(stream, position, piece.payload)?,
            Kind::Message => self.on_message(position, detail != 0, piece.payload)?,
            Kind::Finish => {
                self.with_stream(stream, |stream_state| stream_state.on_finish(stream, position))?;
                self.dues.stream(stream);
            }
            Kind::Reset => {
                let reason = Reason::from_code(detail).unwrap_or(Reason::Reset);
                self.with_stream(stream, |state| state.on_reset(stream, position, reason))?;
                self.dues.stream(stream);
            }
            Kind::Skip => {
                if !self.seen.contains(stream)? {
                    self.seen.insert(stream);
                }
            }
            Kind::Ping => {}
        }
        Ok(None)
    }

    /// Records something about a stream, whether or not it is open yet; does nothing if the stream has ended.
    fn with_stream(
        &mut self,
        id: u32,
        note: impl FnOnce(&mut Stream) -> Result<(), ProtocolError>,
    ) -> Result<(), ProtocolError> {
        if let Some(stream) = self.streams.get_mut(id) {
            note(stream)
        } else if self.is_early(id)? {
            note(self.pre_open.stream(id)?)
        } else {
            Ok(())
        }
    }

    /// Whether the far side may still open an unknown stream; if not, the stream has ended.
    fn is_early(&self, id: u32) -> Result<bool, ProtocolError> {
        Ok(!self.side.chooses(id) && !self.seen.contains(id)?)
    }

    fn on_data<'a>(&mut self, id: u32, position: u64, payload: &'a [u8]) -> Handed<'a> {
        let Some(stream) = self.streams.get_mut(id) else {
            // Bytes of a stream that has ended, or that this side has reset meanwhile, are dropped.
            if self.is_early(id)? {
                self.pre_open.on_data(id, position, payload)?;
            }
            return Ok(None);
        };
        if position > stream.received && self.segments >= MAX_SEGMENTS {
            return Err(ProtocolError::Early);
        }
        let segments = stream.ahead.len();
        let arrival = stream.on_data(id, position, payload, false)?;
        self.segments += stream.ahead.len() - segments;
        let Arrival::New(count) = arrival else {
            return Ok(None);
        };
        let unanswered = !stream.opened && self.side.chooses(id);
        if unanswered || !stream.ahead.is_empty() || stream.end.is_some() || stream.reset.is_some() {
            self.dues.stream(id);
        }
        let new = &payload[payload.len() - count..];
        Ok(Some(Event::Data(StreamId(id), Cow::Borrowed(new))))
    }

    fn on_open(&mut self, id: u32, send_limit: u64, payload: &[u8]) -> Result<(), ProtocolError> {
        if self.seen.contains(id)? {
            return Ok(());
        }
        let (after, request) = payload.split_first_chunk::<8>().ok_or(ProtocolError::Open(id))?;
        let request = OpenRequest::decode(request).ok_or(ProtocolError::Open(id))?;
        let after = u64::from_be_bytes(*after);
        let open = Open {
            request,
            after,
            send_limit,
        };
        self.pre_open.on_open(id, open)?;
        self.dues.opens();
        Ok(())
    }

    /// Begins a stream.
    pub(crate) fn begin(&mut self, id: u32, mut stream: Stream, open: Open) -> Event<'static> {
        self.seen.insert(id);
        stream.window = self
            .budget
            .first_window(&self.settings.limits, self.streams.len());
        stream.send_limit = open.send_limit;
        self.segments += stream.ahead.len();
        self.streams.insert(id, stream);
        self.dues.stream(id);
        Event::Open(StreamId(id), open.request)
    }

    fn on_message(&mut self, number: u64, more: bool, payload: &[u8]) -> Result<(), ProtocolError> {
        self.messages.on_frame(number, more, payload)?;
        self.dues.messages();
        self.dues.opens();
        Ok(())
    }

    fn on_credit<'a>(&mut self, kind: Kind, id: StreamId, position: u64) -> Option<Event<'a>> {
        let stream = self.streams.get_mut(id.0)?;
        let was_blocked = stream.sendable() == 0;
        stream.on_credit(position);
        // Only the side that has opened a stream waits for an answer.
        let answers = kind == Kind::Opened && self.side.chooses(id.0);
        if answers && !std::mem::replace(&mut stream.opened, true) {
            return Some(Event::Opened(id));
        }
        (was_blocked && stream.sendable() > 0).then_some(Event::Sendable(id))
    }
}
