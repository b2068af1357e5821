//! Lines on standard error: at most one per process about each matter, or one per decision when debugging.
//!
//! Nothing is printed to standard output, which belongs to the program.

use crate::sys::{self, Errno};
use causeway_wire::shown::Line;
use std::fmt::Arguments;
use std::sync::atomic::{AtomicU64, Ordering};

/// The matters about which a process prints a line, each once. Children of fork count as the same process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Matter {
    /// The environment does not contain what it should.
    Environment,
    /// No address of this node belongs to a site.
    NoSite,
    /// No gateway of the own site has the socket's address family.
    NoGatewayInFamily,
    /// The host refused the connection to the gateway, or nobody answered.
    GatewayUnreachable,
    /// The gateway accepted, then closed the connection or sent something that is not understood.
    GatewayUnclear,
    /// The gateway refuses: the connection is not allowed.
    Denied,
    /// The gateway refuses: there is no tunnel.
    NoTunnel,
    /// The gateway refuses: a limit is reached.
    Exhausted,
    /// The gateway refuses: versions differ.
    Protocol,
    /// A connection that was delivered here did not say for which job.
    BadDelivery,
    /// A defect of the shim itself.
    Defect,
}

static TOLD: AtomicU64 = AtomicU64::new(0);

/// Prints a line about a matter of one gateway (`which`: its place in the list of the own site's gateways),
/// unless this process has done so before.
pub fn once(matter: Matter, which: usize, line: Arguments<'_>) {
    let bit = 1_u64 << (matter as usize * GATEWAYS_APART + which.min(GATEWAYS_APART - 1));
    if TOLD.fetch_or(bit, Ordering::Relaxed) & bit == 0 {
        tell(format_args!("causeway: {line}"));
    }
}

/// Writes a line for debugging.
pub fn debug(line: Arguments<'_>) {
    tell(format_args!("causeway[{}]: {line}", std::process::id()));
}

/// Writes a line. Leaves errno unchanged: callers report after the call whose errno they return.
fn tell(line: Arguments<'_>) {
    let errno = Errno::last();
    // A daemon may have closed standard error and got a network socket under its number: what is written
    // there would end up among the socket's data.
    let domain = sys::option::<libc::c_int>(libc::STDERR_FILENO, libc::SOL_SOCKET, libc::SO_DOMAIN);
    if !matches!(domain, Ok(libc::AF_INET | libc::AF_INET6)) {
        sys::write(libc::STDERR_FILENO, format!("{}\n", Line(line)).as_bytes());
    }
    errno.set();
}

/// How many gateways are distinguished: a site has at most one per address family.
const GATEWAYS_APART: usize = 2;
