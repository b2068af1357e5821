//! Sends a frame after the last one of a burst; see `tail_probe`.

use crate::driver::Driver;
use crate::keys::LaneKey;
use crate::sys::timers::TunnelsDeadline;
use crate::tunnels::Tunnels;
use crate::tunnels::lanes::lane::Lane;
use crate::tunnels::pacing::tail_probe::pause;

impl Tunnels {
    pub(in crate::tunnels) fn on_tail_probe(&mut self, driver: &mut Driver, key: LaneKey) {
        let now = driver.now;
        let Some(lane) = self.lanes.get_mut(key) else {
            return;
        };
        lane.tail_probe.armed = false;
        let Some(pair) = self.pairs.get_mut(lane.pair) else {
            return;
        };
        let Lane {
            pair: pair_key,
            number,
            ..
        } = *lane;
        if pair.tunnel.unsent_bytes(number.0) > 0 {
            return;
        }
        let due = lane.sent_at.map_or(now, |at| at + pause(lane.tail_probe.rtt));
        if due > now {
            // The lane has sent since: either the burst continues, or another one has ended.
            lane.tail_probe.armed = true;
            return driver.set_deadline(due - now, TunnelsDeadline::TailProbe(key));
        }
        pair.tunnel.repeat_ack(number.0);
        lane.tail_probe.end = lane.sent_bytes + pair.tunnel.unsent_bytes(number.0);
        self.pairs.touch(pair_key);
    }
}
