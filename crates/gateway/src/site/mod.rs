//! This site's side: connections of its processes, from their preface to the stream that carries them.

use crate::base::Base;
use crate::keys::{IntakeKey, LegKey, Table};
use crate::sys::source::SiteSource;
use crate::sys::timers::SiteDeadline;
use causeway_service::Admission;
use deliver::DeliveryPorts;
use greeting::Knocks;
use intake::Intake;
use legs::Legs;
use mio::net::TcpStream;
use refused::Refused;
use std::collections::HashSet;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;

mod consent;
mod deliver;
pub(crate) mod fill;
mod greeting;
pub(crate) mod intake;
pub(crate) mod kept;
pub(crate) mod leg;
mod legs;
pub mod nft;
pub(crate) mod opening;
pub mod ports;
mod processes;
mod refused;
pub(crate) mod socket;
mod streams;
pub(crate) mod transparent;
pub(crate) mod written;

/// How a connection reaches this gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entrance {
    /// A shim has made it; it begins with a preface.
    Shim,
    /// The site's router has handed it over.
    Router,
}

/// Connections of this site's processes.
pub(crate) struct SiteSide {
    legs: Legs,
    /// Keys of the legs that a router has handed over and that the far site has not opened yet.
    handed: HashSet<LegKey>,
    intakes: Table<IntakeKey, Intake>,
    /// All of `intakes`, by the address that they come from.
    intake_admission: Admission<IpAddr, IntakeKey>,
    ports: DeliveryPorts,
    knocks: Knocks,
    refused: Refused,
}

impl SiteSide {
    /// Accepts a connection that has arrived in this way.
    pub(crate) fn accept(
        &mut self,
        base: &mut Base<'_>,
        entrance: Entrance,
        socket: TcpStream,
        peer: SocketAddr,
    ) {
        match entrance {
            Entrance::Shim => self.on_shim_connection(base, socket, peer),
            Entrance::Router => self.on_handed_connection(base, socket, peer),
        }
    }

    /// Acts on what the kernel reports of a connection.
    pub(crate) fn on_ready(&mut self, base: &mut Base<'_>, source: SiteSource, event: &mio::event::Event) {
        match source {
            SiteSource::Intake(key) => self.on_intake(base, key, event.is_read_closed()),
            SiteSource::Leg(key) => self.on_leg(base, key, event),
        }
    }

    /// Acts on a deadline that has passed.
    pub(crate) fn on_deadline(&mut self, base: &mut Base<'_>, deadline: SiteDeadline) {
        match deadline {
            SiteDeadline::Intake(key, generation) => self.on_intake_deadline(base, key, generation),
            SiteDeadline::Delivery(key, generation) => self.on_delivery_deadline(base, key, generation),
            SiteDeadline::Greeting(key, generation) => self.on_greeting_deadline(base, key, generation),
            SiteDeadline::Knocks => self.on_knocks_deadline(base),
            SiteDeadline::Refused => self.on_refused_deadline(base),
            SiteDeadline::Streams(token) => self.end_streams(base, &token),
        }
    }

    /// Delivers connections from these ports, in a process that may have `files` files open.
    pub(crate) fn new(ports: RangeInclusive<u16>, files: usize) -> SiteSide {
        SiteSide {
            legs: Legs::default(),
            handed: HashSet::new(),
            intakes: Table::new(),
            intake_admission: intake::admission(files),
            ports: DeliveryPorts::new(ports),
            knocks: Knocks::default(),
            refused: Refused::new(files),
        }
    }

    /// Lends the connections at which streams end.
    pub(crate) fn legs(&self) -> &Legs {
        &self.legs
    }
}
