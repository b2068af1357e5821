//! Brings pairs of sites up and ends them; adds lanes to their tunnels, and removes them.

use crate::driver::Driver;
use crate::keys::{ByNumber, LaneKey, LaneNumber, PairKey, PeerIndex};
use crate::tunnels::Tunnels;
use crate::tunnels::event::TunnelsEvent;
use crate::tunnels::lanes::lane::LaneEnd;
use crate::tunnels::origin::Came;
use crate::tunnels::origin::Through;
use crate::tunnels::pair::Pair;
use causeway_tunnel::hello::Hello;
use causeway_tunnel::turns::Turns;
use causeway_tunnel::{Side, Tunnel};
use std::collections::HashMap;
use std::fmt::Display;
use std::net::SocketAddr;
use std::time::Duration;

/// Losses of lanes are logged at most this often for each pair; `causeway status` counts all of them.
const SAY_EVERY: Duration = Duration::from_secs(1);

/// Pause before a refused pair is tried again: the cause is in a configuration, which a human has to change.
const REFUSED_PAUSE: Duration = Duration::from_secs(5);

impl Tunnels {
    /// The pair to which a lane belongs because of its two sessions, with its number free; `None` if another
    /// lane is preferred.
    pub(in crate::tunnels) fn find_pair(
        &mut self,
        driver: &mut Driver,
        index: PeerIndex,
        own: &Hello,
        peer: &Hello,
        came: &Came,
    ) -> Option<PairKey> {
        if let Some(existing) = self.pairs.key_of(&peer.site) {
            let pair = &self.pairs[existing];
            if (pair.own_session, pair.peer_session) == (own.session, peer.session) {
                let free = self.make_way(driver, existing, LaneNumber(peer.lane.into()), &peer.site, came);
                return free.then_some(existing);
            }
            // Our session stays the same: with the far side's new one, the tunnel has a name that was never
            // used.
            self.end_pair(driver, existing, &LaneEnd::NewSession, false);
        }
        let pair = self.begin_pair(driver, index, own.session, peer.session, came.address);
        self.events.push_back(TunnelsEvent::Begun { pair });
        Some(pair)
    }

    /// Decides between lanes. If both sides dial, two connections cross: the one dialled by the site that
    /// sorts first stays. A lane without a relay replaces one through a relay, and never the other way round.
    fn make_way(
        &mut self,
        driver: &mut Driver,
        pair: PairKey,
        number: LaneNumber,
        site: &str,
        came: &Came,
    ) -> bool {
        let is_relayed = came.through.is_some();
        if is_relayed && self.ways().has_direct_lane(pair) {
            return false;
        }
        let Some(existing) = self.pairs[pair].lanes[number] else {
            return true;
        };
        let preferred = |dialled_here: bool| dialled_here == (*driver.config.site < *site);
        let keeps = self
            .lanes
            .get(existing)
            .is_some_and(|lane| lane.through.is_some() == is_relayed && preferred(lane.dialled))
            && !preferred(came.dialled);
        if !keeps {
            self.close_lane(driver, existing, &LaneEnd::Replaced);
        }
        !keeps
    }

    /// A lane without a relay is up: those through relays are no longer needed.
    pub(in crate::tunnels) fn retire_relayed(&mut self, driver: &mut Driver, pair: PairKey) {
        let Some(pair) = self.pairs.get(pair) else {
            return;
        };
        for key in pair.lanes.into_values().flatten() {
            if self.lanes.get(key).is_some_and(|lane| lane.through.is_some()) {
                self.close_lane(driver, key, &LaneEnd::Replaced);
            }
        }
    }

    /// A lane is lost, or must get a rival: it is dialled again, or a relay is asked for it.
    pub(in crate::tunnels) fn bring_back(
        &mut self,
        driver: &mut Driver,
        index: PeerIndex,
        lane: LaneNumber,
        through: Option<&Through>,
    ) {
        self.redial(driver, index, lane);
        self.events.push_back(TunnelsEvent::LaneLost {
            peer: index,
            number: lane,
            through: through.cloned(),
        });
    }

    /// Begins a pair whose two gateways have just met for the first time in these sessions.
    fn begin_pair(
        &mut self,
        driver: &mut Driver,
        peer: PeerIndex,
        own_session: u64,
        peer_session: u64,
        address: SocketAddr,
    ) -> PairKey {
        let site = self.peers[peer].site.clone();
        let side = if driver.config.site < site {
            Side::Odd
        } else {
            Side::Even
        };
        let owner = driver.next_generation();
        let tunnel = Tunnel::kept(side, driver.config.tunnel, driver.now, &driver.arena, owner);
        let pair = Pair {
            tunnel,
            site: site.clone(),
            peer,
            peer_session,
            own_session,
            legs: HashMap::new(),
            turns: Turns::default(),
            lanes: ByNumber::default(),
            has_introduced_itself: false,
            accepts: None,
            address,
            sent_bytes: 0,
            received_bytes: 0,
            lanes_lost: 0,
            down_since: None,
            last_end: String::new(),
            refused_since: None,
            asked_at: None,
            quiet_until: driver.now,
            dirty: false,
        };
        let key = self.pairs.insert(pair);
        self.say_of(driver, peer, format_args!("tunnel to {site} at {address} is up"));
        key
    }

