//! Connections between gateways until they are lanes: how they proceed, how long they may take, and how they
//! end.

use crate::driver::Driver;
use crate::keys::{HandshakeKey, LaneNumber, PairKey, PeerIndex};
use crate::sys::source::Class;
use crate::sys::timers::TunnelsDeadline;
use crate::tunnels::Tunnels;
use crate::tunnels::carrier::Carrier;
use crate::tunnels::carrier::prepare;
use crate::tunnels::event::TunnelsEvent;
use crate::tunnels::handshake::exchange::{Failure, First, Handshake, LEFT, NOBODY_LISTENS, NOT_TOLD};
use crate::tunnels::lanes::lane::Lane;
use crate::tunnels::origin::Came;
use crate::tunnels::relay_visit::RelayVisit;
use causeway_broker::tls::Expect;
use causeway_service::admission::network_of;
use causeway_tunnel::hello::{Hello, NONCE_BYTES};
use causeway_tunnel::ticket::Ticket;
use causeway_wire::TextError;
use mio::net::TcpStream;
use rustls::pki_types::CertificateDer;
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// How long a handshake may take: three round trips around the Earth, and a busy far gateway.
const DEADLINE: Duration = Duration::from_secs(10);

/// A dialled gateway that has not answered by then is dialled anew. TCP asks at 0, 1 and 3 s (0, 1, 2, 3 and
/// 4 s from Linux 6.5 on) and then ever more rarely, but a network that comes back has to be noticed within
/// two seconds.
const CONNECT_DEADLINE: Duration = Duration::from_secs(4);

impl Tunnels {
    pub(in crate::tunnels) fn on_gateway_connection(
        &mut self,
        driver: &mut Driver,
        carrier: Carrier,
        address: SocketAddr,
    ) {
        if let Some((_, key)) = self.strangers.one_too_many(&network_of(address.ip())) {
            let why = "too many unfinished handshakes; the oldest of who has most of them ends";
            self.end_handshake(driver, key, "handshakes", why);
        }
        self.begin_handshake(driver, carrier, address, None, None);
    }

    fn take_handshake(&mut self, key: HandshakeKey) -> Option<Handshake> {
        let handshake = self.handshakes.try_remove(key)?;
        self.strangers
            .leave(&network_of(handshake.address.ip()), handshake.generation);
        Some(handshake)
    }

    pub(in crate::tunnels) fn begin_handshake(
        &mut self,
        driver: &mut Driver,
        mut carrier: Carrier,
        address: SocketAddr,
        dialled: Option<(PeerIndex, LaneNumber)>,
        visit: Option<RelayVisit>,
    ) {
        let mut nonce = [0; NONCE_BYTES];
        let key = self.handshakes.vacant_key();
        let token = Class::Handshake.token(key.0);
        let begun = self
            .may_meet()
            .and_then(|()| getrandom::fill(&mut nonce).map_err(io::Error::other))
            .and_then(|()| carrier.register(driver.registry(), token, false));
        if let Err(error) = begun {
            return match (visit, dialled) {
                (Some(visit), _) => self.relay_visit_ended(visit, dialled, error.to_string()),
                (None, Some((index, lane))) => self.dial_failed(index, lane, &error.to_string()),
                (None, None) => {}
            };
        }
        self.own_connection(&mut carrier, token);
        let connection = carrier.quic().map(|session| session.handle());
        let generation = driver.next_generation();
        let own = Hello {
            site: driver.config.site.clone(),
            nonce,
            session: dialled.map_or(0, |(index, _)| self.peers[index].session),
            // The number fits: it is below MAX_LANES.
            lane: dialled.map_or(0, |(_, lane)| lane.0 as u8),
        };
        let is_stranger = dialled.is_none() && visit.is_none();
        let handshake = Handshake {
            may_show_ticket: driver.config.relay && is_stranger && carrier.tcp().is_some(),
            is_member: self.trust.is_some(),
            carrier,
            address,
            dialled,
            visit,
            generation,
            own,
            connected: false,
            received: Vec::new(),
            peer: None,
        };
        self.handshakes.insert(handshake);
        if is_stranger {
            self.strangers.enter(network_of(address.ip()), generation, key);
        }
        driver.set_deadline(DEADLINE, TunnelsDeadline::Handshake(key, generation));
        if !is_stranger {
            driver.set_deadline(CONNECT_DEADLINE, TunnelsDeadline::Connect(key, generation));
        }
        match connection {
            Some(connection) => self.attend_connections(driver, &[connection]),
            None if is_stranger => self.on_handshake(driver, key),
            None => {}
        }
    }

    /// Refuses if this site has been put out of the grid.
    fn may_meet(&self) -> io::Result<()> {
        self.put_out
            .clone()
            .map_or(Ok(()), |why| Err(io::Error::other(why)))
    }

    /// A carrier over a TCP connection, dialled to the gateway of a site or accepted.
    pub(in crate::tunnels) fn tcp_carrier(
        &self,
        driver: &Driver,
        socket: TcpStream,
        dialled: Option<&str>,
    ) -> io::Result<Carrier> {
        match self.tls.as_ref().filter(|_| !driver.config.insecure) {
            Some(tls) => Ok(Carrier::Tls(Box::new(tls.session(socket, dialled)?))),
            None => Ok(Carrier::Clear(socket)),
        }
    }

