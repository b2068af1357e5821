//! One connection to another gateway: its state, and the reasons for which it ends. `receive` reads it,
//! `pump` writes it.
//!
//! Pieces are handed to the legs straight from the input buffer: payload is copied once between kernel and
//! process in each direction, and nowhere else as long as readers keep up and lanes do not overtake each
//! other.

use crate::keys::{LaneKey, LaneNumber, PairKey};
use crate::sys::socket::{self, PathInfo};
use crate::sys::source::Class;
use crate::tunnels::carrier::Carrier;
use crate::tunnels::origin::Through;
use crate::tunnels::origin::Way;
use crate::tunnels::pacing::remembered_rate::RememberedRate;
use crate::tunnels::pacing::tail_probe::TailProbe;
use crate::tunnels::pacing::train::{Training, TrainingTurn};
use crate::tunnels::peers::known_path::{KnownPath, KnownWay};
use causeway_tunnel::ProtocolError;
use mio::Registry;
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// The most that one read takes from the kernel. A larger size gains nothing measurable, and delays other
/// lanes.
pub(in crate::tunnels) const IN_BYTES: usize = 256 * 1024;

/// Silence after which TCP starts slowly again (RFC 5681, section 4.1): Linux's shortest retransmission
/// timeout.
pub(in crate::tunnels) const IDLE: Duration = Duration::from_millis(200);

pub(crate) struct Lane {
    pub(in crate::tunnels) carrier: Carrier,
    pub(in crate::tunnels) pair: PairKey,
    /// Its number in the pair.
    pub(in crate::tunnels) number: LaneNumber,
    pub(in crate::tunnels) peer: SocketAddr,
    /// Whether this gateway dialled it.
    pub(in crate::tunnels) dialled: bool,
    /// The relay that it uses, if any.
    pub(in crate::tunnels) through: Option<Through>,
    /// How a hole was punched for it, if it uses one that both gateways made; see `traversal::punch`.
    pub(in crate::tunnels) punched: Option<Way>,
    pub(in crate::tunnels) congestion_control: String,
    pub(in crate::tunnels) sent_bytes: u64,
    pub(in crate::tunnels) received_bytes: u64,
    pub(in crate::tunnels) writable: bool,
    /// Whether the kernel reports when it accepts bytes.
    watches_writable: bool,
    /// Whether the kernel has reported the end of what arrives, which it does only once.
    pub(in crate::tunnels) end_known: bool,
    /// When it last sent, and how often the pause before sending was longer than [`IDLE`].
    pub(in crate::tunnels) sent_at: Option<Instant>,
    pub(in crate::tunnels) idle_restarts: u64,
    /// The wait for its turn to be trained.
    pub(in crate::tunnels) training_turn: Option<TrainingTurn>,
    /// Its training, until the congestion control knows the path.
    pub(in crate::tunnels) training: Option<Training>,
    /// What it knows about the path.
    pub(in crate::tunnels) remembered: RememberedRate,
    pub(in crate::tunnels) tail_probe: TailProbe,
    /// Whether input that was read has yet to be acted on: it came with the handshake, or the lane's turn was
    /// over.
    pub(in crate::tunnels) is_behind: bool,
    pub(in crate::tunnels) input: Vec<u8>,
    pub(in crate::tunnels) filled: usize,
}

