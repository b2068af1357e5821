//! ICMP echo with the kernel's receive time stamps, so that a busy machine delays the answer in the emulator,
//! where it matters, but not in the measuring process. (ping itself prints 0.1 ms steps above 10 ms.)

use std::io::{self, IoSliceMut};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrIn, recvmsg,
    sendto, setsockopt, socket, sockopt,
};
use nix::time::{ClockId, clock_gettime};

/// Echo requests to one address, from the network namespace of the calling thread.
#[derive(Debug)]
pub(crate) struct Pinger {
    socket: OwnedFd,
    target: SockaddrIn,
    identifier: u16,
}

const ECHO_REQUEST: u8 = 8;
const ECHO_REPLY: u8 = 0;
/// The default size of ping: 56 bytes of data, 84 bytes of IP packet.
const DATA_BYTES: usize = 56;

impl Pinger {
    /// Needs CAP_NET_RAW in the namespace.
    pub(crate) fn new(target: Ipv4Addr) -> io::Result<Pinger> {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let socket = socket(AddressFamily::Inet, SockType::Raw, flags, SockProtocol::Icmp)?;
        setsockopt(&socket, sockopt::ReceiveTimestampns, &true)?;
        let target = SocketAddrV4::new(target, 0).into();
        Ok(Pinger {
            socket,
            target,
            identifier: std::process::id() as u16,
        })
    }

    /// Sends request number `sequence`, and returns the time of day at which it left.
    pub(crate) fn send(&self, sequence: u16) -> io::Result<Duration> {
        let mut request = [0u8; 8 + DATA_BYTES];
        request[0] = ECHO_REQUEST;
        request[4..6].copy_from_slice(&self.identifier.to_be_bytes());
        request[6..8].copy_from_slice(&sequence.to_be_bytes());
        let sum = internet_checksum(&request);
        request[2..4].copy_from_slice(&sum.to_be_bytes());
        let left_at = clock_gettime(ClockId::CLOCK_REALTIME)?;
        sendto(self.socket.as_raw_fd(), &request, &self.target, MsgFlags::empty())?;
        Ok(left_at.into())
    }

    /// The next reply: its number, and the time of day at which it arrived. `None` if none arrives within
    /// `wait`.
    pub(crate) fn receive(&self, wait: Duration) -> io::Result<Option<(u16, Duration)>> {
        let deadline = Instant::now() + wait;
        loop {
            if let Some(reply) = self.take()? {
                return Ok(Some(reply));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            let timeout = PollTimeout::try_from(left.as_millis() + 1).unwrap_or(PollTimeout::MAX);
            match poll(
                &mut [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)],
                timeout,
            ) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(failure) => return Err(failure.into()),
            }
        }
    }

    /// A reply that has already arrived. Packets that are not ours (another program's echo, our own request
    /// on loopback) are skipped.
    fn take(&self) -> io::Result<Option<(u16, Duration)>> {
        loop {
            let mut packet = [0u8; 256];
            let mut control = nix::cmsg_space!(nix::sys::time::TimeSpec);
            let mut parts = [IoSliceMut::new(&mut packet)];
            let received = recvmsg::<()>(
                self.socket.as_raw_fd(),
                &mut parts,
                Some(&mut control),
                MsgFlags::empty(),
            );
            let message = match received {
                Ok(message) => message,
                Err(Errno::EAGAIN) => return Ok(None),
                Err(failure) => return Err(failure.into()),
            };
            let arrived_at = message.cmsgs()?.find_map(|cmsg| match cmsg {
                ControlMessageOwned::ScmTimestampns(at) => Some(Duration::from(at)),
                _ => None,
            });
            let bytes = message.bytes;
            if let (Some(sequence), Some(at)) = (self.reply_number(&packet[..bytes]), arrived_at) {
                return Ok(Some((sequence, at)));
            }
        }
    }

    fn reply_number(&self, packet: &[u8]) -> Option<u16> {
        let header_bytes = usize::from(packet.first()? & 0x0f) * 4;
        let echo = packet.get(header_bytes..header_bytes + 8)?;
        let ours = echo[0] == ECHO_REPLY && echo[4..6] == self.identifier.to_be_bytes();
        ours.then(|| u16::from_be_bytes([echo[6], echo[7]]))
    }
}

/// Checksum by RFC 1071, for an even number of bytes.
fn internet_checksum(bytes: &[u8]) -> u16 {
    let sum: u32 = bytes
        .chunks_exact(2)
        .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])))
        .sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checksummed_message_sums_to_zero() {
        let mut message = [8u8, 0, 0, 0, 0x12, 0x34, 0, 1, 0xff, 0xff, 0xab, 0xcd];
        let sum = internet_checksum(&message);
        message[2..4].copy_from_slice(&sum.to_be_bytes());
        assert_eq!(internet_checksum(&message), 0);
    }
}
