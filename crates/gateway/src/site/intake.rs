//! Connections from shims, until their preface has been read and judged.

use crate::base::{Base, Bundle};
use crate::inherited::{InheritError, descriptor};
use crate::keys::{IntakeKey, PairKey};
use crate::membership::directory::Whereabouts;
use crate::site::SiteSide;
use crate::site::leg::Stage;
use crate::site::socket::{Socket, keep_urgent_data};
use crate::sys::source::Class;
use crate::sys::timers::SiteDeadline;
use causeway_service::Admission;
use causeway_service::admission::network_of;
use causeway_tunnel::{OpenRequest, Target};
use causeway_wire::preface::{Claim, Decoded, FIXED_BYTES, MAX_BYTES, canonical};
use causeway_wire::question::Question;
use causeway_wire::{Preface, Reason, Sender, Verdict, Wants};
use mio::Interest;
use mio::net::TcpStream;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::RawFd;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// How long a preface may take. A shim sends it at the moment when it connects; this much is for a node that
/// is swapping. Too short a time ends a job. A stranger that waits longer occupies one of many places, which
/// others may take from it.
const PREFACE_DEADLINE: Duration = Duration::from_secs(15);

/// Most connections whose preface is not read yet. With one more, the address that has most of them loses its
/// oldest one.
const AT_MOST: usize = 4096;

/// Connections on their way in may use one in this many of the files that this process may open: streams,
/// lanes and commands need the others.
const SHARE_OF_FILES: usize = 8;

/// Nodes with hundreds of processes, each of which may connect to a thousand others at once, are not a flood:
/// one address may use all the room that others leave.
pub(crate) fn admission(files: usize) -> Admission<IpAddr, IntakeKey> {
    let most = AT_MOST.min(files / SHARE_OF_FILES);
    Admission::new(most, most)
}

pub(crate) struct Intake {
    socket: TcpStream,
    peer: SocketAddr,
    /// Whether the process has been sent the gateway's proof.
    is_answered: bool,
    generation: u64,
    bytes: [u8; MAX_BYTES],
    filled: usize,
    needed: usize,
}

/// Why a connection is turned away.
struct Refusal {
    kind: &'static str,
    why: String,
    reason: Reason,
    wants: Wants,
}

impl Refusal {
    fn new(kind: &'static str, reason: Reason, why: String, wants: Wants) -> Refusal {
        Refusal {
            kind,
            why,
            reason,
            wants,
        }
    }
}

impl AsFd for Intake {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl SiteSide {
    /// Takes over connections whose preface a predecessor had not read completely.
    pub(in crate::site) fn inherit_intakes(
        &mut self,
        base: &mut Base<'_>,
        kept: Vec<KeptIntake>,
    ) -> Result<(), InheritError> {
        for kept in kept {
            let socket = TcpStream::from_std(descriptor(kept.descriptor)?.into());
            self.begin_intake(base, socket, kept.peer, kept.is_answered);
        }
        Ok(())
    }

    pub(in crate::site) fn on_shim_connection(
        &mut self,
        base: &mut Base<'_>,
        socket: TcpStream,
        peer: SocketAddr,
    ) {
        self.begin_intake(base, socket, peer, false);
    }

    /// Begins to read a preface; `is_answered`: the proof that a process waits for was sent before.
    fn begin_intake(
        &mut self,
        base: &mut Base<'_>,
        mut socket: TcpStream,
        peer: SocketAddr,
        is_answered: bool,
    ) {
        if let Some((_, key)) = self.intake_admission.one_too_many(&network_of(peer.ip())) {
            let why = "too many connections without a preface; the oldest of who has most of them ends";
            self.turn_away(base, key, "intakes", why.to_owned());
        }
        let _ = socket.set_nodelay(true);
        let _ = keep_urgent_data(&socket2::SockRef::from(&socket));
        let generation = base.driver.next_generation();
        let key = self.intakes.vacant_key();
        let interest = Interest::READABLE | Interest::WRITABLE;
        if let Err(error) = base
            .registry()
            .register(&mut socket, Class::Intake.token(key.0), interest)
        {
            return base.refuse("register", peer.ip(), error);
        }
        let intake = Intake {
            socket,
            peer,
            is_answered,
            generation,
            bytes: [0; MAX_BYTES],
            filled: 0,
            needed: FIXED_BYTES,
        };
        self.intakes.insert(intake);
        self.intake_admission
            .enter(network_of(peer.ip()), generation, key);
        base.set_deadline(PREFACE_DEADLINE, SiteDeadline::Intake(key, generation));
        self.on_intake(base, key, false);
    }

