//! This site: connections of its processes, from their preface to the stream that carries them.

use crate::keys::LegKey;
use causeway_admission::Admission;
use deliver::DeliveryPorts;
use intake::Intake;
use legs::Legs;
use slab::Slab;
use std::collections::HashSet;
use std::net::IpAddr;
use std::ops::RangeInclusive;

mod consent;
pub(crate) mod deliver;
pub(crate) mod intake;
pub(crate) mod leg;
pub(crate) mod legs;
pub mod nft;
pub mod ports;
pub(crate) mod streams;
pub(crate) mod transparent;

/// Connections of this site's processes.
pub(crate) struct SiteSide {
    pub(crate) legs: Legs,
    /// Keys of the legs that a router handed over and the far site has not opened yet.
    pub(crate) handed: HashSet<LegKey>,
    pub(crate) intakes: Slab<Intake>,
    /// All of `intakes`, by where they come from.
    pub(crate) intake_admission: Admission<IpAddr, usize>,
    pub(crate) ports: DeliveryPorts,
    pub(crate) streams_opened: u64,
    pub(crate) streams_peak: usize,
}

impl SiteSide {
    /// With connections delivered from these ports, in a process that may have so many files open.
    pub(crate) fn new(ports: RangeInclusive<u16>, files: usize) -> SiteSide {
        SiteSide {
            legs: Legs::default(),
            handed: HashSet::new(),
            intakes: Slab::new(),
            intake_admission: intake::admission(files),
            ports: DeliveryPorts::new(ports),
            streams_opened: 0,
            streams_peak: 0,
        }
    }
}
pub(crate) mod fill;
