//! This site: connections of its processes, from their preface to the stream that carries them.

use crate::base::Base;
use crate::keys::{IntakeKey, LegKey, Table};
use crate::sys::source::SiteSource;
use crate::sys::timers::SiteDeadline;
use causeway_admission::Admission;
use deliver::DeliveryPorts;
use intake::Intake;
use legs::Legs;
use std::collections::HashSet;
use std::net::IpAddr;
use std::ops::RangeInclusive;

mod consent;
pub(crate) mod deliver;
pub(crate) mod fill;
pub(crate) mod intake;
mod kept;
pub(crate) mod leg;
pub(crate) mod legs;
pub mod nft;
pub mod ports;
pub(crate) mod streams;
pub(crate) mod transparent;

/// Connections of this site's processes.
pub(crate) struct SiteSide {
    legs: Legs,
    /// Keys of the legs that a router handed over and the far site has not opened yet.
    handed: HashSet<LegKey>,
    intakes: Table<IntakeKey, Intake>,
    /// All of `intakes`, by where they come from.
    intake_admission: Admission<IpAddr, IntakeKey>,
    ports: DeliveryPorts,
    streams_opened: u64,
    streams_peak: usize,
}

impl SiteSide {
    /// Acts on what the kernel reports of a connection.
    pub(crate) fn on_ready(&mut self, base: &mut Base<'_>, source: SiteSource, event: &mio::event::Event) {
        match source {
            SiteSource::Intake(key) => self.on_intake(base, key),
            SiteSource::Leg(key) => self.on_leg(base, key, event),
        }
    }

    pub(crate) fn on_deadline(&mut self, base: &mut Base<'_>, deadline: SiteDeadline) {
        match deadline {
            SiteDeadline::Intake(key, generation) => self.on_intake_deadline(base, key, generation),
            SiteDeadline::Delivery(key, generation) => self.on_delivery_deadline(base, key, generation),
            SiteDeadline::Streams(token) => self.end_streams(base, &token),
        }
    }

    /// Delivers connections from these ports, in a process that may have so many files open.
    pub(crate) fn new(ports: RangeInclusive<u16>, files: usize) -> SiteSide {
        SiteSide {
            legs: Legs::default(),
            handed: HashSet::new(),
            intakes: Table::new(),
            intake_admission: intake::admission(files),
            ports: DeliveryPorts::new(ports),
            streams_opened: 0,
            streams_peak: 0,
        }
    }

    /// The number that tells a leg from others of the same key.
    pub(crate) fn generation(&self, leg: LegKey) -> u64 {
        self.legs.get(leg).map_or(0, |leg| leg.generation)
    }

    pub(crate) fn legs(&self) -> &Legs {
        &self.legs
    }

    /// Most streams that there have been at a time.
    pub(crate) fn streams_peak(&self) -> usize {
        self.streams_peak
    }

    pub(crate) fn streams_opened(&self) -> u64 {
        self.streams_opened
    }

    pub(crate) fn count_opened(&mut self) {
        self.streams_opened += 1;
    }
}