    /// Peeks at what has arrived of a preface. It stays in the socket until the next worker would know its
    /// stream, too: if a worker is killed before that, it leaves the connection as it was.
    pub(in crate::site) fn on_intake(&mut self, base: &mut Base<'_>, key: IntakeKey, has_ended: bool) {
        while let Some(intake) = self.intakes.get_mut(key) {
            let needed = intake.needed;
            match intake.socket.peek(&mut intake.bytes[..needed]) {
                Ok(count) if count < needed && (count == 0 || has_ended) => {
                    return self.turn_away(
                        base,
                        key,
                        "preface-cut",
                        "closed before its preface was complete".into(),
                    );
                }
                Ok(count) => {
                    intake.filled = count;
                    if count < FIXED_BYTES {
                        return;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return self.turn_away(base, key, "preface-cut", error.to_string()),
            }
            match Preface::decode(&intake.bytes[..intake.filled]) {
                Ok(Decoded::Incomplete { needed }) if needed > intake.needed => intake.needed = needed,
                Ok(Decoded::Incomplete { .. }) => return,
                Ok(Decoded::Complete { claim, .. }) => return self.admit(base, key, &claim),
                Ok(Decoded::Question { question, .. }) => return self.answer_question(base, key, &question),
                Err(error) => return self.turn_away(base, key, "bad-preface", error.to_string()),
            }
        }
    }

    pub(in crate::site) fn on_intake_deadline(
        &mut self,
        base: &mut Base<'_>,
        key: IntakeKey,
        generation: u64,
    ) {
        if self
            .intakes
            .get(key)
            .is_some_and(|intake| intake.generation == generation)
        {
            self.turn_away(
                base,
                key,
                "preface-late",
                format!("no complete preface within {PREFACE_DEADLINE:?}"),
            );
        }
    }

    fn turn_away(&mut self, base: &mut Base<'_>, key: IntakeKey, kind: &str, why: String) {
        if let Some(mut intake) = self.take_intake(key) {
            take_off(&mut intake.socket, intake.filled);
            base.refuse(kind, intake.peer.ip(), why);
        }
    }

    fn take_intake(&mut self, key: IntakeKey) -> Option<Intake> {
        let intake = self.intakes.try_remove(key)?;
        self.intake_admission
            .leave(&network_of(intake.peer.ip()), intake.generation);
        Some(intake)
    }

    fn admit(&mut self, base: &mut Base<'_>, key: IntakeKey, claim: &Claim) {
        let Some(intake) = self.take_intake(key) else {
            return;
        };
        let (peer, length) = (intake.peer, intake.filled);
        if let Err((refusal, socket)) = self.try_admit(base, intake, claim) {
            base.refuse(refusal.kind, peer.ip(), refusal.why);
            let Some(mut socket) = socket else { return };
            take_off(&mut socket, length);
            match refusal.wants {
                Wants::Verdict => {
                    // This fits into the empty buffer of a fresh socket; a shim that is gone needs no answer.
                    let _ = socket.write(&Verdict::Failed(refusal.reason).encode());
                }
                Wants::UrgentCode => {
                    // The socket was registered while its preface was arriving.
                    let _ = base.registry().deregister(&mut socket);
                    self.refuse_beside(base, socket, refusal.reason);
                }
                Wants::Nothing => {
                    let _ = socket2::SockRef::from(&socket).set_linger(Some(Duration::ZERO));
                }
            }
        }
    }

    /// Says whose gateway this is, but only to nodes of this site and for a known job. Others could pass the
    /// answer on to nodes of another site, as if they were the gateway there.
    fn answer_question(&mut self, base: &mut Base<'_>, key: IntakeKey, question: &Question) {
        let Some(mut intake) = self.take_intake(key) else {
            return;
        };
        take_off(&mut intake.socket, intake.filled);
        let peer = intake.peer.ip().to_canonical();
        if !base.directory().own_site().has_node(peer) {
            let why = "asks whose gateway this is, and is no node of this site";
            return base.refuse("foreign-source", peer, why);
        }
        // Each job is tried: this takes some ten nanoseconds for each of the jobs that sites may have.
        let mut tokens = base.jobs().iter().map(|(token, _)| token);
        let Some(token) = tokens.find(|token| question.is_of(token)) else {
            drop(tokens);
            let why = "asks whose gateway this is with an unknown job token";
            return base.refuse("unknown-token", peer, why);
        };
        // This fits into the empty buffer of a fresh socket; a node that is gone needs no answer.
        let _ = intake.socket.write(&question.answer(token, &base.config().site));
    }

    fn try_admit(
        &mut self,
        base: &mut Base<'_>,
        intake: Intake,
        claim: &Claim,
    ) -> Result<(), (Refusal, Option<TcpStream>)> {
        let Intake {
            mut socket,
            peer,
            is_answered,
            filled,
            ..
        } = intake;
        let Some(token) = known_job(base, claim) else {
            let why = format!("connection to {} with an unknown job token", claim.destination);
            let refusal = Refusal::new("unknown-token", Reason::Denied, why, claim.wants);
            return Err((refusal, Some(socket)));
        };
        // Otherwise, somebody who listens where no gateway runs could pass a process's preface on to this
        // gateway, and its proof back.
        if canonical(self.in_grid(base, claim.source)) != canonical(self.in_grid(base, peer)) {
            let why = format!("claims to be {}, but comes from {peer}", claim.source);
            let refusal = Refusal::new("false-source", Reason::Denied, why, claim.wants);
            return Err((refusal, Some(socket)));
        }
        // Sent whatever happens to the connection: the process sends nothing to a peer that does not prove
        // that it knows the job. This fits into the empty buffer of a fresh socket; a socket that cannot be
        // written to is broken, and its end is reported.
        if !is_answered {
            let _ = socket.write(&claim.answer(Sender::Gateway, &token));
        }
        let pair_key = match judge(base, claim, token) {
            Ok(pair_key) => pair_key,
            Err(refusal) => return Err((refusal, Some(socket))),
        };
        let Claim {
            source,
            destination,
            wants,
            ..
        } = *claim;
        let source = in_family_of(self.in_grid(base, source), destination);
        let request = OpenRequest {
            token,
            target: Target::Connection { source, destination },
        };
        let stage = stage_of(wants);
        match self.open_stream(base, pair_key, &request, Socket::accepted(socket), stage) {
            Ok(leg) => {
                self.legs[leg].preface = filled;
                Ok(())
            }
            Err(reason) => {
                let (kind, why) = ("exhausted", format!("stream to {destination}: {}", reason.text()));
                Err((Refusal::new(kind, reason, why, wants), None))
            }
        }
    }

    /// An address of this site, as the grid knows it. A shim already uses that form; `causeway connect` uses
    /// the address that its host has.
    fn in_grid(&self, base: &Base<'_>, own: SocketAddr) -> SocketAddr {
        SocketAddr::new(base.directory().own_site().in_grid(own.ip()), own.port())
    }
}

/// The pair with the destination's site, if the preface may have what it asks for.
fn judge(base: &Base<'_>, claim: &Claim, token: causeway_wire::Token) -> Result<PairKey, Refusal> {
    let wants = claim.wants;
    let refuse = |kind, reason, why| Err(Refusal::new(kind, reason, why, wants));
    let destination = claim.destination;
    let site = match base.directory().site_of(destination.ip()) {
        Whereabouts::At(site) => site,
        Whereabouts::Here => {
            return refuse(
                "own-site",
                Reason::Denied,
                format!("{destination} is in this site: connect to it directly"),
            );
        }
        Whereabouts::Nowhere => {
            return refuse(
                "unknown-destination",
                Reason::Unreachable,
                format!("{destination} is in no site of the grid"),
            );
        }
    };
    match way_to(base, (destination, &token), &site) {
        Ok(pair_key) => Ok(pair_key),
        Err((kind, reason, why)) => refuse(kind, reason, why),
    }
}

/// The pair with the destination's site, which takes part in the job; otherwise kind and reason of the
/// refusal.
fn way_to(
    base: &Base<'_>,
    (destination, token): (SocketAddr, &causeway_wire::Token),
    site: &str,
) -> Result<PairKey, (&'static str, Reason, String)> {
    let refuse = |kind, reason, why: &str| Err((kind, reason, format!("connection to {destination}: {why}")));
    let Some(pair_key) = base.tunnels.pairs().key_of(site) else {
        return refuse(
            "no-tunnel",
            Reason::NoTunnel,
            &format!("no tunnel to site {site}"),
        );
    };
    let job = base.jobs().get(token);
    if !job.is_some_and(|job| job.takes_part(site)) {
        let why = format!("site {site} takes no part in its job");
        return refuse("no-part", Reason::Denied, &why);
    }
    if base
        .tunnels
        .pairs()
        .get(pair_key)
        .is_none_or(|pair| !pair.may_open())
    {
        let why = format!("site {site} takes none, and as many as may be wait for it");
        return refuse("exhausted", Reason::Exhausted, &why);
    }
    Ok(pair_key)
}

/// The job of a preface, if it is known and the preface proves that it belongs to it.
fn known_job(base: &Base<'_>, claim: &Claim) -> Option<causeway_wire::Token> {
    let token = base.jobs().numbered(&claim.number())?;
    claim.proven(Sender::Process, &token).map(|preface| preface.token)
}

/// The source in its destination's family. A mapped source comes from an IPv4 gateway that stands in for an
/// IPv6 one; the address that it is translated to must be an IPv6 one, too.
fn in_family_of(source: SocketAddr, destination: SocketAddr) -> SocketAddr {
    match (source, destination) {
        (SocketAddr::V4(source), SocketAddr::V6(_)) => {
            SocketAddr::new(source.ip().to_ipv6_mapped().into(), source.port())
        }
        (source, _) => source,
    }
}

/// The stage in which a connection begins, depending on how its process wants to be told.
fn stage_of(wants: Wants) -> Stage {
    match wants {
        Wants::Verdict => Stage::Awaiting,
        Wants::UrgentCode => Stage::Asked,
        Wants::Nothing => Stage::Open,
    }
}

/// Takes a preface off a socket that is about to be closed. Closing a socket with unread bytes would reset
/// it, and what was written to it last could be lost.
fn take_off(socket: &mut TcpStream, length: usize) {
    let mut bytes = [0; MAX_BYTES];
    let _ = socket.read(&mut bytes[..length.min(MAX_BYTES)]);
}

/// A connection whose preface has not been taken off it.
pub(crate) struct KeptIntake {
    pub(crate) descriptor: RawFd,
    pub(crate) peer: SocketAddr,
    pub(crate) is_answered: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn source_and_destination_of_a_stream_are_of_one_family() {
        let address = |text: &str| text.parse::<SocketAddr>().unwrap();
        for (source, destination, expected) in [
            ("[::ffff:10.1.0.1]:7", "[fd00:2::1]:9", "[::ffff:10.1.0.1]:7"),
            ("100.64.0.1:7", "[fd00:2::1]:9", "[::ffff:100.64.0.1]:7"),
            ("100.64.0.1:7", "100.64.1.1:9", "100.64.0.1:7"),
            ("[fd00:1::1]:7", "[fd00:2::1]:9", "[fd00:1::1]:7"),
        ] {
            assert_eq!(
                in_family_of(address(source), address(destination)),
                address(expected)
            );
        }
    }
}
