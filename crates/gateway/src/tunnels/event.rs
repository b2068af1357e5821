//! What becomes of tunnels that others act on. The loop hands each to its owner before it looks at anything else.

use crate::tunnels::handshake::errand::Errand;
use crate::tunnels::origin::Through;
use causeway_tunnel::ticket::Ticket;
use mio::net::TcpStream;
use std::net::SocketAddr;
use std::time::Duration;

pub(crate) enum TunnelsEvent {
    /// The tunnel of this pair is new: the far gateway is to hear who this one is, and which jobs run.
    Begun { pair: usize },
    /// A tunnel is over, with its streams; others may be tried after the pause.
    Ended {
        peer: usize,
        site: String,
        legs: Vec<usize>,
        why: String,
        pause: Duration,
    },
    /// A lane stands.
    LaneUp { peer: usize, lane: usize },
    /// A lane to this peer is through its handshake, which this gateway began.
    Met { peer: usize },
    /// So is one through a relay.
    MetAtRelay { peer: usize, number: usize },
    /// The peer has said who it is; whether it is reached by a lane of the two gateways' own.
    Introduced { peer: usize, has_lane: bool },
    /// A lane is lost, or is to have a rival. `through` is the relay that it went through, if it did.
    LaneLost {
        peer: usize,
        number: usize,
        through: Option<Through>,
    },
    /// No lane is left; what became of the relay that carried the last one, if one did.
    Down { peer: usize, relayed: Option<String> },
    /// Lanes to this peer are wanted that are not there.
    Wanted { peer: usize, pause: Duration },
    /// More lanes than before.
    MoreWanted { peer: usize },
    /// A lane that was dialled did not come up.
    DialFailed { peer: usize, number: usize, why: String },
    /// What was to be done at a relay came to nothing.
    ErrandFailed {
        errand: Errand,
        dialled: Option<(usize, usize)>,
        why: String,
    },
    /// A stranger shows a ticket.
    Ticket {
        ticket: Ticket,
        socket: TcpStream,
        from: SocketAddr,
    },
    /// The UDP socket got what is none of QUIC's.
    Datagram { bytes: Vec<u8>, from: SocketAddr },
}
