//! Who sends a request.

use crate::identity::Certified;
use std::net::SocketAddr;
use std::sync::Arc;

/// Who sends a request.
#[derive(Debug, Clone)]
pub(super) struct Caller {
    pub(super) address: SocketAddr,
    pub(super) certified: Option<Arc<Certified>>,
}
