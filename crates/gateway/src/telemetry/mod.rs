//! What the gateway tells of itself.

pub(crate) mod metrics;
pub(crate) mod status;
