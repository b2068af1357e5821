//! Looks after the lanes that have just sent.

use crate::driver::Driver;
use crate::keys::{LaneNumber, PairKey};
use crate::sys::socket::{self};
use crate::sys::timers::TunnelsDeadline;
use crate::tunnels::Tunnels;
use crate::tunnels::capacity;
use crate::tunnels::pacing::remembered_rate::Step;
use crate::tunnels::pacing::train::Training;
use std::time::Duration;

impl Tunnels {
    /// Looks after the lanes of a pair that have just sent.
    pub(in crate::tunnels) fn steer(&mut self, driver: &mut Driver, key: PairKey) {
        let now = driver.now;
        let mut lossy = false;
        let Some(pair) = self.pairs.get(key) else {
            return;
        };
        for (number, key) in pair.lanes.iter() {
            let Some((key, lane)) = key.and_then(|key| Some((key, self.lanes.get_mut(key)?))) else {
                continue;
            };
            if lane.sent_at != Some(now) {
                continue;
            }
            if pair.tunnel.unsent_bytes(number.0) == 0
                && let Some(after) = lane.tail_probe.arm(lane.sent_bytes, now)
            {
                driver.set_deadline(after, TunnelsDeadline::TailProbe(key));
            }
            if !self.steers || lane.training.is_some() || now < lane.remembered.look_at {
                continue;
            }
            let Some(tcp) = lane.carrier.tcp() else { continue };
            let (Some(bbr), Ok(path)) = (socket::bbr(tcp), socket::path_info(tcp)) else {
                continue;
            };
            let rtt = Duration::from_micros(path.rtt_microseconds.into());
            lane.remembered.count_sent(lane.sent_bytes, now);
            lane.tail_probe.learn(path.retransmits, rtt, now);
            lossy |= lane.remembered.loses_by_chance(&path, now);
            let reserved = capacity::most_rate(&driver.config, &self.peers, pair);
            // A lane over QUIC carries everything while it is there: padding of others would only fill its
            // queue.
            let trains = driver.config.train && pair.lanes[LaneNumber::QUIC].is_none();
            match lane.remembered.look(&path, &bbr, (reserved, trains), now) {
                Step::Begin(rate) => {
                    // The bound comes first: a start-up begins at nearly three times the pace of the window.
                    let _ = socket::set_most_rate(tcp, Some(rate));
                    socket::begin_anew(tcp);
                }
                Step::Bound(rate) => {
                    let _ = socket::set_most_rate(tcp, Some(rate));
                }
                Step::Release => {
                    let _ = socket::set_most_rate(tcp, None);
                }
                Step::Train => {
                    let idle = pair.tunnel.streams() == 0;
                    lane.training = Some(Training::begin(&lane.carrier, idle, now));
                }
                Step::Nothing => {}
            }
        }
        if lossy {
            self.on_lossy(driver, key);
        }
    }
}
