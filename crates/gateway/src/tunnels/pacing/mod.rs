//! How fast a lane sends: what its path was seen to carry, how that is found out, and what is sent after its
//! last frames.

pub(crate) mod remembered_rate;
pub(crate) mod tail_probe;
pub(crate) mod train;
