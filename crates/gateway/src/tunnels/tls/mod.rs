//! TLS 1.3 under a lane: the same reads and writes as of a socket, over one.
//!
//! In a grid with a broker both ends show certificates of the grid's authority. Otherwise every gateway makes
//! itself one at its start, which proves nothing by itself: who speaks is proved by the grid's key, over both
//! hellos and the hash of the accepting side's certificate (`handshake`), so that nobody between the two can
//! have a session with each of them.

use causeway_broker::Credentials;
use causeway_broker::tls::{self as grid, Expect, Trust};
use mio::net::TcpStream;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{ClientConnectionData, Resumption, UnbufferedClientConnection};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::server::{ServerConnectionData, UnbufferedServerConnection};
use rustls::unbuffered::{
    ConnectionState, EncodeError, EncodeTlsData, EncryptError, UnbufferedStatus, WriteTraffic,
};
use rustls::{ClientConfig, DigitallySignedStruct, ServerConfig, SignatureScheme};
use sha2::{Digest, Sha256};
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::sync::Arc;

/// What one write encrypts at most: four records, and a few hundred microseconds of a slow core.
const CHUNK: usize = 64 * 1024;

/// Payload of a record (RFC 8446, section 5.1), and what its header, its type and its tag add.
const RECORD: usize = 16 * 1024;
const RECORD_OVERHEAD: usize = 5 + 1 + 16;

/// Bytes kept of the other side's words until they are whole: the longest record. An established lane reads
/// more at once.
const FIRST_INCOMING: usize = RECORD + 256 + 5;

/// What may be said before the session stands: a hello.
const MAX_EARLY: usize = 1024;

/// Told in the handshake, so that another program's TLS is refused by its name (RFC 7301).
const PROTOCOL: &[u8] = b"causeway/2";

/// Hash of the certificate that the accepting side showed.
pub(crate) type Binding = [u8; 32];

/// What all TLS lanes of a gateway share.
pub(crate) struct Context {
    clients: Clients,
    server: Arc<ServerConfig>,
    own: Binding,
}

/// How this gateway dials.
enum Clients {
    /// Whoever answers proves the grid's key afterwards.
    Anybody(Arc<ClientConfig>),
    /// Members of a grid show their certificates to each other.
    Members(Box<Credentials>, Trust),
}

impl Context {
    /// Makes a key and a certificate for this process.
    pub(crate) fn new() -> io::Result<Context> {
        Context::with(ring::default_provider())
    }

    /// The context of a member of a grid.
    pub(crate) fn of_member(credentials: &Credentials, trust: &Trust) -> io::Result<Context> {
        let server = grid::server_config(credentials, trust, Expect::AnySite);
        let mut server = server.map_err(io::Error::other)?;
        server.alpn_protocols = vec![PROTOCOL.to_vec()];
        Ok(Context {
            clients: Clients::Members(Box::new(credentials.clone()), trust.clone()),
            server: Arc::new(server),
            own: Sha256::digest(&credentials.certificate).into(),
        })
    }

    fn with(provider: CryptoProvider) -> io::Result<Context> {
        let made =
            rcgen::generate_simple_self_signed(vec!["causeway".to_owned()]).map_err(io::Error::other)?;
        let certificate = made.cert.der().clone();
        let own = Sha256::digest(&certificate).into();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
        let provider = Arc::new(provider);
        let mut server = ServerConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(io::Error::other)?
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .map_err(io::Error::other)?;
        // Lanes are few and live long: resumption would save nothing.
        server.send_tls13_tickets = 0;
        server.alpn_protocols = vec![PROTOCOL.to_vec()];
        let mut client = ClientConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(io::Error::other)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyCertificate))
            .with_no_client_auth();
        client.resumption = Resumption::disabled();
        client.alpn_protocols = vec![PROTOCOL.to_vec()];
        Ok(Context {
            clients: Clients::Anybody(Arc::new(client)),
            server: Arc::new(server),
            own,
        })
    }

    /// A session that dials the gateway of `site`.
    pub(crate) fn client(&self, site: &str) -> io::Result<Arc<ClientConfig>> {
        match &self.clients {
            Clients::Anybody(client) => Ok(client.clone()),
            Clients::Members(own, trust) => {
                let client = grid::client_config(own, trust, Expect::Site(site.to_owned()));
                let mut client = client.map_err(io::Error::other)?;
                client.alpn_protocols = vec![PROTOCOL.to_vec()];
                Ok(Arc::new(client))
            }
        }
    }

    pub(crate) fn server(&self) -> Arc<ServerConfig> {
        self.server.clone()
    }

    /// Hash of the own certificate.
    pub(crate) fn own(&self) -> Binding {
        self.own
    }

    /// A session over a connection to the gateway of a site that this gateway dialled, or over one that it
    /// accepted.
    pub(crate) fn session(&self, socket: TcpStream, dialled: Option<&str>) -> io::Result<Tls> {
        let (session, binding) = if let Some(site) = dialled {
            let name = ServerName::try_from("causeway").map_err(io::Error::other)?;
            let client =
                UnbufferedClientConnection::new(self.client(site)?, name).map_err(io::Error::other)?;
            (Session::Client(client), None)
        } else {
            let server = UnbufferedServerConnection::new(self.server.clone()).map_err(io::Error::other)?;
            (Session::Server(server), Some(self.own))
        };
        Ok(Tls {
            socket,
            session,
            binding,
            buffers: Buffers {
                incoming: vec![0; FIRST_INCOMING],
                ..Buffers::default()
            },
        })
    }
}

