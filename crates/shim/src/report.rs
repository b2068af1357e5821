//! Lines on stderr: at most one per process for each matter, or one per decision when debugging.
//!
//! Never on stdout, which belongs to the program.

use crate::sys::{self, Errno};
use causeway_wire::shown::Line;
use std::fmt::Arguments;
use std::sync::atomic::{AtomicU64, Ordering};

/// The matters that a process prints, each once. Children of fork count as the same process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Matter {
    /// The environment does not hold what it should.
    Environment,
    /// No address of this node lies in a site.
    NoSite,
    /// No gateway of the own site has the socket's address family.
    NoGatewayInFamily,
    /// The gateway refused, or nobody is there to refuse.
    GatewayUnreachable,
    /// The gateway accepted, then closed or spoke nonsense.
    GatewayUnclear,
    /// The gateway says no: not allowed.
    Denied,
    /// The gateway says no: no tunnel.
    NoTunnel,
    /// The gateway says no: a limit is reached.
    Exhausted,
    /// The gateway says no: versions differ.
    Protocol,
    /// A connection delivered here did not say for which job.
    BadDelivery,
    /// A defect of the shim itself.
    Defect,
}

static TOLD: AtomicU64 = AtomicU64::new(0);

/// Prints a matter of one gateway (`which`: its place in the list of the own site's gateways) unless this
/// process has done so before.
pub fn once(matter: Matter, which: usize, line: Arguments<'_>) {
    let bit = 1_u64 << (matter as usize * GATEWAYS_APART + which.min(GATEWAYS_APART - 1));
    if TOLD.fetch_or(bit, Ordering::Relaxed) & bit == 0 {
        tell(format_args!("causeway: {line}"));
    }
}

/// Writes one line of debugging.
pub fn debug(line: Arguments<'_>) {
    tell(format_args!("causeway[{}]: {line}", std::process::id()));
}

/// Leaves errno alone: callers report after the call whose errno they hand on.
fn tell(line: Arguments<'_>) {
    let errno = Errno::last();
    // A daemon may have closed stderr and got a network socket under its number: what is written there would
    // end up amidst its data.
    let domain = sys::option::<libc::c_int>(libc::STDERR_FILENO, libc::SOL_SOCKET, libc::SO_DOMAIN);
    if !matches!(domain, Ok(libc::AF_INET | libc::AF_INET6)) {
        sys::write(libc::STDERR_FILENO, format!("{}\n", Line(line)).as_bytes());
    }
    errno.set();
}

/// A site has at most one gateway per address family.
const GATEWAYS_APART: usize = 2;
