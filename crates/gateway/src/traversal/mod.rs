//! Ways between gateways neither of which can dial the other: punched holes, and relays.

use relay::server::RelayServer;

pub(crate) mod punch;
pub(crate) mod relay;

/// What brings lanes up where dialling does not.
#[derive(Default)]
pub(crate) struct Traversal {
    /// What is carried for other sites.
    pub(crate) relay: RelayServer,
}
