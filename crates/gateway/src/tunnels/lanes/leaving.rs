//! How lanes end when the gateway does, in order or as another program.

use crate::driver::Driver;
use crate::keys::LaneKey;
use crate::tunnels::Tunnels;
use crate::tunnels::lanes::lane::{Lane, LaneEnd};
use crate::tunnels::message::GatewayToGateway;
use crate::tunnels::pair::KeptPair;
use causeway_tunnel::SnapshotError;
use causeway_tunnel::tunnel::MAX_LANES;
use std::collections::HashSet;
use std::io::ErrorKind;
use std::time::Instant;

impl Tunnels {
    /// Ends the connections that are not a lane yet. Nothing of them travels in a hand-over.
    pub(crate) fn end_handshakes(&mut self) {
        let dialled = { self.handshakes.iter() }.filter_map(|(_, handshake)| handshake.dialled());
        for (index, lane) in dialled.collect::<Vec<_>>() {
            self.dial_ended(index, lane);
        }
        self.handshakes.clear();
        self.strangers.clear();
        self.unread.clear();
    }

    /// Closes all lanes for a hand-over: to both gateways that is a network which is away for a moment.
    pub(crate) fn let_lanes_go(&mut self, driver: &mut Driver) {
        for lane in self.lanes.keys() {
            if let Some((pair, number)) = self.discard_lane(driver, lane) {
                self.part_lane(driver, pair, number, &LaneEnd::HandedOver, None);
            }
        }
    }

    /// What the successor needs to know of each pair, lanes being down.
    ///
    /// # Errors
    /// The site whose tunnel cannot travel, and why.
    pub(crate) fn keep_pairs(
        &mut self,
        now: Instant,
    ) -> Result<Vec<(usize, KeptPair<'_>)>, (String, SnapshotError)> {
        let mut pairs = Vec::new();
        for (key, pair) in self.pairs.iter_mut() {
            let site = pair.site.clone();
            let kept = pair.keep(now);
            kept.tunnel.check().map_err(|error| (site, error))?;
            pairs.push((key.0, kept));
        }
        Ok(pairs)
    }

    /// The gateway stops: the far ones are told, and nothing is measured any more.
    pub(crate) fn leave(&mut self, driver: &mut Driver) {
        self.steers = false;
        driver.leaving = true;
        for (_, lane) in self.lanes.iter_mut() {
            (lane.training_turn, lane.training) = (None, None);
        }
        for pair in self.pairs.keys() {
            self.tell(driver, pair, GatewayToGateway::Leaving {});
        }
    }

    /// Ends the lanes that have said all, and reads what nobody will get. `ended` are those that were ended
    /// before. False once no lane is left.
    pub(crate) fn drain_lanes(
        &mut self,
        driver: &mut Driver,
        ended: &mut HashSet<LaneKey>,
        until: Instant,
    ) -> bool {
        for key in self.lanes.keys() {
            if self.has_said_all(key) && ended.insert(key) {
                let _ = self.lanes[key].carrier.shutdown_write();
            }
            self.drain(driver, key, until);
        }
        !self.lanes.is_empty()
    }

    /// The kernel says that a lane can be written.
    pub(crate) fn on_writable(&mut self, key: LaneKey) {
        if let Some(lane) = self.lanes.get_mut(key) {
            lane.writable = true;
        }
    }

    /// Looks at the lane's whole pair: the far gateway shall not take the first lane's end for a fault.
    fn has_said_all(&self, key: LaneKey) -> bool {
        let lane = self.lanes.get(key);
        let lane = lane.filter(|lane: &&Lane| !lane.carrier.has_pending());
        let pair = lane.and_then(|lane| self.pairs.get(lane.pair));
        pair.is_some_and(|pair| {
            let unsent = (0..MAX_LANES).any(|number| pair.tunnel.unsent_bytes(number) > 0);
            !unsent && !pair.tunnel.has_control()
        })
    }

    /// Reads what nobody will get: closed with unread input, a socket sends a reset, which may overtake what
    /// was said.
    fn drain(&mut self, driver: &mut Driver, key: LaneKey, until: Instant) {
        let mut bytes = [0; 64 * 1024];
        while let Some(lane) = self.lanes.get_mut(key)
            && Instant::now() < until
        {
            match lane.carrier.read(&mut bytes) {
                Ok(count) if count > 0 => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                _ => drop(self.discard_lane(driver, key)),
            }
        }
    }
}
