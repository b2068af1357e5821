//! Lists the grid for its administrator: sites, tokens, jobs.

use super::{Refusal, State};
use crate::api::{ErrorKind, Job, JobsAnswer, Subnet};
use crate::authority::BACKDATED_SECONDS;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
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
    /// Jobs that run, in the order of their beginning; none from a broker that does not say.
    #[serde(default)]
    pub jobs: Vec<Job>,
    /// Jobs that run, and for which there was no room.
    #[serde(default)]
    pub jobs_left_out: usize,
    /// The broker's clock, in seconds since 1970.
    pub time: u64,
}

/// A site, for its administrator.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedSite {
    /// Its name.
    pub site: String,
    /// Its subnets.
    pub subnets: Vec<String>,
    /// The ranges by which the grid knows them, where it does not by themselves.
    #[serde(default)]
    pub virtual_subnets: Vec<String>,
    /// The ranges in which its subnets have to lie, where who runs the grid has said so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub granted: Vec<String>,
    /// How many nodes it has.
    pub nodes: usize,
    /// Where it speaks from.
    pub observed: Option<SocketAddr>,
    /// When it last spoke, in seconds since 1970; 0 when it never did.
    pub last_seen: u64,
    /// Its certificate's serial number.
    pub serial: String,
    /// Its gateway's program.
    pub version: String,
    /// Since when its certificates are void, where they are.
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
    /// Refuses the name of a site of which nothing is known, which is a slip of the pen.
    pub(crate) fn must_know(&self, site: &str) -> Result<(), Refusal> {
        let is_known = self.members.site(site).is_some()
            || self.trust.revocations().now().before(site).is_some()
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

    /// Sites that have joined, and whose gateways have never been heard.
    fn unheard(&self) -> Vec<ListedSite> {
        let revocations = self.trust.revocations().now();
        let joined = self
            .tokens
            .values()
            .filter(|token| token.used.is_some() && !token.void);
        let joined: BTreeSet<&str> = joined.map(|token| token.site.as_str()).collect();
        let unheard = joined
            .into_iter()
            .filter(|site| self.members.site(site).is_none() && revocations.before(site).is_none());
        unheard
            .map(|site| ListedSite {
                site: site.to_owned(),
                ..ListedSite::default()
            })
            .collect()
    }

    /// Lists the grid.
    pub(crate) fn listing(&self) -> Listing {
        let revocations = self.trust.revocations().now();
        let mut sites: Vec<ListedSite> = self
            .members
            .iter()
            .map(|member| ListedSite {
                site: member.site.clone(),
                subnets: texts(&member.record.subnets),
                virtual_subnets: texts(&member.virtual_subnets),
                granted: self
                    .grants
                    .get(&member.site)
                    .map_or_else(Vec::new, |ranges| texts(ranges)),
                nodes: member.record.nodes.len(),
                observed: member.observed,
                last_seen: member.last_seen,
                serial: member.serial.clone(),
                version: member.record.version.clone(),
                revoked: None,
            })
            .collect();
        let out = revocations
            .revoked()
            .filter(|(site, _)| self.members.site(site).is_none());
        sites.extend(out.map(|(site, before)| ListedSite {
            site: site.to_owned(),
            revoked: Some(before.saturating_add(BACKDATED_SECONDS)),
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
        }
    }
}

fn texts(subnets: &[Subnet]) -> Vec<String> {
    subnets.iter().map(|subnet| subnet.0.to_string()).collect()
}
