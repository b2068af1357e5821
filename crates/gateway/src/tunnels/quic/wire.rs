//! The UDP socket that all QUIC connections share, and the repair of losses on the path to an address.

use causeway_tunnel::parity::{self, Decoder, Encoder, HEAD_BYTES, Head};
use mio::net::UdpSocket;
use quinn_proto::{ConnectionHandle, EndpointEvent};
use quinn_udp::{Transmit, UdpSocketState};
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Parity is sent for this long after the far side has missed something.
const LOSSY: Duration = Duration::from_secs(60);

/// The UDP socket that all connections of a gateway share, and the events that they have for its endpoint.
pub(crate) struct Wire {
    pub(in crate::tunnels) socket: UdpSocket,
    pub(in crate::tunnels) state: UdpSocketState,
    pub(in crate::tunnels) events: Mutex<Vec<(ConnectionHandle, EndpointEvent)>>,
}

impl Wire {
    pub(super) fn send(
        &self,
        destination: SocketAddr,
        contents: &[u8],
        segment: Option<usize>,
    ) -> io::Result<()> {
        let transmit = Transmit {
            destination,
            ecn: None,
            contents,
            segment_size: segment.filter(|segment| *segment < contents.len()),
            src_ip: None,
        };
        loop {
            match self.state.try_send((&self.socket).into(), &transmit) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Err(error),
                // This counts as lost on the way: QUIC sends it again, or gives up by its own rules.
                _ => return Ok(()),
            }
        }
    }

    /// Sends a datagram that does not belong to QUIC, as it is. If the kernel does not accept it, it counts
    /// as lost on the way.
    pub(in crate::tunnels) fn send_plain(&self, destination: SocketAddr, datagram: &[u8]) {
        let _ = self.send(destination, datagram, None);
    }

    /// Sends a datagram that belongs to no connection.
    pub(in crate::tunnels) fn send_stray(&self, destination: SocketAddr, datagram: &[u8]) {
        let mut out = Vec::with_capacity(HEAD_BYTES + datagram.len());
        parity::stray(datagram, &mut out);
        let _ = self.send(destination, &out, None);
    }

    pub(in crate::tunnels) fn take_events(&self) -> Vec<(ConnectionHandle, EndpointEvent)> {
        std::mem::take(&mut *self.events.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn tell(&self, handle: ConnectionHandle, event: EndpointEvent) {
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        events.push((handle, event));
    }
}

/// The repair of losses between this gateway and one address.
#[derive(Debug)]
pub(crate) struct Parity {
    pub(super) encoder: Encoder,
    pub(super) decoder: Decoder,
    /// The time until which parity is sent, and what the far side is missing.
    pub(super) until: Option<Instant>,
    pub(super) missed: u8,
}

impl Parity {
    pub(in crate::tunnels) fn new() -> Parity {
        let mut epoch = [0];
        // Without random numbers, this is an epoch that a restarted gateway may choose again, which costs it
        // some parity.
        let _ = getrandom::fill(&mut epoch);
        Parity {
            encoder: Encoder::new(epoch[0]),
            decoder: Decoder::default(),
            until: None,
            missed: 0,
        }
    }

    /// Takes what has arrived; a datagram that it repairs is put into `made`.
    pub(in crate::tunnels) fn take(&mut self, head: Head, body: &[u8], now: Instant, made: &mut Vec<u8>) {
        if !self.decoder.fits(head) {
            return;
        }
        if head.missed > 0 {
            (self.until, self.missed) = (Some(now + LOSSY), head.missed);
        }
        if let Some(datagram) = self.decoder.take(head, body) {
            made.extend_from_slice(datagram);
        }
    }

    /// The path is known to lose packets.
    pub(in crate::tunnels) fn expect_loss(&mut self, now: Instant) {
        (self.until, self.missed) = (Some(now + LOSSY), 10);
    }

    /// Number of datagrams in a group: small enough that the loss of two of them is unlikely, and otherwise
    /// as large as possible.
    pub(super) fn group(&self, now: Instant) -> u8 {
        if self.until.is_none_or(|until| now >= until) {
            return 0;
        }
        match self.missed {
            ..=2 => 32,
            3..=5 => 16,
            6..=20 => 8,
            _ => 4,
        }
    }
}

/// The state that all connections with one address share.
pub(crate) type Path = Arc<Mutex<Parity>>;

pub(in crate::tunnels) fn lock(path: &Path) -> MutexGuard<'_, Parity> {
    path.lock().unwrap_or_else(PoisonError::into_inner)
}
