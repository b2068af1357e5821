//! Events of tunnels that other owners act on. The loop hands each to its owner before it does anything else.

use crate::keys::{LaneKey, LaneNumber, LegKey, PairKey, PeerIndex};
use crate::tunnels::origin::Through;
use crate::tunnels::relay_visit::RelayVisit;
use causeway_tunnel::ticket::Ticket;
use mio::net::TcpStream;
use std::net::SocketAddr;
use std::time::Duration;

pub(crate) enum TunnelsEvent {
    /// The tunnel of this pair is new: the far gateway must be told who this one is, and which jobs run.
    Begun { pair: PairKey },
    /// A tunnel is over, and so are its streams; another one may be tried after the pause.
    Ended {
        peer: PeerIndex,
        site: String,
        legs: Vec<LegKey>,
        why: String,
        pause: Duration,
    },
    /// A lane is up.
    LaneUp { peer: PeerIndex, lane: LaneKey },
    /// The handshake of a lane to this peer has succeeded; this gateway began it.
    Met { peer: PeerIndex },
    /// The same for a lane through a relay.
    MetAtRelay { peer: PeerIndex, number: LaneNumber },
    /// The peer has said who it is; also, whether a lane of the two gateways' own reaches it.
    Introduced { peer: PeerIndex, has_lane: bool },
    /// A lane is lost, or must get a rival. `through` is the relay that it used, if any.
    LaneLost {
        peer: PeerIndex,
        number: LaneNumber,
        through: Option<Through>,
    },
    /// No lane is left; also, what happened to the relay that carried the last one, if it had one.
    Down {
        peer: PeerIndex,
        relayed: Option<String>,
    },
    /// Lanes to this peer are wanted that do not exist.
    Wanted { peer: PeerIndex, pause: Duration },
    /// More lanes to this peer are wanted than before.
    MoreWanted { peer: PeerIndex },
    /// The host of this peer refuses connections: its gateway may be gone, or may be alive and can be asked
    /// by other means.
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
    /// The UDP socket has received something that does not belong to QUIC.
    Datagram { bytes: Vec<u8>, from: SocketAddr },
}
