//! Where streams of other sites may go in this one. A site decides by its own configuration: nothing that
//! another site says about itself permits more.

use crate::base::{Base, Bundle};
use crate::config::Config;
use crate::membership::consent::{self, Refusal};
use crate::membership::directory::Whereabouts;
use crate::membership::jobs::{Job, Origin};
use crate::site::SiteSide;
use crate::site::opening::{Delivery, NOT_THE_LAUNCHERS};
use crate::sys::addresses::is_of_this_host;
use crate::sys::listening::{Taker, taker};
use causeway_control::SINK_PORT;
use causeway_wire::Token;
use std::net::SocketAddr;

/// Ports below this belong to the system's services; MPI processes have none of them.
const FIRST_USER_PORT: u16 = 1024;

impl SiteSide {
    /// Whether a stream may reach an address of this site, which it names as the grid knows it.
    pub(super) fn judge_delivery(
        &self,
        base: &Base<'_>,
        site: &str,
        token: Token,
        source: SocketAddr,
        asked: SocketAddr,
        destination: SocketAddr,
    ) -> Result<Delivery, Refusal> {
        let config = base.config();
        let Some(job) = base.jobs().get(&token) else {
            let why = format!("stream to {asked} with an unknown job token");
            return Err(("unknown-token", why));
        };
        let opens = if job.bare {
            job.is_from(site)
        } else {
            job.takes_part(site)
        };
        if !opens {
            let why = format!("stream to {asked} under a job in which it takes no part");
            return Err(("no-part", why));
        }
        if base.directory().site_of(source.ip().to_canonical()) != Whereabouts::At(site.to_owned()) {
            let why = format!("stream to {asked} claims to come from {source}, which is not there");
            return Err(("false-source", why));
        }
        // This is asked again, although it was asked when the job was announced: the configuration may have
        // changed since.
        if let Some(refusal) = consent::why_not(config, job) {
            return Err(("not-accepted", format!("stream to {asked}: {}", refusal.in_log())));
        }
        if !base.directory().own_site().has_node(destination.ip()) {
            let why = format!("stream to {destination}, which is not in this site");
            return Err(("foreign-destination", why));
        }
        if is_for_sink(job, config, destination) {
            return Ok(Delivery::Sink);
        }
        if is_own_listener(config, destination) {
            let why = format!("stream to {destination}, where this gateway itself listens");
            return Err(("own-listener", why));
        }
        if !is_open(job, config, destination) && !is_launchers(job, destination)? {
            return Ok(Delivery::Nobody);
        }
        judge_port(job, config, destination)?;
        if job.transparent && config.transparent.is_none() {
            let why = format!(
                "stream from {source} to {destination}, whose process is not under the shim: set 'transparent' in [listen] here"
            );
            return Err(("not-transparent", why));
        }
        Ok(Delivery::Begun)
    }
}

/// Whether a stream is for a process that counts bytes, for `causeway probe --measure`.
fn is_for_sink(job: &Job, config: &Config, destination: SocketAddr) -> bool {
    let mut own = config.lan.iter();
    let is_here = own.any(|own| own.ip() == destination.ip());
    job.bare && is_here && destination.port() == SINK_PORT
}

/// Whether the gateway itself listens at a destination. A delivery to it would come from its own address, and
/// so look like a neighbour's connection.
fn is_own_listener(config: &Config, destination: SocketAddr) -> bool {
    let others = [config.wan, config.metrics, config.transparent];
    let mut own = config.lan.iter().copied().chain(others.into_iter().flatten());
    own.any(|own| {
        // The port comes first, because listing this host's addresses takes a system call.
        let is_everywhere = || own.ip().is_unspecified() && is_of_this_host(destination.ip());
        own.port() == destination.port() && (own.ip() == destination.ip() || is_everywhere())
    })
}

/// Whether other sites can reach an address: that of a node that the job may use, or one that the
/// configuration names. On this host, they can also reach the launcher of a job that started here.
fn is_open(job: &Job, config: &Config, destination: SocketAddr) -> bool {
    let address = destination.ip();
    let is_listed = job.nodes(config).iter().any(|node| node.address == address);
    is_listed || config.accept.opens(address)
}

/// Whether the launcher of a job that started here listens there.
///
/// # Errors
/// Something else listens at the destination, or no launcher can.
fn is_launchers(job: &Job, destination: SocketAddr) -> Result<bool, Refusal> {
    if !matches!(job.origin, Origin::Here(_)) || !is_of_this_host(destination.ip()) {
        let why = format!(
            "stream to {destination}, which is not a listed node; to allow it, add it to addresses in [accept]"
        );
        return Err(("unlisted-destination", why));
    }
    match taker(job.holder, destination) {
        Taker::Process => Ok(true),
        Taker::Nobody => Ok(false),
        Taker::Other => {
            let why =
                format!("stream to {destination}, where a process listens that does not belong to the job");
            Err((NOT_THE_LAUNCHERS, why))
        }
    }
}

/// Whether a stream may reach a port: a job may reach those from 1024 on; users of `causeway connect`, those
/// that this site has opened to the users of their site.
fn judge_port(job: &Job, config: &Config, destination: SocketAddr) -> Result<(), Refusal> {
    let port = destination.port();
    match (&job.origin, job.bare) {
        (_, false) if port >= FIRST_USER_PORT => Ok(()),
        (_, false) => Err((
            "system-port",
            format!("stream to {destination}: a job's processes have no port below {FIRST_USER_PORT}"),
        )),
        (Origin::Site(site), true) if config.accept.takes_connections_to(site, port) => Ok(()),
        (Origin::Site(site), true) => Err((
            "connect",
            format!("connection to {destination}: connect_from in [accept] does not name \"{site}:{port}\""),
        )),
        // Such a job goes one way: nobody at the other site answers with a connection of their own.
        (Origin::Here(_), true) => Err((
            "connect",
            format!("connection to {destination} under a job of 'causeway connect', which began it here"),
        )),
    }
}
