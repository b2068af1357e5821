//! How a gateway ends: in order, or by going on as another program.

use crate::sys::signals::Signals;
use handover::Successor;

pub(crate) mod handover;
pub(crate) mod shutdown;

/// What ends this gateway, or goes on with it.
pub(crate) struct Lifecycle {
    pub(crate) signals: Signals,
    /// Programs that had this gateway before.
    pub(crate) handed_over: u64,
    /// Who is to have it next.
    pub(crate) successor: Option<Successor>,
}
