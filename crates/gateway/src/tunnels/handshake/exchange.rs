//! What the two ends of a lane send before it is up: in some cases a ticket, then hello, and the proof that
//! both have the grid's key.
//!
//! The proof keeps strangers out. What follows is encrypted and protected only under TLS (which is used
//! unless `[grid]` says `insecure`); the proof then also covers the session's certificate.

use crate::keys::{LaneNumber, PeerIndex};
use crate::tunnels::carrier::Carrier;
use crate::tunnels::relay_visit::RelayVisit;
use crate::tunnels::tls::Binding;
use causeway_tunnel::hello::{self, Hello, PROOF_BYTES};
use causeway_tunnel::ticket::{Opening, PREFACE_BYTES, Ticket};
use causeway_wire::TextError;
use hmac::{Hmac, Mac};
use sha2::Sha256;
use std::io::{ErrorKind, Read};
use std::net::SocketAddr;

/// The first byte that a TLS client sends (RFC 8446, section 5.1); a hello begins with its version.
pub(in crate::tunnels) const TLS_HANDSHAKE: u8 = 22;

pub(crate) struct Handshake {
    pub(in crate::tunnels) carrier: Carrier,
    pub(in crate::tunnels) address: SocketAddr,
    /// Index of the peer that this gateway dialled, and the lane.
    pub(in crate::tunnels) dialled: Option<(PeerIndex, LaneNumber)>,
    /// The relay that was dialled, and what has to be done there first.
    pub(in crate::tunnels) visit: Option<RelayVisit>,
    /// Whether it is a stranger's, which may show a ticket instead of a hello.
    pub(in crate::tunnels) may_show_ticket: bool,
    pub(in crate::tunnels) generation: u64,
    /// Whether a broker names the sites, and not `[[peer]]` in the configuration.
    pub(in crate::tunnels) is_member: bool,
    pub(in crate::tunnels) own: Hello,
    pub(in crate::tunnels) connected: bool,
    pub(in crate::tunnels) received: Vec<u8>,
    pub(in crate::tunnels) peer: Option<Hello>,
}

/// What a stranger sends first.
pub(in crate::tunnels) enum First {
    /// Too little has arrived to say.
    Unknown,
    /// A hello, TLS, or something that is neither.
    Hello,
    Ticket(Ticket),
}

/// Why there will be no lane.
pub(in crate::tunnels) struct Failure {
    /// The kind under which it is counted at the accepting side.
    pub(in crate::tunnels) kind: &'static str,
    pub(in crate::tunnels) why: String,
}

/// The kind of a handshake with a site that the broker has not reported yet, as when two sites meet for the
/// first time.
pub(in crate::tunnels) const NOT_TOLD: &str = "not-told";

/// The kind of a connection whose other end closed it without sending anything: nothing was asked for.
pub(in crate::tunnels) const LEFT: &str = "left";

/// The kind of a dial that the far host refused: no program listens there.
pub(in crate::tunnels) const NOBODY_LISTENS: &str = "nobody-listens";

impl From<TextError> for Failure {
    fn from(error: TextError) -> Failure {
        String::from(error).into()
    }
}

impl From<String> for Failure {
    fn from(why: String) -> Failure {
        Failure {
            kind: "handshake",
            why,
        }
    }
}

impl Handshake {
    pub(crate) fn carrier(&mut self) -> &mut Carrier {
        &mut self.carrier
    }

    pub(crate) fn visit(&self) -> Option<&RelayVisit> {
        self.visit.as_ref()
    }

