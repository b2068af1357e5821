//! Lanes until they are up: dialling, hello, and the proof that both sides hold the grid's key.
//!
//! The proof keeps strangers out; it does not hide or protect what follows. That comes with TLS.

use crate::gateway::{Class, Gateway};
use crate::lane::{Lane, UNSENT_BYTES};
use crate::peer::GatewayToGateway;
use crate::socket;
use crate::timers::Deadline;
use causeway_tunnel::hello::{self, Hello, NONCE_BYTES, PROOF_BYTES};
use causeway_tunnel::{Limits, Side, Tunnel};
use hmac::{Hmac, Mac};
use mio::Interest;
use mio::net::TcpStream;
use sha2::Sha256;
use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::time::Duration;

/// Three round trips around the Earth and a busy far gateway.
const DEADLINE: Duration = Duration::from_secs(10);
const FIRST_BACKOFF: Duration = Duration::from_millis(100);
const LAST_BACKOFF: Duration = Duration::from_secs(5);
/// Strangers that may be in a handshake at a time.
const AT_MOST: usize = 256;

pub(crate) struct Handshake {
    socket: TcpStream,
    address: SocketAddr,
    /// Index of the peer this gateway dialled.
    dialled: Option<usize>,
    born: u64,
    own: Hello,
    connected: bool,
    received: Vec<u8>,
    peer: Option<Hello>,
}

/// How dialling one peer goes.
pub(crate) struct Dial {
    backoff: Duration,
    under_way: bool,
    /// Why there is no tunnel, for those who ask.
    pub(crate) trouble: String,
}

impl Default for Dial {
    fn default() -> Dial {
        Dial {
            backoff: FIRST_BACKOFF,
            under_way: false,
            trouble: "not reached yet".to_owned(),
        }
    }
}

impl Gateway {
    /// Dials a peer unless its tunnel is up or on its way.
    pub(crate) fn dial(&mut self, index: usize) {
        let peer = &self.config.peers[index];
        let Some(address) = peer.address else { return };
        if self.tunnels.contains_key(&peer.site) || self.dials[index].under_way {
            return;
        }
        self.dials[index].under_way = true;
        match TcpStream::connect(address) {
            Ok(socket) => self.begin_handshake(socket, address, Some(index)),
            Err(error) => self.dial_failed(index, &format!("connect to {address}: {error}")),
        }
    }

    fn dial_failed(&mut self, index: usize, why: &str) {
        let site = &self.config.peers[index].site;
        let dial = &mut self.dials[index];
        if dial.trouble != why {
            self.report
                .say(format_args!("no tunnel to {site}: {why}; trying again"));
            dial.trouble = why.to_owned();
        }
        dial.under_way = false;
        self.timers.set(dial.backoff, Deadline::Dial(index));
        dial.backoff = (dial.backoff * 2).min(LAST_BACKOFF);
    }

    pub(crate) fn on_gateway_connection(&mut self, socket: TcpStream, address: SocketAddr) {
        if self.handshakes.len() >= AT_MOST {
            return self
                .report
                .refuse("handshakes", address.ip(), "too many unfinished handshakes");
        }
        self.begin_handshake(socket, address, None);
    }

    fn begin_handshake(&mut self, mut socket: TcpStream, address: SocketAddr, dialled: Option<usize>) {
        let mut nonce = [0; NONCE_BYTES];
        let key = self.handshakes.vacant_key();
        let interest = Interest::READABLE | Interest::WRITABLE;
        let ready = getrandom::fill(&mut nonce)
            .map_err(io::Error::other)
            .and_then(|()| {
                self.poll
                    .registry()
                    .register(&mut socket, Class::Handshake.token(key), interest)
            });
        if let Err(error) = ready {
            if let Some(index) = dialled {
                self.dial_failed(index, &error.to_string());
            }
            return;
        }
        let born = self.birth();
        let own = Hello {
            site: self.config.site.clone(),
            nonce,
        };
        let handshake = Handshake {
            socket,
            address,
            dialled,
            born,
            own,
            connected: false,
            received: Vec::new(),
            peer: None,
        };
        self.handshakes.insert(handshake);
        self.timers.set(DEADLINE, Deadline::Handshake(key, born));
        if dialled.is_none() {
            self.on_handshake(key);
        }
    }

