//! What commands of this host ask, and what gateways tell each other.

pub(crate) mod local;
pub(crate) mod ping;
pub(crate) mod starter;
