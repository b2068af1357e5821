//! The relay's part: lets two gateways meet with tickets, and joins their connections.
//!
//! Only a gateway that has a tunnel with this one is given tickets, and only for a site that has one, too. A
//! stranger that shows anything else is refused like any other; until a ticket is complete and right, a
//! connection counts as a stranger's.

use super::digest::digest;
use super::places::{self, Asked};
use super::splice::KeptWay;
use super::splice::{Direction, KEPT_BYTES};
use crate::base::{Base, Bundle};
use crate::inherited::{InheritError, descriptor};
use crate::keys::{PairKey, PeerIndex, SpliceKey, Table};
use crate::sys::socket;
use crate::sys::source::Class;
use crate::sys::timers::TraversalDeadline;
use crate::traversal::{KeptTraversal, Traversal};
use crate::tunnels::carrier;
use crate::tunnels::message::{GatewayToGateway, RelayRefusal};
use causeway_tunnel::ticket::{MET, TICKET_BYTES, Ticket};
use mio::Interest;
use mio::net::TcpStream;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::io::{self, ErrorKind, Write};
use std::net::Shutdown;
use std::os::fd::RawFd;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::{Duration, Instant};

/// How much may wait unsent in the kernel at either end: bytes that wait at the sending gateway instead can
/// still be overtaken by small frames.
const UNSENT: u32 = 128 * 1024;

/// How long tickets are valid: both gateways dial at once, and their handshakes may take no longer.
const MEETING: Duration = Duration::from_secs(10);

/// The pause between log lines about carrying: a network that ends every connection at once must not fill the
/// log.
const SAY_EVERY: Duration = Duration::from_secs(1);

/// How long a connection may be idle. A lane expects a sign of life every five seconds, unless it was told to
/// be more patient (`lane_timeout`).
const IDLE: Duration = Duration::from_secs(3600);

/// Connections that this gateway carries for other sites.
#[derive(Default)]
pub(crate) struct RelayServer {
    splices: Table<SpliceKey, Splice>,
    /// How often sites have asked.
    asked: Asked,
    /// The end of a splice that a ticket is for, by the ticket's digest.
    tickets: HashMap<Ticket, (SpliceKey, usize)>,
    /// Splices that had more to read than their turn allowed.
    pub(crate) unread: Vec<SpliceKey>,
    space: Vec<u8>,
    pub(crate) carried_bytes: u64,
    /// Whether other sites are to be told what is carried, and when they were last told.
    pub(crate) tells: bool,
    pub(crate) told_at: Option<Instant>,
    /// When the log last said that something is carried.
    said_at: Option<Instant>,
}

struct Splice {
    generation: u64,
    /// The sites at both ends; the first one asked, under this number.
    sites: [String; 2],
    ask: u64,
    /// Tickets that were given, whether they were shown or not; a predecessor's tickets are invalid.
    tickets: Vec<Ticket>,
    ends: [Option<TcpStream>; 2],
    met: bool,
    /// The direction from the first end to the second, and the opposite one.
    ways: [Direction; 2],
    moved_at: Instant,
}

impl RelayServer {
    /// Whether a site may now ask to meet another one.
    fn may_ask(&mut self, from: &str, to: &str, files: usize, now: Instant) -> Result<(), RelayRefusal> {
        let taken = self.splices.iter();
        let taken = taken.map(|(_, splice)| (splice.sites[0].as_str(), splice.met));
        if !places::has_room_for(taken, from, files) {
            return Err(RelayRefusal::Full);
        }
        match self.asked.may(from, to, now) {
            true => Ok(()),
            false => Err(RelayRefusal::TooOften),
        }
    }

    /// Lists the splices that have this site at either end, whether the two ends have met or not.
    fn splices_at(&self, site: &str) -> Vec<SpliceKey> {
        let found = self.splices.iter();
        let found = found.filter(|(_, splice)| splice.sites.iter().any(|end| end == site));
        found.map(|(key, _)| key).collect()
    }

    /// Number of connections carried or awaited.
    pub(crate) fn places_taken(&self) -> usize {
        self.splices.len()
    }

    /// Number of connections whose ends have met.
    pub(crate) fn carrying(&self) -> usize {
        self.splices.iter().filter(|(_, splice)| splice.met).count()
    }
}

