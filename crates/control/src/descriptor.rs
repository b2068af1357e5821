//! Passes a descriptor over a connection within a host, beside a line (unix(7), SCM_RIGHTS).

use nix::cmsg_space;
use nix::errno::Errno;
use nix::sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, recvmsg, sendmsg};
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// Sends a line, and with it a descriptor, on a connection that has room for the line.
///
/// # Errors
/// Those of sendmsg(2), or that the line did not fit.
pub fn give(socket: &impl AsFd, line: &[u8], descriptor: BorrowedFd<'_>) -> io::Result<()> {
    let descriptors = [descriptor.as_raw_fd()];
    let beside = [ControlMessage::ScmRights(&descriptors)];
    let (parts, flags) = ([IoSlice::new(line)], MsgFlags::MSG_NOSIGNAL);
    let sent = sendmsg::<()>(socket.as_fd().as_raw_fd(), &parts, &beside, flags, None)?;
    if sent < line.len() {
        return Err(io::ErrorKind::WriteZero.into());
    }
    Ok(())
}

/// Reads until `bytes` is full. Returns the descriptor that came with them, if there was one.
///
/// # Errors
/// The errors of recvmsg(2), or that the connection ended before that.
#[allow(unsafe_code)]
pub(crate) fn read_exact(socket: &impl AsFd, bytes: &mut [u8]) -> io::Result<Option<OwnedFd>> {
    let (mut read, mut descriptor) = (0, None);
    while read < bytes.len() {
        let mut parts = [IoSliceMut::new(&mut bytes[read..])];
        let mut space = cmsg_space!([RawFd; 1]);
        let number = socket.as_fd().as_raw_fd();
        let flags = MsgFlags::MSG_CMSG_CLOEXEC;
        let message = match recvmsg::<()>(number, &mut parts, Some(&mut space), flags) {
            Err(Errno::EINTR) => continue,
            other => other?,
        };
        if message.bytes == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        for beside in message.cmsgs()? {
            if let ControlMessageOwned::ScmRights(numbers) = beside {
                // SAFETY: the kernel has just made them for this process, and nobody else knows about them.
                let mut owned = numbers
                    .into_iter()
                    .map(|number| unsafe { OwnedFd::from_raw_fd(number) });
                descriptor = owned.next().or(descriptor);
            }
        }
        read += message.bytes;
    }
    Ok(descriptor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_descriptor_comes_with_its_line_and_what_it_leads_to_can_be_read() {
        let (near, far) = UnixStream::pair().unwrap();
        let (mut given, mut kept) = UnixStream::pair().unwrap();
        give(&near, b"here it is", given.as_fd()).unwrap();
        given.write_all(b"before").unwrap();
        drop(given);
        let mut line = [0; 10];
        let got = read_exact(&far, &mut line).unwrap().unwrap();
        assert_eq!(&line, b"here it is");
        UnixStream::from(got).write_all(b" and after").unwrap();
        let mut text = String::new();
        kept.read_to_string(&mut text).unwrap();
        assert_eq!(text, "before and after");
    }

    #[test]
    fn bytes_without_a_descriptor_come_as_they_are_and_an_end_is_an_error() {
        let (mut near, far) = UnixStream::pair().unwrap();
        near.write_all(b"text").unwrap();
        let mut text = [0; 4];
        assert!(read_exact(&far, &mut text).unwrap().is_none());
        drop(near);
        assert!(read_exact(&far, &mut text).is_err());
    }
}
