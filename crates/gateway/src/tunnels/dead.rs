//! Distinguishes a gateway that is gone from a network that is cut.
//!
//! A reset, silence or a late answer proves nothing: networks reset connections, packets get lost, hosts are
//! busy. What a gateway knew about streams is gone if it says so itself (`GatewayToGateway::Leaving`, which
//! its worker also sends if the keeper is killed), or if a gateway with another session answers in its place.
//! A gateway that can do neither is recognised by its host: this refuses every connection, for a long time,
//! and no sign of the gateway says otherwise, not even through the broker. In all other cases, streams wait
//! for `resume`.

use crate::driver::Driver;
use crate::keys::PeerIndex;
use crate::tunnels::Tunnels;
use crate::tunnels::event::TunnelsEvent;
use crate::tunnels::lanes::lane::LaneEnd;
use std::time::Duration;

/// A host that refuses for this long, without any sign of its gateway, has none. If this is wrong, jobs end
/// that would have gone on; the longer it takes, the longer jobs wait for a gateway that is gone. Routers
/// that restart, and firewalls that are reloaded, refuse for some seconds.
const REFUSED_FOR: Duration = Duration::from_secs(30);

/// How often the gateway itself is asked through the broker during this time. It is not gone as long as it
/// answered one of the last questions.
const ASK_EVERY: Duration = Duration::from_secs(5);

impl Tunnels {
    /// A lane that was dialled over TCP did not come up, because the far host refused the connection or for
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
        if pair.is_up() || !was_refused {
            pair.refused_since = None;
            return;
        }
        let since = *pair.refused_since.get_or_insert(driver.now);
        let refused = driver.now.saturating_duration_since(since);
        if pair.asked_at.is_none_or(|at| driver.now - at >= ASK_EVERY) {
            pair.asked_at = Some(driver.now);
            self.events.push_back(TunnelsEvent::Doubted { peer: index });
        }
        if refused >= REFUSED_FOR {
            let end = LaneEnd::Killed("its host has refused connections", REFUSED_FOR);
            self.end_pair(driver, key, &end, true);
        }
    }

    /// The far gateway has shown by other means that it is alive.
    pub(in crate::tunnels) fn on_sign_of_life(&mut self, index: PeerIndex) {
        let Some(key) = self.pairs.key_of(&self.peers[index].site) else {
            return;
        };
        if self.pairs[key].refused_since.is_some() {
            self.pairs[key].refused_since = None;
            let why = "its gateway answers through the broker, but connections to it are refused on the way";
            self.set_why_not_reached(index, why);
        }
    }
}