    /// Logs something about the tunnel with a peer, which may come and go as often as it likes, or name one
    /// dead address after the other.
    pub(in crate::tunnels) fn say_of(&mut self, driver: &mut Driver, peer: PeerIndex, text: impl Display) {
        match self.peers[peer].allowance.take(driver.now) {
            None => {}
            Some(0) => driver.say(text),
            Some(unsaid) => driver.say(format_args!("{text} ({unsaid} lines of this site were left out)")),
        }
    }

    /// Adds a lane to a pair's tunnel.
    pub(in crate::tunnels) fn join_lane(
        &mut self,
        driver: &mut Driver,
        key: PairKey,
        number: LaneNumber,
        lane: LaneKey,
        address: SocketAddr,
    ) {
        let now = driver.now;
        let Some(pair) = self.pairs.get_mut(key) else {
            return;
        };
        pair.lanes[number] = Some(lane);
        pair.tunnel.lane_up(number.0, now);
        pair.address = address;
        pair.refused_since = None;
        let peer = pair.peer;
        if let Some(since) = pair.down_since.take() {
            let streams = pair.legs.len();
            let waited = now.saturating_duration_since(since);
            let site = pair.site.clone();
            self.say_of(
                driver,
                peer,
                format_args!("tunnel to {site} is back after {waited:.1?}; {streams} streams go on"),
            );
        }
        let has_introduced_itself = self.pairs.get(key).is_some_and(|pair| pair.has_introduced_itself);
        self.events.push_back(TunnelsEvent::LaneUp { peer, lane });
        if has_introduced_itself {
            self.dial_succeeded(peer);
        }
        if self.pairs[key].lanes[LaneNumber::QUIC].is_none() {
            self.ask_for_quic(driver, key);
        }
        self.size_pair(driver, key);
        self.pairs.touch(key);
    }

    /// Removes an ended lane from its pair. `through` is the relay that it used, if any.
    pub(in crate::tunnels) fn part_lane(
        &mut self,
        driver: &mut Driver,
        key: PairKey,
        number: LaneNumber,
        end: &LaneEnd,
        through: Option<&Through>,
    ) {
        let now = driver.now;
        let Some(pair) = self.pairs.get_mut(key) else {
            return;
        };
        pair.lanes[number] = None;
        pair.tunnel.lane_down(number.0, now);
        pair.lanes_lost += 1;
        pair.last_end = end.to_string();
        let left = pair.tunnel.lanes_up();
        if left == 0 {
            pair.down_since = Some(now);
            if through.is_none() {
                let why_not_reached = &mut self.peers[pair.peer].why_not_reached;
                why_not_reached.clone_from(&pair.last_end);
            }
        }
        if now >= pair.quiet_until {
            pair.quiet_until = now + SAY_EVERY;
            let (site, streams) = (&pair.site, pair.legs.len());
            let what = if left == 0 {
                format!(
                    "no lane is left; {streams} streams wait up to {:?}",
                    driver.config.tunnel.resume
                )
            } else {
                format!("{left} are left")
            };
            driver.say(format_args!("lane {number} to {site}: {end}; {what}"));
        }
        if left == 0 {
            // If the lane used a relay, the reason why there is no better path has not changed.
            let relayed = through.map(|through| format!("through {}: {}", through.site, pair.last_end));
            let peer = pair.peer;
            self.events.push_back(TunnelsEvent::Down { peer, relayed });
        }
        self.size_pair(driver, key);
        self.pairs.touch(key);
        // There may have been no time for all events of the lane's input, and no other input may come.
        self.eventful.push(key);
    }

    /// Ends a pair, and with it the streams of its tunnel. With `forget`, this gateway takes a new session,
    /// so that the far one notices.
    pub(in crate::tunnels) fn end_pair(
        &mut self,
        driver: &mut Driver,
        key: PairKey,
        end: &LaneEnd,
        forget: bool,
    ) {
        let Some(pair) = self.pairs.get(key) else {
            return;
        };
        for lane in pair.lanes.into_values().flatten() {
            self.discard_lane(driver, lane);
        }
        let Some(pair) = self.pairs.try_remove(key) else {
            return;
        };
        self.peers[pair.peer].totals.add_pair(&pair);
        let (site, streams) = (&pair.site, pair.legs.len());
        let own = driver.config.site.clone();
        self.say_of(
            driver,
            pair.peer,
            format_args!("tunnel between {own} and {site} has ended: {end}; {streams} streams reset"),
        );
        let why = end.to_string();
        let peer = &mut self.peers[pair.peer];
        peer.why_not_reached.clone_from(&why);
        if forget {
            peer.new_session();
        }
        let pause = match end {
            LaneEnd::Refused(_) | LaneEnd::Protocol(_) => REFUSED_PAUSE,
            _ => Duration::ZERO,
        };
        let peer = pair.peer;
        self.events.push_back(TunnelsEvent::Ended {
            peer,
            legs: pair.legs.into_values().collect(),
            site: pair.site,
            why,
            pause,
        });
        self.dial_all(driver, peer, pause);
    }
}
