//! connect(): redirects a connection to another site to the own site's gateway, using the same socket.
//!
//! ```text
//! blocking       connect to gateway, preface, wait for the far side's verdict, return it
//! non-blocking   connect to gateway, preface, return 0; a later refusal arrives as a reset
//! ```
//!
//! O_NONBLOCK is never changed, as other threads and processes may share it: a send timeout bounds the
//! connect of a blocking socket, and everything else uses MSG_DONTWAIT and poll. The local address of the LAN
//! leg is the one that getsockname() shows and that the preface tells the far side, so both ends agree by
//! construction. Only if sites run their own MPIs does getsockname() show a real address and the preface
//! contain the virtual one.

use crate::address::{self, Sockaddr};
use crate::context::{Context, context, leads_nowhere};
use crate::fault::{Fault, GATEWAY_DEADLINE};
use crate::report;
use crate::route::{Route, Way, route};
use crate::settle::{self, Settled};
use crate::sys::{self, Errno, Timeval};
use crate::{Outcome, table};
use causeway_wire::preface::{self, ANSWER_BYTES, canonical};
use causeway_wire::{Preface, Sender, Verdict, Wants};
use libc::c_int;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// The number of attempts, among which the time is divided, and each of which sends a SYN at once. The kernel
/// resends a lost SYN after one second, which is too late, and in a burst of connections one can be lost to a
/// full backlog.
const ATTEMPTS: u32 = 3;
/// How long a verdict may take: as long as the kernel itself tries (with tcp_syn_retries = 6, it gives up
/// after 127 s).
const VERDICT_DEADLINE: Duration = Duration::from_secs(130);

/// Decides about a connect() that returns to `caller`, and carries it out if that is the shim's task.
pub fn connect(fd: c_int, destination: Option<SocketAddr>, caller: usize) -> Outcome {
    let Some(destination) = destination.filter(|to| !to.ip().to_canonical().is_loopback()) else {
        return Outcome::PassThrough;
    };
    match settle::settle(fd) {
        Settled::Native => {}
        Settled::Connected => return Outcome::Handled(0),
        Settled::Failed(errno) => return Outcome::Failed(errno),
        Settled::Later => return Outcome::Failed(Errno(libc::EALREADY)),
    }
    let Some(context) = context() else {
        // The reason was reported: it is not known which site this is.
        return match leads_nowhere(destination.ip()) {
            true => Outcome::Failed(Errno(libc::ENETUNREACH)),
            false => Outcome::PassThrough,
        };
    };
    let way = match route(context, destination) {
        Route::Native => {
            if context.debug {
                report::debug(format_args!("connect {destination}: native"));
            }
            return match context.real(destination) {
                Some(real) => Outcome::Instead(Sockaddr::from(real)),
                None => Outcome::PassThrough,
            };
        }
        Route::Gateway(way) => Ok(way),
        Route::NoGateway(site) => Err(Fault::NoGatewayInFamily(site)),
    };
    if !is_tcp(fd, destination) {
        return Outcome::PassThrough;
    }
    let result = way.and_then(|way| through_gateway(context, fd, destination, &way, caller));
    if context.debug {
        match &result {
            Ok(_) => report::debug(format_args!("connect {destination}: through the gateway")),
            Err(fault) => report::debug(format_args!("connect {destination}: {}", fault.errno().text())),
        }
    }
    match result {
        Ok(Begun::Done) => Outcome::Handled(0),
        Ok(Begun::Asked) => Outcome::Failed(Errno(libc::EINPROGRESS)),
        Err(fault) => {
            fault.report(context, destination);
            Outcome::Failed(fault.errno())
        }
    }
}

/// Whether the socket is a TCP socket of the destination's family; for any other, the kernel returns the
/// error.
fn is_tcp(fd: c_int, destination: SocketAddr) -> bool {
    let option = |name| sys::option::<c_int>(fd, libc::SOL_SOCKET, name);
    let family = if destination.is_ipv4() {
        libc::AF_INET
    } else {
        libc::AF_INET6
    };
    option(libc::SO_TYPE) == Ok(libc::SOCK_STREAM)
        && option(libc::SO_DOMAIN) == Ok(family)
        && matches!(
            option(libc::SO_PROTOCOL),
            Ok(libc::IPPROTO_TCP | libc::IPPROTO_MPTCP)
        )
}

/// How far a connection has got when connect() returns.
enum Begun {
    /// The connection is established, or counts as established.
    Done,
    /// The gateway was asked for a verdict; see [`settle`].
    Asked,
}

