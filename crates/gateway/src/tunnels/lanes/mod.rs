//! Lanes: connections to another gateway, of which a pair has several; what they carry, and how many there
//! are.

mod count;
pub(crate) mod lane;
mod leaving;
mod over_quic;
mod probing;
pub(crate) mod pump;
pub(crate) mod receive;
pub(crate) mod status;
mod steering;
mod training;
