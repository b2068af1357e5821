//! The gateway: one per site, on its head node.
pub mod control;
