//! The preload library: it redirects connections between sites to the gateway of the own site, and acts only
//! while they are set up.
//!
//! It hooks connect, accept, bind, getpeername, getsockname, the dup family and the listing of interfaces;
//! calls that carry data are left to the kernel. Whatever does not clearly concern two sites passes through
//! untouched. Read `route` (which connection takes which path) first, then `connect`, `settle` and `accept`
//! (how that is done), then `hooks` (how C calls this).
//!
//! The exec family is hooked so that scripts between launcher and rank do not lose the shim (`exec`), and
//! setpgid because of a false alarm of Open MPI 4's launcher; see there.
//!
//! If another site has the same private addresses, a process sees its site's virtual addresses wherever it
//! asks for an address, and may use them wherever it passes one. If sites each run their own MPI, it sees
//! real addresses, as does the rest of that MPI, and may use both.
//!
//! Not handled: virtual addresses in `sendto`, `sendmsg` and `recvfrom` of datagrams; names, which resolve to
//! real addresses (in `getaddrinfo`, the own name does so, too); lists of interfaces other than getifaddrs,
//! SIOCGIFCONF and SIOCGIFADDR, such as netlink and `/proc/net/if_inet6`; sockets made by raw system calls or
//! io_uring, `sendto(MSG_FASTOPEN)`, and the true peer of a socket that was inherited across exec.

mod accept;
mod address;
mod aside;
mod ask;
mod connect;
mod context;
pub mod exec;
mod fault;
pub mod hooks;
mod ifaddrs;
mod interfaces;
mod rank;
mod real;
mod report;
mod route;
mod settle;
mod sys;
mod table;

/// What a hook does after the safe code has judged the call.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    /// Call the real function with the caller's own arguments.
    PassThrough,
    /// Call the real function with this address instead of the caller's.
    Instead(address::Sockaddr),
    /// Return this value.
    Handled(libc::c_int),
    /// Return -1 with this errno.
    Failed(sys::Errno),
}
