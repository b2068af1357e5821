//! What a lane is carried by: a TCP connection, in the clear or under TLS, with the reads and writes of a non-blocking socket.

use crate::tls::{Binding, Tls};
use mio::event::Source;
use mio::net::TcpStream;
use std::io::{self, Read, Write};
use std::net::Shutdown;

pub(crate) enum Carrier {
    Clear(TcpStream),
    Tls(Box<Tls>),
}

impl Carrier {
    /// The connection below.
    pub(crate) fn tcp(&self) -> &TcpStream {
        match self {
            Carrier::Clear(socket) => socket,
            Carrier::Tls(tls) => &tls.socket,
        }
    }

    /// For the event loop.
    pub(crate) fn source(&mut self) -> &mut impl Source {
        match self {
            Carrier::Clear(socket) => socket,
            Carrier::Tls(tls) => &mut tls.socket,
        }
    }

    /// As `causeway status` shows it.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Carrier::Clear(_) => "clear",
            Carrier::Tls(_) => "TLS 1.3",
        }
    }

    pub(crate) fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        match self {
            Carrier::Clear(socket) => socket.read(space),
            Carrier::Tls(tls) => tls.read(space),
        }
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Carrier::Clear(socket) => socket.write(bytes),
            Carrier::Tls(tls) => tls.write(bytes),
        }
    }

    /// Writes what was accepted earlier; `WouldBlock` when the kernel does not take all.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        match self {
            Carrier::Clear(_) => Ok(()),
            Carrier::Tls(tls) => tls.flush(),
        }
    }

    /// Something that was accepted waits for the kernel.
    pub(crate) fn has_pending(&self) -> bool {
        matches!(self, Carrier::Tls(tls) if tls.has_pending())
    }

    /// Whether a read of fewer bytes than asked for has emptied the kernel's buffer.
    pub(crate) fn short_read_empties(&self) -> bool {
        matches!(self, Carrier::Clear(_))
    }

    /// The lane stands: `bytes` will be read at once.
    pub(crate) fn widen(&mut self, bytes: usize) {
        if let Carrier::Tls(tls) = self {
            tls.widen(bytes);
        }
    }

    /// What ties the proof of the grid's key to this session; nothing does in the clear.
    pub(crate) fn binding(&self) -> Option<Binding> {
        match self {
            Carrier::Clear(_) => None,
            Carrier::Tls(tls) => tls.binding(),
        }
    }

    pub(crate) fn shutdown_write(&self) -> io::Result<()> {
        self.tcp().shutdown(Shutdown::Write)
    }
}
