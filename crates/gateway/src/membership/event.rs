//! What the broker's session brings that others act on.

use crate::keys::PeerIndex;
use causeway_broker::api::Message;
use std::net::SocketAddr;

pub(crate) enum MembershipEvent {
    /// The broker has told where a peer can be dialled, if at all. `is_new`: it was no peer before.
    PeerKnown { peer: PeerIndex, is_new: bool },
    /// A peer has left the grid.
    PeerGone { peer: PeerIndex },
    /// The broker answers from there.
    BrokerFound(SocketAddr),
    /// Another gateway has sent a message through the broker.
    Message(Message),
}
