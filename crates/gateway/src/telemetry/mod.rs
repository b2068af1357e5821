//! What the gateway reports about itself.

use crate::membership::Membership;
use crate::site::SiteSide;
use crate::traversal::Traversal;
use crate::tunnels::Tunnels;
use metrics::scrape::Scrape;
use slab::Slab;

pub(crate) mod metrics;
mod status;

/// The readers of the metrics at present.
#[derive(Default)]
pub(crate) struct Telemetry {
    scrapes: Slab<Scrape>,
}

impl Telemetry {
    /// Ends the connections of readers.
    pub(crate) fn end_scrapes(&mut self) {
        self.scrapes.clear();
    }
}

/// The state that status and metrics show.
pub(crate) struct View<'a> {
    pub(crate) tunnels: &'a Tunnels,
    pub(crate) membership: &'a Membership,
    pub(crate) site: &'a SiteSide,
    pub(crate) traversal: &'a Traversal,
    /// How many programs had this gateway before.
    pub(crate) handed_over: u64,
}

/// Borrows exactly these fields of a Gateway.
macro_rules! view {
    ($gateway:ident) => {
        $crate::telemetry::View {
            tunnels: &$gateway.tunnels,
            membership: &$gateway.membership,
            site: &$gateway.site,
            traversal: &$gateway.traversal,
            handed_over: $gateway.lifecycle.handed_over(),
        }
    };
}
pub(crate) use view;
