//! What a tunnel tells its driver.

use crate::open::OpenRequest;
use causeway_wire::Reason;
use std::borrow::Cow;

/// The number of a stream within its tunnel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamId(pub u32);

/// What the driver must know or do.
#[derive(Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// The far side opens a stream: the driver must answer with [`crate::Tunnel::opened`] or
    /// [`crate::Tunnel::reset`].
    Open(StreamId, OpenRequest),
    /// The far side has reached the destination. Bytes and the end of the stream may have come before.
    Opened(StreamId),
    /// Bytes of a stream, in order. The driver must call [`crate::Tunnel::consumed`] once it has passed them
    /// on.
    Data(StreamId, Cow<'a, [u8]>),
    /// The far side's half has ended; all its bytes have been handed over.
    Finished(StreamId),
    /// The stream no longer exists.
    Reset(StreamId, Reason),
    /// A stream that could not send can send again.
    Sendable(StreamId),
    /// The far gateway has sent this gateway a message.
    Message(Vec<u8>),
    /// This lane has been silent for so long that a new connection may get through sooner, if the network is
    /// back or has forgotten the old one. The lane may still come back: see [`crate::Tunnel::is_silent`].
    LaneSilent(usize),
    /// This lane has been silent for too long: the driver must close it and call
    /// [`crate::Tunnel::lane_down`].
    LaneDead(usize),
    /// No lane has come back in time: the tunnel and its streams have ended.
    Expired,
}
