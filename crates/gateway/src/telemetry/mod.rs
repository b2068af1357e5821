//! What the gateway tells of itself.

use metrics::Scrape;
use slab::Slab;

pub(crate) mod metrics;
pub(crate) mod status;

/// Who reads the metrics now.
#[derive(Default)]
pub(crate) struct Telemetry {
    pub(crate) scrapes: Slab<Scrape>,
}