impl Splice {
    /// Gathers what is handed over of it: `None` if its ends have not met, because they ask anew.
    fn keep(&self) -> Option<KeptSplice> {
        let [Some(one), Some(other)] = &self.ends else {
            return None;
        };
        self.met.then(|| KeptSplice {
            generation: self.generation,
            sites: self.sites.clone(),
            ends: [one.as_raw_fd(), other.as_raw_fd()],
            ways: [self.ways[0].keep(), self.ways[1].keep()],
        })
    }
}

impl RelayServer {
    pub(crate) fn keep(&self) -> Vec<(usize, KeptSplice)> {
        let splices = self.splices.iter();
        splices
            .filter_map(|(key, splice)| Some((key.0, splice.keep()?)))
            .collect()
    }

    /// Lists what [`RelayServer::keep`] names by number.
    pub(crate) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let met = self.splices.iter().filter(|(_, splice)| splice.met);
        met.flat_map(|(_, splice)| splice.ends.iter().flatten().map(AsFd::as_fd))
    }
}

impl Traversal {
    /// Goes on carrying what a predecessor carried.
    ///
    /// # Errors
    /// A descriptor is invalid, or cannot be registered.
    pub(crate) fn inherit(&mut self, base: &mut Base<'_>, kept: KeptTraversal) -> Result<(), InheritError> {
        self.relay.carried_bytes = kept.carried_bytes;
        let now = base.now();
        let end = |number| Ok::<_, InheritError>(Some(TcpStream::from_std(descriptor(number)?.into())));
        let inherit = |(key, kept): (usize, KeptSplice)| {
            let [one, other] = kept.ends;
            let splice = Splice {
                generation: kept.generation,
                sites: kept.sites,
                ask: 0,
                tickets: Vec::new(),
                ends: [end(one)?, end(other)?],
                met: true,
                ways: kept.ways.map(Direction::inherit),
                moved_at: now,
            };
            Ok::<_, InheritError>((key, splice))
        };
        self.relay.splices = kept.splices.into_iter().map(inherit).collect::<Result<_, _>>()?;
        let interest = Interest::READABLE | Interest::WRITABLE;
        for (key, splice) in self.relay.splices.iter_mut() {
            for (end, socket) in splice.ends.iter_mut().flatten().enumerate() {
                let token = Class::Splice.token(2 * key.0 + end);
                base.registry().register(socket, token, interest)?;
            }
            base.set_deadline(IDLE, TraversalDeadline::Splice(key, splice.generation));
            // The kernel has reported events to the predecessor that it does not report again.
            self.relay.unread.push(key);
        }
        if !self.relay.unread.is_empty() {
            self.relay.space.resize(KEPT_BYTES, 0);
        }
        Ok(())
    }

    /// A site wants to meet another one here.
    pub(super) fn on_relay_ask(&mut self, base: &mut Base<'_>, asker: PairKey, to: &str, ask: u64) {
        if let Err(why) = self.arrange(base, asker, to, ask) {
            base.tell(asker, GatewayToGateway::RelayNo { id: ask, why });
        }
    }

    fn arrange(
        &mut self,
        base: &mut Base<'_>,
        asker: PairKey,
        to: &str,
        ask: u64,
    ) -> Result<(), RelayRefusal> {
        if !base.config().relay {
            return Err(RelayRefusal::NoRelay);
        }
        let Some(from) = base.tunnels.pairs().get(asker).map(|pair| pair.site().to_owned()) else {
            return Ok(());
        };
        let far = base.tunnels.pairs().key_of(to).filter(|far| *far != asker);
        let far = far.filter(|far| base.tunnels.ways().has_direct_lane(*far));
        let far = far.ok_or(RelayRefusal::NoTunnel)?;
        self.relay.may_ask(&from, to, base.driver.files, base.now())?;
        let mut bytes = [[0; TICKET_BYTES]; 2];
        if let Err(error) = getrandom::fill(bytes.as_flattened_mut()) {
            let text = format_args!("no random numbers for tickets: {error}");
            base.refuse("relay", &from, text);
            return Err(RelayRefusal::Failed);
        }
        let tickets = bytes.map(Ticket);
        let shown = tickets.map(|ticket| digest(&ticket));
        let generation = base.driver.next_generation();
        let key = self.relay.splices.insert(Splice {
            generation,
            sites: [from.clone(), to.to_owned()],
            ask,
            tickets: shown.to_vec(),
            ends: [None, None],
            met: false,
            ways: Default::default(),
            moved_at: base.now(),
        });
        for (end, ticket) in shown.into_iter().enumerate() {
            self.relay.tickets.insert(ticket, (key, end));
        }
        base.set_deadline(MEETING, TraversalDeadline::Splice(key, generation));
        self.tell_offer_soon(base);
        let go = GatewayToGateway::RelayGo {
            id: ask,
            ticket: tickets[0].to_hex(),
            beyond_microseconds: base.tunnels.ways().least_rtt(far).unwrap_or(0),
        };
        let come = GatewayToGateway::RelayCome {
            meeting: generation,
            from,
            ticket: tickets[1].to_hex(),
            beyond_microseconds: base.tunnels.ways().least_rtt(asker).unwrap_or(0),
        };
        base.tell(asker, go);
        base.tell(far, come);
        Ok(())
    }

