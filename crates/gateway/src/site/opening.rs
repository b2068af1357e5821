//! Opens the streams to this site that other sites ask for: judges them, and begins their connections.

use crate::base::{Base, Bundle};
use crate::keys::PairKey;
use crate::site::SiteSide;
use crate::site::deliver;
use crate::site::leg::{Opening, Stage};
use crate::site::socket::Socket;
use crate::site::transparent;
use crate::sys::timers::SiteDeadline;
use crate::tunnels::pair::Pair;
use causeway_control::audit::AuditEvent;
use causeway_tunnel::{OpenRequest, StreamId, Target};
use causeway_wire::preface::{self, NONCE_BYTES};
use causeway_wire::{Preface, Reason, Sender, Token};
use mio::net::TcpStream;
use std::io;
use std::net::SocketAddr;

/// A process that another site's stream is for, and that has yet to be started.
pub(crate) enum Process {
    /// The process counts bytes, for this job.
    Sink(Token),
    /// The process belongs to this job, and runs on this node.
    Node(Token, String),
}

/// The kind of a refusal that looks to the far side as if nothing listened: what else listens on a head node
/// does not concern the other site.
pub(in crate::site) const NOT_THE_LAUNCHERS: &str = "not-the-launchers";

/// The outcome of a request for a stream to an address of this site.
pub(in crate::site) enum Delivery {
    /// A connection has been begun.
    Begun,
    /// The delivery is for a process that counts bytes, which has yet to be started.
    Sink,
    /// Nothing of the job's launcher listens there.
    Nobody,
}

/// Writes to the audit that a connection of `causeway connect` is let in. Connections of an MPI's processes
/// are too many, but the processes themselves are written down.
fn record_connection(
    base: &mut Base<'_>,
    token: Token,
    site: &str,
    destination: SocketAddr,
) -> io::Result<()> {
    let Some(job) = base.membership.jobs().get(&token).filter(|job| job.bare) else {
        return Ok(());
    };
    let audit = &mut base.driver.audit;
    audit.check()?;
    let mut entry = audit.entry(AuditEvent::Connect);
    site.clone_into(&mut entry.site);
    entry.user.clone_from(&job.user);
    entry.name.clone_from(&job.name);
    entry.job = token.hint();
    entry.node = destination.to_string();
    audit.write(entry).map(drop)
}

impl SiteSide {
    /// Judges a stream that another site asks for, and begins its connection, or returns which process it is
    /// for.
    ///
    /// # Errors
    /// Why the delivery gets no process, for the far side.
    pub(crate) fn open(
        &mut self,
        base: &mut Base<'_>,
        pair: PairKey,
        id: StreamId,
        request: OpenRequest,
    ) -> Result<Option<Process>, Reason> {
        self.legs.count_opened();
        let streams = base.tunnels.pairs().get(pair).map_or(0, Pair::leg_count);
        let site = base.tunnels.pairs().site_of(pair).to_owned();
        let jobs = base.jobs();
        let Some(token) = jobs.named(&request.token, &base.config().site, &site) else {
            return Err(refuse_unknown(base, &site, &request));
        };
        let others = base.directory().others().count();
        let (of_site, of_all) = most_streams(base.driver.files, others);
        if streams >= of_site || self.legs.len() >= of_all {
            return Err(refuse_one_more(base, &site));
        }
        match request.target {
            Target::Connection { source, destination } => {
                match self.open_delivery(base, (pair, id), &site, token, source, destination)? {
                    Delivery::Begun => Ok(None),
                    Delivery::Sink => Ok(Some(Process::Sink(token))),
                    Delivery::Nobody => Err(Reason::Refused),
                }
            }
            Target::Node(node) => Ok(Some(Process::Node(token, node))),
        }
    }

