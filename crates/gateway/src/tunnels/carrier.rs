//! What a lane is carried by: a TCP connection, in the clear or under TLS, or a QUIC connection, with the
//! reads and writes of a non-blocking socket.

use crate::sys::socket::{self, PathInfo};
use crate::tunnels::quic::session::Session;
use crate::tunnels::tls::{Binding, Tls};
use mio::net::TcpStream;
use mio::{Interest, Registry, Token};
use rustls::pki_types::CertificateDer;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::time::Duration;
use std::time::Instant;

pub(crate) enum Carrier {
    Clear(TcpStream),
    Tls(Box<Tls>),
    Quic(Box<Session>),
}

impl Carrier {
    /// Lends the TCP connection below, if there is one.
    pub(crate) fn tcp(&self) -> Option<&TcpStream> {
        match self {
            Carrier::Clear(socket) => Some(socket),
            Carrier::Tls(tls) => Some(&tls.socket),
            Carrier::Quic(_) => None,
        }
    }

    pub(crate) fn into_tcp(self) -> Option<TcpStream> {
        match self {
            Carrier::Clear(socket) => Some(socket),
            Carrier::Tls(tls) => Some(tls.socket),
            Carrier::Quic(_) => None,
        }
    }

    pub(crate) fn quic(&mut self) -> Option<&mut Session> {
        match self {
            Carrier::Quic(session) => Some(session),
            _ => None,
        }
    }

    fn socket(&mut self) -> Option<&mut TcpStream> {
        match self {
            Carrier::Clear(socket) => Some(socket),
            Carrier::Tls(tls) => Some(&mut tls.socket),
            Carrier::Quic(_) => None,
        }
    }

    /// Registers it with the event loop. QUIC has one socket for all of its connections.
    pub(crate) fn register(&mut self, registry: &Registry, token: Token, anew: bool) -> io::Result<()> {
        let interest = Interest::READABLE | Interest::WRITABLE;
        match self.socket() {
            Some(socket) if anew => registry.reregister(socket, token, interest),
            Some(socket) => registry.register(socket, token, interest),
            None => Ok(()),
        }
    }

    /// Asks the kernel to report, or to report no longer, when the connection accepts bytes. If it accepts
    /// some already, that is reported at once.
    pub(crate) fn watch_writable(
        &mut self,
        registry: &Registry,
        token: Token,
        wanted: bool,
    ) -> io::Result<()> {
        let interest = match wanted {
            true => Interest::READABLE | Interest::WRITABLE,
            false => Interest::READABLE,
        };
        match self.socket() {
            Some(socket) => registry.reregister(socket, token, interest),
            None => Ok(()),
        }
    }

    pub(crate) fn deregister(&mut self, registry: &Registry) {
        if let Some(socket) = self.socket() {
            let _ = registry.deregister(socket);
        }
    }

    /// Whether the connection is established.
    pub(crate) fn is_connected(&self) -> io::Result<bool> {
        match self {
            Carrier::Quic(session) => session.is_open(),
            Carrier::Clear(socket) => is_connected(socket),
            Carrier::Tls(tls) => is_connected(&tls.socket),
        }
    }

