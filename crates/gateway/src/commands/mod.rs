//! What commands of this host ask, and what gateways tell each other.

use crate::base::Base;
use crate::keys::PairKey;
use crate::site::SiteSide;
use crate::telemetry::View;
use crate::traversal::Traversal;
use command::Command;
use event::CommandsEvent;
use slab::Slab;
use starter::Starter;
use std::collections::VecDeque;

pub(crate) mod command;
pub(crate) mod event;
pub(crate) mod jobs;
pub(crate) mod local;
mod peer_messages;
mod ping;
mod spawn;
pub(crate) mod starter;
mod starting;

/// The commands of this host that are being served, and what was started for them and for other sites.
#[derive(Default)]
pub(crate) struct Commands {
    pub(crate) connections: Slab<Command>,
    pub(crate) starters: Vec<Starter>,
    /// What others have yet to act on.
    pub(crate) events: VecDeque<CommandsEvent>,
}

/// What commands, and messages of other gateways, act on.
pub(crate) struct Below<'a> {
    pub(crate) base: Base<'a>,
    pub(crate) site: &'a mut SiteSide,
    pub(crate) traversal: &'a mut Traversal,
    /// Programs that had this gateway before.
    pub(crate) handed_over: u64,
}

impl Below<'_> {
    /// The site at the other end of a pair.
    pub(crate) fn site_of(&self, pair: PairKey) -> String {
        let pair = self.base.tunnels.pairs.get(pair);
        pair.map(|pair| pair.site.clone()).unwrap_or_default()
    }

    pub(crate) fn view(&self) -> View<'_> {
        View {
            tunnels: self.base.tunnels,
            membership: self.base.membership,
            site: self.site,
            traversal: self.traversal,
            handed_over: self.handed_over,
        }
    }
}

/// That of a gateway, which borrows nothing else of it.
macro_rules! below {
    ($gateway:ident) => {
        $crate::commands::Below {
            base: $crate::base::base!($gateway),
            site: &mut $gateway.site,
            traversal: &mut $gateway.traversal,
            handed_over: $gateway.lifecycle.handed_over,
        }
    };
}
pub(crate) use below;