    /// Sets the token under which the events of a connection arrive from now on.
    fn own_connection(&mut self, carrier: &mut Carrier, token: mio::Token) {
        if let (Some(session), Some(quic)) = (carrier.quic(), &mut self.quic) {
            quic.set_owner(session.handle(), token);
        }
    }

    pub(in crate::tunnels) fn on_connect_deadline(
        &mut self,
        driver: &mut Driver,
        key: HandshakeKey,
        generation: u64,
    ) {
        let handshake = self.handshakes.get(key);
        if handshake.is_some_and(|handshake| handshake.generation == generation && !handshake.connected) {
            self.end_handshake(
                driver,
                key,
                "handshake",
                &format!("no answer within {CONNECT_DEADLINE:?}"),
            );
        }
    }

    pub(in crate::tunnels) fn on_handshake_deadline(
        &mut self,
        driver: &mut Driver,
        key: HandshakeKey,
        generation: u64,
    ) {
        if self
            .handshakes
            .get(key)
            .is_some_and(|handshake| handshake.generation == generation)
        {
            let why = format!("no complete handshake within {DEADLINE:?}");
            self.end_handshake(driver, key, "handshake", &why);
        }
    }

    /// Goes on with a handshake. Handshakes of strangers share a part of each turn.
    pub(in crate::tunnels) fn on_handshake(&mut self, driver: &mut Driver, key: HandshakeKey) {
        let is_stranger = |one: &Handshake| one.dialled.is_none() && one.visit.is_none();
        if !self.handshakes.get(key).is_some_and(is_stranger) {
            return self.go_on_with(driver, key);
        }
        if !self.share.is_left(driver.now) {
            if self.share.wait(key) {
                driver.set_deadline(Duration::ZERO, TunnelsDeadline::Strangers);
            }
            return;
        }
        let began = Instant::now();
        self.go_on_with(driver, key);
        self.share.count(began.elapsed());
    }

    pub(in crate::tunnels) fn on_strangers_turn(&mut self, driver: &mut Driver) {
        for key in self.share.take() {
            self.on_handshake(driver, key);
        }
    }

    fn go_on_with(&mut self, driver: &mut Driver, key: HandshakeKey) {
        let Some(handshake) = self.handshakes.get_mut(key) else {
            return;
        };
        if handshake.may_show_ticket {
            match handshake.opening() {
                Ok(First::Unknown) => return,
                Ok(First::Hello) => handshake.may_show_ticket = false,
                Ok(First::Ticket(ticket)) => return self.on_stranger_with_ticket(key, ticket),
                Err(Failure { kind, why }) => return self.end_handshake(driver, key, kind, &why),
            }
        }
        let (config, contacts) = (&driver.config, &self.peers);
        let is_member = self.trust.is_some();
        // A gateway that is not a peer is refused before this one answers: a dialler that gets an answer
        // believes that the lane is up.
        let answer = |peer: &Hello| {
            let mut known = contacts.iter();
            let index = known.find_map(|(index, known)| (known.site == peer.site).then_some(index));
            let index = index.ok_or_else(|| unknown(&peer.site, is_member))?;
            Ok(Hello {
                site: config.site.clone(),
                nonce: [0; NONCE_BYTES],
                session: contacts[index].session,
                lane: peer.lane,
            })
        };
        match handshake.advance(&config.key, answer) {
            Ok(false) => {}
            Ok(true) => self.lane_up(driver, key),
            Err(Failure { kind, why }) => self.end_handshake(driver, key, kind, &why),
        }
    }

    /// A stranger shows a ticket: it wants to reach another gateway, not this one.
    fn on_stranger_with_ticket(&mut self, key: HandshakeKey, ticket: Ticket) {
        let Some(handshake) = self.take_handshake(key) else {
            return;
        };
        let from = handshake.address;
        if let Some(socket) = handshake.carrier.into_tcp() {
            let event = TunnelsEvent::Ticket { ticket, socket, from };
            self.events.push_back(event);
        }
    }

    pub(in crate::tunnels) fn relay_visit_ended(
        &mut self,
        visit: RelayVisit,
        dialled: Option<(PeerIndex, LaneNumber)>,
        why: String,
    ) {
        let event = TunnelsEvent::RelayVisitFailed { visit, dialled, why };
        self.events.push_back(event);
    }

    pub(in crate::tunnels) fn end_handshake(
        &mut self,
        driver: &mut Driver,
        key: HandshakeKey,
        kind: &str,
        why: &str,
    ) {
        let Some(handshake) = self.take_handshake(key) else {
            return;
        };
        let placed = format!("{}: {why}", handshake.address);
        match (handshake.visit, handshake.dialled) {
            (Some(visit), dialled) => self.relay_visit_ended(visit, dialled, placed),
            (None, Some((index, lane))) => {
                if lane != LaneNumber::QUIC {
                    self.on_unanswered_dial(driver, index, kind == NOBODY_LISTENS);
                }
                self.dial_failed(index, lane, &placed);
            }
            (None, None) if [NOT_TOLD, LEFT].contains(&kind) => {
                driver.log.put_off(kind, handshake.address.ip(), why);
            }
            (None, None) => driver.log.refuse(kind, handshake.address.ip(), why),
        }
    }

