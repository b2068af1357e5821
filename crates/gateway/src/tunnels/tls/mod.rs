//! TLS 1.3 under a lane: it has the reads and writes of a socket, and uses one.
//!
//! In a grid with a broker both ends show certificates of the grid's authority. Otherwise, every gateway
//! makes a certificate for itself at its start. That proves nothing by itself: the identity is proved by the
//! grid's key, over both hellos and the hash of the accepting side's certificate (`handshake`), so that
//! nobody between the two can have a session with each of them.

mod context;
#[cfg(test)]
mod tests;

pub(crate) use context::Context;

use crate::sys::socket;
use causeway_broker::tls as grid;
use mio::net::TcpStream;
use rustls::client::{ClientConnectionData, UnbufferedClientConnection};
use rustls::pki_types::CertificateDer;
use rustls::server::{ServerConnectionData, UnbufferedServerConnection};
use rustls::unbuffered::{
    ConnectionState, EncodeError, EncodeTlsData, EncryptError, UnbufferedStatus, WriteTraffic,
};
use sha2::{Digest, Sha256};
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};

/// The most that one write encrypts: four records, a few hundred microseconds of a slow core.
const CHUNK: usize = 64 * 1024;

/// Payload of a record (RFC 8446, section 5.1), and what is added by its header, its type and its tag.
const RECORD: usize = 16 * 1024;
const RECORD_OVERHEAD: usize = HEADER + 1 + 16;

/// Bytes of the other side's input that are kept until a record is complete: the longest record. An
/// established lane reads more at once.
const FIRST_INCOMING: usize = RECORD + 256 + HEADER;

/// How much of a record must be missing for a wake-up to be worth avoiding: more than the next segment
/// contains.
const WORTH_WAITING: usize = 1500;

/// A record's header: its type, its version, and the length of what follows.
const HEADER: usize = 5;

/// How much may be sent before the session is established: a hello.
const MAX_EARLY: usize = 1024;

/// Sent in the handshake, so that the TLS of another program is refused by its name (RFC 7301).
const PROTOCOL: &[u8] = b"causeway/2";

/// Hash of the certificate that the accepting side showed.
pub(crate) type Binding = [u8; 32];

/// One session over one connection. It is like a non-blocking socket: reads and writes that cannot go on
/// return `WouldBlock`.
pub(crate) struct Tls {
    pub(crate) socket: TcpStream,
    session: Session,
    binding: Option<Binding>,
    buffers: Buffers,
    /// The kernel wakes this process once this many bytes have arrived.
    low_water: usize,
    /// Whether a read goes on until the kernel has no more, because the end of what arrives may have been
    /// reported already.
    reads_on: bool,
}

enum Session {
    Client(UnbufferedClientConnection),
    Server(UnbufferedServerConnection),
}

#[derive(Default)]
struct Buffers {
    /// What has arrived, from `start` to `filled`.
    incoming: Vec<u8>,
    start: usize,
    filled: usize,
    /// Whether the last read of the socket returned less than there was room for, so that the kernel had no
    /// more.
    was_short: bool,
    /// Bytes that are decrypted, and have not been asked for yet.
    cleartext: VecDeque<u8>,
    /// Bytes that are encrypted; from `sent` on, they have not been written yet.
    outgoing: Vec<u8>,
    sent: usize,
    /// Bytes sent before the session was established.
    early: Vec<u8>,
    /// Whether the session is established.
    open: bool,
    ended: bool,
}