/// Why a lane, or the pair that it belongs to, ends.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LaneEnd {
    #[error("the far gateway closed the connection")]
    Closed,
    #[error("connection lost: {0}")]
    Io(#[from] io::Error),
    #[error("protocol error: {0}")]
    Protocol(#[from] ProtocolError),
    #[error("{0}")]
    Refused(String),
    #[error("nothing heard for {0:?} though an answer is due")]
    Silent(Duration),
    #[error("a new connection took its place")]
    Replaced,
    #[error("the far gateway has lost its state (restarted, or gave this tunnel up)")]
    NewSession,
    #[error("the far gateway was stopped")]
    Left,
    #[error("the site is no longer a member of the grid")]
    NoMember,
    #[error("the site's certificate was revoked")]
    Revoked,
    #[error("this gateway is handed over to another program")]
    HandedOver,
    #[error("the far gateway was killed: {0} for {1:?}")]
    Killed(&'static str, Duration),
    #[error("no lane came back within {0:?} (resume in [grid]); the last one: {1}")]
    Expired(Duration, String),
}

impl Lane {
    pub(crate) fn new(
        mut carrier: Carrier,
        pair: PairKey,
        number: LaneNumber,
        peer: SocketAddr,
        dialled: bool,
        rest: &[u8],
        now: Instant,
    ) -> Lane {
        carrier.widen(IN_BYTES);
        let mut input = vec![0; IN_BYTES];
        input[..rest.len()].copy_from_slice(rest);
        Lane {
            carrier,
            pair,
            number,
            peer,
            dialled,
            through: None,
            punched: None,
            congestion_control: String::new(),
            sent_bytes: 0,
            received_bytes: rest.len() as u64,
            writable: true,
            watches_writable: true,
            end_known: false,
            sent_at: None,
            idle_restarts: 0,
            training_turn: None,
            training: None,
            remembered: RememberedRate::new(now),
            tail_probe: TailProbe::default(),
            is_behind: !rest.is_empty(),
            input,
            filled: rest.len(),
        }
    }
}

impl Lane {
    /// Whether it uses no relay.
    pub(crate) fn is_direct(&self) -> bool {
        self.through.is_none()
    }

    /// Makes the kernel report when it accepts bytes, or stop reporting it. Otherwise, a lane with more
    /// unsent bytes in the kernel than the low water would wake this process whenever some are sent, although
    /// there is nothing to write.
    pub(in crate::tunnels) fn watch_writable(&mut self, registry: &Registry, key: LaneKey, wanted: bool) {
        if self.watches_writable != wanted {
            let token = Class::Lane.token(key.0);
            if self.carrier.watch_writable(registry, token, wanted).is_ok() {
                self.watches_writable = wanted;
            }
        }
    }

    pub(crate) fn is_over_tcp(&self) -> bool {
        self.carrier.tcp().is_some()
    }

    /// Returns the rate that it was seen to deliver, in bytes per second.
    pub(crate) fn rate(&self) -> u64 {
        match self.remembered.rate() {
            0 => match self.carrier.tcp() {
                Some(socket) => socket::bbr(socket).map_or(0, |bbr| bbr.bandwidth),
                None => self.carrier.path().map_or(0, |path| path.delivery_rate),
            },
            rate => rate,
        }
    }

    /// Reports the state of the path, all the way to the far gateway: the kernel knows only the path to a
    /// relay.
    pub(crate) fn path(&self) -> io::Result<PathInfo> {
        let mut path = self.carrier.path()?;
        let beyond = self
            .through
            .as_ref()
            .map_or(0, |through| through.beyond_microseconds);
        path.rtt_microseconds = path.rtt_microseconds.saturating_add(beyond);
        path.least_rtt_microseconds = path.least_rtt_microseconds.saturating_add(beyond);
        Ok(path)
    }

    /// Whether it needs no training.
    pub(crate) fn knows_its_rate(&mut self) -> bool {
        self.carrier
            .quic()
            .is_some_and(|session| session.model.get().is_known())
    }

    /// Returns the path that it takes.
    pub(in crate::tunnels) fn way(&self) -> KnownWay {
        KnownWay {
            address: self.peer.ip(),
            through: self.through.as_ref().map(|through| through.site.clone()),
            is_tcp: self.is_over_tcp(),
        }
    }

    /// Returns what it has found out about its path, if anything.
    pub(in crate::tunnels) fn known_path(&mut self, now: Instant) -> Option<KnownPath> {
        let (way, loses) = (self.way(), self.tail_probe.is_lossy(now));
        let Some(session) = self.carrier.quic() else {
            return self.remembered.known(way, loses);
        };
        let rate = session.model.get().rate();
        (rate > 0).then_some(KnownPath {
            way,
            rate,
            best: rate,
            found: rate,
            doubtful: false,
            loses,
        })
    }

    /// Counts bytes that the kernel took.
    pub(crate) fn on_sent(&mut self, count: usize, now: Instant) {
        self.sent_bytes += count as u64;
        let before = self.sent_at.replace(now);
        if before.is_some_and(|at| now.saturating_duration_since(at) > IDLE) {
            self.idle_restarts += 1;
        }
    }
}
