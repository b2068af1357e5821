//! How tunnels end when the gateway does: in order, or because it continues as another program.

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

/// The tunnels' part of what the next worker goes on with: what is known about peers, and the pairs with
/// their keys.
pub(crate) struct KeptTunnels {
    pub(crate) peers: Vec<KeptPeer>,
    pub(crate) pairs: Vec<(usize, KeptPair)>,
    /// The number under which the tunnel of each pair is written down.
    pub(crate) owners: HashMap<usize, u64>,
}

impl Tunnels {
    /// Lends what ends lanes when the gateway ends.
    pub(crate) fn departure(&mut self) -> Departure<'_> {
        Departure { tunnels: self }
    }

    /// Goes on with what a predecessor knew about peers, and with its pairs, whose lanes are down.
    /// `is_member`: the broker names the peers.
    ///
    /// # Errors
    /// There is no peer here for a pair's site, or its tunnel does not fit.
    pub(crate) fn inherit(
        &mut self,
        driver: &mut Driver,
        mut kept: KeptTunnels,
        is_member: bool,
    ) -> Result<(), InheritError> {
        for kept in std::mem::take(&mut kept.peers) {
            // A new peer has nothing to go on from, and one that was removed had no tunnel.
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
        // Sockets have moved more than was written down, so something may have to follow.
        self.eventful = self.pairs.keys();
        Ok(())
    }
}

impl Departure<'_> {
    /// Ends the connections that are not lanes yet. Nothing of them is handed over.
    pub(crate) fn end_handshakes(&mut self) {
        let dialled = { self.tunnels.handshakes.iter() }.filter_map(|(_, handshake)| handshake.dialled());
        for (index, lane) in dialled.collect::<Vec<_>>() {
            self.tunnels.dial_ended(index, lane);
        }
        self.tunnels.handshakes.clear();
        self.tunnels.strangers.clear();
        self.tunnels.unread.clear();
    }

    /// Closes all lanes for a hand-over: to both gateways, it looks as if the network were away for a moment.
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

    /// Goes on with ending: ends the lanes that have sent everything, and reads what nobody will receive.
    /// `ended` are those that were ended before. Returns how long to wait for the kernel; `None` once no lane
    /// is left, or the time is over.
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

    /// Acts on an event of the kernel, as far as that helps to end.
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

    /// Checks the lane's whole pair: the far gateway must not take the end of the first lane for a fault.
    fn has_said_all(&self, key: LaneKey) -> bool {
        let lane = self.tunnels.lanes.get(key);
        let lane = lane.filter(|lane: &&Lane| !lane.carrier.has_pending());
        let pair = lane.and_then(|lane| self.tunnels.pairs.get(lane.pair));
        pair.is_some_and(|pair| {
            let unsent = (0..MAX_LANES).any(|number| pair.tunnel.unsent_bytes(number) > 0);
            !unsent && !pair.tunnel.has_control()
        })
    }

    /// Reads what nobody will receive: a socket that is closed with unread input sends a reset, which may
    /// overtake what was sent.
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
