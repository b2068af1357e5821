//! What the next worker goes on with of a site's connections.

use crate::base::{Base, Bundle};
use crate::inherited::InheritError;
use crate::site::SiteSide;
use crate::site::deliver;
use crate::site::intake::KeptIntake;
use crate::site::leg::{KeptLeg, Leg};
use crate::site::streams::FAREWELL;
use crate::sys::source::Class;
use crate::sys::timers::SiteDeadline;
use std::os::fd::{AsFd, BorrowedFd};

/// A site's part of what the next worker goes on with; legs with their keys.
pub(crate) struct KeptSite {
    pub(crate) streams_opened: u64,
    pub(crate) streams_peak: usize,
    pub(crate) next_delivery_port: u16,
    pub(crate) legs: Vec<(usize, KeptLeg)>,
    pub(crate) intakes: Vec<KeptIntake>,
}

impl SiteSide {
    /// Goes on with the connections of a predecessor.
    ///
    /// # Errors
    /// A descriptor is invalid, or cannot be registered.
    pub(crate) fn inherit(&mut self, base: &mut Base<'_>, kept: KeptSite) -> Result<(), InheritError> {
        self.ports.inherit(kept.next_delivery_port);
        self.inherit_legs(base, kept.legs)?;
        self.legs.inherit_counts(kept.streams_opened, kept.streams_peak);
        self.inherit_intakes(base, kept.intakes)
    }

    /// Lists the descriptors that the state names by number.
    pub(crate) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let legs = self.legs.iter().filter(|(_, leg)| !leg.is_last);
        let legs = legs.map(|(_, leg)| leg.socket.as_fd());
        legs.chain(self.intakes.iter().map(|(_, intake)| intake.as_fd()))
    }

    fn inherit_legs(&mut self, base: &mut Base<'_>, kept: Vec<(usize, KeptLeg)>) -> Result<(), InheritError> {
        let arena = base.driver.arena.clone();
        let inherit = |(key, kept)| Ok::<_, InheritError>((key, Leg::inherit(kept, &arena)?));
        self.legs = kept.into_iter().map(inherit).collect::<Result<_, _>>()?;
        for (key, leg) in self.legs.iter_mut() {
            leg.socket.register(base.registry(), Class::Leg.token(key.0))?;
            if let Some(pair) = base.tunnels.pair_mut(leg.pair) {
                pair.join_leg(leg.id, key);
                if !leg.is_connecting() {
                    pair.tunnel().opened_again(leg.id);
                }
            }
            if !leg.lingers && !base.jobs().knows(&leg.token) {
                // Its job had ended, and it was about to end, too.
                base.set_deadline(FAREWELL, SiteDeadline::Streams(leg.token));
            }
            if leg.is_connecting() {
                let deadline = SiteDeadline::Delivery(key, leg.generation);
                base.set_deadline(deliver::CONNECT_DEADLINE, deadline);
            }
        }
        for key in self.legs.keys() {
            self.schedule(base, key);
            self.continue_greeting(base, key);
        }
        Ok(())
    }
}