    /// Names it as `causeway status` does.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Carrier::Clear(_) => "clear",
            Carrier::Tls(_) => "TLS 1.3",
            Carrier::Quic(_) => "QUIC",
        }
    }

    pub(crate) fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        match self {
            Carrier::Clear(socket) => socket.read(space),
            Carrier::Tls(tls) => tls.read(space),
            Carrier::Quic(session) => session.read(space),
        }
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Carrier::Clear(socket) => socket.write(bytes),
            Carrier::Tls(tls) => tls.write(bytes),
            Carrier::Quic(session) => session.write(bytes),
        }
    }

    /// Writes what was accepted earlier; `WouldBlock` if the kernel does not take all of it.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        match self {
            Carrier::Tls(tls) => tls.flush(),
            _ => Ok(()),
        }
    }

    /// Whether bytes that were accepted wait for the kernel, which will report when it can take them.
    pub(crate) fn has_pending(&self) -> bool {
        matches!(self, Carrier::Tls(tls) if tls.has_pending())
    }

    /// Notes that the kernel has reported the end of what arrives, which it does only once.
    pub(crate) fn note_end(&mut self) {
        if let Carrier::Tls(tls) = self {
            tls.note_end();
        }
    }

    /// Whether a read of fewer bytes than requested has emptied the kernel's buffer.
    pub(crate) fn short_read_empties(&self) -> bool {
        match self {
            Carrier::Clear(_) => true,
            Carrier::Tls(tls) => tls.short_read_empties(),
            Carrier::Quic(_) => false,
        }
    }

    /// Notes that the lane was written: `full` if it has more than can be sent now.
    pub(crate) fn on_written(&mut self, full: bool, now: Instant) {
        if let Carrier::Quic(session) = self {
            session.on_written(full, now);
        }
    }

    /// Notes that the lane is up: from now on, `bytes` are read at a time.
    pub(crate) fn widen(&mut self, bytes: usize) {
        match self {
            Carrier::Clear(_) => {}
            Carrier::Tls(tls) => tls.widen(bytes),
            Carrier::Quic(session) => session.widen(),
        }
    }

    /// Returns what ties the proof of the grid's key to this session; in the clear there is nothing.
    pub(crate) fn binding(&self) -> Option<Binding> {
        match self {
            Carrier::Clear(_) => None,
            Carrier::Tls(tls) => tls.binding(),
            Carrier::Quic(session) => session.binding(),
        }
    }

    /// The certificates that the far gateway showed, its own first; none in the clear.
    pub(crate) fn shown(&self) -> Vec<CertificateDer<'static>> {
        match self {
            Carrier::Clear(_) => Vec::new(),
            Carrier::Tls(tls) => tls.shown(),
            Carrier::Quic(session) => session.shown(),
        }
    }

    /// Reports the state of the path, as far as the carrier knows it.
    pub(crate) fn path(&self) -> io::Result<PathInfo> {
        match self {
            Carrier::Clear(socket) => socket::path_info(socket),
            Carrier::Tls(tls) => socket::path_info(&tls.socket),
            Carrier::Quic(session) => Ok(session.path_info()),
        }
    }

    /// Limits what it sends to this many bytes per second.
    pub(crate) fn set_most_rate(&self, bytes_per_second: Option<u64>) {
        match (self, self.tcp()) {
            // If the kernel does not pace, the bottleneck of the path does; only smoothness is lost.
            (_, Some(socket)) => drop(socket::set_most_rate(socket, bytes_per_second)),
            (Carrier::Quic(session), None) => session.model.get().reserve(bytes_per_second),
            _ => {}
        }
    }

    /// Tells the other end, if the protocol can, that this end closes the connection.
    pub(crate) fn say_bye(&mut self) {
        if let Carrier::Tls(session) = self {
            session.say_bye();
        }
    }

    pub(crate) fn shutdown_write(&mut self) -> io::Result<()> {
        match (self.tcp().map(|socket| socket.shutdown(Shutdown::Write)), self) {
            (Some(done), _) => done,
            (None, Carrier::Quic(session)) => {
                session.finish();
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// Whether a TCP connection is established.
pub(crate) fn is_connected(socket: &TcpStream) -> io::Result<bool> {
    if let Some(error) = socket.take_error()? {
        return Err(error);
    }
    if socket.peer_addr().is_err() {
        return Ok(false);
    }
    let _ = socket.set_nodelay(true);
    Ok(true)
}

/// Sets the options of a lane's socket; returns the congestion control in force.
pub(crate) fn prepare(socket: &TcpStream, wanted: &str) -> String {
    let socket = socket2::SockRef::from(socket);
    // Options that cannot be set are not needed for correctness, and `causeway status` shows what is in
    // force.
    let _ = socket.set_tcp_congestion(wanted.as_bytes());
    let _ = socket.set_keepalive(true);
    let _ = socket.set_tcp_keepalive(&socket2::TcpKeepalive::new().with_time(Duration::from_secs(30)));
    let name = socket.tcp_congestion().unwrap_or_default();
    String::from_utf8_lossy(&name).trim_end_matches('\0').to_owned()
}
