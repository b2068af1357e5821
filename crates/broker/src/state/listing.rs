//! Lists the grid for its administrator: sites, tokens, jobs.

use super::{Refusal, State};
use crate::api::{ErrorKind, Job, JobsAnswer, Subnet};
use crate::authority::BACKDATED_SECONDS;
use crate::records::Standing;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

/// What an administrator sees of the grid.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listing {
    /// Name of the grid.
    pub grid: String,
    /// Sites that are members, or were revoked.
    pub sites: Vec<ListedSite>,
    /// Tokens that may still be used.
    pub tokens: Vec<ListedToken>,
    /// Jobs that run, in the order in which they began; empty from a broker that does not report them.
    #[serde(default)]
    pub jobs: Vec<Job>,
    /// Number of running jobs for which there was no room.
    #[serde(default)]
    pub jobs_left_out: usize,
    /// The broker's clock, in seconds since 1970.
    pub time: u64,
    /// All brokers, if the grid has several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub brokers: Vec<ListedBroker>,
}

/// A broker, for the administrator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedBroker {
    /// Its number.
    pub number: u8,
    /// Where it is found, `HOST:PORT`.
    pub public: Vec<String>,
    /// Whether it serves.
    pub standing: Standing,
    /// Whether it is the broker that answers.
    pub is_own: bool,
    /// When records were last exchanged with it, in seconds since 1970; `None` if never since this broker
    /// started.
    #[serde(default)]
    pub met: Option<u64>,
    /// Why the last exchange failed, if it did.
    #[serde(default)]
    pub trouble: Option<String>,
}

/// A site, for its administrator.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedSite {
    /// Its name.
    pub site: String,
    /// Its subnets.
    pub subnets: Vec<String>,
    /// The virtual ranges by which the grid knows them, if it has any.
    #[serde(default)]
    pub virtual_subnets: Vec<String>,
    /// The ranges that must contain its subnets, if the administrator has named any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub granted: Vec<String>,
    /// How many nodes it has.
    pub nodes: usize,
    /// The address that it speaks from.
    pub observed: Option<SocketAddr>,
    /// When it last spoke, in seconds since 1970; 0 if it never did.
    pub last_seen: u64,
    /// Its certificate's serial number.
    pub serial: String,
    /// The version of its gateway's program.
    pub version: String,
    /// The time up to which its certificates are void, if any are.
    pub revoked: Option<u64>,
}

/// A token that may still be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedToken {
    /// The site that may join with it.
    pub site: String,
    /// When it expires.
    pub expires: u64,
}

impl State {
    /// Refuses the name of an unknown site, which is probably mistyped.
    pub(crate) fn must_know(&self, site: &str) -> Result<(), Refusal> {
        let is_known = self.members.site(site).is_some()
            || self.trust.revocations().now().before(site).is_some()
            || self.trust.with_records(|records| records.knows(site))
            || self.tokens.values().any(|token| token.site == site);
        if is_known || !causeway_wire::grid::is_site_name(site) {
            return Ok(());
        }
        let sites: Vec<&str> = self.members.iter().map(|member| member.site.as_str()).collect();
        let sites = match sites.as_slice() {
            [] => "none has joined".to_owned(),
            sites => format!("there are {}", sites.join(", ")),
        };
        Err(Refusal::new(
            ErrorKind::NoSuchSite,
            format!(
                "no site {site} has ever joined or had a token ({sites}); where it did before this broker's store was lost, add \
                 --unknown"
            ),
        ))
    }

    /// Sites that have joined, but whose gateways have never been heard.
    fn unheard(&self) -> Vec<ListedSite> {
        let revocations = self.trust.revocations().now();
        let joined = self
            .tokens
            .values()
            .filter(|token| token.used.is_some() && !token.void);
        let records = self.trust.records();
        let mut joined: BTreeSet<&str> = joined.map(|token| token.site.as_str()).collect();
        joined.extend(records.sites());
        let unheard = joined
            .into_iter()
            .filter(|site| self.members.site(site).is_none())
            .filter(|site| records.holder(site).is_some() || revocations.before(site).is_none())
            .filter(|site| records.holder(site).is_some() || records.revoked_until(site).is_none());
        unheard
            .map(|site| ListedSite {
                site: site.to_owned(),
                ..ListedSite::default()
            })
            .collect()
    }

    fn listed_brokers(&self) -> Vec<ListedBroker> {
        let records = self.trust.records();
        let own = self.number();
        let listed = records.brokers().map(|broker| {
            let (met, trouble) = self.meetings.get(&broker.number).cloned().unwrap_or_default();
            ListedBroker {
                number: broker.number,
                public: broker.public.clone(),
                standing: broker.standing,
                is_own: own == Some(broker.number),
                met,
                trouble,
            }
        });
        listed.collect()
    }

    /// Lists the grid.
    pub(crate) fn listing(&self) -> Listing {
        let revocations = self.trust.revocations().now();
        let records = self.trust.records();
        let mut revoked: BTreeMap<String, u64> = revocations
            .revoked()
            .map(|(site, before)| (site.to_owned(), before.saturating_add(BACKDATED_SECONDS)))
            .collect();
        revoked.extend(
            records
                .revoked()
                .into_iter()
                .map(|(site, until)| (site.to_owned(), until)),
        );
        revoked.retain(|site, _| self.members.site(site).is_none() && records.holder(site).is_none());
        let mut sites: Vec<ListedSite> = self
            .members
            .iter()
            .map(|member| ListedSite {
                site: member.site.clone(),
                subnets: texts(&member.record.subnets),
                virtual_subnets: texts(&member.virtual_subnets),
                granted: texts(&self.granted(&member.site)),
                nodes: member.record.nodes.len(),
                observed: member.observed,
                last_seen: member.last_seen,
                serial: member.serial.clone(),
                version: member.record.version.clone(),
                revoked: None,
            })
            .collect();
        sites.extend(revoked.into_iter().map(|(site, at)| ListedSite {
            site,
            revoked: Some(at),
            ..ListedSite::default()
        }));
        sites.extend(self.unheard());
        sites.sort_by(|a, b| a.site.cmp(&b.site));
        let now = self.now();
        let good = self
            .tokens
            .values()
            .filter(|token| token.used.is_none() && !token.void && token.expires >= now);
        let mut tokens: Vec<ListedToken> = good
            .map(|token| ListedToken {
                site: token.site.clone(),
                expires: token.expires,
            })
            .collect();
        tokens.sort_by(|a, b| (&a.site, a.expires).cmp(&(&b.site, b.expires)));
        let JobsAnswer { jobs, left_out } = self.running(Vec::new(), "");
        Listing {
            grid: self.authority.grid().to_owned(),
            sites,
            tokens,
            jobs,
            jobs_left_out: left_out,
            time: now,
            brokers: self.listed_brokers(),
        }
    }
}

fn texts(subnets: &[Subnet]) -> Vec<String> {
    subnets.iter().map(|subnet| subnet.0.to_string()).collect()
}