fn through_gateway<'a>(
    context: &Context,
    fd: c_int,
    destination: SocketAddr,
    way: &Way<'a>,
    caller: usize,
) -> Result<Begun, Fault<'a>> {
    if address::is_mapped(way.gateway)
        && sys::option::<c_int>(fd, libc::IPPROTO_IPV6, libc::IPV6_V6ONLY).is_ok_and(|only| only != 0)
    {
        return Err(Fault::NoGatewayInFamily(way.to));
    }
    let blocking = !sys::is_nonblocking(fd).map_err(Fault::Kernel)?;
    let send_timeout = if blocking {
        send_timeout(fd)
    } else {
        Timeval::default()
    };
    reach(fd, way, blocking, send_timeout)?;
    // A blocking socket that was still connecting elsewhere has now finished that connection instead.
    if sys::peer_name(fd).is_ok_and(|peer| peer != way.gateway) {
        return Ok(Begun::Done);
    }
    let wants = match blocking {
        true => Wants::Verdict,
        false if settle::is_mpi(caller) || !settle::can_be_told(fd) => Wants::Nothing,
        false => Wants::UrgentCode,
    };
    let (note, begun): (fn(c_int, SocketAddr), Begun) = match wants {
        Wants::UrgentCode => (table::note_asked, Begun::Asked),
        Wants::Verdict | Wants::Nothing => (table::note, Begun::Done),
    };
    note(fd, destination);
    let patience = patience(send_timeout, VERDICT_DEADLINE);
    if let Err(fault) = introduce(context, fd, destination, way, wants, patience) {
        table::forget(fd);
        sys::dissolve(fd);
        return Err(fault);
    }
    Ok(begun)
}

fn send_timeout(fd: c_int) -> Timeval {
    sys::option(fd, libc::SOL_SOCKET, libc::SO_SNDTIMEO).unwrap_or_default()
}

/// The application's own send timeout limits connect(), too, as it does in the kernel; zero means no limit.
fn patience(send_timeout: Timeval, at_most: Duration) -> Duration {
    let seconds = Duration::from_secs(u64::try_from(send_timeout.seconds).unwrap_or(0));
    let asked = seconds + Duration::from_micros(u64::try_from(send_timeout.microseconds).unwrap_or(0));
    if asked.is_zero() {
        at_most
    } else {
        asked.min(at_most)
    }
}

/// Connects the socket to the gateway. On [`Fault::Kernel`], the socket is unchanged.
fn reach<'a>(fd: c_int, way: &Way<'a>, blocking: bool, send_timeout: Timeval) -> Result<(), Fault<'a>> {
    let patience = patience(send_timeout, GATEWAY_DEADLINE) / ATTEMPTS;
    for attempt in 1..=ATTEMPTS {
        match try_once(fd, way, blocking, send_timeout, patience) {
            Ok(()) => return Ok(()),
            Err(Errno(libc::ETIMEDOUT)) if attempt < ATTEMPTS => sys::dissolve(fd),
            Err(
                errno @ Errno(libc::ECONNREFUSED | libc::ETIMEDOUT | libc::EHOSTUNREACH | libc::ENETUNREACH),
            ) => {
                sys::dissolve(fd);
                return Err(Fault::Unreachable(*way, errno));
            }
            Err(errno) => return Err(Fault::Kernel(errno)),
        }
    }
    Err(Fault::Unreachable(*way, Errno(libc::ETIMEDOUT)))
}

fn try_once(
    fd: c_int,
    way: &Way<'_>,
    blocking: bool,
    send_timeout: Timeval,
    patience: Duration,
) -> Result<(), Errno> {
    let deadline = Instant::now() + patience;
    let timeout = |value| sys::set_option(fd, libc::SOL_SOCKET, libc::SO_SNDTIMEO, value);
    if blocking {
        let _ = timeout(Timeval {
            seconds: patience.as_secs() as i64,
            microseconds: i64::from(patience.subsec_micros()).max(1),
        });
    }
    let started = sys::connect(fd, &Sockaddr::from(way.gateway));
    if blocking {
        let _ = timeout(send_timeout);
    }
    match started {
        Err(Errno(libc::EINPROGRESS | libc::EINTR)) => finish(fd, way, deadline),
        other => other,
    }
}

fn finish(fd: c_int, way: &Way<'_>, deadline: Instant) -> Result<(), Errno> {
    if !sys::wait(fd, libc::POLLOUT, deadline)? {
        return Err(Errno(libc::ETIMEDOUT));
    }
    // The second call fetches the outcome. Without it, the application's next connect() would get it from the
    // kernel, as 0 instead of EISCONN, and the preface would be sent twice.
    match sys::connect(fd, &Sockaddr::from(way.gateway)) {
        Err(Errno(libc::EISCONN)) => Ok(()),
        outcome => outcome,
    }
}