    /// A site cannot come to a meeting.
    pub(super) fn on_relay_cannot(
        &mut self,
        base: &mut Base<'_>,
        site: &str,
        meeting: u64,
        why: RelayRefusal,
    ) {
        let is_it = |splice: &Splice| splice.generation == meeting && splice.sites[1] == site && !splice.met;
        let found = { self.relay.splices.iter() }.find(|(_, splice)| is_it(splice));
        let Some((key, from, id)) = found.map(|(key, splice)| (key, splice.sites[0].clone(), splice.ask))
        else {
            return;
        };
        self.end_splice(base, key);
        if let Some(pair) = base.tunnels.pairs().key_of(&from) {
            base.tell(pair, GatewayToGateway::RelayNo { id, why });
        }
    }

    /// Takes a connection that shows a ticket; gives it back if the ticket is not valid.
    pub(in crate::traversal) fn on_ticket(
        &mut self,
        base: &mut Base<'_>,
        ticket: Ticket,
        mut socket: TcpStream,
    ) -> bool {
        // A ticket is for one use, whatever the outcome.
        let Some((key, end)) = self.relay.tickets.remove(&ticket) else {
            return false;
        };
        carrier::prepare(&socket, &base.config().congestion_control);
        // An option that cannot be set costs time and nothing else.
        let _ = (
            socket.set_nodelay(true),
            socket::set_unsent_low_water(&socket, UNSENT),
        );
        let token = Class::Splice.token(2 * key.0 + end);
        let interest = Interest::READABLE | Interest::WRITABLE;
        let registry = base.registry();
        if let Err(error) = registry.reregister(&mut socket, token, interest) {
            base.say(format_args!("a connection of others: {error}"));
            self.end_splice(base, key);
            return true;
        }
        let Some(splice) = self.relay.splices.get_mut(key) else {
            return true;
        };
        splice.ends[end] = Some(socket);
        self.join_ends(base, key);
        true
    }

    /// Lets both gateways begin, if both have come.
    fn join_ends(&mut self, base: &mut Base<'_>, key: SpliceKey) {
        let Some(splice) = self.relay.splices.get_mut(key) else {
            return;
        };
        let [Some(one), Some(other)] = &splice.ends else {
            return;
        };
        let told = [one, other].map(|mut socket| socket.write(&[MET]));
        if !told.iter().all(|told| matches!(told, Ok(1))) {
            return self.end_splice(base, key);
        }
        splice.met = true;
        splice.moved_at = base.now();
        let [one, other] = &splice.sites;
        let said_at = self.relay.said_at;
        if said_at.is_none_or(|at| base.now().saturating_duration_since(at) > SAY_EVERY) {
            self.relay.said_at = Some(base.now());
            base.say(format_args!("carries a connection between {one} and {other}"));
        }
        self.relay.space.resize(KEPT_BYTES, 0);
        self.on_splice(base, key);
    }

    /// Something may move between the ends of a splice.
    pub(in crate::traversal) fn on_splice(&mut self, base: &mut Base<'_>, key: SpliceKey) {
        let Some(splice) = self.relay.splices.get_mut(key).filter(|splice| splice.met) else {
            return;
        };
        match splice.carry(&mut self.relay.space) {
            Ok((bytes, is_unread)) => {
                self.relay.carried_bytes += bytes;
                if bytes > 0 {
                    splice.moved_at = base.now();
                }
                if is_unread {
                    self.relay.unread.push(key);
                } else if splice.ways.iter().all(Direction::is_over) {
                    self.end_splice(base, key);
                }
            }
            // Both ends see the error, as they would without this gateway.
            Err(_) => self.end_splice(base, key),
        }
    }

