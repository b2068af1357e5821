//! Makes a digest of a ticket, which is what is shown.

use causeway_tunnel::ticket::Ticket;
use sha2::{Digest, Sha256};

/// A relay makes tickets, and other gateways show them at the address that belongs to its name: because of
/// this digest, the relay cannot choose the bytes that they send.
pub(super) fn digest(ticket: &Ticket) -> Ticket {
    let digest = Sha256::new().chain_update(b"causeway ticket");
    Ticket(digest.chain_update(ticket.0).finalize().into())
}
