//! Stops in order: every far gateway is told, so that it ends the streams, starters and jobs it shares with
//! this one at once. From a lane that merely closed it could only conclude that the network is down, and
//! would wait for `resume`.

use crate::base::Base;
use crate::flow::Flow;
use crate::keys::LaneKey;
use crate::sys::source::Class;
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
        for pair in flow.tunnels.pair_keys() {
            flow.pump(pair);
        }
        let base = &mut flow.base();
        let has_lanes = base.tunnels.drain_lanes(base.driver, &mut ended, until);
        base.tunnels.look_after_quic(base.driver);
        let unread = base.tunnels.has_unread_datagrams();
        if unread {
            base.tunnels.receive_quic(base.driver);
        }
        let left = until.saturating_duration_since(Instant::now());
        if !has_lanes || left.is_zero() {
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
    site.abort_all(&mut base);
    flow.tunnels.leave(flow.driver);
}

fn take(base: &mut Base<'_>, events: &Events) {
    for event in events {
        match Class::of(event.token()) {
            (Class::Lane, key) if event.is_writable() => base.tunnels.on_writable(LaneKey(key)),
            (Class::Quic, _) => base.tunnels.on_quic(base.driver, event),
            _ => {}
        }
    }
}