    pub(crate) fn on_handshake_deadline(&mut self, key: usize, born: u64) {
        if self
            .handshakes
            .get(key)
            .is_some_and(|handshake| handshake.born == born)
        {
            self.end_handshake(key, &format!("no complete handshake within {DEADLINE:?}"));
        }
    }

    pub(crate) fn on_handshake(&mut self, key: usize) {
        let Some(handshake) = self.handshakes.get_mut(key) else {
            return;
        };
        match handshake.advance(&self.config.key) {
            Ok(false) => {}
            Ok(true) => self.lane_up(key),
            Err(why) => self.end_handshake(key, &why),
        }
    }

    fn end_handshake(&mut self, key: usize, why: &str) {
        let Some(handshake) = self.handshakes.try_remove(key) else {
            return;
        };
        match handshake.dialled {
            Some(index) => self.dial_failed(index, &format!("{}: {why}", handshake.address)),
            None => self.report.refuse("handshake", handshake.address.ip(), why),
        }
    }

    fn lane_up(&mut self, key: usize) {
        let Some(handshake) = self.handshakes.try_remove(key) else {
            return;
        };
        let Handshake {
            mut socket,
            address,
            dialled,
            peer: Some(peer),
            received,
            ..
        } = handshake
        else {
            return;
        };
        let site = peer.site;
        if let Some(index) = dialled {
            self.dials[index].under_way = false;
            if self.config.peers[index].site != site {
                let why = format!("{address}: the gateway there is of site {site}");
                return self.dial_failed(index, &why);
            }
        }
        if site == self.config.site || !self.config.peers.iter().any(|peer| peer.site == site) {
            return self.report.refuse(
                "unknown-site",
                &site,
                format_args!("{address}: not a [[peer]] of this gateway"),
            );
        }
        if self.keeps_existing(&site, dialled.is_some()) {
            return;
        }
        let side = if self.config.site < site {
            Side::Odd
        } else {
            Side::Even
        };
        let congestion_control = prepare(&socket, &self.config.congestion_control);
        let entry = self.lanes.vacant_key();
        let interest = Interest::READABLE | Interest::WRITABLE;
        if let Err(error) = self
            .poll
            .registry()
            .reregister(&mut socket, Gateway::lane_token(entry), interest)
        {
            return self.report.say(format_args!("tunnel to {site}: {error}"));
        }
        let tunnel = Tunnel::new(side, Limits::default());
        let mut lane = Lane::new(
            socket,
            site.clone(),
            address,
            dialled.is_some(),
            tunnel,
            &received,
        );
        lane.congestion_control = congestion_control;
        self.lanes.insert(lane);
        self.report
            .say(format_args!("tunnel to {site} at {address} is up"));
        self.tunnels.insert(site.clone(), entry);
        if let Some(index) = self.config.peers.iter().position(|peer| peer.site == site) {
            self.dials[index] = Dial::default();
        }
        self.greet(entry);
        if let Err(end) = self.digest(entry) {
            return self.close_lane(entry, &end);
        }
        self.receive(entry);
    }

    /// Where both sides dial, two connections cross: the one dialled by the site that sorts first stays.
    fn keeps_existing(&mut self, site: &str, dialled: bool) -> bool {
        let Some(existing) = self.tunnels.get(site).copied() else {
            return false;
        };
        let preferred = |dialled_here: bool| dialled_here == (*self.config.site < *site);
        let keeps = self
            .lanes
            .get(existing)
            .is_some_and(|lane| preferred(lane.dialled))
            && !preferred(dialled);
        if !keeps {
            let end =
                crate::lane::LaneEnd::Refused("replaced by a new connection of the far gateway".to_owned());
            self.close_lane(existing, &end);
        }
        keeps
    }

