//! A gateway as a member of a grid: the broker tells it who and where the others are, and its certificate
//! proves to them who it is.
//!
//! The session with the broker has a thread of its own (`causeway_broker::client`), which wakes the loop when
//! there is something to learn. While the broker is away, everything goes on with what is known.

use crate::config::Config;
use crate::error::GatewayError;
use crate::sys::source::Class;

use crate::membership::records::Brought;
use crate::tunnels::tls;
use causeway_broker::api::{Member, Node, Reach, Record, Subnet, new_instance};
use causeway_broker::client::{BrokerState, Client, ClientConfig, Membership};
use causeway_broker::identity::Certified;
use causeway_broker::members::Members;
use causeway_broker::tls::Trust;
use causeway_control::{BrokerStatus, GridStatus};
use causeway_wire::Cidr;
use mio::{Poll, Waker};
use sha2::{Digest, Sha256};
use std::net::SocketAddr;
use std::path::Path;

/// This gateway's place in its grid.
pub(crate) struct BrokerSession {
    pub(crate) client: Client,
    pub(crate) name: String,
    /// Why the broker does not answer; `None` while it does.
    pub(super) away: Option<String>,
    /// The address at which its broker sees it.
    pub(crate) observed: Option<SocketAddr>,
    /// This gateway's addresses that the broker could not dial, with its reasons.
    pub(super) unreached: Vec<(SocketAddr, String)>,
    pub(super) certified: Certified,
    /// The broker's address when it last answered.
    pub(super) broker: Option<SocketAddr>,
    pub(super) clock_ahead_seconds: Option<i64>,
    /// What the broker reports about all sites.
    pub(super) members: Members,
    /// What this gateway announces about itself.
    pub(super) record: Record,
    /// The ranges by which the grid knows this site, as the broker last said; empty if these are the real
    /// ones.
    pub(super) given: Vec<Cidr>,
    pub(super) brought: Brought,
}

impl BrokerSession {
    /// Begins the session, and returns what lanes must show.
    pub(crate) fn begin(
        config: &mut Config,
        directory: &Path,
        poll: &Poll,
    ) -> Result<(BrokerSession, tls::Context), GatewayError> {
        let wrong = |error: &dyn std::fmt::Display| GatewayError::Grid(error.to_string());
        let membership = Membership::load(directory).map_err(|error| wrong(&error))?;
        let membership = membership.ok_or_else(|| {
            GatewayError::Grid(format!(
                "{} holds no membership; ask whoever runs the grid for a token ('causeway grid token --site {}') and start with \
                 'causeway gateway --join TOKEN'",
                directory.display(),
                config.site
            ))
        })?;
        if membership.site != config.site {
            return Err(GatewayError::Grid(format!(
                "{} makes this host site {} of grid {}, but the configuration says {} (name in [site])",
                directory.display(),
                membership.site,
                membership.grid,
                config.site
            )));
        }
        // Certificates prove who speaks. The proof over a key only ties both hellos to the session.
        config.key = Sha256::digest(&membership.credentials.authority).to_vec();
        config.insecure = false;
        let waker = Waker::new(poll.registry(), Class::Broker.token(0))?;
        // If the loop cannot be woken, it checks when it next wakes by itself.
        let wake = Box::new(move || drop(waker.wake()));
        let credentials = membership.credentials.clone();
        let known = causeway_broker::client::known_member(directory, &membership.grid, &membership.site);
        let given = known.map_or_else(Vec::new, |member| virtual_subnets(config, &member));
        let (name, certified) = (membership.grid.clone(), membership.certified.clone());
        let mut record = record(config)?;
        if record.virtual_subnets.is_empty() {
            record.virtual_subnets = given.iter().copied().map(Subnet).collect();
        }
        let mut client = ClientConfig::new(membership, directory.to_owned(), record.clone(), wake);
        client.proxy.clone_from(&config.proxy);
        let client = Client::start(client).map_err(|error| wrong(&error))?;
        let context = tls::Context::for_member(&credentials, client.trust())?;
        let grid = BrokerSession {
            client,
            name,
            away: Some("not reached yet".to_owned()),
            observed: None,
            unreached: Vec::new(),
            certified,
            broker: None,
            clock_ahead_seconds: None,
            members: Members::default(),
            record,
            given,
            brought: Brought::default(),
        };
        Ok((grid, context))
    }

    pub(crate) fn status(&self) -> GridStatus {
        GridStatus {
            name: self.name.clone(),
            broker_away: self.away.clone(),
            observed: self.observed,
            unreached: self.unreached.clone(),
            certificate_begins: self.certified.not_before,
            certificate_ends: self.certified.not_after,
            broker: self.broker,
            clock_ahead_seconds: self.clock_ahead_seconds,
            brokers: self.client.brokers().into_iter().map(shown).collect(),
        }
    }

    /// Whether the broker answers, as far as is known.
    pub(crate) fn serves(&self) -> bool {
        self.away.is_none()
    }

    /// Lists the ranges that the broker gave; see the field.
    pub(crate) fn given(&self) -> &[Cidr] {
        &self.given
    }

    /// Asks the broker to keep these ranges for this site, or to give them to it again.
    pub(super) fn ask_for(&mut self, ranges: &[Cidr]) {
        let wish: Vec<Subnet> = ranges.iter().copied().map(Subnet).collect();
        if self.record.virtual_subnets != wish {
            self.record.virtual_subnets = wish;
            self.client.update(self.record.clone());
        }
    }

    /// Checks peers' certificates.
    pub(crate) fn trust(&self) -> Trust {
        self.client.trust().clone()
    }
}

fn shown(broker: BrokerState) -> BrokerStatus {
    BrokerStatus {
        number: broker.number,
        addresses: broker.addresses,
        away: broker.away,
    }
}

/// What this gateway announces about itself.
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
pub(super) fn virtual_subnets(config: &Config, own: &Member) -> Vec<Cidr> {
    let given: Vec<Cidr> = own.virtual_subnets.iter().map(|subnet| subnet.0).collect();
    let mut pairs = config.subnets.iter().zip(&given);
    let fits = given.len() == config.subnets.len() && pairs.all(|(subnet, range)| subnet.is_of_size(range));
    if fits { given } else { Vec::new() }
}
