//! The two sites' part: whether a relay is needed, which one is asked, and what is done with its answer.
//!
//! If a peer has an address, dialling goes on beside this (`dial`), and a lane that comes up without a relay
//! replaces all that use one (`pair`).

use super::digest::digest;
use super::selection::{Candidate, Offer, choose};
use crate::base::{Base, Bundle};
use crate::config::Transport;
use crate::keys::{ByNumber, LaneNumber, PairKey, PeerIndex};
use crate::sys::timers::TraversalDeadline;
use crate::traversal::Traversal;
use crate::tunnels::message::{GatewayToGateway, RelayRefusal};
use crate::tunnels::origin::Through;
use crate::tunnels::peers::dial::{LAST_BACKOFF, REDIAL};
use crate::tunnels::peers::peer::Dial;
use crate::tunnels::relay_visit::RelayVisit;
use causeway_tunnel::ticket::Ticket;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// How long a pair of sites may be without a lane before a relay is asked for one: the far gateway dials
/// again within a second of being back, and then the detour through a third site is not needed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(3);

/// The same if streams wait because this gateway was handed over: a gateway that can be dialled is back
/// within some round trips.
pub(crate) const SOON: Duration = Duration::from_millis(300);

/// How long a relay may take to answer, which takes a round trip. If it is cut off, the next one must be
/// asked soon.
const ANSWER: Duration = Duration::from_secs(2);

/// A relay that has failed is asked only after the others for this long.
const AVOIDED_FOR: Duration = Duration::from_secs(60);

/// Most connections to relays in progress because other sites asked: as many as one relay lets one site wait
/// for.
const COMING: usize = 64;

/// The progress of looking for a relay to one peer.
pub(crate) struct Search {
    /// Why no relay can be used, for those that ask.
    pub(crate) why_no_relay: String,
    dials: ByNumber<Dial>,
    /// The number of the last request for each lane, and the relay that has not answered it yet.
    asked: ByNumber<Option<(u64, PeerIndex)>>,
    /// What the peer has offered as a relay.
    pub(crate) offer: Option<Offer>,
    /// When each relay failed last.
    failed: HashMap<PeerIndex, Instant>,
}

impl Search {
    pub(crate) fn new() -> Search {
        Search {
            why_no_relay: String::new(),
            dials: ByNumber::default(),
            asked: ByNumber::default(),
            offer: None,
            failed: HashMap::new(),
        }
    }

    fn take(&mut self, id: u64, relay: PeerIndex) -> Option<LaneNumber> {
        let lane = self
            .asked
            .iter()
            .find_map(|(lane, asked)| (*asked == Some((id, relay))).then_some(lane))?;
        self.asked[lane] = None;
        Some(lane)
    }
}

/// What a relay sends when it lets two sites meet.
pub(crate) struct Invitation {
    pub(crate) id: u64,
    pub(crate) ticket: String,
    pub(crate) beyond_microseconds: u32,
}

/// Why this gateway does not dial a relay.
#[derive(Debug, thiserror::Error)]
enum NotGoing {
    /// A reason that others may know.
    #[error("{}", .0.text())]
    Refused(#[from] RelayRefusal),
    /// The reason, only for this gateway's own log.
    #[error("{0}")]
    Dial(String),
}

impl Traversal {
    /// Whether this gateway asks: of two sites, the one that sorts first asks. Lanes over QUIC are not
    /// relayed.
    fn seeks(&self, base: &Base<'_>, index: PeerIndex) -> bool {
        base.config().transport != Transport::Quic
            && *base.config().site < *base.site_at(index)
            && !base.tunnels.peers()[index].is_gone()
    }

    /// Looks for a relay to a peer that this gateway knows from the start, unless the peer is dialled soon.
    pub(crate) fn seek_first(&mut self, base: &mut Base<'_>, index: PeerIndex) {
        let site = base.site_at(index);
        let was_up = base.tunnels.pairs().key_of(site).is_some();
        self.seek_all(base, index, if was_up { SOON } else { PATIENCE });
    }

