//! What arrives on a lane, and how a lane ends. See `pump` for what it sends.

use crate::driver::Driver;
use crate::keys::{LaneKey, LaneNumber, PairKey};
use crate::tunnels::Tunnels;
use crate::tunnels::lane::{Lane, LaneEnd};
use crate::tunnels::lane_status::lane_status;
use causeway_tunnel::ProtocolError;

impl Tunnels {
    /// What the far gateway did wrong ends the pair: sent again, it would be as wrong. Anything else ends the
    /// lane.
    pub(crate) fn fail_lane(&mut self, driver: &mut Driver, key: LaneKey, end: &LaneEnd) {
        let Some(lane) = self.lanes.get(key) else {
            return;
        };
        match end {
            LaneEnd::Protocol(ProtocolError::Early) => self.close_lane(driver, key, end),
            LaneEnd::Protocol(_) | LaneEnd::Refused(_) => self.end_pair(driver, lane.pair, end, true),
            _ => self.close_lane(driver, key, end),
        }
    }

    /// Ends a lane; its pair goes on.
    pub(crate) fn close_lane(&mut self, driver: &mut Driver, key: LaneKey, end: &LaneEnd) {
        let through = self.lanes.get(key).and_then(|lane| lane.through.clone());
        let Some((pair_key, number)) = self.discard_lane(driver, key) else {
            return;
        };
        self.part_lane(driver, pair_key, number, end, through.as_ref());
        // Where a better lane took its place, the relay is not to blame.
        let through = through.filter(|_| !matches!(end, LaneEnd::Replaced));
        if let Some(pair) = self.pairs.get(pair_key) {
            self.bring_back(driver, pair.peer, number, through.as_ref());
        }
    }

    /// Forgets a lane and closes its socket; its pair and its number there.
    pub(crate) fn discard_lane(
        &mut self,
        driver: &mut Driver,
        key: LaneKey,
    ) -> Option<(PairKey, LaneNumber)> {
        let mut lane = self.lanes.try_remove(key)?;
        self.keep_counts(&lane);
        lane.carrier.deregister(driver.registry());
        Some((lane.pair, lane.number))
    }

    /// A lane ends; its pair is still known.
    pub(crate) fn keep_counts(&mut self, lane: &Lane) {
        if let Some(pair) = self.pairs.get(lane.pair) {
            self.peers[pair.peer].totals.add_lane(&lane_status(lane));
        }
    }
}
