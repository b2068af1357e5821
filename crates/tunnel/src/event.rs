//! What a tunnel has its driver do.

use crate::open::OpenRequest;
use causeway_wire::Reason;
use std::borrow::Cow;

/// Names a stream within its tunnel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamId(pub u32);

/// What the driver has to know or do.
#[derive(Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// The far side opens a stream: answer with [`crate::Tunnel::opened`] or [`crate::Tunnel::reset`].
    Open(StreamId, OpenRequest),
    /// The far side reached the destination. Bytes and the end of the stream may have come before.
    Opened(StreamId),
    /// Bytes of a stream, in order. Tell [`crate::Tunnel::consumed`] when they have been passed on.
    Data(StreamId, Cow<'a, [u8]>),
    /// The far side's half has ended; all its bytes have been handed on.
    Finished(StreamId),
    /// The stream is gone.
    Reset(StreamId, Reason),
    /// A stream that could not send may send again.
    Sendable(StreamId),
    /// The far gateway sends a message to this one.
    Message(Vec<u8>),
    /// This lane has been silent so long that a new connection may get through sooner, if the network is back
    /// or has forgotten the old one. It may also be heard again: see [`crate::Tunnel::is_silent`].
    LaneSilent(usize),
    /// This lane has been silent for too long: close it and tell [`crate::Tunnel::lane_down`].
    LaneDead(usize),
    /// No lane came back in time: the tunnel and its streams are over.
    Expired,
}