    /// Looks, after a pause, for a relay for every lane that is not up by then.
    pub(in crate::traversal) fn seek_all(&mut self, base: &mut Base<'_>, index: PeerIndex, pause: Duration) {
        for lane in LaneNumber::all().take(base.tunnels.ways().lanes_wanted(base.driver, index)) {
            self.seek_after(base, index, lane, pause);
        }
    }

    fn seek_after(&mut self, base: &mut Base<'_>, index: PeerIndex, lane: LaneNumber, pause: Duration) {
        let wanted = self.seeks(base, index) && lane.0 < base.tunnels.ways().lanes_wanted(base.driver, index);
        let dial = &mut self.search_mut(index).dials[lane];
        if wanted && !std::mem::replace(&mut dial.under_way, true) {
            base.set_deadline(pause, TraversalDeadline::Seek(index, lane));
        }
    }

    /// A lane was lost or has fallen silent: if it used a relay, one is looked for again.
    pub(in crate::traversal) fn seek_again(
        &mut self,
        base: &mut Base<'_>,
        index: PeerIndex,
        lane: LaneNumber,
        through: Option<&Through>,
    ) {
        let pause = match through {
            Some(through) => {
                let now = base.now();
                let search = self.search_mut(index);
                search.failed.insert(through.relay, now);
                let dial = &mut search.dials[lane];
                // If the far side ends it at once, because it has a better lane or believes so, it is not
                // brought back at that pace.
                if now.saturating_duration_since(through.since) > PATIENCE {
                    dial.start_anew();
                    REDIAL
                } else {
                    dial.back_off(LAST_BACKOFF)
                }
            }
            None => PATIENCE,
        };
        self.seek_after(base, index, lane, pause);
    }

    /// Asks a relay for a lane, unless there is one, or a better one.
    pub(in crate::traversal) fn seek(&mut self, base: &mut Base<'_>, index: PeerIndex, lane: LaneNumber) {
        let site = base.site_at(index).to_owned();
        let key = base.tunnels.pairs().key_of(&site);
        let is_well = base.tunnels.ways().is_well(index, lane);
        if is_well || key.is_some_and(|key| base.tunnels.ways().has_direct_lane(key)) {
            self.search_mut(index).dials[lane] = Dial::IDLE;
            return;
        }
        let Some((relay, tunnel)) = self.best_relay(base, index, lane) else {
            let why =
                "no site to which this one has a tunnel carries connections of others (relay in [grid])";
            return self.seek_failed(base, index, lane, None, why);
        };
        let id = base.driver.next_generation();
        self.search_mut(index).asked[lane] = Some((id, relay));
        base.set_deadline(ANSWER, TraversalDeadline::Ask(index, lane, id));
        base.tell(tunnel, GatewayToGateway::RelayAsk { to: site, id });
    }

    /// The relay to ask for this lane: its place among the peers, and the pair with it.
    fn best_relay(
        &self,
        base: &Base<'_>,
        index: PeerIndex,
        lane: LaneNumber,
    ) -> Option<(PeerIndex, PairKey)> {
        let failed = |relay: PeerIndex| {
            let search = self.search(index)?;
            let at = search.failed.get(&relay);
            at.filter(|at| base.now().saturating_duration_since(**at) < AVOIDED_FOR)
                .copied()
        };
        // A broker could make up any number of names, but not of tunnels.
        let willing = base.tunnels.pairs().iter().filter_map(|(key, pair)| {
            let relay = pair.peer();
            let is_willing = base
                .directory()
                .other(pair.site())
                .is_some_and(|info| info.relays);
            (relay != index && is_willing && base.tunnels.ways().has_direct_lane(key)).then(|| Candidate {
                relay,
                pair: key,
                site: pair.site(),
                near_microseconds: base.tunnels.ways().least_rtt(key).unwrap_or(u32::MAX),
                offer: self.search(relay).and_then(|relay| relay.offer.as_ref()),
                failed: failed(relay),
            })
        });
        let willing: Vec<_> = willing.collect();
        let between = (base.config().site.as_str(), base.site_at(index));
        choose(&willing, between, lane).map(|one| (one.relay, one.pair))
    }

