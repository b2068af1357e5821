//! How a gateway ends: in order, or by going on as another program.

use crate::sys::signals::Signals;
use handover::Successor;
use handover::vetting::Vetting;

pub(crate) mod handover;
pub(crate) mod shutdown;

/// What ends this gateway, or goes on with it.
pub(crate) struct Lifecycle {
    pub(crate) signals: Signals,
    /// Programs that had this gateway before.
    pub(crate) handed_over: u64,
    /// Who asks to have it next.
    pub(crate) vetting: Option<Vetting>,
    /// Who is to have it next.
    pub(crate) successor: Option<Successor>,
}
