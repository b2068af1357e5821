//! Stops in order: every far gateway is told, so that it ends the streams, starters and jobs it shares with this one at
//! once. From a lane that merely closed it could only conclude that the network is down, and would wait for `resume`.

use crate::flow::Flow;
use crate::keys::LaneKey;
use crate::sys::token::Class;
use crate::tunnels::message::GatewayToGateway;
use causeway_tunnel::tunnel::MAX_LANES;
use causeway_wire::Reason;
use mio::Events;
use std::collections::HashSet;
use std::io::ErrorKind;
use std::time::{Duration, Instant};

/// How long stopping may take: what waits unsent is some 100 kB a lane, and a second signal does not hasten it.
const MAX_DURATION: Duration = Duration::from_secs(2);

/// An orderly end under way.
pub(crate) struct Shutdown<'a> {
    flow: Flow<'a>,
}

impl Shutdown<'_> {
    pub(crate) fn new(flow: Flow<'_>) -> Shutdown<'_> {
        Shutdown { flow }
    }

    /// Ends this site's connections, tells the far gateways, and waits until each has closed its lanes, which says that
    /// it has read everything.
    pub(crate) fn run(mut self) {
        let until = Instant::now() + MAX_DURATION;
        self.say_it();
        let mut events = Events::with_capacity(64);
        let mut ended = HashSet::new();
        loop {
            self.flow.below.base.driver.now = Instant::now();
            for pair in self.flow.below.base.tunnels.pairs.keys() {
                self.flow.pump(pair);
            }
            for lane in self.flow.below.base.tunnels.lanes.keys() {
                if self.has_said_all(lane) && ended.insert(lane) {
                    let _ = self.flow.below.base.tunnels.lanes[lane].carrier.shutdown_write();
                }
                self.drain(lane, until);
            }
            self.flow
                .below
                .base
                .tunnels
                .look_after_quic(self.flow.below.base.driver);
            let unread = self
                .flow
                .below
                .base
                .tunnels
                .quic
                .as_ref()
                .is_some_and(|quic| quic.unread);
            if unread {
                self.flow
                    .below
                    .base
                    .tunnels
                    .receive_quic(self.flow.below.base.driver);
            }
            let left = until.saturating_duration_since(Instant::now());
            if self.flow.below.base.tunnels.lanes.is_empty() || left.is_zero() {
                return;
            }
            let wait = self.wait(left, unread);
            match self.flow.below.base.driver.poll.poll(&mut events, Some(wait)) {
                Err(error) if error.kind() != ErrorKind::Interrupted => return,
                _ => {}
            }
            self.take(&events);
        }
    }

    /// Ends what this site has, and tells the far gateways.
    fn say_it(&mut self) {
        for leg in self.flow.below.site.legs.keys() {
            self.flow
                .below
                .site
                .abort_leg(&mut self.flow.below.base, leg, Reason::NoTunnel);
        }
        self.flow.below.base.tunnels.steers = false;
        self.flow.below.base.driver.leaving = true;
        for (_, lane) in self.flow.below.base.tunnels.lanes.iter_mut() {
            (lane.training_turn, lane.training) = (None, None);
        }
        for pair in self.flow.below.base.tunnels.pairs.keys() {
            self.flow.below.base.tunnels.tell(
                self.flow.below.base.driver,
                pair,
                GatewayToGateway::Leaving {},
            );
        }
    }

    /// How long to wait for more of what comes; `unread`: there is some.
    fn wait(&mut self, left: Duration, unread: bool) -> Duration {
        let wait = self
            .flow
            .below
            .base
            .tunnels
            .quic_deadline()
            .filter(|_| !unread)
            .or(unread.then(Instant::now));
        wait.map_or(left, |at| left.min(at.saturating_duration_since(Instant::now())))
    }

    fn take(&mut self, events: &Events) {
        for event in events {
            match Class::of(event.token()) {
                (Class::Lane, key) => {
                    if let Some(lane) = self.flow.below.base.tunnels.lanes.get_mut(LaneKey(key)) {
                        lane.writable |= event.is_writable();
                    }
                }
                (Class::Quic, _) => self
                    .flow
                    .below
                    .base
                    .tunnels
                    .on_quic(self.flow.below.base.driver, event),
                _ => {}
            }
        }
    }

    /// Of the lane's whole pair: the far gateway shall not take the first lane's end for a fault.
    fn has_said_all(&self, lane: LaneKey) -> bool {
        let lane = self
            .flow
            .below
            .base
            .tunnels
            .lanes
            .get(lane)
            .filter(|lane| !lane.carrier.has_pending());
        let pair = lane.and_then(|lane| self.flow.below.base.tunnels.pairs.get(lane.pair));
        pair.is_some_and(|pair| {
            let unsent = (0..MAX_LANES).any(|number| pair.tunnel.unsent_bytes(number) > 0);
            !unsent && !pair.tunnel.has_control()
        })
    }

    /// Reads what nobody will get: closed with unread input, a socket sends a reset, which may overtake the farewell.
    fn drain(&mut self, key: LaneKey, until: Instant) {
        let mut bytes = [0; 64 * 1024];
        while let Some(lane) = self.flow.below.base.tunnels.lanes.get_mut(key)
            && Instant::now() < until
        {
            match lane.carrier.read(&mut bytes) {
                Ok(count) if count > 0 => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                _ => drop(
                    self.flow
                        .below
                        .base
                        .tunnels
                        .discard_lane(self.flow.below.base.driver, key),
                ),
            }
        }
    }
}
