//! What a site's connections, ways between sites and commands all stand on.

use crate::driver::Driver;
use crate::membership::Membership;
use crate::tunnels::Tunnels;

pub(crate) struct Base<'a> {
    pub(crate) driver: &'a mut Driver,
    pub(crate) tunnels: &'a mut Tunnels,
    pub(crate) membership: &'a mut Membership,
}

/// That of a gateway, which borrows nothing else of it.
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
