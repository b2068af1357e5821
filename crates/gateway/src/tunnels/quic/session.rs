//! One QUIC connection under a lane: the reads and writes of a non-blocking socket, over the connection's
//! only stream.
//!
//! What is written is sent at once, because the lane waits here until its pace allows more (`model`): small
//! frames could not overtake bytes that wait in QUIC.

use super::model::Model;
use super::shared::Shared;
use super::wire::{Path, Wire, lock};
use crate::sys::socket::PathInfo;
use crate::tunnels::tls::Binding;
use causeway_tunnel::parity::HEAD_BYTES;
use quinn_proto::{
    Connection, ConnectionEvent, ConnectionHandle, Dir, EndpointEvent, Event, ReadError, ReadableError,
    StreamEvent, StreamId, VarInt, WriteError,
};
use rustls::pki_types::CertificateDer;
use sha2::{Digest, Sha256};
use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Most datagrams that are given to the kernel at once.
const BATCH: usize = 32;

/// The most that is written at once and, as a rule, the least: the pace is kept in steps of a fifth of a
/// millisecond, if that holds several datagrams.
const STEP: Duration = Duration::from_micros(200);
const STEP_BYTES: std::ops::RangeInclusive<f64> = 1_400.0..=46_000.0;

/// For how much lost time a waiting lane may make up when it wakes late, and how much it may send at once
/// after a pause. The loop sleeps in milliseconds.
const LATE: Duration = Duration::from_millis(4);
const AT_ONCE: Duration = Duration::from_millis(1);

/// Acknowledgements wait for others this long (RFC 9000, section 13.2): if they waited longer, a start-up
/// with few packets would look slow.
pub(in crate::tunnels) const ACK_DELAY: Duration = Duration::from_millis(1);

/// Datagrams that the kernel has not accepted yet.
struct Waiting {
    destination: SocketAddr,
    bytes: Vec<u8>,
    segment: Option<usize>,
}

pub(crate) struct Session {
    wire: Arc<Wire>,
    handle: ConnectionHandle,
    connection: Connection,
    pub(in crate::tunnels) path: Path,
    pub(crate) model: Shared,
    dialled: bool,
    binding: Option<Binding>,
    stream: Option<StreamId>,
    /// Why the connection is over.
    end: Option<String>,
    /// Whether the endpoint knows that it is over.
    is_drained: bool,
    /// Bytes that the pace allows, and the time to which that refers.
    allowance: f64,
    reckoned: Instant,
    /// Bytes for which the lane waits to be allowed.
    held_up: Option<f64>,
    /// Whether something was written since the last pause.
    has_said: bool,
    waiting: VecDeque<Waiting>,
    window: u64,
    buffers: [Vec<u8>; 3],
}

impl Session {
    /// `binding`: hash of this gateway's certificate, if it accepts the connection.
    pub(in crate::tunnels) fn new(
        wire: Arc<Wire>,
        handle: ConnectionHandle,
        connection: Connection,
        path: Path,
        model: Shared,
        binding: Option<Binding>,
    ) -> Session {
        Session {
            wire,
            handle,
            dialled: binding.is_none(),
            connection,
            path,
            model,
            binding,
            stream: None,
            end: None,
            is_drained: false,
            allowance: 0.0,
            reckoned: Instant::now(),
            held_up: None,
            has_said: false,
            waiting: VecDeque::new(),
            window: 0,
            buffers: Default::default(),
        }
    }

    pub(crate) fn handle(&self) -> ConnectionHandle {
        self.handle
    }

    pub(crate) fn remote(&self) -> SocketAddr {
        self.connection.remote_address()
    }

    /// Whether the connection is established and its stream exists.
    pub(crate) fn is_open(&self) -> io::Result<bool> {
        match &self.end {
            Some(end) => Err(io::Error::other(end.clone())),
            None => Ok(self.stream.is_some()),
        }
    }

