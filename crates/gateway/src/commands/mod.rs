//! What commands of this host ask, and what gateways tell each other.

use local::Command;
use slab::Slab;
use starter::Starter;

pub(crate) mod local;
pub(crate) mod ping;
pub(crate) mod starter;

/// The commands of this host that are being served, and what was started for them and for other sites.
#[derive(Default)]
pub(crate) struct Commands {
    pub(crate) connections: Slab<Command>,
    pub(crate) starters: Vec<Starter>,
}