/// Takes every certificate whose key the other side holds; see the top of this file for what proves who that
/// is.
#[derive(Debug)]
struct AnyCertificate;

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        grid::no_tls12()
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        grid::verify_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        grid::schemes()
    }
}

/// One session over one connection. Like a non-blocking socket: reads and writes that cannot go on say
/// `WouldBlock`.
pub(crate) struct Tls {
    pub(crate) socket: TcpStream,
    session: Session,
    binding: Option<Binding>,
    buffers: Buffers,
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
    /// The last read of the socket brought less than there was room for: the kernel had no more.
    was_short: bool,
    /// Decrypted, and not yet asked for.
    plain: VecDeque<u8>,
    /// Encrypted, from `sent` on not yet written.
    outgoing: Vec<u8>,
    sent: usize,
    /// Said before the session stood.
    early: Vec<u8>,
    /// The session stands.
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

    /// Reads up to `bytes` at once from now on.
    pub(crate) fn widen(&mut self, bytes: usize) {
        if bytes > self.buffers.incoming.len() {
            self.buffers.incoming.resize(bytes, 0);
        }
    }

    /// Encrypted bytes wait for the kernel.
    pub(crate) fn has_pending(&self) -> bool {
        self.buffers.sent < self.buffers.outgoing.len()
    }

    /// Says whether a read of fewer bytes than asked for has emptied the kernel's buffer: nothing decrypted
    /// is left either.
    pub(crate) fn short_read_empties(&self) -> bool {
        self.buffers.was_short && self.buffers.plain.is_empty()
    }

    pub(crate) fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        let held = &mut self.buffers.plain;
        if !held.is_empty() {
            // Whole records may still wait behind it.
            self.buffers.was_short = false;
            return held.read(space);
        }
        loop {
            let taken = self.drive(space, &[])?;
            self.flush_some()?;
            if taken > 0 {
                return Ok(taken);
            }
            if self.buffers.ended {
                return Ok(0);
            }
            let free = self.buffers.free()?;
            let room = free.len();
            match self.socket.read(free)? {
                0 => return Ok(0),
                count => {
                    self.buffers.filled += count;
                    self.buffers.was_short = count < room;
                }
            }
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

    /// Says that the end that follows is meant, where the kernel takes that at once. A program that is killed
    /// cannot say so.
    pub(crate) fn say_bye(&mut self) {
        if self.buffers.open && !self.has_pending() {
            let queued = match &mut self.session {
                Session::Client(session) => say_bye(session, &mut self.buffers),
                Session::Server(session) => say_bye(session, &mut self.buffers),
            };
            let _ = queued.and_then(|()| self.flush());
        }
    }

    /// Says whether the other end has said so.
    pub(crate) fn has_heard_bye(&self) -> bool {
        self.buffers.ended
    }

    /// Writes what is encrypted; `WouldBlock` when the kernel does not take all.
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
    /// Room for what arrives next.
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

/// Both kinds of session.
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
        // An alert is 24 bytes in TLS 1.3, with all that surrounds it.
        let mut alert = [0; 64];
        let count = traffic.queue_close_notify(&mut alert).map_err(broken)?;
        buffers.outgoing.extend_from_slice(&alert[..count]);
    }
    Ok(())
}

/// Acts on what has arrived until more has to arrive or `space` is full, then encrypts `words`; the bytes put
/// into `space`, which only a call without words may have.
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
                    buffers.plain.extend(&record.payload[fits..]);
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
        // A new key goes before the bytes every 2^24 records.
        Err(EncryptError::InsufficientSize(needed)) => {
            outgoing.resize(end + needed.required_size, 0);
            traffic.encrypt(bytes, &mut outgoing[end..])
        }
        other => other,
    };
    outgoing.truncate(end + written.map_err(io::Error::other)?);
    Ok(())
}

/// A handshake's end in the words of who checked the certificates.
fn refused(error: rustls::Error) -> io::Error {
    match grid::trust_error(&error) {
        Some(reason) => io::Error::new(ErrorKind::PermissionDenied, format!("TLS: {reason}")),
        None => broken(grid::reason(&error)),
    }
}

fn broken(error: impl std::fmt::Display) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, format!("TLS: {error}"))
}

#[cfg(test)]
mod tests;
