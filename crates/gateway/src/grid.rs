//! A gateway as a member of a grid: the broker tells it who the others are and where, and its certificate tells them who it is.
//!
//! The session with the broker has a thread of its own (`causeway_broker::client`), which wakes the loop when there is something to learn.
//! While the broker is away everything goes on with what is known.

use crate::config::{Config, Peer};
use crate::control::GridStatus;
use crate::dial::Contact;
use crate::gateway::{Class, Gateway, GatewayError};
use crate::lane::LaneEnd;
use crate::meet::{self, Meetings};
use crate::peer::GatewayToGateway;
use crate::relay::seek::PATIENCE;
use crate::tally::Tally;
use crate::tls;
use causeway_broker::api::{Member, Node, Reach, Reached, Record, Subnet, new_instance};
use causeway_broker::client::{Client, ClientConfig, Event, Membership};
use causeway_broker::tls::{Expect, Trust};
use causeway_wire::Cidr;
use mio::{Poll, Waker};
use rustls::pki_types::CertificateDer;
use sha2::{Digest, Sha256};
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

/// This gateway's place in its grid.
pub(crate) struct Grid {
    pub(crate) client: Client,
    name: String,
    /// Why the broker does not answer; none while it does.
    away: Option<String>,
    /// From where its broker sees it.
    pub(crate) observed: Option<SocketAddr>,
    /// The own addresses that the broker could not dial, with its reasons.
    unreached: Vec<(SocketAddr, String)>,
    certificate_ends: u64,
    /// The gateways that are met half-way.
    pub(crate) meetings: Meetings,
}

impl Grid {
    /// Begins the session, and says what lanes are to show.
    pub(crate) fn begin(
        config: &mut Config,
        directory: &Path,
        poll: &Poll,
    ) -> Result<(Grid, tls::Context), GatewayError> {
        let wrong = |error: &dyn std::fmt::Display| GatewayError::Grid(error.to_string());
        let membership = Membership::load(directory).map_err(|error| wrong(&error))?;
        let membership = membership.ok_or_else(|| {
            GatewayError::Grid(format!(
                "{} holds no membership; ask who runs the grid for a token ('causeway grid token --site {}') and start with \
                 'causeway gateway --join TOKEN'",
                directory.display(),
                config.site
            ))
        })?;
        if membership.site != config.site {
            return Err(GatewayError::Grid(format!(
                "{} makes this host site {} of grid {}, the configuration says {} (name in [site])",
                directory.display(),
                membership.site,
                membership.grid,
                config.site
            )));
        }
        // Certificates say who speaks. The proof over a key only ties both hellos to the session.
        config.key = Sha256::digest(&membership.credentials.authority).to_vec();
        config.encrypt = true;
        let waker = Waker::new(poll.registry(), Class::Broker.token(0))?;
        // A loop that cannot be woken looks when it wakes by itself.
        let wake = Box::new(move || drop(waker.wake()));
        let credentials = membership.credentials.clone();
        if config.overlap_ok && config.virtual_subnets.is_empty() {
            // As before, if it can be had: running jobs know no other.
            let known = causeway_broker::client::known_member(directory, &membership.grid, &membership.site);
            config.virtual_subnets = known.map_or_else(Vec::new, |member| virtual_subnets(config, &member));
        }
        let (name, certificate_ends) = (membership.grid.clone(), membership.certified.not_after);
        let record = record(config)?;
        let client = ClientConfig::new(membership, directory.to_owned(), record, wake);
        let client = Client::start(client).map_err(|error| wrong(&error))?;
        let context = tls::Context::of_member(&credentials, client.trust())?;
        let grid = Grid {
            client,
            name,
            away: Some("not reached yet".to_owned()),
            observed: None,
            unreached: Vec::new(),
            certificate_ends,
            meetings: Meetings::default(),
        };
        Ok((grid, context))
    }

    pub(crate) fn status(&self) -> GridStatus {
        GridStatus {
            name: self.name.clone(),
            broker_away: self.away.clone(),
            observed: self.observed,
            unreached: self.unreached.clone(),
            certificate_ends: self.certificate_ends,
        }
    }

    fn trust(&self) -> &Trust {
        self.client.trust()
    }
}