/// Tells the gateway for whom the connection is, and reads the verdict if it is awaited.
fn introduce<'a>(
    context: &Context,
    fd: c_int,
    destination: SocketAddr,
    way: &Way<'a>,
    wants: Wants,
    patience: Duration,
) -> Result<(), Fault<'a>> {
    let deadline = Instant::now() + patience;
    let local = sys::local_name(fd).map_err(Fault::Kernel)?;
    let local = context.in_grid(local).unwrap_or(local);
    let canonical_destination = canonical(destination);
    // Through a mapped gateway address, the source of an IPv6 destination is a mapped one, and is sent in
    // that form: getsockname() shows it here, too.
    let source = if canonical_destination.is_ipv4() {
        canonical(local)
    } else {
        local
    };
    let preface = Preface {
        source,
        destination: canonical_destination,
        token: context.token,
        wants,
    };
    let nonce = sys::random().map_err(Fault::Kernel)?;
    let bytes = preface
        .encode(Sender::Process, &nonce)
        .map_err(|_| Fault::Kernel(Errno(libc::EAFNOSUPPORT)))?;
    send_all(fd, &bytes, deadline).map_err(|_| Fault::Unclear(*way, "it closed the connection at once"))?;
    // While the gateway does not run, another user of its host may listen at its address.
    let mut proof = [0; ANSWER_BYTES];
    let have = hear(fd, way, &mut proof, deadline)?;
    if have < proof.len() {
        let verdict = proof.first_chunk().filter(|_| have == Verdict::BYTES);
        return Err(match verdict.and_then(|bytes| Verdict::decode(*bytes)) {
            Some(Verdict::Failed(reason)) => Fault::Verdict(*way, reason),
            _ => Fault::Unclear(
                *way,
                "it closed the connection without a proof that it knows the job",
            ),
        });
    }
    if proof != preface::answer(Sender::Gateway, &context.token, &nonce) {
        return Err(Fault::Unclear(*way, "what listens there does not know this job"));
    }
    if wants == Wants::Verdict {
        hear_verdict(fd, way, deadline)
    } else {
        Ok(())
    }
}

fn send_all(fd: c_int, mut bytes: &[u8], deadline: Instant) -> Result<(), Errno> {
    while !bytes.is_empty() {
        match sys::send(fd, bytes) {
            Ok(sent) => bytes = bytes.get(sent..).unwrap_or_default(),
            Err(Errno(libc::EAGAIN)) => {
                if !sys::wait(fd, libc::POLLOUT, deadline)? {
                    return Err(Errno(libc::ETIMEDOUT));
                }
            }
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

/// Fills `bytes`, and reads not one byte more; returns how many there were before the end. A signal does not
/// end the wait: if the call returned EINTR, the application would get a socket whose first bytes are not its
/// own.
fn hear<'a>(fd: c_int, way: &Way<'a>, bytes: &mut [u8], deadline: Instant) -> Result<usize, Fault<'a>> {
    let mut have = 0;
    while have < bytes.len() {
        match sys::receive(fd, &mut bytes[have..]) {
            Ok(0) => break,
            Err(Errno(libc::ECONNRESET)) => {
                return Err(Fault::Unclear(*way, "it reset the connection"));
            }
            Ok(more) => have += more,
            Err(Errno(libc::EAGAIN)) => {
                if !sys::wait(fd, libc::POLLIN, deadline).map_err(Fault::Kernel)? {
                    return Err(Fault::NoVerdict);
                }
            }
            Err(errno) => return Err(Fault::Kernel(errno)),
        }
    }
    Ok(have)
}

fn hear_verdict<'a>(fd: c_int, way: &Way<'a>, deadline: Instant) -> Result<(), Fault<'a>> {
    let mut bytes = [0; Verdict::BYTES];
    if hear(fd, way, &mut bytes, deadline)? < bytes.len() {
        return Err(Fault::Unclear(*way, "it closed the connection without a verdict"));
    }
    match Verdict::decode(bytes) {
        Some(Verdict::Connected) => Ok(()),
        Some(Verdict::Failed(reason)) => Err(Fault::Verdict(*way, reason)),
        None => Err(Fault::Unclear(
            *way,
            "it answered with something that is no verdict",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_applications_send_timeout_shortens_a_deadline_and_never_lengthens_it() {
        let most = Duration::from_secs(1);
        let timeout = |seconds, microseconds| {
            patience(
                Timeval {
                    seconds,
                    microseconds,
                },
                most,
            )
        };
        assert_eq!(timeout(0, 0), most);
        assert_eq!(timeout(0, 250_000), Duration::from_millis(250));
        assert_eq!(timeout(20, 0), most);
        assert_eq!(timeout(-1, -1), most);
    }
}