    /// First words on a new tunnel: who we are, and which jobs run.
    fn greet(&mut self, lane_key: usize) {
        let own = self.directory.own().clone();
        self.tell(lane_key, GatewayToGateway::Site(own));
        for (token, name) in self.jobs.of_this_site() {
            self.tell(
                lane_key,
                GatewayToGateway::JobStart {
                    token: token.to_hex(),
                    name,
                },
            );
        }
    }
}

impl Handshake {
    /// Goes on with what the kernel has; true when the far side has proved itself.
    fn advance(&mut self, grid_key: &[u8]) -> Result<bool, String> {
        if !self.connected {
            if let Some(error) = self.socket.take_error().unwrap_or_else(Some) {
                return Err(error.to_string());
            }
            if self.socket.peer_addr().is_err() {
                return Ok(false);
            }
            self.connected = true;
            let _ = self.socket.set_nodelay(true);
            let hello = self.own.encode();
            self.send(&hello)?;
        }
        loop {
            if let Some(done) = self.digest(grid_key)? {
                return Ok(done);
            }
            let mut bytes = [0; hello::MAX_BYTES + PROOF_BYTES];
            match self.socket.read(&mut bytes) {
                Ok(0) => {
                    return Err(
                        "the far side closed during the handshake (is its grid key the same?)".to_owned(),
                    );
                }
                Ok(count) => self.received.extend_from_slice(&bytes[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.to_string()),
            }
        }
    }

    /// `Some(true)` when the proof was right; `None` when more bytes are needed.
    fn digest(&mut self, grid_key: &[u8]) -> Result<Option<bool>, String> {
        if self.peer.is_none() {
            let Some((peer, length)) = Hello::decode(&self.received).map_err(|error| error.to_string())?
            else {
                return Ok(None);
            };
            self.received.drain(..length);
            if peer == self.own {
                return Err("this gateway reached itself".to_owned());
            }
            let proof = proof(grid_key, &self.own, &peer)?.finalize().into_bytes();
            self.peer = Some(peer);
            self.send(&proof)?;
        }
        let (Some(peer), Some(theirs)) = (&self.peer, self.received.get(..PROOF_BYTES)) else {
            return Ok(None);
        };
        let right = proof(grid_key, peer, &self.own)?.verify_slice(theirs).is_ok();
        if !right {
            return Err(format!("site {} does not hold this grid's key", peer.site));
        }
        self.received.drain(..PROOF_BYTES);
        Ok(Some(true))
    }

    /// A hundred bytes on a fresh connection: they fit its buffer or it is broken.
    fn send(&mut self, bytes: &[u8]) -> Result<(), String> {
        match self.socket.write(bytes) {
            Ok(count) if count == bytes.len() => Ok(()),
            Ok(_) => Err("the kernel took only a part of the handshake".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }
}

fn proof(key: &[u8], prover: &Hello, other: &Hello) -> Result<Hmac<Sha256>, String> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).map_err(|error| error.to_string())?;
    mac.update(&prover.transcript(other));
    Ok(mac)
}

/// Settings of a lane's socket; returns the congestion control in force.
fn prepare(socket: &TcpStream, wanted: &str) -> String {
    let _ = socket::set_unsent_low_water(&socket.as_fd(), UNSENT_BYTES);
    let socket = socket2::SockRef::from(socket);
    // What cannot be set is not needed for correctness, and `causeway status` shows what is in force.
    let _ = socket.set_tcp_congestion(wanted.as_bytes());
    let _ = socket.set_keepalive(true);
    let _ = socket.set_tcp_keepalive(&socket2::TcpKeepalive::new().with_time(Duration::from_secs(30)));
    let name = socket.tcp_congestion().unwrap_or_default();
    String::from_utf8_lossy(&name).trim_end_matches('\0').to_owned()
}
