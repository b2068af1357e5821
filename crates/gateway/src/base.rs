//! The fields of a gateway that a site's connections, paths between sites and commands all act on.
//!
//! A gateway's state is divided among owners, each a field of its own, so that a method of one owner can
//! change others: the borrow checker distinguishes fields, but not what the methods of a whole gateway touch
//! (smoltcp keeps its `InterfaceInner` apart from the sockets for the same reason). A bundle says which
//! owners a method may touch, and the compiler enforces this. `Base` is the smallest,
//! `commands::CommandContext` has more, `flow::Flow` the most. Each has its owners as fields of its own, and
//! lends the smaller bundles out of these.

use crate::config::Config;
use crate::driver::Driver;
use crate::keys::{PairKey, PeerIndex};
use crate::membership::Membership;
use crate::membership::consent::{self, Refusal};
use crate::membership::directory::Directory;
use crate::membership::jobs::Jobs;
use crate::sys::timers::Deadline;
use crate::tunnels::Tunnels;
use crate::tunnels::message::GatewayToGateway;
use causeway_wire::Token;
use mio::Registry;
use std::fmt::Display;
use std::time::{Duration, Instant};

/// Tunnels and membership, and the driver, which every owner uses.
pub(crate) struct Base<'a> {
    pub(crate) driver: &'a mut Driver,
    pub(crate) tunnels: &'a mut Tunnels,
    pub(crate) membership: &'a mut Membership,
}

/// What every bundle can do that contains tunnels and membership.
pub(crate) trait Bundle {
    /// Lends the owners for reading.
    fn owners(&self) -> (&Driver, &Membership);

    /// Lends the owners for changing.
    fn owners_mut(&mut self) -> (&mut Driver, &mut Tunnels, &mut Membership);

    fn config(&self) -> &Config {
        &self.owners().0.config
    }

    fn directory(&self) -> &Directory {
        self.owners().1.directory()
    }

    fn jobs(&self) -> &Jobs {
        self.owners().1.jobs()
    }

    /// Logs a line of this gateway.
    fn say(&self, text: impl Display) {
        self.owners().0.say(text);
    }

    /// Counts and logs a refusal.
    fn refuse(&mut self, kind: &str, whom: impl Display, why: impl Display) {
        self.owners_mut().0.log.refuse(kind, whom, why);
    }

    /// Counts a refusal of a site's request under a job, and writes it to the audit.
    fn record_refusal(&mut self, (kind, why): Refusal, site: &str, token: Token) {
        let (driver, _, membership) = self.owners_mut();
        consent::record_refusal(driver, membership.jobs(), kind, site, token, why);
    }

    /// Makes the loop call the owner of the deadline after this time.
    fn set_deadline(&mut self, after: Duration, deadline: impl Into<Deadline>) {
        self.owners_mut().0.set_deadline(after, deadline);
    }

    /// Sends a message to the gateway of another site.
    fn tell(&mut self, pair: PairKey, message: GatewayToGateway) {
        let (driver, tunnels, _) = self.owners_mut();
        tunnels.pairs_mut().tell(driver, pair, message);
    }
}

impl Bundle for Base<'_> {
    fn owners(&self) -> (&Driver, &Membership) {
        (self.driver, self.membership)
    }

    fn owners_mut(&mut self) -> (&mut Driver, &mut Tunnels, &mut Membership) {
        (self.driver, self.tunnels, self.membership)
    }
}

impl Base<'_> {
    /// Returns when the loop last woke.
    pub(crate) fn now(&self) -> Instant {
        self.driver.now
    }

    pub(crate) fn registry(&self) -> &Registry {
        self.driver.registry()
    }

    /// Queues a pair that may have something to send.
    pub(crate) fn touch(&mut self, pair: PairKey) {
        self.tunnels.pairs_mut().touch(pair);
    }

    /// Names the site of a peer.
    pub(crate) fn site_at(&self, peer: PeerIndex) -> &str {
        self.tunnels.peers()[peer].site()
    }
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
