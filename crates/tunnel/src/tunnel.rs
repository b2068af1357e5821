//! The state machine of one tunnel, the same at both ends: its streams and what the driver does with them.
//!
//! A driver passes it what arrives on its lanes ([`Tunnel::on_input`]), acts on the events, and keeps each
//! lane supplied: it calls [`Tunnel::prepare`] for what must be sent first, then reads sockets straight into
//! [`Tunnel::reserve`], then writes [`Tunnel::unsent`]. Read `receiving`, `telling` and `sending` next.

use crate::dues::Dues;
use crate::event::StreamId;
use crate::frame::{Header, Kind, MAX_PAYLOAD};
use crate::ids::{Seen, Side};
use crate::kept::Written;
use crate::lane::Lane;
use crate::messages::Messages;
use crate::open::OpenRequest;
use crate::pre_open::PreOpen;
use crate::ring::{Backlog, Shelf};
use crate::settings::{MAX_WAITING_BYTES, Settings};
use crate::stream::Stream;
use crate::streams::Streams;
use crate::window::{Budget, MIN_BYTES};
use causeway_memory::{Arena, Block};
use causeway_wire::Reason;
use std::collections::VecDeque;
use std::time::Instant;

/// Most lanes of a tunnel. More than eight were not seen to help on any path.
pub const MAX_LANES: usize = 16;

/// One end of a tunnel. It acts only when a driver calls it, in this order:
///
/// - **Lanes.** [`Tunnel::lane_up`] is the first of all calls about a lane, and [`Tunnel::lane_down`] is the
///   last one. After that, the number may be used again.
/// - **Input.** [`Tunnel::on_input`] is called with a lane's bytes until it needs more; each event that it
///   returns must be handled before the next call. Then [`Tunnel::poll_event`] is called until it returns
///   `None`.
/// - **Output.** [`Tunnel::choose_lane`] names a lane for the next frames, and [`Tunnel::prepare`] puts onto
///   it what must precede data. Only if that returns true may a stream's bytes be read into
///   [`Tunnel::reserve`], which is ended by [`Tunnel::commit`], or, if there were no bytes, by
///   [`Tunnel::release`]. Before a lane is written, [`Tunnel::put_ack`] is called; how much of
///   [`Tunnel::unsent`] its socket has accepted is passed to [`Tunnel::sent`].
/// - **Time.** [`Tunnel::on_time`] is called at [`Tunnel::deadline`], which any other call may change, and
///   [`Tunnel::poll_event`] is called after it.
/// - **A tunnel that outlives its process** ([`Tunnel::kept`]): [`Tunnel::write_down`], the journal's commit
///   and [`Tunnel::written_down`] follow input and events, and precede the writing of anything that these
///   have caused to a socket.
#[derive(Debug)]
pub struct Tunnel {
    pub(crate) settings: Settings,
    pub(crate) budget: Budget,
    pub(crate) side: Side,
    pub(crate) next_id: u32,
    pub(crate) streams: Streams,
    /// The far side's ids.
    pub(crate) seen: Seen,
    pub(crate) pre_open: PreOpen,
    /// How many pieces have arrived ahead of their turn, over all of `streams`.
    pub(crate) segments: usize,
    pub(crate) messages: Messages,
    pub(crate) dues: Dues,
    pub(crate) lanes: [Option<Box<Lane>>; MAX_LANES],
    /// Frames about streams and messages, for the next lane that has room.
    pub(crate) control: Backlog,
    /// Frames of lanes that have died or stall.
    pub(crate) retransmits: Backlog,
    /// Since when there has been no lane.
    pub(crate) dark_since: Option<Instant>,
    /// Where the memory of the tunnel's lanes comes from.
    pub(crate) shelf: Shelf,
    /// A copy of the retransmits for the next process, as they were when the last lane was lost, from
    /// position `graves_from` on.
    pub(crate) graves: VecDeque<Block>,
    pub(crate) graves_from: u64,
    pub(crate) written: Written,
}

impl Tunnel {
    /// An end without streams or lanes. The two ends must have different sides; their settings may differ.
    pub fn new(side: Side, settings: Settings, now: Instant) -> Tunnel {
        Tunnel::on_shelf(side, settings, now, Shelf::private())
    }

    /// The same in memory that outlives this process: in blocks of `arena`, and with records that are stored
    /// under the number `owner`, which no other tunnel there has.
    pub fn kept(side: Side, settings: Settings, now: Instant, arena: &Arena, owner: u64) -> Tunnel {
        let arena = arena.clone();
        Tunnel::on_shelf(side, settings, now, Shelf { arena, owner })
    }

    fn on_shelf(side: Side, settings: Settings, now: Instant, shelf: Shelf) -> Tunnel {
        let mut tunnel = Tunnel {
            settings,
            budget: Budget::default(),
            side,
            next_id: side.first(),
            streams: Streams::default(),
            seen: Seen::new(side.other()),
            pre_open: PreOpen::default(),
            segments: 0,
            messages: Messages::default(),
            dues: Dues::default(),
            lanes: Default::default(),
            control: Backlog::default(),
            retransmits: Backlog::default(),
            dark_since: Some(now),
            shelf,
            graves: VecDeque::new(),
            graves_from: 0,
            written: Written::default(),
        };
        tunnel.note_changes();
        tunnel
    }

