//! The sender of a request: a site or a stranger.

use crate::identity::Certified;
use std::net::SocketAddr;
use std::sync::Arc;

/// The sender of a request; see the module.
#[derive(Debug, Clone)]
pub(super) struct Caller {
    pub(super) address: SocketAddr,
    pub(super) certified: Option<Arc<Certified>>,
}
