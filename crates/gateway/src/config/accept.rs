//! What a site lets other sites do at it: `[accept]`. By default, nothing.

use super::reader::{Reader, Table};
use causeway_broker::holds;
use causeway_wire::Cidr;
use causeway_wire::TextError;
use causeway_wire::grid::{self, ALL_SITES};
use std::net::IpAddr;
use std::ops::RangeInclusive;

/// The largest `max_processes`: more than any host can start.
const MAX_PROCESSES: i64 = 1_000_000;

/// What other sites may do here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Accept {
    /// Sites whose jobs may start processes and open streams here.
    pub jobs: Vec<String>,
    /// Sites that may take part in jobs of this one's own users; `None`: those that `jobs` names.
    pub partners: Option<Vec<String>>,
    /// Who may connect where with `causeway connect`.
    pub connect_from: Vec<ConnectFrom>,
    /// Addresses of this site, beside those of its listed nodes, to which jobs and connections of other sites
    /// are delivered.
    pub addresses: Vec<Cidr>,
    /// Processes that one job of another site may have started here at a time; `None`: as many as the listed
    /// nodes have slots.
    pub max_processes: Option<u32>,
    /// Bytes that `causeway run --send` of another site may copy to a node here for one job; `None`: any
    /// number.
    pub files: Option<u64>,
    /// Whether this site also takes part in jobs whose streams may cross in clear text: then whoever is on
    /// the path may run programs here.
    pub over_clear_text: bool,
}

/// Ports to which the connections of one site's users are delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectFrom {
    /// The site, or [`ALL_SITES`].
    pub site: String,
    /// The ports, on the nodes here.
    pub ports: RangeInclusive<u16>,
}

impl std::fmt::Display for ConnectFrom {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (first, last) = (self.ports.start(), self.ports.end());
        write!(f, "{}:{first}", self.site)?;
        if first == last {
            Ok(())
        } else {
            write!(f, "-{last}")
        }
    }
}

impl std::str::FromStr for ConnectFrom {
    type Err = TextError;

    fn from_str(text: &str) -> Result<ConnectFrom, TextError> {
        let wrong = || {
            TextError::from(format!(
                "{text:?} is not SITE:PORT or SITE:FIRST-LAST, such as rennes:22"
            ))
        };
        let (site, ports) = text.rsplit_once(':').ok_or_else(wrong)?;
        let (first, last) = ports.split_once('-').unwrap_or((ports, ports));
        let (first, last) = (
            first.parse().map_err(|_| wrong())?,
            last.parse().map_err(|_| wrong())?,
        );
        if first == 0 || first > last {
            return Err(wrong());
        }
        Ok(ConnectFrom {
            site: site_or_all(site)?,
            ports: first..=last,
        })
    }
}

impl Accept {
    /// Whether jobs that start at this site may start processes and open streams here.
    pub fn takes_jobs_of(&self, site: &str) -> bool {
        self.jobs.iter().any(|known| known == site || known == ALL_SITES)
    }

    /// Sites that may take part in jobs that start here.
    pub fn partners(&self) -> &[String] {
        self.partners.as_ref().unwrap_or(&self.jobs)
    }

    /// Sites that can have programs run here in the account of jobs: those whose jobs are accepted, and those
    /// at which jobs of this site's users run, because the launcher and the MPI start whatever another rank
    /// asks for.
    pub fn starters(&self) -> Vec<&str> {
        let all = self.jobs.iter().chain(self.partners());
        let mut all: Vec<&str> = all.map(String::as_str).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Whether this site may take part in jobs that start here.
    pub fn is_partner(&self, site: &str) -> bool {
        self.partners()
            .iter()
            .any(|known| known == site || known == ALL_SITES)
    }

    /// Whether users of this site may connect to anything here.
    pub fn takes_connections_of(&self, site: &str) -> bool {
        self.connect_from.iter().any(|known| known.is_of(site))
    }

    /// Whether users of this site may connect to this port.
    pub fn takes_connections_to(&self, site: &str, port: u16) -> bool {
        let mut known = self.connect_from.iter();
        known.any(|known| known.is_of(site) && known.ports.contains(&port))
    }

    /// Whether an address that no listed node has is open to other sites.
    pub fn opens(&self, address: IpAddr) -> bool {
        self.addresses.iter().any(|range| range.contains(address))
    }
}

impl ConnectFrom {
    fn is_of(&self, site: &str) -> bool {
        self.site == site || self.site == ALL_SITES
    }
}

/// Reads the name of a site, or the word for all of them.
///
/// # Errors
/// The text is neither; the error is a sentence.
pub fn site_or_all(text: &str) -> Result<String, TextError> {
    if text == ALL_SITES || grid::is_site_name(text) {
        Ok(text.to_owned())
    } else {
        Err(format!("{text:?} is neither the name of a site nor \"{ALL_SITES}\"").into())
    }
}

/// Reads `[accept]`; if the section is missing, nothing is accepted.
pub(super) fn read_accept<'a>(reader: &mut Reader<'a>, root: &Table<'a>, subnets: &[Cidr]) -> Accept {
    let Some(accept) = reader.table(root, "accept", false) else {
        return Accept::default();
    };
    let in_site = |text: &str| {
        let range = match text.parse::<IpAddr>() {
            Ok(address) => Cidr::new(address, if address.is_ipv4() { 32 } else { 128 }),
            Err(_) => text.parse::<Cidr>().ok(),
        };
        let range = range.ok_or_else(|| format!("{text:?} is neither an address nor a range of them"))?;
        // Nothing is delivered to addresses outside its subnets, so an entry for one would mislead.
        let inside = subnets.is_empty() || subnets.iter().any(|subnet| holds(subnet, &range));
        let outside = || TextError::from(format!("{text} is not in the site's subnets"));
        inside.then_some(range).ok_or_else(outside)
    };
    let read = Accept {
        jobs: reader
            .list_or_empty(&accept, "jobs", site_or_all)
            .unwrap_or_default(),
        partners: reader.list_or_empty(&accept, "partners", site_or_all),
        connect_from: reader
            .list_or_empty(&accept, "connect_from", str::parse)
            .unwrap_or_default(),
        addresses: reader
            .list_or_empty(&accept, "addresses", in_site)
            .unwrap_or_default(),
        max_processes: reader
            .integer(&accept, "max_processes", 1..=MAX_PROCESSES)
            .and_then(|count| u32::try_from(count).ok()),
        files: reader.string(&accept, "files", causeway_units::size),
        over_clear_text: reader.boolean(&accept, "over_clear_text").unwrap_or(false),
    };
    let known = [
        "jobs",
        "partners",
        "connect_from",
        "addresses",
        "max_processes",
        "files",
        "over_clear_text",
    ];
    reader.no_other_keys(&accept, &known);
    read
}
