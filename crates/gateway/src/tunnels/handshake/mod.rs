//! Connections between gateways until they are lanes: what is sent (`exchange`), how they proceed and how
//! long they may take (`progress`), how many strangers there may be, and how much time these get (`share`).

pub(super) mod exchange;
mod progress;
mod share;

pub(crate) use exchange::Handshake;
pub(super) use share::Share;

use crate::keys::HandshakeKey;
use causeway_service::Admission;
use std::net::IpAddr;

/// Strangers that may be in a handshake at a time, in all and from one address, behind which there may be the
/// gateways of several sites with 16 lanes each.
const AT_MOST: usize = 256;
const AT_MOST_PER_ADDRESS: usize = 64;

/// The room for strangers in handshakes: a real gateway finishes within two round trips, and must not wait
/// behind those that never will.
pub(crate) fn admission() -> Admission<IpAddr, HandshakeKey> {
    Admission::new(AT_MOST, AT_MOST_PER_ADDRESS)
}
