//! What travels of a site's connections in a hand-over.

use crate::base::Base;
use crate::inherited::InheritError;
use crate::site::SiteSide;
use crate::site::deliver;
use crate::site::intake::KeptIntake;
use crate::site::leg::{KeptLeg, Leg};
use crate::sys::source::Class;
use crate::sys::timers::SiteDeadline;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// Legs and intakes, by their keys.
pub(crate) type Kept<'a> = (Vec<(usize, KeptLeg<'a>)>, Vec<(usize, KeptIntake)>);

impl SiteSide {
    pub(crate) fn keep(&mut self) -> Kept<'_> {
        let legs = self.legs.iter_mut().map(|(key, leg)| (key.0, leg.keep()));
        let intakes = self.intakes.iter().map(|(key, intake)| (key.0, intake.keep()));
        (legs.collect(), intakes.collect())
    }

    /// The descriptors that the state names by number.
    pub(crate) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let legs = self.legs.iter().map(|(_, leg)| leg.socket.as_fd());
        legs.chain(self.intakes.iter().map(|(_, intake)| intake.as_fd()))
    }

    /// The port of the next delivery.
    pub(crate) fn next_port(&self) -> u16 {
        self.ports.next()
    }

    /// Goes on counting, and dealing ports out, where a predecessor stopped.
    pub(crate) fn inherit_counts(&mut self, opened: u64, peak: usize, next_port: u16) {
        (self.streams_opened, self.streams_peak) = (opened, peak);
        self.ports.inherit(next_port);
    }

    /// Goes on with the legs of a predecessor. Those of an ended job have `farewell` left.
    ///
    /// # Errors
    /// A descriptor is none, or cannot be registered.
    pub(crate) fn inherit_legs(
        &mut self,
        base: &mut Base<'_>,
        kept: Vec<(usize, KeptLeg<'static>)>,
        farewell: Duration,
    ) -> Result<(), InheritError> {
        let inherit = |(key, kept)| Ok::<_, InheritError>((key, Leg::inherit(kept)?));
        self.legs = kept.into_iter().map(inherit).collect::<Result<_, _>>()?;
        for (key, leg) in self.legs.iter_mut() {
            leg.socket
                .register(base.driver.registry(), Class::Leg.token(key.0))?;
            if let Some(pair) = base.tunnels.pair_mut(leg.pair) {
                pair.join_leg(leg.id, key);
            }
            if !leg.lingers && !base.membership.jobs().knows(&leg.token) {
                // Its job had ended, and it was to go.
                base.driver
                    .set_deadline(farewell, SiteDeadline::Streams(leg.token));
            }
            if leg.is_connecting() {
                let deadline = SiteDeadline::Delivery(key, leg.generation);
                base.driver.set_deadline(deliver::CONNECT_DEADLINE, deadline);
            }
        }
        for key in self.legs.keys() {
            self.schedule(base, key);
        }
        Ok(())
    }

    /// Ends every connection: the gateway stops.
    pub(crate) fn abort_all(&mut self, base: &mut Base<'_>) {
        for leg in self.legs.keys() {
            self.abort_leg(base, leg, causeway_wire::Reason::NoTunnel);
        }
    }
}
