//! Stops in order: every far gateway is told, so that it ends the streams, starters and jobs it shares with this one at
//! once. From a lane that merely closed it could only conclude that the network is down, and would wait for `resume`.

use crate::base::base;
use crate::gateway::Gateway;
use crate::sys::token::Class;
use crate::tunnels::message::GatewayToGateway;
use causeway_tunnel::tunnel::MAX_LANES;
use causeway_wire::Reason;
use mio::Events;
use slab::Slab;
use std::collections::HashSet;
use std::io::ErrorKind;
use std::time::{Duration, Instant};

/// How long stopping may take: what waits unsent is some 100 kB a lane, and a second signal does not hasten it.
const FAREWELL: Duration = Duration::from_secs(2);

impl Gateway {
    /// Ends this site's connections, tells the far gateways, and waits until each has closed its lanes, which says that
    /// it has read everything.
    pub(crate) fn farewell(&mut self) {
        let until = Instant::now() + FAREWELL;
        for leg in keys(&self.site.legs) {
            self.site.abort_leg(&mut base!(self), leg, Reason::NoTunnel);
        }
        self.tunnels.steers = false;
        self.driver.leaving = true;
        for (_, lane) in &mut self.tunnels.lanes {
            (lane.turn, lane.training) = (None, None);
        }
        for pair in keys(&self.tunnels.pairs) {
            self.tunnels
                .tell(&mut self.driver, pair, GatewayToGateway::Leaving {});
        }
        let mut events = Events::with_capacity(64);
        let mut ended = HashSet::new();
        loop {
            self.driver.now = Instant::now();
            for pair in keys(&self.tunnels.pairs) {
                self.pump(pair);
            }
            for lane in keys(&self.tunnels.lanes) {
                if self.has_said_all(lane) && ended.insert(lane) {
                    let _ = self.tunnels.lanes[lane].carrier.shutdown_write();
                }
                self.drain(lane, until);
            }
            self.tunnels.look_after_quic(&mut self.driver);
            let unread = self.tunnels.quic.as_ref().is_some_and(|quic| quic.unread);
            if unread {
                self.tunnels.receive_quic(&mut self.driver);
            }
            let left = until.saturating_duration_since(Instant::now());
            if self.tunnels.lanes.is_empty() || left.is_zero() {
                return;
            }
            let wait = self
                .tunnels
                .quic_deadline()
                .filter(|_| !unread)
                .or(unread.then(Instant::now));
            let wait = wait.map_or(left, |at| left.min(at.saturating_duration_since(Instant::now())));
            match self.driver.poll.poll(&mut events, Some(wait)) {
                Err(error) if error.kind() != ErrorKind::Interrupted => return,
                _ => {}
            }
            for event in &events {
                match Class::of(event.token()) {
                    (Class::Lane, key) => {
                        if let Some(lane) = self.tunnels.lanes.get_mut(key) {
                            lane.writable |= event.is_writable();
                        }
                    }
                    (Class::Quic, _) => self.tunnels.on_quic(&mut self.driver, event),
                    _ => {}
                }
            }
        }
    }

    /// Of the lane's whole pair: the far gateway shall not take the first lane's end for a fault.
    fn has_said_all(&self, lane: usize) -> bool {
        let lane = self
            .tunnels
            .lanes
            .get(lane)
            .filter(|lane| !lane.carrier.has_pending());
        let pair = lane.and_then(|lane| self.tunnels.pairs.get(lane.pair));
        pair.is_some_and(|pair| {
            let unsent = (0..MAX_LANES).any(|number| pair.tunnel.unsent_bytes(number) > 0);
            !unsent && !pair.tunnel.has_control()
        })
    }

    /// Reads what nobody will get: closed with unread input, a socket sends a reset, which may overtake the farewell.
    fn drain(&mut self, key: usize, until: Instant) {
        let mut bytes = [0; 64 * 1024];
        while let Some(lane) = self.tunnels.lanes.get_mut(key)
            && Instant::now() < until
        {
            match lane.carrier.read(&mut bytes) {
                Ok(count) if count > 0 => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                _ => drop(self.tunnels.discard_lane(&mut self.driver, key)),
            }
        }
    }
}

/// Keys are taken first: what is done with an entry may remove others.
pub(crate) fn keys<T>(slab: &Slab<T>) -> Vec<usize> {
    slab.iter().map(|(key, _)| key).collect()
}
