//! Finds to whom a listening socket of this host belongs: the kernel names it (sock_diag(7)), and /proc the
//! process.

use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket};
use std::collections::VecDeque;
use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsRawFd;

/// SOCK_DIAG_BY_FAMILY and NLM_F_REQUEST of linux/sock_diag.h and linux/netlink.h.
const BY_FAMILY: u16 = 20;
const REQUEST: u16 = 1;
/// A state of linux/tcp_states.h, which follows the family.
const LISTEN: u8 = 10;

/// `struct nlmsghdr`, `struct inet_diag_req_v2` and the part of `struct inet_diag_msg` that is read.
const HEADER_BYTES: usize = 16;
const REQUEST_BYTES: usize = HEADER_BYTES + 56;
const UID_AT: usize = HEADER_BYTES + 64;
const INODE_AT: usize = HEADER_BYTES + 68;

/// Most processes of a job on its head node that are checked: a launcher has a few.
const MOST_PROCESSES: usize = 4096;

/// Who accepts connections at an address of this host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taker {
    /// The process that was asked about, or one that it has started.
    Process,
    Other,
    Nobody,
}

/// Finds who accepts connections at an address of this host. If the process cannot be seen from here, as in a
/// container, this user's sockets count as its own.
pub(crate) fn taker(process: u32, address: SocketAddr) -> Taker {
    match listener(address) {
        None => Taker::Nobody,
        Some(listener) if is_of(process, &listener) => Taker::Process,
        Some(_) => Taker::Other,
    }
}

fn is_of(process: u32, listener: &Listener) -> bool {
    if process == 0 {
        return listener.uid == nix::unistd::geteuid().as_raw();
    }
    let mut left = VecDeque::from([process]);
    for _ in 0..MOST_PROCESSES {
        let Some(process) = left.pop_front() else {
            return false;
        };
        if has(process, listener.inode) {
            return true;
        }
        left.extend(children(process));
    }
    false
}

#[derive(Debug, PartialEq, Eq)]
struct Listener {
    uid: u32,
    inode: u32,
}

/// The socket that would receive a connection to this address.
fn listener(address: SocketAddr) -> Option<Listener> {
    let socket = socket(
        AddressFamily::Netlink,
        SockType::Raw,
        SockFlag::SOCK_CLOEXEC,
        SockProtocol::NetlinkSockDiag,
    );
    let socket = socket.ok()?;
    // The kernel answers before send() returns.
    send(socket.as_raw_fd(), &request(address), MsgFlags::empty()).ok()?;
    let mut answer = [0; 1024];
    let length = recv(socket.as_raw_fd(), &mut answer, MsgFlags::MSG_DONTWAIT).ok()?;
    read(&answer[..length])
}

fn request(address: SocketAddr) -> Vec<u8> {
    let (family, ip) = match address.ip() {
        IpAddr::V4(ip) => (libc::AF_INET, [&ip.octets()[..], &[0; 12]].concat()),
        IpAddr::V6(ip) => (libc::AF_INET6, ip.octets().to_vec()),
    };
    let mut bytes = Vec::with_capacity(REQUEST_BYTES);
    bytes.extend((REQUEST_BYTES as u32).to_ne_bytes());
    bytes.extend(BY_FAMILY.to_ne_bytes());
    bytes.extend(REQUEST.to_ne_bytes());
    bytes.extend([0; 8]);
    // Families and protocols are numbers of one byte.
    bytes.extend([family as u8, libc::IPPROTO_TCP as u8, 0, 0]);
    bytes.extend((1_u32 << LISTEN).to_ne_bytes());
    bytes.extend(address.port().to_be_bytes());
    bytes.extend([0; 2]);
    bytes.extend(ip);
    bytes.extend([0; 16]);
    bytes.extend([0; 4]);
    // Any socket, by INET_DIAG_NOCOOKIE.
    bytes.extend([0xff; 8]);
    bytes
}

fn read(answer: &[u8]) -> Option<Listener> {
    let number = |at: usize| Some(u32::from_ne_bytes(answer.get(at..at + 4)?.try_into().ok()?));
    let kind = u16::from_ne_bytes(answer.get(4..6)?.try_into().ok()?);
    let is_listener = kind == BY_FAMILY && answer.get(HEADER_BYTES + 1) == Some(&LISTEN);
    let listener = Listener {
        uid: number(UID_AT)?,
        inode: number(INODE_AT)?,
    };
    is_listener.then_some(listener)
}

/// Whether a process has a socket open.
fn has(process: u32, inode: u32) -> bool {
    let wanted = format!("socket:[{inode}]");
    let open = fs::read_dir(format!("/proc/{process}/fd"))
        .into_iter()
        .flatten()
        .flatten();
    let mut open = open.filter_map(|entry| fs::read_link(entry.path()).ok());
    open.any(|target| target.as_os_str() == wanted.as_str())
}

/// The processes that one has started, by any of its threads.
fn children(process: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{process}/task"))
        .into_iter()
        .flatten()
        .flatten();
    let texts = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    let texts: Vec<String> = texts.collect();
    let numbers = texts.iter().flat_map(|text| text.split_whitespace());
    numbers.filter_map(|number| number.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    #[test]
    fn a_listener_is_found_by_every_address_that_leads_to_it_and_a_connection_is_none() {
        let own = std::process::id();
        for bound in ["127.0.0.1:0", "0.0.0.0:0", "[::]:0", "[::1]:0"] {
            let Ok(socket) = TcpListener::bind(bound) else {
                assert!(bound.starts_with('['), "{bound}");
                continue;
            };
            let port = socket.local_addr().unwrap().port();
            let to: SocketAddr = match bound {
                "[::1]:0" => ([0, 0, 0, 0, 0, 0, 0, 1], port).into(),
                _ => ([127, 0, 0, 1], port).into(),
            };
            let found = listener(to).unwrap();
            assert_eq!(found.uid, nix::unistd::geteuid().as_raw(), "{bound}");
            assert_eq!([taker(own, to), taker(0, to)], [Taker::Process; 2], "{bound}");
            let stream = TcpStream::connect(to).unwrap();
            assert_eq!(taker(own, stream.local_addr().unwrap()), Taker::Nobody, "{bound}");
            drop((socket, stream));
            // A child that another test is starting has all sockets open until it has executed its program.
            let until = Instant::now() + Duration::from_secs(20);
            while taker(own, to) != Taker::Nobody {
                assert!(Instant::now() < until, "{bound}");
                std::thread::yield_now();
            }
        }
    }

    #[test]
    fn what_a_process_or_its_child_has_is_its_own_and_what_its_parent_has_is_not() {
        let mut child = Command::new("sleep")
            .arg("100")
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        assert_eq!(taker(std::process::id(), address), Taker::Process);
        assert_eq!(taker(child.id(), address), Taker::Other);
        assert!(children(std::process::id()).contains(&child.id()));
        assert_eq!(taker(u32::MAX, address), Taker::Other, "no such process");
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn an_answer_of_any_length_is_read_without_a_panic() {
        let mut answer = [0; 200];
        answer[4..6].copy_from_slice(&BY_FAMILY.to_ne_bytes());
        answer[HEADER_BYTES + 1] = LISTEN;
        for length in 0..answer.len() {
            assert_eq!(read(&answer[..length]).is_some(), length >= INODE_AT + 4);
        }
    }
}
