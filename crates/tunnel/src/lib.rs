//! The tunnel core: many streams over a few lanes.
//!
//! No sockets, no clock, no threads: bytes in, events and bytes out, so that every loss, cut and reordering can be
//! played in a test. A lane is any ordered byte stream between two gateways; the drivers (crates/gateway) own
//! the sockets and never interpret a frame.
//!
//! Read `frame` (what is on the wire), then `tunnel` (what it means); `stream` and `window` hold the state of one
//! stream, `hello` what opens a lane.
#![forbid(unsafe_code)]

pub mod frame;
pub mod hello;
pub mod open;
mod stream;
pub mod tunnel;
mod window;

pub use frame::{Header, Kind, LaneReader, MAX_PAYLOAD, ProtocolError};
pub use hello::Hello;
pub use open::{OpenRequest, Target};
pub use tunnel::{Event, Side, StreamId, Tunnel};
pub use window::Limits;