    /// Two gateways that were to meet have not, or a splice has been idle for a long time.
    pub(in crate::traversal) fn on_splice_deadline(
        &mut self,
        base: &mut Base<'_>,
        key: SpliceKey,
        generation: u64,
    ) {
        let Some(splice) = self
            .relay
            .splices
            .get(key)
            .filter(|splice| splice.generation == generation)
        else {
            return;
        };
        let idle = base.now().saturating_duration_since(splice.moved_at);
        if splice.met && idle < IDLE {
            return base.set_deadline(IDLE - idle, TraversalDeadline::Splice(key, generation));
        }
        if !splice.met {
            let [one, other] = &splice.sites;
            let missing = [(one, 0), (other, 1)].map(|(site, end)| (site, splice.ends[end].is_none()));
            let missing: Vec<&str> = missing
                .iter()
                .filter(|(_, is)| *is)
                .map(|(site, _)| site.as_str())
                .collect();
            let text = format!(
                "{one} and {other} did not meet here within {MEETING:?}: {} did not come",
                missing.join(" and ")
            );
            base.refuse("relay-meeting", format!("{one} and {other}"), text);
        }
        self.end_splice(base, key);
    }

    /// A site is no longer a member: nothing is carried for it, whatever the site at the other end thinks.
    pub(in crate::traversal) fn end_splices_of(&mut self, base: &mut Base<'_>, index: PeerIndex) {
        let site = base.site_at(index).to_owned();
        for key in self.relay.splices_at(&site) {
            self.end_splice(base, key);
        }
        self.relay.asked.forget(&site);
    }

    /// Closes both ends; tickets not yet shown become invalid.
    fn end_splice(&mut self, base: &mut Base<'_>, key: SpliceKey) {
        let Some(splice) = self.relay.splices.try_remove(key) else {
            return;
        };
        self.tell_offer_soon(base);
        for ticket in splice.tickets {
            self.relay.tickets.remove(&ticket);
        }
        for mut socket in splice.ends.into_iter().flatten() {
            let _ = base.registry().deregister(&mut socket);
        }
    }
}

impl Splice {
    /// Moves what there is in both directions; returns how many bytes, and whether there may be more.
    fn carry(&mut self, space: &mut [u8]) -> io::Result<(u64, bool)> {
        let [Some(one), Some(other)] = &self.ends else {
            return Ok((0, false));
        };
        let (mut bytes, mut is_unread) = (0, false);
        for (way, from, to) in [(0, one, other), (1, other, one)] {
            let turn = self.ways[way].carry(from, to, space)?;
            if turn.finishes {
                match to.shutdown(Shutdown::Write) {
                    Err(error) if error.kind() != ErrorKind::NotConnected => return Err(error),
                    _ => {}
                }
            }
            bytes += turn.bytes;
            is_unread |= turn.is_unread;
        }
        Ok((bytes, is_unread))
    }
}

/// A connection of two other sites, which have met.
#[derive(Serialize, Deserialize)]
pub(crate) struct KeptSplice {
    pub(crate) generation: u64,
    pub(crate) sites: [String; 2],
    pub(crate) ends: [RawFd; 2],
    /// The direction from the first end to the second, and the opposite one.
    pub(crate) ways: [KeptWay; 2],
}

#[cfg(test)]
mod tests {
    use super::*;

    fn splice(from: &str, to: &str) -> Splice {
        Splice {
            generation: 0,
            sites: [from.to_owned(), to.to_owned()],
            ask: 0,
            tickets: Vec::new(),
            ends: [None, None],
            met: true,
            ways: Default::default(),
            moved_at: Instant::now(),
        }
    }

    #[test]
    fn what_is_carried_for_a_site_is_found_at_whichever_end_it_is() {
        let mut server = RelayServer::default();
        let first = server.splices.insert(splice("mallory", "nancy"));
        let second = server.splices.insert(splice("nancy", "rennes"));
        assert_eq!(server.splices_at("mallory"), [first]);
        assert_eq!(server.splices_at("nancy"), [first, second]);
        assert_eq!(server.splices_at("lyon"), []);
    }
}