    /// The beginning of what a stranger sends, as far as it has arrived. A hello, or TLS, is left in the
    /// kernel for its reader.
    pub(in crate::tunnels) fn opening(&mut self) -> Result<First, Failure> {
        let Some(mut socket) = self.carrier.tcp() else {
            return Ok(First::Hello);
        };
        let mut bytes = [0; PREFACE_BYTES];
        let count = match socket.peek(&mut bytes) {
            Ok(count) => count,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                return Ok(First::Unknown);
            }
            Err(error) => return Err(error.to_string().into()),
        };
        if count == 0 || !Ticket::begins_with(bytes[0]) {
            return Ok(First::Hello);
        }
        match Ticket::read(&bytes[..count]).map_err(|error| error.to_string())? {
            Opening::Incomplete => Ok(First::Unknown),
            Opening::Ticket(ticket) => match socket.read(&mut bytes) {
                Ok(PREFACE_BYTES) => Ok(First::Ticket(ticket)),
                Ok(_) => Err("the ticket cannot be read again".to_owned().into()),
                Err(error) => Err(error.to_string().into()),
            },
        }
    }

    /// Whether the far gateway is at the other end: at once, if no relay was dialled.
    pub(in crate::tunnels) fn has_met(&mut self) -> Result<bool, Failure> {
        let Some(visit) = self.visit.as_mut().filter(|visit| !visit.has_met()) else {
            return Ok(true);
        };
        let Some(socket) = self.carrier.tcp() else {
            return Ok(true);
        };
        if !visit.advance(socket)? {
            return Ok(false);
        }
        self.greet_if_dialled()?;
        Ok(true)
    }

    /// Sends the hello if this gateway has dialled.
    pub(in crate::tunnels) fn greet_if_dialled(&mut self) -> Result<(), Failure> {
        if self.dialled.is_some() {
            let hello = self.own.encode();
            self.send(&hello)?;
        }
        Ok(())
    }

    /// Index of the peer that was dialled, and the lane.
    pub(crate) fn dialled(&self) -> Option<(PeerIndex, LaneNumber)> {
        self.dialled
    }

    /// Goes on with what the kernel has; true once the far side has proved itself. `answer` makes the
    /// accepting side's hello: a stranger is told nothing before it has said who it is.
    pub(in crate::tunnels) fn advance(
        &mut self,
        grid_key: &[u8],
        answer: impl Fn(&Hello) -> Result<Hello, Failure>,
    ) -> Result<bool, Failure> {
        if !self.connected {
            let is_connected = self.carrier.is_connected().map_err(|error| Failure {
                kind: match error.kind() {
                    ErrorKind::ConnectionRefused => NOBODY_LISTENS,
                    _ => "handshake",
                },
                why: error.to_string(),
            });
            if !is_connected? {
                return Ok(false);
            }
            self.connected = true;
            if self.visit.is_none() {
                self.greet_if_dialled()?;
            }
        }
        if !self.has_met()? {
            return Ok(false);
        }
        loop {
            if let Some(done) = self.digest(grid_key, &answer)? {
                return Ok(done);
            }
            let mut bytes = [0; hello::MAX_BYTES + PROOF_BYTES];
            match self.carrier.read(&mut bytes) {
                Ok(0) => return Err(self.turned_away()),
                Ok(count) => self.received.extend_from_slice(&bytes[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::InvalidData => {
                    return Err(format!("{error} (is insecure in [grid] the same at both gateways?)").into());
                }
                // The connection was closed before our bytes were read.
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return Err(self.turned_away()),
                Err(error) => return Err(error.to_string().into()),
            }
        }
    }

    pub(in crate::tunnels) fn turned_away(&self) -> Failure {
        let site = &self.own.site;
        if self.dialled.is_none() && self.visit.is_none() {
            if self.peer.is_some() || !self.received.is_empty() {
                return "the far side closed before it had proved who it is"
                    .to_owned()
                    .into();
            }
            return Failure {
                kind: LEFT,
                why:
                    "it closed its connection without a word, as the broker does after it has seen that this \
                      gateway can be reached"
                        .to_owned(),
            };
        }
        if self.is_member {
            return format!(
                "the far side closed during the handshake: perhaps the broker has not told it of this site, {site}, yet; this gateway \
                 dials again"
            )
            .into();
        }
        let why = format!(
            "the far side closed during the handshake (does it have the same grid key and the same insecure, and a [[peer]] for \
             this site, {site}?)"
        );
        why.into()
    }

    /// `Some(true)` if the proof was right; `None` if more bytes are needed.
    pub(in crate::tunnels) fn digest(
        &mut self,
        grid_key: &[u8],
        answer: &impl Fn(&Hello) -> Result<Hello, Failure>,
    ) -> Result<Option<bool>, Failure> {
        if self.peer.is_none() {
            if self.received.first() == Some(&TLS_HANDSHAKE) {
                let why =
                    "the far gateway speaks TLS, but this one does not: insecure in [grid] must be the same";
                return Err(why.to_owned().into());
            }
            let Some((peer, length)) = Hello::decode(&self.received).map_err(|error| error.to_string())?
            else {
                return Ok(None);
            };
            self.received.drain(..length);
            if peer.site == self.own.site {
                let why = "this gateway reached itself, or another one of its own site";
                return Err(why.to_owned().into());
            }
            let mut words = Vec::new();
            if self.dialled.is_none() {
                self.own = Hello {
                    nonce: self.own.nonce,
                    ..answer(&peer)?
                };
                words = self.own.encode();
            } else if peer.lane != self.own.lane {
                return Err(format!("the far side answers for lane {}", peer.lane).into());
            }
            words.extend(
                proof(grid_key, &self.own, &peer, self.carrier.binding())?
                    .finalize()
                    .into_bytes(),
            );
            self.peer = Some(peer);
            self.send(&words)?;
        }
        let (Some(peer), Some(theirs)) = (&self.peer, self.received.get(..PROOF_BYTES)) else {
            return Ok(None);
        };
        let right = proof(grid_key, peer, &self.own, self.carrier.binding())?
            .verify_slice(theirs)
            .is_ok();
        if !right {
            return Err(format!("site {} does not hold this grid's key", peer.site).into());
        }
        self.received.drain(..PROOF_BYTES);
        Ok(Some(true))
    }

    /// Writes a hundred bytes to a fresh connection: they fit into its buffer, or it is broken.
    pub(in crate::tunnels) fn send(&mut self, bytes: &[u8]) -> Result<(), TextError> {
        match self.carrier.write(bytes) {
            Ok(count) if count == bytes.len() => Ok(()),
            Ok(_) => Err("the kernel took only a part of the handshake".into()),
            Err(error) => Err(TextError::of(error)),
        }
    }
}

fn proof(
    key: &[u8],
    prover: &Hello,
    other: &Hello,
    binding: Option<Binding>,
) -> Result<Hmac<Sha256>, TextError> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).map_err(|error| error.to_string())?;
    mac.update(&prover.transcript(other));
    if let Some(binding) = binding {
        mac.update(b"TLS");
        mac.update(&binding);
    }
    Ok(mac)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::socket::loopback_pair;
    use std::io::Write;

    fn hello(site: &str) -> Hello {
        Hello {
            site: site.to_owned(),
            nonce: [7; hello::NONCE_BYTES],
            session: 1,
            lane: 0,
        }
    }

    /// The kind as which a connection counts that sends this and is closed.
    fn kind_of(words: &[u8]) -> &'static str {
        let (near, mut far) = loopback_pair().unwrap();
        let mut handshake = Handshake {
            address: near.peer_addr().unwrap(),
            carrier: Carrier::Clear(near),
            dialled: None,
            visit: None,
            may_show_ticket: false,
            generation: 1,
            is_member: false,
            own: hello("rennes"),
            connected: true,
            received: Vec::new(),
            peer: None,
        };
        far.write_all(words).unwrap();
        drop(far);
        loop {
            match handshake.advance(b"0123456789abcdef", |_| Ok(hello("rennes"))) {
                Ok(done) => assert!(!done),
                Err(failure) => return failure.kind,
            }
        }
    }

    #[test]
    fn a_connection_that_closes_without_a_word_is_no_refused_handshake() {
        let whole = hello("nancy").encode();
        assert_eq!(kind_of(b""), LEFT);
        assert_eq!(kind_of(&whole[..whole.len() - 1]), "handshake");
        assert_eq!(kind_of(&whole), "handshake", "no proof");
        assert_eq!(kind_of(b"GET / HTTP/1.1\r\n"), "handshake");
    }
}
