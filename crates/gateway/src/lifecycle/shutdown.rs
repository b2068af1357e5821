//! Stops in order: every far gateway is told, so that it ends the streams, starters and jobs it shares with
//! this one at once. From a lane that merely closed it could only conclude that the network is down, and
//! would wait for `resume`.

use crate::base::Base;
use crate::flow::Flow;
use crate::keys::LaneKey;
use crate::sys::token::Class;
use crate::tunnels::Tunnels;
use crate::tunnels::message::GatewayToGateway;
use causeway_tunnel::tunnel::MAX_LANES;
use causeway_wire::Reason;
use mio::Events;
use std::collections::HashSet;
use std::io::ErrorKind;
use std::time::{Duration, Instant};

/// How long stopping may take: what waits unsent is some 100 kB a lane, and a second signal does not hasten
/// it.
const MAX_DURATION: Duration = Duration::from_secs(2);

/// Ends this site's connections, tells the far gateways, and waits until each has closed its lanes, which
/// says that it has read everything.
pub(crate) fn shut_down(flow: &mut Flow<'_>) {
    let until = Instant::now() + MAX_DURATION;
    announce(flow);
    let mut events = Events::with_capacity(64);
    let mut ended = HashSet::new();
    loop {
        flow.driver.now = Instant::now();
        for pair in flow.tunnels.pairs.keys() {
            flow.pump(pair);
        }
        let base = &mut flow.base();
        for lane in base.tunnels.lanes.keys() {
            if has_said_all(base.tunnels, lane) && ended.insert(lane) {
                let _ = base.tunnels.lanes[lane].carrier.shutdown_write();
            }
            drain(base, lane, until);
        }
        base.tunnels.look_after_quic(base.driver);
        let unread = base.tunnels.quic.as_ref().is_some_and(|quic| quic.unread);
        if unread {
            base.tunnels.receive_quic(base.driver);
        }
        let left = until.saturating_duration_since(Instant::now());
        if base.tunnels.lanes.is_empty() || left.is_zero() {
            return;
        }
        let wait = match base.tunnels.quic_deadline() {
            _ if unread => Duration::ZERO,
            Some(at) => left.min(at.saturating_duration_since(Instant::now())),
            None => left,
        };
        match base.driver.poll.poll(&mut events, Some(wait)) {
            Err(error) if error.kind() != ErrorKind::Interrupted => return,
            _ => {}
        }
        take(base, &events);
    }
}

/// Ends what this site has, and tells the far gateways.
fn announce(flow: &mut Flow<'_>) {
    let (site, mut base) = flow.site_and_base();
    for leg in site.legs.keys() {
        site.abort_leg(&mut base, leg, Reason::NoTunnel);
    }
    base.tunnels.steers = false;
    base.driver.leaving = true;
    for (_, lane) in base.tunnels.lanes.iter_mut() {
        (lane.training_turn, lane.training) = (None, None);
    }
    for pair in base.tunnels.pairs.keys() {
        base.tunnels.tell(base.driver, pair, GatewayToGateway::Leaving {});
    }
}

fn take(base: &mut Base<'_>, events: &Events) {
    for event in events {
        match Class::of(event.token()) {
            (Class::Lane, key) => {
                if let Some(lane) = base.tunnels.lanes.get_mut(LaneKey(key)) {
                    lane.writable |= event.is_writable();
                }
            }
            (Class::Quic, _) => base.tunnels.on_quic(base.driver, event),
            _ => {}
        }
    }
}

/// Of the lane's whole pair: the far gateway shall not take the first lane's end for a fault.
fn has_said_all(tunnels: &Tunnels, lane: LaneKey) -> bool {
    let lane = tunnels.lanes.get(lane);
    let lane = lane.filter(|lane| !lane.carrier.has_pending());
    let pair = lane.and_then(|lane| tunnels.pairs.get(lane.pair));
    pair.is_some_and(|pair| {
        let unsent = (0..MAX_LANES).any(|number| pair.tunnel.unsent_bytes(number) > 0);
        !unsent && !pair.tunnel.has_control()
    })
}

/// Reads what nobody will get: closed with unread input, a socket sends a reset, which may overtake what was
/// said.
fn drain(base: &mut Base<'_>, key: LaneKey, until: Instant) {
    let mut bytes = [0; 64 * 1024];
    while let Some(lane) = base.tunnels.lanes.get_mut(key)
        && Instant::now() < until
    {
        match lane.carrier.read(&mut bytes) {
            Ok(count) if count > 0 => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            _ => drop(base.tunnels.discard_lane(base.driver, key)),
        }
    }
}