    /// The certificates that the other end showed, its own first.
    pub(crate) fn shown(&self) -> Vec<CertificateDer<'static>> {
        let shown = self.connection.crypto_session().peer_identity();
        let shown = shown.and_then(|shown| shown.downcast::<Vec<CertificateDer<'static>>>().ok());
        shown.map(|shown| *shown).unwrap_or_default()
    }

    /// What identifies the session, known once the connection is open.
    pub(crate) fn binding(&self) -> Option<Binding> {
        self.binding
    }

    /// Acts on what has happened in the connection. Afterwards, reads and writes may go on.
    pub(in crate::tunnels) fn attend(&mut self, now: Instant) {
        while let Some(event) = self.connection.poll() {
            match event {
                Event::Connected if self.dialled => {
                    self.binding = self
                        .shown()
                        .first()
                        .map(|certificate| Sha256::digest(certificate).into());
                    if self.binding.is_none() {
                        self.end = Some("the far gateway showed no certificate".to_owned());
                    }
                    self.stream = self.connection.streams().open(Dir::Bi);
                }
                Event::Stream(StreamEvent::Opened { dir: Dir::Bi }) if self.stream.is_none() => {
                    self.stream = self.connection.streams().accept(Dir::Bi);
                }
                Event::ConnectionLost { reason } => self.end = Some(reason.to_string()),
                _ => {}
            }
        }
        while let Some(event) = self.connection.poll_endpoint_events() {
            self.is_drained |= event.is_drained();
            self.wire.tell(self.handle, event);
        }
        let window = self.model.get().window();
        if window != self.window {
            // Bytes that QUIC would only keep may as well stay in the lane.
            self.window = window;
            self.connection.set_send_window(window);
        }
        self.transmit(now);
    }

    pub(in crate::tunnels) fn on_event(&mut self, event: ConnectionEvent) {
        self.connection.handle_event(event);
    }

    /// When the connection is due next.
    pub(in crate::tunnels) fn deadline(&mut self) -> Option<Instant> {
        let pace = self.held_up.and_then(|bytes| self.allowed_at(bytes));
        [self.connection.poll_timeout(), pace].into_iter().flatten().min()
    }

    pub(in crate::tunnels) fn on_time(&mut self, now: Instant) {
        if self.connection.poll_timeout().is_some_and(|at| at <= now) {
            self.connection.handle_timeout(now);
        }
        self.attend(now);
    }

    /// The path loses packets: parity is sent from the beginning.
    pub(crate) fn expect_loss(&mut self, now: Instant) {
        lock(&self.path).expect_loss(now);
    }

