//! Connections between gateways until they are lanes: those accepted and those dialled, how long they may
//! take, and what becomes of them.

pub(crate) mod errand;
pub(super) mod exchange;

pub(crate) use exchange::Handshake;

use causeway_admission::Admission;
use std::net::IpAddr;

/// Strangers that may be in a handshake at a time, in all and from one address, behind which there may be the
/// gateways of several sites with 16 lanes each.
const AT_MOST: usize = 256;
const AT_MOST_PER_ADDRESS: usize = 64;

/// A real gateway is through within two round trips, and must not wait behind those that never will be.
pub(crate) fn admission() -> Admission<IpAddr, usize> {
    Admission::new(AT_MOST, AT_MOST_PER_ADDRESS)
}