    /// Begins the connection of a stream that may reach an address of this site.
    fn open_delivery(
        &mut self,
        base: &mut Base<'_>,
        (pair, id): (PairKey, StreamId),
        site: &str,
        token: Token,
        source: SocketAddr,
        destination: SocketAddr,
    ) -> Result<Delivery, Reason> {
        let asked = destination;
        let own_site = base.directory().own_site();
        // A mapped address is the same host's, whose own ports have to be known.
        let real = own_site.real(asked.ip().to_canonical());
        let destination = SocketAddr::new(real, asked.port());
        match self.judge_delivery(base, site, token, source, asked, destination) {
            Ok(Delivery::Begun) => {}
            Ok(Delivery::Sink) => return Ok(Delivery::Sink),
            Ok(Delivery::Nobody) => return Err(Reason::Refused),
            Err((kind, why)) => {
                base.record_refusal((kind, why), site, token);
                return Err(match kind {
                    NOT_THE_LAUNCHERS => Reason::Refused,
                    _ => Reason::Denied,
                });
            }
        }
        if let Err(error) = record_connection(base, token, site, destination) {
            base.refuse("audit", site, error);
            return Err(Reason::Exhausted);
        }
        let asked = Preface {
            source,
            destination: asked,
            token,
            wants: causeway_wire::Wants::Nothing,
        };
        let (opening, socket) = self.connect(base, site, &asked, destination)?;
        let leg = self.add_leg(
            base,
            Socket::dialled(socket),
            pair,
            id,
            token,
            Stage::Connecting { opening },
        )?;
        let generation = self.legs[leg].generation;
        base.set_deadline(deliver::CONNECT_DEADLINE, SiteDeadline::Delivery(leg, generation));
        Ok(Delivery::Begun)
    }

    /// Begins the connection that streams of this kind get in this job, and returns what is sent first on it.
    fn connect(
        &mut self,
        base: &mut Base<'_>,
        site: &str,
        asked: &Preface,
        destination: SocketAddr,
    ) -> Result<(Option<Opening>, TcpStream), Reason> {
        let (jobs, lan) = (base.jobs(), &base.config().lan);
        let (opening, socket) = if jobs.is_transparent(&asked.token) {
            (None, transparent::connect(asked.source, destination))
        } else if jobs.is_bare(&asked.token) {
            (None, deliver::connect_plainly(lan, destination))
        } else {
            (Some(opening(asked)?), self.ports.connect(lan, destination))
        };
        match socket {
            Ok(socket) => Ok((opening, socket)),
            Err(error) => {
                let text = format_args!("connect to {destination} for it: {error}");
                base.refuse("delivery", format_args!("site {site}"), text);
                Err(deliver::reason(&error))
            }
        }
    }
}

/// The beginning of a delivery. Its nonce makes the proofs of both ends unique.
fn opening(asked: &Preface) -> Result<Opening, Reason> {
    let mut nonce = [0; NONCE_BYTES];
    getrandom::fill(&mut nonce).map_err(|_| Reason::Exhausted)?;
    let preface = asked
        .encode(Sender::Gateway, &nonce)
        .map_err(|_| Reason::Protocol)?;
    let answer = preface::answer(Sender::Process, &asked.token, &nonce);
    Ok(Opening { preface, answer })
}

/// How many streams one site may have, and all sites together, if there are this many other sites. Together
/// they may use three quarters of the files that this gateway may open, because shims, other gateways and
/// commands need some, too. One site may use no more than half, if another one may want the rest.
fn most_streams(files: usize, others: usize) -> (usize, usize) {
    let all = files / 4 * 3;
    (if others > 1 { files / 2 } else { all }, all)
}

/// Refuses one more stream of a site.
fn refuse_one_more(base: &mut Base<'_>, site: &str) -> Reason {
    let text = "it has as many streams as half of this gateway's files (ulimit -n), where there are more sites, or all have as \
                many as three quarters";
    base.refuse("streams", format_args!("site {site}"), text);
    Reason::Exhausted
}

/// Refuses a stream for a job that is not known here, or under a name that does not belong to this pair of
/// sites.
fn refuse_unknown(base: &mut Base<'_>, site: &str, request: &OpenRequest) -> Reason {
    let why = match &request.target {
        Target::Connection { destination, .. } => {
            format!("stream to {destination} with an unknown job token")
        }
        Target::Node(node) => format!("process asked for on {node:?} with an unknown job token"),
    };
    base.record_refusal(("unknown-token", why), site, request.token);
    Reason::Denied
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_site_has_half_of_the_files_where_another_may_want_the_rest() {
        assert_eq!(most_streams(20_000, 1), (15_000, 15_000));
        assert_eq!(most_streams(20_000, 2), (10_000, 15_000));
    }
}
