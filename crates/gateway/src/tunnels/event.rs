//! What becomes of tunnels that others act on. The loop hands each to its owner before it does anything else.

use crate::keys::{LaneKey, LaneNumber, LegKey, PairKey, PeerIndex};
use crate::tunnels::origin::Through;
use crate::tunnels::relay_visit::RelayVisit;
use causeway_tunnel::ticket::Ticket;
use mio::net::TcpStream;
use std::net::SocketAddr;
use std::time::Duration;

pub(crate) enum TunnelsEvent {
    /// The tunnel of this pair is new: the far gateway is to hear who this one is, and which jobs run.
    Begun { pair: PairKey },
    /// A tunnel is over, with its streams; others may be tried after the pause.
    Ended {
        peer: PeerIndex,
        site: String,
        legs: Vec<LegKey>,
        why: String,
        pause: Duration,
    },
    /// A lane stands.
    LaneUp { peer: PeerIndex, lane: LaneKey },
    /// A lane to this peer is through its handshake, which this gateway began.
    Met { peer: PeerIndex },
    /// So is one through a relay.
    MetAtRelay { peer: PeerIndex, number: LaneNumber },
    /// The peer has said who it is; whether it is reached by a lane of the two gateways' own.
    Introduced { peer: PeerIndex, has_lane: bool },
    /// A lane is lost, or is to have a rival. `through` is the relay that it went through, if it did.
    LaneLost {
        peer: PeerIndex,
        number: LaneNumber,
        through: Option<Through>,
    },
    /// No lane is left; what became of the relay that carried the last one, if one did.
    Down {
        peer: PeerIndex,
        relayed: Option<String>,
    },
    /// Lanes to this peer are wanted that are not there.
    Wanted { peer: PeerIndex, pause: Duration },
    /// More lanes than before.
    MoreWanted { peer: PeerIndex },
    /// The host of this peer refuses connections: its gateway may be gone, or there and asked by another way.
    Doubted { peer: PeerIndex },
    /// A lane that was dialled did not come up.
    DialFailed {
        peer: PeerIndex,
        number: LaneNumber,
        why: String,
    },
    /// A visit to a relay has failed.
    RelayVisitFailed {
        visit: RelayVisit,
        dialled: Option<(PeerIndex, LaneNumber)>,
        why: String,
    },
    /// A stranger shows a ticket.
    Ticket {
        ticket: Ticket,
        socket: TcpStream,
        from: SocketAddr,
    },
    /// The UDP socket got what is not QUIC's.
    Datagram { bytes: Vec<u8>, from: SocketAddr },
}
