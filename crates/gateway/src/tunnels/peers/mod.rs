//! The gateways of the other sites: where they are, how they are dialled, and what they have told.

pub(crate) mod dial;
mod dial_rate;
mod links;
pub(crate) mod peer;
pub(crate) mod reach;
pub(crate) mod totals;
