//! What the standard library lacks: socket options, and descriptors that a predecessor left. Together with
//! `priority` and `process`, the only unsafe code of this crate.
#![allow(unsafe_code)]

use mio::net::TcpStream;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// `struct tcp_info` of include/uapi/linux/tcp.h, which only ever grows at its end. A kernel that knows a
/// shorter one leaves the rest zero.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct TcpInfo {
    /// state, ca_state, retransmits, probes, backoff, options, window scales, flags.
    states: [u8; 8],
    /// rto, ato, snd_mss, rcv_mss, unacked, sacked, lost, retrans, fackets, last_data_sent, last_ack_sent,
    /// last_data_recv, last_ack_recv, pmtu, rcv_ssthresh.
    before_rtt: [u32; 15],
    rtt: u32,
    rttvar: u32,
    snd_ssthresh: u32,
    snd_cwnd: u32,
    /// advmss, reordering, rcv_rtt, rcv_space.
    after_cwnd: [u32; 4],
    total_retrans: u32,
    pacing_rate: u64,
    max_pacing_rate: u64,
    bytes_acked: u64,
    bytes_received: u64,
    segs_out: u32,
    segs_in: u32,
    notsent_bytes: u32,
    min_rtt: u32,
    data_segs_in: u32,
    data_segs_out: u32,
    delivery_rate: u64,
    /// busy_time, rwnd_limited, sndbuf_limited.
    times: [u64; 3],
    delivered: u32,
    delivered_ce: u32,
    bytes_sent: u64,
    bytes_retrans: u64,
    dsack_dups: u32,
    reord_seen: u32,
    rcv_ooopack: u32,
    snd_wnd: u32,
    rcv_wnd: u32,
    rehash: u32,
    total_rto: u16,
    total_rto_recoveries: u16,
    total_rto_time: u32,
}

const MSS: usize = 2;
const PMTU: usize = 13;
const CA_STATE: usize = 1;
/// TCP_CA_Disorder of include/uapi/linux/tcp.h; from the next state on, segments are being sent again.
const DISORDER: u8 = 1;

/// Two ends of a connection within this host; the far one blocks.
///
/// # Errors
/// Those of its system calls; the loopback interface is down.
pub(crate) fn loopback_pair() -> io::Result<(TcpStream, std::net::TcpStream)> {
    let listener = std::net::TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0))?;
    let far = std::net::TcpStream::connect(listener.local_addr()?)?;
    let own = far.local_addr()?;
    loop {
        // Another process of this host may have connected first.
        let (near, peer) = listener.accept()?;
        if peer == own {
            for end in [&near, &far] {
                end.set_nodelay(true)?;
            }
            near.set_nonblocking(true)?;
            return Ok((TcpStream::from_std(near), far));
        }
    }
}

/// How much a TCP connection has carried, as the kernel counts it, without its beginning and its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Bytes that were read from it, and bytes that were written to it.
    pub(crate) read: u64,
    pub(crate) written: u64,
    /// Whether this end has ended its half.
    pub(crate) has_ended: bool,
    /// Whether it is closed at both ends, or was reset.
    pub(crate) is_closed: bool,
}

// States of include/net/tcp_states.h.
const SYN_SENT: u8 = 2;
const FIN_WAIT1: u8 = 4;
const FIN_WAIT2: u8 = 5;
const TIME_WAIT: u8 = 6;
const CLOSE: u8 = 7;
const CLOSE_WAIT: u8 = 8;
const LAST_ACK: u8 = 9;
const CLOSING: u8 = 11;

nix::ioctl_read_bad!(
    /// Bytes that have arrived and were not read (tcp(7)).
    unread_bytes,
    libc::FIONREAD,
    libc::c_int
);
nix::ioctl_read_bad!(
    /// Bytes that were written and have not been acknowledged (tcp(7), SIOCOUTQ).
    unacknowledged_bytes,
    libc::TIOCOUTQ,
    libc::c_int
);

