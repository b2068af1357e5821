//! News from the broker's session that other owners act on.

use crate::keys::PeerIndex;
use causeway_broker::api::Message;
use std::net::SocketAddr;

pub(crate) enum MembershipEvent {
    /// The broker has said where a peer can be dialled, if anywhere. `is_new`: it was not a peer before.
    PeerKnown { peer: PeerIndex, is_new: bool },
    /// A peer has left the grid.
    PeerGone { peer: PeerIndex },
    /// The broker answers from this address.
    BrokerFound(SocketAddr),
    /// Another gateway has sent a message through the broker.
    Message(Message),
}