impl Tls {
    /// The certificates that the other end showed, its own first.
    pub(crate) fn shown(&self) -> Vec<CertificateDer<'static>> {
        let shown = match &self.session {
            Session::Client(session) => session.peer_certificates(),
            Session::Server(session) => session.peer_certificates(),
        };
        shown.map(<[_]>::to_vec).unwrap_or_default()
    }

    /// Known once something was read.
    pub(crate) fn binding(&self) -> Option<Binding> {
        self.binding
    }

    /// From now on, reads up to `bytes` at once. The socket has just been registered anew, so the kernel will
    /// report whatever there is.
    pub(crate) fn widen(&mut self, bytes: usize) {
        self.reads_on = false;
        if bytes > self.buffers.incoming.len() {
            self.buffers.incoming.resize(bytes, 0);
        }
    }

    /// Whether encrypted bytes wait for the kernel.
    pub(crate) fn has_pending(&self) -> bool {
        self.buffers.sent < self.buffers.outgoing.len()
    }

    /// Whether a read of fewer bytes than requested has emptied the kernel's buffer, with nothing decrypted
    /// left either.
    pub(crate) fn short_read_empties(&self) -> bool {
        self.buffers.was_short && self.buffers.cleartext.is_empty()
    }

    /// Notes that the kernel has reported the end of what arrives, which it does only once.
    pub(crate) fn note_end(&mut self) {
        self.reads_on = true;
    }

    pub(crate) fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        let held = &mut self.buffers.cleartext;
        if !held.is_empty() {
            // Complete records may still follow it.
            self.buffers.was_short = false;
            return held.read(space);
        }
        let mut is_emptied = false;
        loop {
            let taken = self.drive(space, &[])?;
            self.flush_some()?;
            if taken > 0 {
                self.await_whole_record();
                return Ok(taken);
            }
            if self.buffers.ended {
                return Ok(0);
            }
            // What arrives from now on is reported, and an end that was reported before has yet to be read.
            if is_emptied && self.buffers.open && !self.reads_on {
                self.await_whole_record();
                return Err(ErrorKind::WouldBlock.into());
            }
            let free = self.buffers.free()?;
            let room = free.len();
            match self.socket.read(free)? {
                0 => return Ok(0),
                count => {
                    self.buffers.filled += count;
                    is_emptied = count < room;
                    self.buffers.was_short = is_emptied;
                }
            }
        }
    }

    /// Makes the kernel wake this process only once a record that has begun is complete: at the rate of a
    /// WAN, a record of 16 kB arrives in several pieces, none of which can be decrypted before the last.
    fn await_whole_record(&mut self) {
        if !self.short_read_empties() {
            return;
        }
        let wanted = match self.buffers.lacking() {
            lacking if lacking >= WORTH_WAITING => lacking,
            _ => 1,
        };
        if wanted != self.low_water && socket::set_read_low_water(&self.socket, wanted).is_ok() {
            self.low_water = wanted;
        }
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.flush()?;
        if !self.buffers.open {
            if self.buffers.early.len() + bytes.len() > MAX_EARLY {
                return Err(io::Error::other("too much was said before the TLS session stood"));
            }
            self.buffers.early.extend_from_slice(bytes);
            self.drive(&mut [], &[])?;
            self.flush_some()?;
            return Ok(bytes.len());
        }
        let chunk = &bytes[..bytes.len().min(CHUNK)];
        self.drive(&mut [], chunk)?;
        if self.buffers.ended {
            return Err(ErrorKind::BrokenPipe.into());
        }
        self.flush_some()?;
        Ok(chunk.len())
    }

    /// Announces that the end that follows is intended, if the kernel accepts that at once. A program that is
    /// killed cannot announce it.
    pub(crate) fn say_bye(&mut self) {
        if self.buffers.open && !self.has_pending() {
            let queued = match &mut self.session {
                Session::Client(session) => say_bye(session, &mut self.buffers),
                Session::Server(session) => say_bye(session, &mut self.buffers),
            };
            let _ = queued.and_then(|()| self.flush());
        }
    }

    /// Whether the other end has announced its end.
    #[cfg(test)]
    pub(crate) fn has_heard_bye(&self) -> bool {
        self.buffers.ended
    }

    /// Writes what is encrypted; `WouldBlock` if the kernel does not accept everything.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        let buffers = &mut self.buffers;
        while buffers.sent < buffers.outgoing.len() {
            match self.socket.write(&buffers.outgoing[buffers.sent..]) {
                Ok(count) => buffers.sent += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        buffers.outgoing.clear();
        buffers.sent = 0;
        Ok(())
    }

    fn flush_some(&mut self) -> io::Result<()> {
        match self.flush() {
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
            other => other,
        }
    }

    fn drive(&mut self, space: &mut [u8], words: &[u8]) -> io::Result<usize> {
        let taken = match &mut self.session {
            Session::Client(session) => drive(session, &mut self.buffers, space, words),
            Session::Server(session) => drive(session, &mut self.buffers, space, words),
        }?;
        if let (None, Session::Client(session)) = (self.binding, &self.session) {
            let shown = session.peer_certificates().and_then(<[_]>::first);
            self.binding = shown.map(|certificate| Sha256::digest(certificate).into());
        }
        Ok(taken)
    }
}

impl Buffers {
    /// Returns how many bytes a record that has begun still lacks; 0 if its header has not arrived yet.
    fn lacking(&self) -> usize {
        match &self.incoming[self.start..self.filled] {
            [_, _, _, high, low, rest @ ..] => {
                let length = usize::from(u16::from_be_bytes([*high, *low]));
                length.min(FIRST_INCOMING - HEADER).saturating_sub(rest.len())
            }
            _ => 0,
        }
    }

    /// Space for what arrives next.
    fn free(&mut self) -> io::Result<&mut [u8]> {
        if self.start > 0 {
            self.incoming.copy_within(self.start..self.filled, 0);
            (self.start, self.filled) = (0, self.filled - self.start);
        }
        if self.filled == self.incoming.len() {
            return Err(io::Error::new(ErrorKind::InvalidData, "TLS: record too long"));
        }
        Ok(&mut self.incoming[self.filled..])
    }
}

