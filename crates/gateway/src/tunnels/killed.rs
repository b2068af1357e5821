//! Tells a gateway that was killed from a network that was cut.
//!
//! When a program is gone, its kernel closes its connections, and refuses new ones. A network that is cut
//! does neither, so its streams wait for `resume`. What the killed gateway knew of streams is lost, so these
//! end. A gateway that closes a lane itself says so in it. Lanes through relays and punched ones tell
//! nothing: others than the far host may have closed them. Neither do lanes over QUIC: a killed program
//! leaves them silent, as a cut does.

use crate::driver::Driver;
use crate::keys::{LaneKey, PairKey, PeerIndex};
use crate::sys::timers::TunnelsDeadline;
use crate::tunnels::Tunnels;
use crate::tunnels::lanes::lane::LaneEnd;
use std::time::Duration;

/// A gateway whose host does nothing but refuse connections for so long, or that does not dial again, does
/// not come back with what it knew. One that is handed over refuses none and dials at once; whoever starts a
/// new one in this time ends the streams sooner.
const GONE_AFTER: Duration = Duration::from_secs(5);

impl Tunnels {
    /// Says whether this end of a lane is one that its far gateway's death brings about.
    pub(in crate::tunnels) fn is_closed_by_far_host(&self, lane: LaneKey, end: &LaneEnd) -> bool {
        let Some(lane) = self.lanes.get(lane) else {
            return false;
        };
        let is_plain = lane.through.is_none() && lane.punched.is_none() && lane.carrier.tcp().is_some();
        is_plain && !lane.carrier.has_heard_bye() && end.is_by_far_host()
    }

    /// The far host has closed a lane. Where it was the last one and the far gateway is the one that dials,
    /// it has a while to dial again.
    pub(in crate::tunnels) fn on_closed_by_far_host(&mut self, driver: &mut Driver, key: PairKey) {
        let Some(pair) = self.pairs.get_mut(key) else {
            return;
        };
        if pair.is_up() {
            return;
        }
        pair.was_closed = true;
        if self.peers[pair.peer].address.is_none() {
            driver.set_deadline(GONE_AFTER, TunnelsDeadline::Killed(pair.peer));
        }
    }

    pub(in crate::tunnels) fn on_killed_deadline(&mut self, driver: &mut Driver, index: PeerIndex) {
        let peer = &self.peers[index];
        let key = self.pairs.key_of(&peer.site);
        let Some(key) = key.filter(|_| peer.address.is_none()) else {
            return;
        };
        let pair = &self.pairs[key];
        let down = pair
            .down_since
            .map(|since| driver.now.saturating_duration_since(since));
        if pair.was_closed && down.is_some_and(|down| down >= GONE_AFTER) {
            let end = LaneEnd::Killed("it closed its last lane and has not dialled", GONE_AFTER);
            self.end_pair(driver, key, &end, true);
        }
    }

    /// A lane that was dialled over TCP did not come up, since the far host refused the connection or for
    /// another reason.
    pub(in crate::tunnels) fn on_unanswered_dial(
        &mut self,
        driver: &mut Driver,
        index: PeerIndex,
        was_refused: bool,
    ) {
        let Some(key) = self.pairs.key_of(&self.peers[index].site) else {
            return;
        };
        let pair = &mut self.pairs[key];
        if pair.is_up() || !pair.was_closed || !was_refused {
            pair.refused_since = None;
            return;
        }
        let since = *pair.refused_since.get_or_insert(driver.now);
        if driver.now.saturating_duration_since(since) >= GONE_AFTER {
            let end = LaneEnd::Killed("its host has refused connections", GONE_AFTER);
            self.end_pair(driver, key, &end, true);
        }
    }
}
