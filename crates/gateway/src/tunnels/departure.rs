//! How tunnels end when the gateway does: in order, or as another program.

use crate::driver::Driver;
use crate::inherited::InheritError;
use crate::keys::LaneKey;
use crate::sys::source::{Source, TunnelsSource};
use crate::tunnels::Tunnels;
use crate::tunnels::lanes::lane::{Lane, LaneEnd};
use crate::tunnels::message::GatewayToGateway;
use crate::tunnels::pair::{KeptPair, Pair};
use crate::tunnels::peers::peer::{KeptPeer, Peer};
use causeway_tunnel::tunnel::MAX_LANES;
use std::collections::{HashMap, HashSet};
use std::io::ErrorKind;
use std::time::{Duration, Instant};

/// Lends what ends lanes when the gateway ends.
pub(crate) struct Departure<'a> {
    tunnels: &'a mut Tunnels,
}

/// The tunnels' part of what the next worker goes on with: what is known of peers, and the pairs with their
/// keys.
pub(crate) struct KeptTunnels {
    pub(crate) peers: Vec<KeptPeer>,
    pub(crate) pairs: Vec<(usize, KeptPair)>,
    /// The number under which the tunnel of each is written down, by pair.
    pub(crate) owners: HashMap<usize, u64>,
}

impl Tunnels {
    /// Lends what ends lanes when the gateway ends.
    pub(crate) fn departure(&mut self) -> Departure<'_> {
        Departure { tunnels: self }
    }

    /// Goes on with what a predecessor knew of peers, and with its pairs, whose lanes are down. `is_member`:
    /// the broker names the peers.
    ///
    /// # Errors
    /// A pair's site has no peer here, or its tunnel does not fit.
    pub(crate) fn inherit(
        &mut self,
        driver: &mut Driver,
        mut kept: KeptTunnels,
        is_member: bool,
    ) -> Result<(), InheritError> {
        for kept in std::mem::take(&mut kept.peers) {
            // A peer that is new has nothing to go on from, one that was taken out had no tunnel.
            let known = self.peers.of(&kept.site);
            let add = || {
                self.peers
                    .add(Peer::new(kept.site.clone(), None, driver.config.rate))
            };
            if let Some(index) = known.or_else(|| is_member.then(add).flatten()) {
                self.peers[index].inherit(kept);
            }
        }
        let (mut pairs, owners) = (Vec::new(), kept.owners);
        for (key, kept) in kept.pairs {
            let Some(index) = self.peers.of(&kept.site) else {
                let text = format!("has no [[peer]] for {}", kept.site);
                return Err(InheritError::Configuration(text));
            };
            let times = (driver.config.tunnel, driver.now);
            let owner = owners.get(&key).copied();
            let owner = owner.unwrap_or_else(|| driver.next_generation());
            pairs.push((key, Pair::inherit(kept, index, times, (&driver.arena, owner))?));
        }
        self.pairs = pairs.into_iter().collect();
        // What sockets have taken beyond what was known may have something follow.
        self.eventful = self.pairs.keys();
        Ok(())
    }
}

impl Departure<'_> {
    /// Ends the connections that are not a lane yet. Nothing of them travels in a hand-over.
    pub(crate) fn end_handshakes(&mut self) {
        let dialled = { self.tunnels.handshakes.iter() }.filter_map(|(_, handshake)| handshake.dialled());
        for (index, lane) in dialled.collect::<Vec<_>>() {
            self.tunnels.dial_ended(index, lane);
        }
        self.tunnels.handshakes.clear();
        self.tunnels.strangers.clear();
        self.tunnels.unread.clear();
    }

    /// Closes all lanes for a hand-over: to both gateways that is a network which is away for a moment.
    pub(crate) fn let_lanes_go(&mut self, driver: &mut Driver) {
        for lane in self.tunnels.lanes.keys() {
            if let Some((pair, number)) = self.tunnels.discard_lane(driver, lane) {
                self.tunnels
                    .part_lane(driver, pair, number, &LaneEnd::HandedOver, None);
            }
        }
    }

    /// Tells the far gateways that this one stops; nothing is measured any more.
    pub(crate) fn leave(&mut self, driver: &mut Driver) {
        self.tunnels.steers = false;
        driver.leaving = true;
        for (_, lane) in self.tunnels.lanes.iter_mut() {
            (lane.training_turn, lane.training) = (None, None);
        }
        for pair in self.tunnels.pairs.keys() {
            self.tunnels
                .pairs
                .tell(driver, pair, GatewayToGateway::Leaving {});
        }
    }

    /// Goes on with ending: ends the lanes that have said all, and reads what nobody will get. `ended` are
    /// those that were ended before. Returns how long to wait for the kernel; `None` once no lane is left, or
    /// the time is over.
    pub(crate) fn go_on(
        &mut self,
        driver: &mut Driver,
        ended: &mut HashSet<LaneKey>,
        until: Instant,
    ) -> Option<Duration> {
        for key in self.tunnels.lanes.keys() {
            if self.has_said_all(key) && ended.insert(key) {
                let _ = self.tunnels.lanes[key].carrier.shutdown_write();
            }
            self.drain(driver, key, until);
        }
        let has_lanes = !self.tunnels.lanes.is_empty();
        self.tunnels.look_after_quic(driver);
        let unread = self.tunnels.has_unread_datagrams();
        if unread {
            self.tunnels.receive_quic(driver);
        }
        let left = until.saturating_duration_since(Instant::now());
        if !has_lanes || left.is_zero() {
            return None;
        }
        Some(match self.tunnels.quic_deadline() {
            _ if unread => Duration::ZERO,
            Some(at) => left.min(at.saturating_duration_since(Instant::now())),
            None => left,
        })
    }

    /// Acts on an event of the kernel, as far as it helps to end.
    pub(crate) fn on_ready(&mut self, driver: &mut Driver, event: &mio::event::Event) {
        match Source::of(event.token()) {
            Source::Lane(key) if event.is_writable() => {
                if let Some(lane) = self.tunnels.lanes.get_mut(key) {
                    lane.writable = true;
                }
            }
            Source::Tunnels(TunnelsSource::Quic) => self.tunnels.on_quic(driver, event),
            _ => {}
        }
    }

    /// Checks the lane's whole pair: the far gateway shall not take the first lane's end for a fault.
    fn has_said_all(&self, key: LaneKey) -> bool {
        let lane = self.tunnels.lanes.get(key);
        let lane = lane.filter(|lane: &&Lane| !lane.carrier.has_pending());
        let pair = lane.and_then(|lane| self.tunnels.pairs.get(lane.pair));
        pair.is_some_and(|pair| {
            let unsent = (0..MAX_LANES).any(|number| pair.tunnel.unsent_bytes(number) > 0);
            !unsent && !pair.tunnel.has_control()
        })
    }

    /// Reads what nobody will get: closed with unread input, a socket sends a reset, which may overtake what
    /// was said.
    fn drain(&mut self, driver: &mut Driver, key: LaneKey, until: Instant) {
        let mut bytes = [0; 64 * 1024];
        while let Some(lane) = self.tunnels.lanes.get_mut(key)
            && Instant::now() < until
        {
            match lane.carrier.read(&mut bytes) {
                Ok(count) if count > 0 => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                _ => drop(self.tunnels.discard_lane(driver, key)),
            }
        }
    }
}
