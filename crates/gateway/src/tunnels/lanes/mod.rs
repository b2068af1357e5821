//! Lanes: connections to another gateway, several for each pair; what they carry, and how many there are.

mod count;
pub(crate) mod lane;
mod over_quic;
mod probing;
pub(crate) mod pump;
pub(crate) mod receive;
pub(crate) mod status;
mod steering;
mod training;

use crate::driver::Driver;
use crate::keys::{LaneNumber, PairKey};
use crate::tunnels::Tunnels;
use causeway_tunnel::Event;
use lane::LaneEnd;

/// Lends what moves frames between lanes and those that act on them. `receive` and `pump` have the rest.
pub(crate) struct Traffic<'a> {
    tunnels: &'a mut Tunnels,
}

impl Tunnels {
    /// Lends what moves frames.
    pub(crate) fn traffic(&mut self) -> Traffic<'_> {
        Traffic { tunnels: self }
    }
}

impl Traffic<'_> {
    /// Ends a pair because of what it did, or of what was found.
    pub(crate) fn end_pair(&mut self, driver: &mut Driver, key: PairKey, end: &LaneEnd) {
        self.tunnels.end_pair(driver, key, end, true);
    }

    /// Acts if the tunnel doubts a lane, or has given up one or itself.
    pub(crate) fn on_lane_event(&mut self, driver: &mut Driver, key: PairKey, event: &Event<'_>) {
        match event {
            Event::LaneSilent(number) => {
                let number = LaneNumber(*number);
                let Some(pair) = self.tunnels.pairs.get(key) else {
                    return;
                };
                let lane = pair.lanes[number].and_then(|lane| self.tunnels.lanes.get(lane));
                let through = lane.and_then(|lane| lane.through.clone());
                self.tunnels
                    .bring_back(driver, pair.peer, number, through.as_ref());
            }
            Event::LaneDead(number) => {
                let number = LaneNumber(*number);
                let lane = self.tunnels.pairs.get(key).and_then(|pair| pair.lanes[number]);
                let silent = LaneEnd::Silent(driver.config.tunnel.lane_timeout);
                match lane {
                    Some(lane) => self.tunnels.close_lane(driver, lane, &silent),
                    None => self.tunnels.part_lane(driver, key, number, &silent, None),
                }
            }
            Event::Expired => self.expire_pair(driver, key),
            _ => {}
        }
    }

    /// Ends a pair to which no lane came back in time.
    fn expire_pair(&mut self, driver: &mut Driver, key: PairKey) {
        let Some(pair) = self.tunnels.pairs.get(key) else {
            return;
        };
        let end = LaneEnd::Expired(driver.config.tunnel.resume, pair.last_end.clone());
        self.tunnels.end_pair(driver, key, &end, true);
    }
}