    fn lane_up(&mut self, driver: &mut Driver, key: HandshakeKey) {
        let Some(handshake) = self.take_handshake(key) else {
            return;
        };
        let Handshake {
            carrier,
            address,
            dialled,
            visit,
            own,
            peer: Some(peer),
            received,
            ..
        } = handshake
        else {
            return;
        };
        let vouched = self.is_expected(visit.as_ref(), dialled, &peer.site);
        let vouched = vouched.and_then(|()| self.vouch(&carrier.shown(), &peer.site));
        if let Err(why) = vouched {
            return match (visit, dialled) {
                (Some(visit), dialled) => self.relay_visit_ended(visit, dialled, format!("{address}: {why}")),
                (None, Some((index, lane))) => self.dial_failed(index, lane, &format!("{address}: {why}")),
                (None, None) => driver.log.refuse("certificate", address.ip(), why),
            };
        }
        // Only a peer was answered or dialled.
        let Some(index) = self.peers.of(&peer.site) else {
            return;
        };
        let number = LaneNumber(peer.lane.into());
        let through = visit.map(|visit| visit.through);
        match (&through, dialled) {
            (Some(_), Some(_)) => self
                .events
                .push_back(TunnelsEvent::MetAtRelay { peer: index, number }),
            (None, Some(_)) => self.dial_ended(index, number),
            _ => {}
        }
        if own.session != self.peers[index].session {
            // The tunnel ended while the handshake was in progress: the far side has to see the new session.
            return self.bring_back(driver, index, number, through.as_ref());
        }
        let came = Came {
            address,
            dialled: dialled.is_some(),
            through,
        };
        let Some(pair) = self.find_pair(driver, index, &own, &peer, &came) else {
            return;
        };
        self.install_lane(driver, carrier, pair, number, came, &received);
    }

    /// Whether a gateway belongs to the site that was dialled, or met at a relay.
    fn is_expected(
        &self,
        visit: Option<&RelayVisit>,
        dialled: Option<(PeerIndex, LaneNumber)>,
        site: &str,
    ) -> Result<(), TextError> {
        let (index, place) = match (visit, dialled) {
            (Some(visit), _) => (visit.peer, "that came there "),
            (None, Some((index, _))) => (index, "there "),
            (None, None) => return Ok(()),
        };
        match self.peers[index].site == site {
            true => Ok(()),
            false => Err(format!("the gateway {place}is of site {site}").into()),
        }
    }

    fn install_lane(
        &mut self,
        driver: &mut Driver,
        mut carrier: Carrier,
        pair: PairKey,
        number: LaneNumber,
        came: Came,
        received: &[u8],
    ) {
        let Came {
            address,
            dialled,
            through,
        } = came;
        let is_direct = through.is_none();
        let congestion_control = match carrier.tcp() {
            Some(socket) => prepare(socket, &driver.config.congestion_control),
            None => "own".to_owned(),
        };
        let key = self.lanes.vacant_key();
        let token = Class::Lane.token(key.0);
        if let Err(error) = carrier.register(driver.registry(), token, true) {
            return driver.say(format_args!("lane {number} at {address}: {error}"));
        }
        self.own_connection(&mut carrier, token);
        let mut lane = Lane::new(carrier, pair, number, address, dialled, received, driver.now);
        lane.congestion_control = congestion_control;
        lane.through = through;
        self.recall_path(driver, &mut lane);
        let is_favoured = lane.carrier.quic().is_some();
        self.lanes.insert(lane);
        self.begin_training(driver, key);
        self.join_lane(driver, pair, number, key, address);
        if let Some(pair) = self.pairs.get_mut(pair).filter(|_| is_favoured) {
            pair.tunnel.favour(number.0);
        }
        if is_direct {
            self.retire_relayed(driver, pair);
        }
        // What arrived with the handshake waits there, and more may have arrived since.
        self.unread.push(key);
    }

    /// Checks that the far end of a connection is the gateway of this site by its certificate, if there are
    /// certificates.
    fn vouch(&self, shown: &[CertificateDer<'_>], site: &str) -> Result<(), TextError> {
        let Some(trust) = &self.trust else {
            return Ok(());
        };
        let checked = trust.check(shown, &Expect::Site(site.to_owned()));
        checked.map(drop).map_err(TextError::of)
    }
}

/// Why a site that dials gets no lane: if a broker names the sites, it may be about to name this one.
fn unknown(site: &str, is_member: bool) -> Failure {
    match is_member {
        true => Failure {
            kind: NOT_TOLD,
            why: format!("site {site} dials before the broker has told of it; it dials again"),
        },
        false => Failure {
            kind: "unknown-site",
            why: format!("site {site} is not a [[peer]] of this gateway"),
        },
    }
}
