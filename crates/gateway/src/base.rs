//! The fields of a gateway that a site's connections, ways between sites and commands all act on.
//!
//! A gateway's state lies in owners, each a field of its own, so that a method of one owner can change others
//! meanwhile: the borrow checker tells fields apart, and not what methods of a whole gateway touch (smoltcp
//! keeps its `InterfaceInner` apart from the sockets for the same reason). A bundle says which owners a
//! method may touch, and the compiler holds it to that. `Base` is the smallest, `commands::CommandContext`
//! has more, `flow::Flow` the most. Each has its owners as fields of its own, and lends the smaller bundles
//! out of these.

use crate::driver::Driver;
use crate::membership::Membership;
use crate::tunnels::Tunnels;

/// Tunnels and membership, and what every owner uses.
pub(crate) struct Base<'a> {
    pub(crate) driver: &'a mut Driver,
    pub(crate) tunnels: &'a mut Tunnels,
    pub(crate) membership: &'a mut Membership,
}

/// Borrows exactly these fields of a Gateway.
macro_rules! base {
    ($gateway:ident) => {
        $crate::base::Base {
            driver: &mut $gateway.driver,
            tunnels: &mut $gateway.tunnels,
            membership: &mut $gateway.membership,
        }
    };
}
pub(crate) use base;
