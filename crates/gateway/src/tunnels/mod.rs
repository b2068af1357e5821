//! Tunnels to other sites: pairs, their lanes, what brings lanes up and keeps them supplied.

pub mod capacity;
pub(crate) mod carrier;
pub(crate) mod dial;
pub(crate) mod handshake;
pub(crate) mod lane;
pub(crate) mod links;
pub(crate) mod message;
pub(crate) mod pacing;
pub(crate) mod pair;
pub(crate) mod pump;
pub mod quic;
pub(crate) mod tls;
pub(crate) mod totals;
