//! How a gateway ends: in order, or by going on as another program.

pub(crate) mod handover;
pub(crate) mod shutdown;