/// Counts how much a connection has carried; `dialled`: this end has made it. Nobody else may use it
/// meanwhile.
///
/// # Errors
/// It is not a TCP connection, or the kernel is older than 4.1 and does not count.
pub(crate) fn counts(socket: &impl AsFd, dialled: bool) -> io::Result<Counts> {
    let number = socket.as_fd().as_raw_fd();
    loop {
        let before = tcp_info(socket)?;
        let (mut unread, mut unacknowledged) = (0, 0);
        // SAFETY: both take the address of an int, which lives across the call.
        unsafe {
            unread_bytes(number, &raw mut unread)?;
            unacknowledged_bytes(number, &raw mut unacknowledged)?;
        }
        let after = tcp_info(socket)?;
        let moves = |info: &TcpInfo| (info.states[0], info.bytes_acked, info.bytes_received);
        if moves(&before) != moves(&after) {
            continue;
        }
        let state = after.states[0];
        let has_ended = matches!(
            state,
            FIN_WAIT1 | FIN_WAIT2 | TIME_WAIT | LAST_ACK | CLOSING | CLOSE
        );
        let far_has_ended = matches!(state, TIME_WAIT | CLOSE_WAIT | LAST_ACK | CLOSING | CLOSE);
        // The beginning of a connection counts as a byte for the dialler, an end as one for both (tcp_ack,
        // tcp_fin).
        let sent = after.bytes_acked + unsigned(unacknowledged);
        let beginning = u64::from(dialled && state != SYN_SENT);
        let received = after.bytes_received.saturating_sub(unsigned(unread));
        return Ok(Counts {
            read: received.saturating_sub(far_has_ended.into()),
            written: sent.saturating_sub(beginning + u64::from(has_ended)),
            has_ended,
            is_closed: state == CLOSE,
        });
    }
}

/// A number that distinguishes a socket from another one with the same descriptor.
pub(crate) fn inode(socket: &impl AsFd) -> Option<u64> {
    nix::sys::stat::fstat(socket).ok().map(|stat| stat.st_ino)
}

fn unsigned(number: libc::c_int) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// What the kernel knows about a TCP connection's path (tcp(7), TCP_INFO).
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PathInfo {
    pub(crate) rtt_microseconds: u32,
    pub(crate) least_rtt_microseconds: u32,
    /// Bytes that may be in flight.
    pub(crate) window_bytes: u64,
    /// The rate of the last acknowledged flight, in bytes per second.
    pub(crate) delivery_rate: u64,
    /// Segments with data sent since the connection came up, including those sent again.
    pub(crate) segments: u32,
    /// Segments sent again.
    pub(crate) retransmits: u32,
    /// Retransmission timeouts (kernel 6.7 and later).
    pub(crate) timeouts: u16,
    /// Segments that arrived out of order: each was answered with a duplicate acknowledgement.
    pub(crate) out_of_order: u32,
    /// Segments that have arrived, and the bytes of a full one.
    pub(crate) delivered: u32,
    pub(crate) segment_bytes: u32,
    /// Largest packet that the path is known to take: the interface's, until a router says less.
    pub(crate) mtu_bytes: u32,
    /// Datagrams lost on the way here that parity repaired.
    pub(crate) repaired: u64,
    /// Whether lost segments are being sent again.
    pub(crate) is_recovering: bool,
}

fn tcp_info(socket: &impl AsFd) -> io::Result<TcpInfo> {
    let mut info = TcpInfo::default();
    let mut length = size_of::<TcpInfo>() as libc::socklen_t;
    // SAFETY: the buffer is valid for `length` bytes, and the kernel writes no more than that; every bit
    // pattern is a TcpInfo.
    let status = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            (&raw mut info).cast(),
            &raw mut length,
        )
    };
    if status == 0 {
        Ok(info)
    } else {
        Err(io::Error::last_os_error())
    }
}

pub(crate) fn path_info(socket: &impl AsFd) -> io::Result<PathInfo> {
    let info = tcp_info(socket)?;
    Ok(PathInfo {
        rtt_microseconds: info.rtt,
        least_rtt_microseconds: info.min_rtt,
        window_bytes: u64::from(info.snd_cwnd) * u64::from(info.before_rtt[MSS]),
        delivery_rate: info.delivery_rate,
        segments: info.data_segs_out,
        retransmits: info.total_retrans,
        timeouts: info.total_rto,
        out_of_order: info.rcv_ooopack,
        delivered: info.delivered,
        segment_bytes: info.before_rtt[MSS],
        mtu_bytes: info.before_rtt[PMTU],
        repaired: 0,
        is_recovering: info.states[CA_STATE] > DISORDER,
    })
}

/// Never sends faster than this many bytes per second; `None` takes the bound away. The kernel paces by
/// itself if the interface has no fq (tcp(7), SO_MAX_PACING_RATE; tcp_output.c).
pub(crate) fn set_most_rate(socket: &impl AsFd, bytes_per_second: Option<u64>) -> io::Result<()> {
    let rate = bytes_per_second.unwrap_or(u64::MAX);
    // SAFETY: the option takes an unsigned long, which lives across the call.
    let status = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MAX_PACING_RATE,
            (&raw const rate).cast(),
            size_of::<u64>() as libc::socklen_t,
        )
    };
    if status == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Makes the socket count as writable only while less than `bytes` wait unsent in the kernel: what waits then
/// stays in this process, where small frames can still overtake it.
pub(crate) fn set_unsent_low_water(socket: &impl AsFd, bytes: u32) -> io::Result<()> {
    set_number(
        socket,
        (libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT),
        bytes as libc::c_int,
    )
}

