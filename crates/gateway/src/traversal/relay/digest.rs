//! Makes of a ticket what is shown of it.

use causeway_tunnel::ticket::Ticket;
use sha2::{Digest, Sha256};

/// A relay makes tickets, and other gateways show them where its name leads: what is shown is not their
/// maker's choice.
pub(super) fn digest(ticket: &Ticket) -> Ticket {
    let digest = Sha256::new().chain_update(b"causeway ticket");
    Ticket(digest.chain_update(ticket.0).finalize().into())
}
