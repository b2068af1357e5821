//! The fields of a gateway that a site's connections, ways between sites and commands all act on.
//!
//! A gateway's state lies in owners, each a field of its own, so that a method of one owner can change others
//! meanwhile: the borrow checker tells fields apart, and not what methods of a whole gateway touch (smoltcp
//! keeps its `InterfaceInner` apart from the sockets for the same reason). A bundle says which owners a
//! method may touch, and the compiler holds it to that. `Base` is the smallest, `commands::CommandContext`
//! has more, `flow::Flow` the most. Each has its owners as fields of its own, and lends the smaller bundles
//! out of these.

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

/// Tunnels and membership, and what every owner uses.
pub(crate) struct Base<'a> {
    pub(crate) driver: &'a mut Driver,
    pub(crate) tunnels: &'a mut Tunnels,
    pub(crate) membership: &'a mut Membership,
}

impl Base<'_> {
    pub(crate) fn config(&self) -> &Config {
        &self.driver.config
    }

    pub(crate) fn directory(&self) -> &Directory {
        self.membership.directory()
    }

    pub(crate) fn jobs(&self) -> &Jobs {
        self.membership.jobs()
    }

    /// Says when the loop last woke.
    pub(crate) fn now(&self) -> Instant {
        self.driver.now
    }

    pub(crate) fn registry(&self) -> &Registry {
        self.driver.registry()
    }

    /// Says a line of this gateway's.
    pub(crate) fn say(&self, text: impl Display) {
        self.driver.say(text);
    }

    /// Counts and says that something is refused.
    pub(crate) fn refuse(&mut self, kind: &str, whom: impl Display, why: impl Display) {
        self.driver.log.refuse(kind, whom, why);
    }

    /// Counts a refusal of what a site asked for under a job, and writes it down.
    pub(crate) fn record_refusal(&mut self, (kind, why): Refusal, site: &str, token: Token) {
        let jobs = self.membership.jobs();
        consent::record_refusal(self.driver, jobs, kind, site, token, why);
    }

    /// Has the loop tell the owner of the deadline after so long.
    pub(crate) fn set_deadline(&mut self, after: Duration, deadline: impl Into<Deadline>) {
        self.driver.set_deadline(after, deadline);
    }

    /// Sends a message to the gateway of another site.
    pub(crate) fn tell(&mut self, pair: PairKey, message: GatewayToGateway) {
        self.tunnels.pairs_mut().tell(self.driver, pair, message);
    }

    /// Has a pair that may have something to send get its turn.
    pub(crate) fn touch(&mut self, pair: PairKey) {
        self.tunnels.pairs_mut().touch(pair);
    }

    /// Names the site at the place of a peer.
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
