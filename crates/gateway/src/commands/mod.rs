//! What commands of this host ask, and what gateways tell each other.

use crate::base::Base;
use crate::driver::Driver;
use crate::keys::PairKey;
use crate::site::SiteSide;
use crate::telemetry::View;
use crate::traversal::Traversal;
use command::Command;
use event::CommandsEvent;
use slab::Slab;
use spawner::Spawner;
use starter::Starter;
use starting::Start;
use std::collections::VecDeque;
use std::io;

pub(crate) mod command;
pub(crate) mod event;
pub(crate) mod jobs;
pub(crate) mod local;
mod peer_messages;
mod ping;
mod spawn;
mod spawner;
pub(crate) mod starter;
mod starting;

/// The commands of this host that are being served, and what was started for them and for other sites.
pub(crate) struct Commands {
    pub(crate) connections: Slab<Command>,
    pub(crate) starters: Vec<Starter>,
    starts: Slab<Start>,
    spawner: Spawner,
    /// What others have yet to act on.
    pub(crate) events: VecDeque<CommandsEvent>,
}

impl Commands {
    /// A gateway's, which has served none yet. To be called after it has taken its signals.
    ///
    /// # Errors
    /// Those of starting the thread that starts programs.
    pub(crate) fn new(driver: &Driver) -> io::Result<Commands> {
        Ok(Commands {
            connections: Slab::new(),
            starters: Vec::new(),
            starts: Slab::new(),
            spawner: Spawner::begin(driver)?,
            events: VecDeque::new(),
        })
    }
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