/// Makes the socket count as readable only once `bytes` have arrived, or the end has (socket(7),
/// SO_RCVLOWAT).
pub(crate) fn set_read_low_water(socket: &impl AsFd, bytes: usize) -> io::Result<()> {
    let bytes = bytes.min(1 << 20) as libc::c_int;
    set_number(socket, (libc::SOL_SOCKET, libc::SO_RCVLOWAT), bytes)
}

fn set_number(
    socket: &impl AsFd,
    (level, option): (libc::c_int, libc::c_int),
    value: libc::c_int,
) -> io::Result<()> {
    // SAFETY: the option takes one int, which lives across the call.
    let status = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            option,
            (&raw const value).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if status == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// What BBR knows about the path (`struct tcp_bbr_info`, include/uapi/linux/inet_diag.h).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bbr {
    /// The highest rate that it has seen delivered in ten round trips, in bytes per second.
    pub(crate) bandwidth: u64,
    pub(crate) least_rtt_microseconds: u32,
    /// The factor by which it paces faster or slower than that, in 1/256.
    pub(crate) pacing_gain: u32,
}

/// Every kernel has this congestion control, and lets everybody use it.
const RENO: &[u8] = b"reno";

/// Restarts a congestion control as on a new connection, but with its present window (tcp_bbr.c, bbr_init):
/// it starts when it replaces another one. False if the kernel refuses. See [`may_begin_anew`].
pub(crate) fn begin_anew(socket: &TcpStream) -> bool {
    let socket = socket2::SockRef::from(socket);
    let Ok(name) = socket.tcp_congestion() else {
        return false;
    };
    socket.set_tcp_congestion(RENO).is_ok() && socket.set_tcp_congestion(&name).is_ok()
}

/// Whether this process may choose a congestion control by name. The system's default may be in force even if
/// this process may not choose it; once replaced, it could not be restored (tcp(7),
/// tcp_allowed_congestion_control).
pub fn may_begin_anew(name: &str) -> bool {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None);
    socket.is_ok_and(|socket| {
        socket.set_tcp_congestion(RENO).is_ok() && socket.set_tcp_congestion(name.as_bytes()).is_ok()
    })
}

/// `None` under another congestion control.
pub(crate) fn bbr(socket: &impl AsFd) -> Option<Bbr> {
    let mut info = [0u32; 5];
    let mut length = size_of_val(&info) as libc::socklen_t;
    // SAFETY: the buffer is valid for `length` bytes, and the kernel writes no more than that.
    let status = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_CC_INFO,
            info.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    let [low, high, least_rtt_microseconds, pacing_gain, _window_gain] = info;
    // Other congestion controls answer with less, or nothing.
    (status == 0 && length as usize == size_of_val(&info)).then(|| Bbr {
        bandwidth: u64::from(high) << 32 | u64::from(low),
        least_rtt_microseconds,
        pacing_gain,
    })
}

/// Takes the descriptor with this number, which exec(3) left open and which nothing else in this process
/// knows. It is close-on-exec from now on, so that a number that is asked for twice is noticed.
pub(crate) fn adopt(number: RawFd) -> io::Result<OwnedFd> {
    use nix::fcntl::{FcntlArg, FdFlag, fcntl};
    if number <= libc::STDERR_FILENO {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: a number that is not open only makes the call fail; it is not -1.
    let borrowed = unsafe { BorrowedFd::borrow_raw(number) };
    let flags = FdFlag::from_bits_retain(fcntl(borrowed, FcntlArg::F_GETFD)?);
    if flags.contains(FdFlag::FD_CLOEXEC) {
        // This program has opened the descriptor for itself.
        return Err(io::ErrorKind::InvalidInput.into());
    }
    fcntl(borrowed, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC))?;
    // SAFETY: it is open, and nobody here owns it: whatever this program opens is close-on-exec from the
    // start.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// CAP_NET_ADMIN of include/uapi/linux/capability.h.
const CAP_NET_ADMIN: libc::c_ulong = 12;

/// Sets whether programs that this process executes get CAP_NET_ADMIN from it (capabilities(7), ambient).
/// What the process has itself does not change; root has every capability, whatever is set here.
pub(crate) fn pass_net_admin_on(pass: bool) {
    let what = if pass {
        libc::PR_CAP_AMBIENT_RAISE
    } else {
        libc::PR_CAP_AMBIENT_LOWER
    };
    let (what, none): (_, libc::c_ulong) = (what as libc::c_ulong, 0);
    // SAFETY: no memory is involved. It is refused to a process without the capability to pass on.
    let _ = unsafe { libc::prctl(libc::PR_CAP_AMBIENT, what, CAP_NET_ADMIN, none, none) };
}