/// What both kinds of session can do.
trait Records {
    type Data;
    fn process<'c, 'i>(&'c mut self, incoming: &'i mut [u8]) -> UnbufferedStatus<'c, 'i, Self::Data>;
}

impl Records for UnbufferedClientConnection {
    type Data = ClientConnectionData;
    fn process<'c, 'i>(&'c mut self, incoming: &'i mut [u8]) -> UnbufferedStatus<'c, 'i, Self::Data> {
        self.process_tls_records(incoming)
    }
}

impl Records for UnbufferedServerConnection {
    type Data = ServerConnectionData;
    fn process<'c, 'i>(&'c mut self, incoming: &'i mut [u8]) -> UnbufferedStatus<'c, 'i, Self::Data> {
        self.process_tls_records(incoming)
    }
}

/// Encrypts the alert that ends a session.
fn say_bye<C: Records>(session: &mut C, buffers: &mut Buffers) -> io::Result<()> {
    let state = session.process(&mut []).state.map_err(refused)?;
    if let ConnectionState::WriteTraffic(mut traffic) = state {
        // In TLS 1.3, an alert has 24 bytes, including everything around it.
        let mut alert = [0; 64];
        let count = traffic.queue_close_notify(&mut alert).map_err(broken)?;
        buffers.outgoing.extend_from_slice(&alert[..count]);
    }
    Ok(())
}

/// Acts on what has arrived until more has to arrive or `space` is full, then encrypts `words`; returns the
/// number of bytes put into `space`. Only a call without words may have space.
fn drive<C: Records>(
    session: &mut C,
    buffers: &mut Buffers,
    space: &mut [u8],
    words: &[u8],
) -> io::Result<usize> {
    let mut taken = 0;
    loop {
        let arrived = &mut buffers.incoming[buffers.start..buffers.filled];
        let UnbufferedStatus { mut discard, state } = session.process(arrived);
        let mut goes_on = true;
        match state.map_err(refused)? {
            ConnectionState::ReadTraffic(mut traffic) => {
                while let Some(record) = traffic.next_record() {
                    let record = record.map_err(broken)?;
                    discard += record.discard;
                    let fits = record.payload.len().min(space.len() - taken);
                    space[taken..taken + fits].copy_from_slice(&record.payload[..fits]);
                    taken += fits;
                    buffers.cleartext.extend(&record.payload[fits..]);
                }
            }
            ConnectionState::EncodeTlsData(mut words) => say(&mut words, &mut buffers.outgoing)?,
            ConnectionState::TransmitTlsData(words) => words.done(),
            ConnectionState::WriteTraffic(mut traffic) => {
                buffers.open = true;
                let early = std::mem::take(&mut buffers.early);
                for words in [&early, words] {
                    put(&mut traffic, &mut buffers.outgoing, words)?;
                }
                goes_on = false;
            }
            ConnectionState::BlockedHandshake => goes_on = false,
            ConnectionState::PeerClosed | ConnectionState::Closed => {
                buffers.ended = true;
                goes_on = false;
            }
            other => return Err(broken(format!("unexpected state {other:?}"))),
        }
        buffers.start += discard;
        let full = taken > 0 && taken == space.len();
        if !goes_on || full {
            return Ok(taken);
        }
    }
}

fn say<D>(words: &mut EncodeTlsData<'_, D>, outgoing: &mut Vec<u8>) -> io::Result<()> {
    let end = outgoing.len();
    if let Err(EncodeError::InsufficientSize(needed)) = words.encode(&mut []) {
        outgoing.resize(end + needed.required_size, 0);
    }
    let written = words.encode(&mut outgoing[end..]).map_err(io::Error::other)?;
    outgoing.truncate(end + written);
    Ok(())
}

fn put<D>(traffic: &mut WriteTraffic<'_, D>, outgoing: &mut Vec<u8>, bytes: &[u8]) -> io::Result<()> {
    if bytes.is_empty() {
        return Ok(());
    }
    let end = outgoing.len();
    let records = bytes.len() / RECORD + 1;
    outgoing.resize(end + bytes.len() + records * RECORD_OVERHEAD, 0);
    let written = match traffic.encrypt(bytes, &mut outgoing[end..]) {
        // Every 2^24 records, a new key is sent before the bytes.
        Err(EncryptError::InsufficientSize(needed)) => {
            outgoing.resize(end + needed.required_size, 0);
            traffic.encrypt(bytes, &mut outgoing[end..])
        }
        other => other,
    };
    outgoing.truncate(end + written.map_err(io::Error::other)?);
    Ok(())
}

/// Explains the end of a handshake in the words of the certificate check.
fn refused(error: rustls::Error) -> io::Error {
    match grid::trust_error(&error) {
        Some(reason) => io::Error::new(ErrorKind::PermissionDenied, format!("TLS: {reason}")),
        None => broken(grid::reason(&error)),
    }
}

fn broken(error: impl std::fmt::Display) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, format!("TLS: {error}"))
}
