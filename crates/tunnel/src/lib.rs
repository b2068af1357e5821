//! The tunnel core: many streams over a few lanes.
//!
//! It has no sockets, no clock and no threads: it takes bytes and the time, and returns events and bytes, so
//! that every loss, cut and reordering can be played through in a test. A lane is any ordered byte stream
//! between two gateways, for as long as it lasts; the drivers (crates/gateway) own the sockets and never
//! interpret a frame.
//!
//! ```text
//! streams --> prepare, reserve, commit --> lane: [acknowledged | sent | unsent] --> unsent, sent --> socket
//!                    ^ retransmits of lanes that stall or die <-'
//! streams <-- in order, once <-- receiving <-- on_input <-- socket
//! ```
//! Read `frame` first (what is sent on a lane), then `tunnel` (what it means), `receiving` (reads input),
//! `telling` (reports it) and `sending`. The state of one stream is in `stream`, `segments` and `window`,
//! that of one lane in `lane` and `ring`; `hello` opens a lane, and `ticket` a connection through a third
//! gateway; `turns` decides whose bytes are sent next; `snapshot` moves a tunnel into another process, and
//! `records` and `recovery` move one whose process was killed.
#![forbid(unsafe_code)]

mod dues;
mod event;
pub mod frame;
pub mod hello;
mod ids;
mod kept;
mod lane;
pub mod messages;
pub mod open;
mod padding;
pub mod parity;
mod pre_open;
mod receiving;
mod records;
mod recovery;
mod ring;
mod segments;
mod sending;
mod settings;
mod snapshot;
#[doc(hidden)]
pub mod steps;
mod stream;
mod streams;
mod telling;
pub mod ticket;
mod touched;
pub mod tunnel;
pub mod turns;
mod window;

pub use event::{Event, StreamId};
pub use frame::{Header, Kind, LaneReader, MAX_PAYLOAD, ProtocolError};
pub use hello::Hello;
pub use ids::Side;
pub use kept::kind::BEYOND;
pub use open::{OpenRequest, Target};
pub use recovery::{Moved, Recovered, recover};
pub use settings::{CONTROL_BYTES, MAX_WAITING_BYTES, SMALL_FRAME, Settings};
pub use snapshot::{Snapshot, SnapshotError};
pub use tunnel::Tunnel;
pub use window::Limits;