    pub(crate) fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        let Some(stream) = self.stream else {
            return Err(self.lack());
        };
        let mut stream = self.connection.recv_stream(stream);
        let mut chunks = match stream.read(true) {
            Ok(chunks) => chunks,
            Err(ReadableError::ClosedStream) => return Ok(0),
            Err(ReadableError::IllegalOrderedRead) => return Err(ErrorKind::InvalidInput.into()),
        };
        let mut taken = 0;
        let mut ended = None;
        while taken < space.len() {
            match chunks.next(space.len() - taken) {
                Ok(Some(chunk)) => {
                    space[taken..taken + chunk.bytes.len()].copy_from_slice(&chunk.bytes);
                    taken += chunk.bytes.len();
                }
                Ok(None) => {
                    ended = Some(Ok(0));
                    break;
                }
                Err(ReadError::Blocked) => break,
                Err(ReadError::Reset(_)) => {
                    ended = Some(Err(ErrorKind::ConnectionReset.into()));
                    break;
                }
            }
        }
        if chunks.finalize().should_transmit() {
            self.transmit(Instant::now());
        }
        match ended {
            _ if taken > 0 => Ok(taken),
            Some(end) => end,
            None => Err(self.lack()),
        }
    }

    /// Why there is nothing to read or write.
    fn lack(&self) -> io::Error {
        match &self.end {
            Some(end) => io::Error::other(end.clone()),
            None => ErrorKind::WouldBlock.into(),
        }
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let now = Instant::now();
        let Some(id) = self.stream.filter(|_| self.end.is_none()) else {
            return Err(self.lack());
        };
        let most = self.allowed(bytes.len(), now);
        let written = match most {
            0 => Err(WriteError::Blocked),
            most => self.connection.send_stream(id).write(&bytes[..most]),
        };
        match written {
            Ok(count) => {
                self.held_up = None;
                self.has_said = true;
                self.transmit(now);
                Ok(count)
            }
            Err(WriteError::Blocked) => {
                let pace = self.model.get().pace().unwrap_or(0);
                self.held_up = (most == 0).then(|| Session::step(pace).min(bytes.len() as f64));
                Err(ErrorKind::WouldBlock.into())
            }
            Err(error) => Err(io::Error::new(ErrorKind::BrokenPipe, error.to_string())),
        }
    }

    /// The lane was written: `full` if there is more. What was sent last is protected at once, because
    /// nothing may follow for a long time.
    pub(crate) fn on_written(&mut self, full: bool, now: Instant) {
        self.model.get().on_written(full, now);
        // Acknowledgements alone do not need parity.
        if full || !std::mem::take(&mut self.has_said) {
            return;
        }
        let mut parity = lock(&self.path);
        if parity.encoder.is_open() {
            let mut out = Vec::new();
            let missed = parity.decoder.missed();
            parity.encoder.close(missed, &mut out);
            drop(parity);
            self.spend_on_parity(out.len());
            let to = self.connection.remote_address();
            self.send_to(to, &out, None);
        }
    }

    /// Parity uses a part of the path's rate; but a reserved rate is only for packets of streams, including
    /// those sent again.
    fn spend_on_parity(&mut self, bytes: usize) {
        if bytes > 0 && !self.model.get().is_reserved() {
            self.allowance -= bytes as f64;
        }
    }

    /// The bytes of one step.
    fn step(pace: u64) -> f64 {
        let bytes = pace as f64 * STEP.as_secs_f64();
        bytes.clamp(*STEP_BYTES.start(), *STEP_BYTES.end())
    }

    /// How many of `wanted` bytes may be written now.
    fn allowed(&mut self, wanted: usize, now: Instant) -> usize {
        let Some(pace) = self.model.get().pace() else {
            return wanted;
        };
        let most = if self.held_up.is_some() { LATE } else { AT_ONCE };
        let most = (pace as f64 * most.as_secs_f64()).max(*STEP_BYTES.start());
        let time = now.saturating_duration_since(self.reckoned);
        self.allowance = (self.allowance + pace as f64 * time.as_secs_f64()).min(most);
        self.reckoned = now;
        // A step, or everything that there is.
        let least = Session::step(pace).min(wanted as f64);
        if self.allowance < least {
            0
        } else {
            wanted.min(self.allowance as usize)
        }
    }

    /// When `bytes` bytes may be written.
    fn allowed_at(&self, bytes: f64) -> Option<Instant> {
        let pace = self.model.get().pace()?.max(1);
        let lacks = (bytes - self.allowance).max(0.0);
        Some(self.reckoned + Duration::from_secs_f64((lacks / pace as f64).min(1.0)))
    }

    /// Whether a write is worth trying.
    pub(crate) fn may_write(&self, now: Instant) -> bool {
        let allowed = self.held_up.map(|bytes| self.allowed_at(bytes));
        allowed.flatten().is_none_or(|at| at <= now)
    }

    /// Sends what the connection has to send.
    fn transmit(&mut self, now: Instant) {
        if !self.flush() {
            return;
        }
        let [mut datagrams, mut out, mut sums] = std::mem::take(&mut self.buffers);
        while self.waiting.is_empty() {
            datagrams.clear();
            let most = BATCH.min(self.wire.state.max_gso_segments());
            let Some(transmit) = self.connection.poll_transmit(now, most, &mut datagrams) else {
                break;
            };
            out.clear();
            sums.clear();
            let mut parity = lock(&self.path);
            let (group, missed) = (parity.group(now), parity.decoder.missed());
            if group == 0 && parity.encoder.is_open() {
                parity.encoder.close(missed, &mut sums);
            }
            let segment = transmit.segment_size.unwrap_or(transmit.size);
            let mut ends = Vec::new();
            for datagram in datagrams[..transmit.size].chunks(segment.max(1)) {
                if parity.encoder.wrap(datagram, group, missed, &mut out) {
                    parity.encoder.close(missed, &mut sums);
                    ends.push(sums.len());
                }
            }
            drop(parity);
            let to = transmit.destination;
            self.allowance -= out.len() as f64;
            self.send_to(to, &out, Some(segment + HEAD_BYTES));
            self.spend_on_parity(sums.len());
            let mut from = 0;
            for end in ends.into_iter().chain([sums.len()]) {
                if end > from {
                    self.send_to(to, &sums[from..end], None);
                }
                from = end;
            }
        }
        self.buffers = [datagrams, out, sums];
    }

    fn send_to(&mut self, destination: SocketAddr, bytes: &[u8], segment: Option<usize>) {
        if !self.waiting.is_empty() || self.wire.send(destination, bytes, segment).is_err() {
            // Bounded: nothing more is made while something waits, except the rest of one batch.
            self.waiting.push_back(Waiting {
                destination,
                bytes: bytes.to_vec(),
                segment,
            });
        }
    }

    /// Sends what the kernel would not accept before; true if nothing waits any more.
    fn flush(&mut self) -> bool {
        while let Some(next) = self.waiting.front() {
            if self
                .wire
                .send(next.destination, &next.bytes, next.segment)
                .is_err()
            {
                return false;
            }
            self.waiting.pop_front();
        }
        true
    }

    /// Whether the kernel did not accept everything.
    pub(in crate::tunnels) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Notes that the far end has proved itself: from now on, everything that a lane needs may be in flight.
    pub(crate) fn widen(&mut self) {
        self.connection
            .set_receive_window(VarInt::from_u32(super::WINDOW));
        self.transmit(Instant::now());
    }

    /// Announces that nothing more will be written.
    pub(crate) fn finish(&mut self) {
        if let Some(stream) = self.stream {
            // A stream that is finished or stopped returns an error, which does not matter.
            let _ = self.connection.send_stream(stream).finish();
            self.transmit(Instant::now());
        }
    }

    pub(crate) fn path_info(&self) -> PathInfo {
        let stats = self.connection.stats();
        let model = self.model.get();
        // The numbers fit: they are some minutes at most.
        let microseconds = |time: Duration| u32::try_from(time.as_micros()).unwrap_or(u32::MAX);
        PathInfo {
            rtt_microseconds: microseconds(stats.path.rtt),
            least_rtt_microseconds: microseconds(stats.path.min_rtt),
            window_bytes: model.window(),
            delivery_rate: model.rate(),
            segments: stats.path.sent_packets as u32,
            retransmits: stats.path.lost_packets as u32,
            segment_bytes: stats.path.current_mtu.into(),
            mtu_bytes: stats.path.current_mtu.into(),
            repaired: lock(&self.path).decoder.repaired,
            ..PathInfo::default()
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.connection
            .close(Instant::now(), VarInt::from_u32(0), bytes::Bytes::new());
        self.transmit(Instant::now());
        // If the far side misses this, its own time limit makes it find out.
        if !self.is_drained {
            self.wire.tell(self.handle, EndpointEvent::drained());
        }
    }
}

/// Largest datagram of QUIC that fits into a packet of 1500 bytes together with its header and its group's
/// parity.
pub(in crate::tunnels) fn most_mtu(is_ipv4: bool) -> u16 {
    let head = if is_ipv4 { 20 } else { 40 };
    // The number fits: it is below 1500.
    1500 - head - 8 - HEAD_BYTES as u16
}

/// A model for an unknown path.
pub(in crate::tunnels) fn model() -> Shared {
    Shared::new(Model::new())
}
