//! One message with descriptors over a SOCK_SEQPACKET pair.

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use nix::sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, recvmsg, sendmsg};

/// Sends one message, together with at most 253 descriptors (the kernel's SCM_MAX_FD).
pub(crate) fn send(socket: BorrowedFd<'_>, bytes: &[u8], fds: &[RawFd]) -> io::Result<()> {
    let rights = [ControlMessage::ScmRights(fds)];
    let control = if fds.is_empty() { &[][..] } else { &rights[..] };
    sendmsg::<()>(
        socket.as_raw_fd(),
        &[IoSlice::new(bytes)],
        control,
        MsgFlags::MSG_NOSIGNAL,
        None,
    )?;
    Ok(())
}

/// Receives one message; empty when the other end is gone.
pub(crate) fn receive(socket: BorrowedFd<'_>) -> io::Result<(Vec<u8>, Vec<OwnedFd>)> {
    let mut bytes = vec![0; LARGEST_MESSAGE];
    let mut control = nix::cmsg_space!([RawFd; 253]);
    let mut parts = [IoSliceMut::new(&mut bytes)];
    let flags = MsgFlags::MSG_CMSG_CLOEXEC;
    let message = recvmsg::<()>(socket.as_raw_fd(), &mut parts, Some(&mut control), flags)?;
    let mut fds = Vec::new();
    for rights in message.cmsgs()? {
        if let ControlMessageOwned::ScmRights(received) = rights {
            // SAFETY: the kernel has just installed these descriptors for us; nobody else knows them.
            fds.extend(received.into_iter().map(|fd| unsafe { OwnedFd::from_raw_fd(fd) }));
        }
    }
    let length = message.bytes;
    bytes.truncate(length);
    Ok((bytes, fds))
}

/// A report takes some 30 bytes for each node; 64 kB are enough for 2000 nodes.
const LARGEST_MESSAGE: usize = 65_536;