    /// There is no lane this time.
    fn seek_failed(
        &mut self,
        base: &mut Base<'_>,
        index: PeerIndex,
        lane: LaneNumber,
        relay: Option<PeerIndex>,
        why: &str,
    ) {
        let now = base.now();
        let peer = &base.tunnels.peers()[index];
        let search = self.search_mut(index);
        if let Some(relay) = relay {
            search.failed.insert(relay, now);
        }
        // If the peer is dialled, or the grid has no relays, users look for the reason elsewhere.
        let concerns = relay.is_some() || peer.address().is_none();
        if concerns && search.why_no_relay != why {
            why.clone_into(&mut search.why_no_relay);
            // The reason may change with every relay that is asked, again and again.
            let (site, text) = (peer.site().to_owned(), format!("no relay: {why}; trying again"));
            base.driver
                .log
                .put_off("no-relay", format_args!("site {site}"), text);
        }
        search.asked[lane] = None;
        let dial = &mut search.dials[lane];
        let pause = dial.back_off(LAST_BACKOFF);
        dial.under_way = false;
        self.seek_after(base, index, lane, pause);
    }

    /// A lane through a relay is up, as far as this gateway knows.
    pub(in crate::traversal) fn seek_succeeded(&mut self, index: PeerIndex, lane: LaneNumber) {
        let search = self.search_mut(index);
        search.why_no_relay.clear();
        search.dials[lane].under_way = false;
    }

    pub(in crate::traversal) fn on_ask_deadline(
        &mut self,
        base: &mut Base<'_>,
        index: PeerIndex,
        lane: LaneNumber,
        id: u64,
    ) {
        let asked = self.search_mut(index).asked[lane].filter(|asked| asked.0 == id);
        if let Some((_, relay)) = asked {
            let site = base.site_at(relay);
            let why = format!("relay {site} did not answer within {ANSWER:?}");
            self.seek_failed(base, index, lane, Some(relay), &why);
        }
    }

    /// There is no lane to a site any more: it cannot be anybody's relay now.
    pub(in crate::traversal) fn lose_relay(&mut self, base: &mut Base<'_>, relay: PeerIndex) {
        self.search_mut(relay).offer = None;
        self.relay_is_gone(base, relay);
        self.tell_offer_soon(base);
    }

    /// The last lane to a site is gone: other relays are asked for what it was asked for.
    fn relay_is_gone(&mut self, base: &mut Base<'_>, relay: PeerIndex) {
        for index in base.tunnels.peers().indexes() {
            for lane in LaneNumber::all() {
                if self.search_mut(index).asked[lane].is_some_and(|asked| asked.1 == relay) {
                    let why = format!("relay {} was lost", base.site_at(relay));
                    self.seek_failed(base, index, lane, Some(relay), &why);
                }
            }
        }
    }

    /// A relay lets the two sites meet.
    pub(super) fn on_relay_go(&mut self, base: &mut Base<'_>, from: &str, invitation: &Invitation) {
        let Some((relay, index, lane)) = self.find_ask(base, from, invitation.id) else {
            return;
        };
        if let Err(why) = self.go(base, relay, index, Some(lane), invitation) {
            let why = match why {
                NotGoing::Refused(RelayRefusal::NoAddress) => format!(
                    "this gateway knows no address of relay {from}: give its [[peer]] one, or [listen] wan to the relay"
                ),
                why => why.to_string(),
            };
            self.seek_failed(base, index, lane, Some(relay), &why);
        }
    }

    /// A relay says that the sites cannot meet there.
    pub(super) fn on_relay_no(&mut self, base: &mut Base<'_>, from: &str, id: u64, why: RelayRefusal) {
        let why = format!("relay {from}: {}", why.text());
        if let Some((relay, index, lane)) = self.find_ask(base, from, id) {
            return self.seek_failed(base, index, lane, Some(relay), &why);
        }
        base.tunnels
            .connecting()
            .end_relay_visit(base.driver, from, id, &why);
    }

