//! The socket of a stream, which counts what it reads and writes: if this worker is killed, the kernel's
//! counts show what happened after that.

use crate::sys::socket::{counts, inode};
use mio::event::Source;
use mio::net::TcpStream;
use mio::{Interest, Registry};
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// Includes news of urgent data, because a read stops before it.
const INTEREST: Interest = Interest::READABLE.add(Interest::WRITABLE).add(Interest::PRIORITY);

pub(crate) struct Socket {
    stream: TcpStream,
    /// Whether this gateway has made the connection.
    dialled: bool,
    read: u64,
    written: u64,
    inode: u64,
}

impl Socket {
    /// A connection that this gateway is making.
    pub(crate) fn dialled(stream: TcpStream) -> Socket {
        Socket {
            inode: inode(&stream).unwrap_or(0),
            stream,
            dialled: true,
            read: 0,
            written: 0,
        }
    }

    /// A connection that was made to this gateway, which may have written to it.
    pub(crate) fn accepted(stream: TcpStream) -> Socket {
        Socket::inherit(stream, false)
    }

    /// A socket that an earlier worker has used.
    pub(crate) fn inherit(stream: TcpStream, dialled: bool) -> Socket {
        // If the kernel does not count, the connection cannot be taken up later.
        let (read, written) = counts(&stream, dialled).map_or((0, 0), |counts| (counts.read, counts.written));
        Socket {
            inode: inode(&stream).unwrap_or(0),
            stream,
            dialled,
            read,
            written,
        }
    }

    pub(crate) fn is_dialled(&self) -> bool {
        self.dialled
    }

    /// Counts the bytes read and written.
    pub(crate) fn moved(&self) -> (u64, u64) {
        (self.read, self.written)
    }

    /// What distinguishes it from another socket with its descriptor.
    pub(crate) fn inode(&self) -> u64 {
        self.inode
    }

    pub(crate) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    pub(crate) fn into_stream(self) -> TcpStream {
        self.stream
    }

    pub(crate) fn register(&mut self, registry: &Registry, token: mio::Token) -> io::Result<()> {
        self.stream.register(registry, token, INTEREST)
    }

    /// Registers a socket anew that another part of the loop had registered.
    pub(crate) fn reregister(&mut self, registry: &Registry, token: mio::Token) -> io::Result<()> {
        self.stream.reregister(registry, token, INTEREST)
    }

    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.stream.read(buffer)?;
        self.read += count as u64;
        Ok(count)
    }

    /// Peeks at what has arrived.
    pub(crate) fn peek(&self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.stream.peek(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => return other,
            }
        }
    }

    /// Takes off what was peeked at.
    pub(crate) fn take_off(&mut self, count: usize) -> io::Result<()> {
        let mut bytes = [0; 512];
        let mut left = count;
        while left > 0 {
            let most = left.min(bytes.len());
            match self.read(&mut bytes[..most]) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => left -= count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.stream.write(bytes)?;
        self.written += count as u64;
        Ok(count)
    }

    /// Sends one byte beside the stream. Nothing was written before, so it fits.
    pub(crate) fn send_urgent(&mut self, byte: u8) -> io::Result<()> {
        let count = socket2::SockRef::from(&self.stream).send_out_of_band(&[byte])?;
        self.written += count as u64;
        Ok(())
    }

    pub(crate) fn shutdown_write(&self) -> io::Result<()> {
        // The process closed at the same moment: nothing is left to end.
        self.stream.shutdown(Shutdown::Write).or_else(|error| {
            if error.kind() == io::ErrorKind::NotConnected {
                Ok(())
            } else {
                Err(error)
            }
        })
    }

    /// Takes the error that ended the connection, if one did.
    pub(crate) fn take_error(&self) -> Option<io::Error> {
        self.stream.take_error().unwrap_or_else(Some)
    }

    /// Makes closing the socket a reset, as the far end was reset.
    pub(crate) fn reset_on_close(&self) {
        // A failure means that the connection is gone already, which is what is wanted.
        let _ = socket2::SockRef::from(&self.stream).set_linger(Some(Duration::ZERO));
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

/// Makes a process's urgent data arrive in the stream. There it loses its mark, because a tunnel's streams
/// have none. By default, the kernel would keep it beside the stream, where nobody reads it.
pub(crate) fn keep_urgent_data(socket: &socket2::Socket) -> io::Result<()> {
    socket.set_out_of_band_inline(true)
}
