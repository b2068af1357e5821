//! The reasons why a connection through the gateway has failed: an errno for the program, a line for the
//! user.

use crate::context::Context;
use crate::report::{self, Matter};
use crate::route::Way;
use crate::sys::Errno;
use causeway_wire::preface::canonical;
use causeway_wire::{Reason, Site};
use std::net::SocketAddr;
use std::time::Duration;

/// How long a gateway's host may take to answer: about as long as a user is willing to wait for the message.
/// The host's kernel answers within milliseconds, however busy its processes are.
pub(crate) const GATEWAY_DEADLINE: Duration = Duration::from_secs(1);

/// Why a connection through the gateway was not established.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault<'a> {
    /// The kernel refuses to connect the socket: it is connected, connecting, or bound to another address.
    /// The socket is unchanged.
    Kernel(Errno),
    /// The own site has no gateway that this socket can reach.
    NoGatewayInFamily(&'a Site),
    /// Nobody answers at the gateway's address.
    Unreachable(Way<'a>, Errno),
    /// The gateway answered, then closed the connection before the verdict.
    Unclear(Way<'a>, &'static str),
    /// The gateway refused.
    Verdict(Way<'a>, Reason),
    /// The verdict did not come in time.
    NoVerdict,
}

impl Fault<'_> {
    /// Returns the errno that connect() leaves for the application.
    pub fn errno(&self) -> Errno {
        Errno(match self {
            Fault::Kernel(errno) => errno.0,
            Fault::NoGatewayInFamily(_) => libc::ENETUNREACH,
            Fault::Unreachable(..) | Fault::Unclear(..) => libc::ECONNREFUSED,
            // Not EINPROGRESS, the kernel's error after SO_SNDTIMEO: nothing continues in the background.
            Fault::NoVerdict => libc::ETIMEDOUT,
            Fault::Verdict(_, reason) => match reason {
                Reason::Refused | Reason::Exhausted => libc::ECONNREFUSED,
                Reason::Unreachable => libc::EHOSTUNREACH,
                Reason::TimedOut => libc::ETIMEDOUT,
                Reason::Denied => libc::EACCES,
                Reason::NoTunnel => libc::ENETUNREACH,
                Reason::Reset => libc::ECONNRESET,
                Reason::Protocol => libc::EPROTO,
            },
        })
    }

    /// Prints what errno cannot say. It prints nothing if it was the far host that answered: programs probe
    /// ports, and then the grid is not at fault.
    pub fn report(&self, context: &Context, destination: SocketAddr) {
        let here = &context.here.name;
        match self {
            Fault::Kernel(_) | Fault::NoVerdict => {}
            Fault::NoGatewayInFamily(to) => report::once(
                Matter::NoGatewayInFamily,
                0,
                format_args!(
                    "connect to {destination} (site {}): the gateway of site {here} has no address that this \
                     socket can reach",
                    to.name
                ),
            ),
            Fault::Unreachable(way, errno) => {
                let why = if errno.0 == libc::ETIMEDOUT {
                    format!("no answer within {} s", GATEWAY_DEADLINE.as_secs())
                } else {
                    errno.text()
                };
                let line = format_args!(
                    "gateway of site {here} at {}: {why}; is 'causeway gateway' running there?",
                    canonical(way.gateway)
                );
                report::once(Matter::GatewayUnreachable, way.which, line);
            }
            Fault::Unclear(way, what) => {
                let line = format_args!(
                    "gateway of site {here} at {}: {what} (connecting to {destination}, site {})",
                    canonical(way.gateway),
                    way.to.name
                );
                report::once(Matter::GatewayUnclear, way.which, line);
            }
            Fault::Verdict(way, reason) => {
                let matter = match reason {
                    Reason::Denied => Matter::Denied,
                    Reason::NoTunnel => Matter::NoTunnel,
                    Reason::Exhausted => Matter::Exhausted,
                    Reason::Protocol => Matter::Protocol,
                    Reason::Refused | Reason::Unreachable | Reason::TimedOut | Reason::Reset => return,
                };
                let (gateway, to, text) = (canonical(way.gateway), &way.to.name, reason.text());
                let remedy = match reason {
                    Reason::Denied => format!(
                        "; site {to} lets jobs connect only to its listed nodes, and to the addresses in its [accept]; \
                         'causeway audit' there says more"
                    ),
                    _ => String::new(),
                };
                let line = format_args!(
                    "gateway of site {here} at {gateway}: connecting to {destination} (site {to}): {text}{remedy}"
                );
                report::once(matter, way.which, line);
            }
        }
    }
}