    /// Sets how much the path holds: `product` bytes, its rate times its round trip. Windows and lanes must
    /// be able to fill it. Open streams keep their windows, which may grow.
    pub fn set_bandwidth_delay_product(&mut self, product: u64) {
        self.settings = self.settings.for_product(product);
    }

    /// How many streams have not ended.
    pub fn streams(&self) -> usize {
        self.streams.len()
    }

    /// Whether so little waits for a lane that another stream may be opened.
    pub fn may_open(&self) -> bool {
        self.control.len() < MAX_WAITING_BYTES / 4
    }

    /// Opens a stream. Up to 64 KiB may be sent before the answer.
    pub fn open(&mut self, request: &OpenRequest) -> StreamId {
        let id = self.free_id();
        let window = self
            .budget
            .first_window(&self.settings.limits, self.streams.len());
        self.streams.insert(id, Stream::new(MIN_BYTES, window, window));
        let mut payload = self.messages.sent.to_be_bytes().to_vec();
        payload.extend(request.encode());
        self.put(Kind::Open, 0, id, window, &payload);
        StreamId(id)
    }

    /// Answers [`crate::Event::Open`]: the destination has been reached.
    pub fn opened(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get_mut(id.0) else {
            return;
        };
        let limit = stream.consumed + stream.window;
        stream.receive_limit = stream.receive_limit.max(limit);
        self.put(Kind::Opened, 0, id.0, limit, &[]);
    }

    /// Answers again, if the far side has opened the stream: the previous process may have been killed after
    /// the destination was reached and before this was committed. A second answer is harmless.
    pub fn opened_again(&mut self, id: StreamId) {
        if !self.side.chooses(id.0) {
            self.opened(id);
        }
    }

    /// Returns how many bytes one data frame of this stream may carry now; 0 if the stream must wait for
    /// [`crate::Event::Sendable`] or has ended.
    pub fn sendable(&self, id: StreamId) -> usize {
        // The number fits: it is at most MAX_PAYLOAD.
        self.streams
            .get(id.0)
            .map_or(0, |stream| stream.sendable().min(MAX_PAYLOAD as u64) as usize)
    }

    /// Ends this side's half of the stream.
    pub fn finish(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get_mut(id.0) else {
            return;
        };
        if !std::mem::replace(&mut stream.finished, true) {
            let end = stream.sent;
            self.put(Kind::Finish, 0, id.0, end, &[]);
        }
        self.remove_if_done(id.0);
    }

    /// Ends the stream in both directions once the far side has what was sent, or refuses to open it. Nothing
    /// more of it arrives here.
    pub fn reset(&mut self, id: StreamId, reason: Reason) {
        if let Some(stream) = self.remove(id.0) {
            self.put(Kind::Reset, reason as u8, id.0, stream.sent, &[]);
        }
    }

    /// Says that `bytes` which had arrived have left this gateway: the sender may send this many more.
    pub fn consumed(&mut self, id: StreamId, bytes: usize) {
        let Some(stream) = self.streams.get_mut(id.0) else {
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
            stream.window = self.budget.grown_window(&self.settings.limits, stream.window);
        }
        if let Some(limit) = stream.widen() {
            self.put(Kind::Credit, 0, id.0, limit, &[]);
        }
    }

    /// Sends bytes to the far gateway itself, at most [`crate::messages::MAX_MESSAGE`]. A stream that is
    /// opened later is opened there after them. If more than twice that is in flight, the far end may close
    /// lanes that run ahead of the others.
    pub fn message(&mut self, bytes: &[u8]) {
        let mut parts = bytes.chunks(MAX_PAYLOAD).peekable();
        while let Some(part) = parts.next() {
            let more = u8::from(parts.peek().is_some());
            let number = self.messages.sent;
            self.messages.sent += 1;
            self.put(Kind::Message, more, 0, number, part);
        }
    }

    pub(crate) fn put(&mut self, kind: Kind, detail: u8, stream: u32, position: u64, payload: &[u8]) {
        debug_assert!(payload.len() <= MAX_PAYLOAD);
        // The number fits: callers pass at most MAX_PAYLOAD.
        let header = Header {
            kind,
            detail,
            length: payload.len() as u16,
            stream,
            position,
        };
        self.control.push(&header.encode(), payload);
    }

    fn free_id(&mut self) -> u32 {
        loop {
            let id = self.next_id;
            self.next_id = self.side.next(id);
            if !self.streams.contains_key(id) {
                return id;
            }
            self.put(Kind::Skip, 0, id, 0, &[]);
        }
    }

    pub(crate) fn remove_if_done(&mut self, id: u32) {
        if self.streams.get(id).is_some_and(Stream::is_done) {
            self.remove(id);
        }
    }

    pub(crate) fn remove(&mut self, id: u32) -> Option<Stream> {
        let removed = self.streams.remove(id)?;
        self.budget.release(&self.settings.limits, removed.window);
        self.segments -= removed.ahead.len();
        Some(removed)
    }
}
