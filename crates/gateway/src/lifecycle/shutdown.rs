//! Stops in order: every far gateway is told, so that it at once ends the streams, starters and jobs that it
//! shares with this one. From a lane that was merely closed, it could only conclude that the network is down,
//! and it would wait for `resume`.

use crate::flow::Flow;
use mio::Events;
use std::collections::HashSet;
use std::io::ErrorKind;
use std::time::{Duration, Instant};

/// How long stopping may take: some 100 kB for each lane wait unsent, and a second signal does not make it
/// faster.
const MAX_DURATION: Duration = Duration::from_secs(2);

/// Ends this site's connections, tells the far gateways, and waits until each has closed its lanes, which
/// means that it has read everything.
pub(crate) fn shut_down(flow: &mut Flow<'_>) {
    let until = Instant::now() + MAX_DURATION;
    announce(flow);
    let mut events = Events::with_capacity(64);
    let mut ended = HashSet::new();
    loop {
        flow.driver.now = Instant::now();
        for pair in flow.tunnels.pairs().keys() {
            flow.pump(pair);
        }
        let mut departure = flow.tunnels.departure();
        let Some(wait) = departure.go_on(flow.driver, &mut ended, until) else {
            return;
        };
        match flow.driver.poll.poll(&mut events, Some(wait)) {
            Err(error) if error.kind() != ErrorKind::Interrupted => return,
            _ => {}
        }
        for event in &events {
            flow.tunnels.departure().on_ready(flow.driver, event);
        }
    }
}

/// Ends everything that this site has, and tells the far gateways.
fn announce(flow: &mut Flow<'_>) {
    let (site, mut base) = flow.site_and_base();
    let legs = site.legs().keys();
    site.abort(&mut base, legs);
    flow.tunnels.departure().leave(flow.driver);
}
