//! Ways between gateways neither of which can dial the other: punched holes, and relays.

pub(crate) mod punch;
pub(crate) mod relay;