/// What this gateway tells of itself.
fn record(config: &Config) -> Result<Record, GatewayError> {
    let public = config.public.clone();
    Ok(Record {
        instance: new_instance()?,
        subnets: config.subnets.iter().copied().map(Subnet).collect(),
        lan: config.lan.clone(),
        reach: Reach {
            outbound_only: public.is_empty(),
            public,
            ports: None,
            relay_willing: config.relay,
        },
        udp_port: None,
        nodes: config
            .nodes
            .iter()
            .map(|node| Node {
                name: node.name.clone(),
                addresses: vec![node.address],
                slots: node.slots,
            })
            .collect(),
        overlap_ok: config.overlap_ok,
        virtual_subnets: config.virtual_subnets.iter().copied().map(Subnet).collect(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    })
}

/// What the broker gives this site, if it fits.
fn virtual_subnets(config: &Config, own: &Member) -> Vec<Cidr> {
    let given: Vec<Cidr> = own.virtual_subnets.iter().map(|subnet| subnet.0).collect();
    let mut pairs = config.subnets.iter().zip(&given);
    let fits = given.len() == config.subnets.len() && pairs.all(|(subnet, range)| subnet.is_of_size(range));
    if fits { given } else { Vec::new() }
}

impl Gateway {
    /// Who is at the far end of a connection must be the gateway of this site by its certificate, where there are certificates.
    pub(crate) fn vouch(&self, shown: &[CertificateDer<'_>], site: &str) -> Result<(), String> {
        let Some(grid) = &self.grid else {
            return Ok(());
        };
        let checked = grid.trust().check(shown, &Expect::Site(site.to_owned()));
        checked.map(drop).map_err(|error| error.to_string())
    }

    /// The session with the broker has something to tell.
    pub(crate) fn on_broker(&mut self) {
        while let Some(event) = self.grid.as_ref().and_then(|grid| grid.client.poll_event()) {
            self.on_grid_event(event);
        }
    }

    fn on_grid_event(&mut self, event: Event) {
        let Some(grid) = &mut self.grid else { return };
        match event {
            Event::Member(member) => self.on_member(*member),
            Event::Removed(site) => self.on_member_gone(&site),
            Event::Connected { observed, broker } => {
                grid.away = None;
                grid.observed = Some(observed);
                self.report.say(format_args!(
                    "the broker of grid {} answers; it sees this gateway at {}",
                    grid.name,
                    observed.ip()
                ));
                // Busy: the next connection asks again.
                let _ = grid.client.reach(self.config.public.clone());
                self.on_broker_found(broker);
            }
            Event::Away(why) => {
                self.report.say(format_args!(
                    "the broker of grid {} does not answer ({why}); going on with what is known",
                    grid.name
                ));
                grid.away = Some(why);
            }
            Event::Refused { message, .. } => {
                self.report.say(format_args!("the broker refuses: {message}"));
                grid.away = Some(message);
            }
            Event::ClockSkew { ahead } => self.report.say(format_args!(
                "this host's clock is {} s {} the broker's; set both by NTP, or certificates will not seem good",
                ahead.unsigned_abs(),
                if ahead > 0 { "ahead of" } else { "behind" }
            )),
            Event::Revocations(_) => self.end_revoked(),
            Event::Renewed(credentials) => {
                let renewed = tls::Context::of_member(&credentials, grid.client.trust());
                let renewed = renewed.and_then(|context| match &mut self.quic {
                    Some(quic) => quic.renew(&context).map(|()| context),
                    None => Ok(context),
                });
                match renewed {
                    Ok(context) => {
                        self.tls = Some(context);
                        self.report
                            .say(format_args!("this site's certificate was renewed; new lanes show it"));
                    }
                    Err(error) => self
                        .report
                        .say(format_args!("the renewed certificate cannot be used: {error}")),
                }
            }
            Event::Reached(results) => self.on_reached(results),
            Event::Failed { what, reason } => self.report.say(format_args!("{what}: {reason}")),
            Event::Trouble(what) => self.report.say(format_args!("{what}")),
            Event::Message(message) if [meet::KIND, meet::TCP_KIND].contains(&&*message.kind) => {
                self.on_punch(&message)
            }
            Event::Message(_) | Event::Relays(_) | Event::Jobs(_) => {}
        }
    }

    fn on_reached(&mut self, results: Vec<Reached>) {
        let Some(grid) = &mut self.grid else { return };
        let unreached = results.into_iter().filter(|result| !result.reached);
        let unreached = unreached.map(|result| (result.address, result.reason.unwrap_or_default()));
        grid.unreached = unreached.collect();
        for (address, reason) in &grid.unreached {
            self.report.say(format_args!(
                "the broker cannot dial {address} ({reason}): other sites will not either; open the port, or leave 'public' in \
                 [listen] out, so that this gateway dials them"
            ));
        }
    }

    /// A site is new, or has changed.
    fn on_member(&mut self, member: Member) {
        if member.site == self.config.site {
            return self.on_own_member(&member);
        }
        let Member { site, record, .. } = member;
        let addresses = match record.reach.outbound_only {
            true => Vec::new(),
            false => record.reach.public,
        };
        let known = self.peer_of(&site);
        let index = known.unwrap_or_else(|| self.add_peer(site));
        let was_gone = std::mem::take(&mut self.contacts[index].is_gone);
        if known.is_none() || was_gone {
            self.seek_all(index, PATIENCE);
        }
        if self.contacts[index].addresses != addresses {
            self.config.peers[index].address = addresses.first().copied();
            let contact = &mut self.contacts[index];
            contact.addresses = addresses;
            if contact.addresses.is_empty() {
                "its gateway has not dialled in".clone_into(&mut contact.trouble);
            }
            self.dial_all(index, Duration::ZERO);
        }
        self.on_peer_known(index);
    }

    /// What the grid knows of this site: by which addresses, among others.
    fn on_own_member(&mut self, member: &Member) {
        let given = virtual_subnets(&self.config, member);
        if !self.directory.take_virtual_subnets(&self.config, &given) {
            return;
        }
        let text = |subnets: &[Cidr]| subnets.iter().map(Cidr::to_string).collect::<Vec<_>>().join(", ");
        self.report.say(format_args!(
            "the grid knows this site's {} as {}",
            text(&self.config.subnets),
            text(if given.is_empty() {
                &self.config.subnets
            } else {
                &given
            })
        ));
        let own = self.directory.own().clone();
        for pair in self.pairs.iter().map(|(key, _)| key).collect::<Vec<_>>() {
            self.tell(pair, GatewayToGateway::Site(own.clone()));
        }
    }

    pub(crate) fn peer_of(&self, site: &str) -> Option<usize> {
        self.config.peers.iter().position(|peer| peer.site == site)
    }

    /// Peers are only ever added: others are known by their places.
    pub(crate) fn add_peer(&mut self, site: String) -> usize {
        self.config.peers.push(Peer {
            site,
            address: None,
            rate: self.config.rate,
        });
        self.contacts.push(Contact::new(false));
        self.tallies.push(Tally::default());
        self.config.peers.len() - 1
    }

    fn on_member_gone(&mut self, site: &str) {
        let Some(index) = self.peer_of(site) else { return };
        self.report
            .say(format_args!("site {site} is no longer a member of the grid"));
        self.config.peers[index].address = None;
        self.contacts[index].addresses.clear();
        self.forget_meeting(index);
        self.contacts[index].is_gone = true;
        if let Some(pair) = self.tunnels.get(site).copied() {
            self.end_pair(pair, &LaneEnd::NoMember, true);
        }
        "it is no longer a member of the grid".clone_into(&mut self.contacts[index].trouble);
    }

    /// Certificates are void: what rests on them ends.
    fn end_revoked(&mut self) {
        let Some(grid) = &self.grid else { return };
        let mut revoked = Vec::new();
        for (key, pair) in &self.pairs {
            let mut lanes = pair
                .lanes
                .iter()
                .flatten()
                .filter_map(|lane| self.lanes.get(*lane));
            let why = lanes.find_map(|lane| {
                let expected = Expect::Site(pair.site.clone());
                grid.trust().check(&lane.carrier.shown(), &expected).err()
            });
            revoked.extend(why.map(|why| (key, why.to_string())));
        }
        for (pair, why) in revoked {
            self.end_pair(pair, &LaneEnd::Refused(why), true);
        }
    }
}