    /// The request with this number: the relay that was asked, the peer and the lane.
    fn find_ask(
        &mut self,
        base: &mut Base<'_>,
        from: &str,
        id: u64,
    ) -> Option<(PeerIndex, PeerIndex, LaneNumber)> {
        let relay = base.tunnels.peers().of(from)?;
        let mut searches = self.searches.iter_mut().enumerate();
        searches.find_map(|(index, search)| Some((relay, PeerIndex(index), search.take(id, relay)?)))
    }

    /// Another site has asked a relay to meet this one.
    pub(super) fn on_relay_come(
        &mut self,
        base: &mut Base<'_>,
        pair: PairKey,
        relay: &str,
        from: &str,
        invitation: &Invitation,
    ) {
        let Err(why) = self.come(base, relay, from, invitation) else {
            return;
        };
        // A relay can make up names of sites. All unknown names count as one origin of log lines, so that no
        // relay uses up the origins of others.
        let from = match why {
            NotGoing::Refused(RelayRefusal::Unknown) => "a site that is not known here",
            _ => from,
        };
        base.refuse(
            "relay-come",
            format_args!("{relay} for {from}"),
            format_args!("cannot meet {from} at {relay}: {why}"),
        );
        // How a dial ended is told to nobody: the relay gives up the meeting in its own time.
        if let NotGoing::Refused(why) = why {
            let meeting = invitation.id;
            base.tell(pair, GatewayToGateway::RelayCannot { meeting, why });
        }
    }

    fn come(
        &mut self,
        base: &mut Base<'_>,
        relay: &str,
        from: &str,
        invitation: &Invitation,
    ) -> Result<(), NotGoing> {
        if base.config().transport == Transport::Quic {
            return Err(RelayRefusal::QuicAlone.into());
        }
        let place = |site: &str| base.tunnels.peers().of(site);
        let index = place(from).ok_or(RelayRefusal::Unknown)?;
        let Some(relay) = place(relay).filter(|relay| *relay != index) else {
            return Err(RelayRefusal::NoAddress.into());
        };
        let now = base.now();
        if base.tunnels.connecting().visits_for_others() >= COMING
            || !base.tunnels.connecting().may_ask(relay, now)
        {
            return Err(RelayRefusal::TooOften.into());
        }
        self.go(base, relay, index, None, invitation)
    }

    /// Dials a relay to show a ticket there: for this lane, or for the one that the far gateway asked for.
    fn go(
        &mut self,
        base: &mut Base<'_>,
        relay: PeerIndex,
        index: PeerIndex,
        lane: Option<LaneNumber>,
        invitation: &Invitation,
    ) -> Result<(), NotGoing> {
        let ticket = Ticket::from_hex(&invitation.ticket).map_err(|_| RelayRefusal::Failed)?;
        let peer = &base.tunnels.peers()[relay];
        // Never an address that somebody else names: it could be anybody's.
        let (site, address) = (peer.site().to_owned(), peer.address());
        let address = address.ok_or(RelayRefusal::NoAddress)?;
        let through = Through {
            relay,
            site,
            beyond_microseconds: invitation.beyond_microseconds,
            since: base.now(),
        };
        let failed = format!("connect to relay {} at {address}", through.site);
        let visit = RelayVisit::new(through, index, invitation.id, digest(&ticket));
        let mut connecting = base.tunnels.connecting();
        let visit = connecting.visit(base.driver, address, visit, lane);
        visit.map_err(|error| NotGoing::Dial(format!("{failed}: {error}")))
    }

    /// A connection to a relay has failed.
    pub(in crate::traversal) fn relay_visit_failed(
        &mut self,
        base: &mut Base<'_>,
        visit: &RelayVisit,
        dialled: Option<(PeerIndex, LaneNumber)>,
        why: &str,
    ) {
        let relay = visit.through.relay;
        if let Some((index, lane)) = dialled {
            return self.seek_failed(base, index, lane, Some(relay), why);
        }
        // The relay is not told: how a dial ended, and how soon, would tell it about other networks.
        let (site, from) = (&visit.through.site, base.site_at(visit.peer));
        let text = format!("cannot meet it at {site}: {why}");
        let whom = format!("site {from} through {site}");
        base.refuse("relay-come", whom, text);
    }
}
