//! Which place in a world a process may take: only one of its own site, and with addresses of that site's
//! nodes. Pure.
//!
//! Every site that takes part knows the job's token, so the token alone would let one site pass for another,
//! and send the ranks of all sites to whatever address it likes.

use super::message::{ADDRESS_BYTES, Incoming};
use causeway_wire::Site;
use causeway_wire::shown::Line;
use std::net::{IpAddr, SocketAddr};

/// Ports below this belong to the system's services, and no MPI process has one.
const FIRST_USER_PORT: u16 = 1024;

/// The sites of a run.
#[derive(Debug, Clone)]
pub struct Origins {
    /// The site at which the rendezvous is.
    pub own: Site,
    /// All sites that take part.
    pub sites: Vec<Site>,
    /// This host's address, as the grid knows it: ranks may run on the launcher's host.
    pub host: IpAddr,
}

impl Origins {
    /// The address to which the own gateway has connected, as the grid knows it; `None` if `peer` is not the
    /// gateway. `own` is the address of this end.
    pub fn delivered_to(&self, peer: SocketAddr, own: SocketAddr) -> Option<SocketAddr> {
        let here = SocketAddr::new(self.own.in_grid(own.ip().to_canonical()), own.port());
        self.own.delivers_from(peer).then_some(here)
    }

    /// Judges what a process says about itself. `source` is the true source of a connection that the own
    /// gateway has delivered; all others come from the own site.
    ///
    /// # Errors
    /// What the process may not say; the error is one sentence.
    pub fn judge(&self, source: Option<SocketAddr>, message: &Incoming) -> Result<(), String> {
        let (claimed, addresses) = match message {
            Incoming::Join(join) => (&join.site, &join.addresses[..]),
            Incoming::Process { site } => (site, &[][..]),
            Incoming::Abort { .. } | Incoming::Done => return Ok(()),
        };
        let origin = match source {
            None => Some(&self.own),
            Some(source) => self.sites.iter().find(|site| site.contains(source.ip())),
        };
        let Some(site) = origin.filter(|site| site.name == *claimed) else {
            let origin = origin.map_or("no site of this run", |site| &site.name);
            return Err(format!(
                "a process at {origin} joined as one at {}",
                Line(claimed)
            ));
        };
        let is_one = |address: &SocketAddr| {
            let is_here = site.name == self.own.name && address.ip() == self.host;
            address.port() >= FIRST_USER_PORT && (is_here || site.has_host(address.ip()))
        };
        let mut addresses = addresses.chunks_exact(ADDRESS_BYTES).map(read);
        match addresses.find(|address| !address.is_some_and(|address| is_one(&address))) {
            None => Ok(()),
            Some(None) => Err(format!("site {} names an address that is none", site.name)),
            Some(Some(address)) => Err(format!(
                "site {} has a process at {address}, but lists no node there; add that node to the site's gateway.toml, \
                 or name its allocation with --alloc",
                site.name
            )),
        }
    }
}

/// Reads an address in the form that frames use: family, 16 bytes, port.
fn read(bytes: &[u8]) -> Option<SocketAddr> {
    let (family, rest) = bytes.split_first()?;
    let (ip, port) = rest.split_first_chunk::<16>()?;
    let port = u16::from_le_bytes(port.try_into().ok()?);
    let ip = match family {
        4 => IpAddr::from(<[u8; 4]>::try_from(&ip[..4]).ok()?),
        6 => IpAddr::from(*ip),
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

#[cfg(test)]
mod tests {
    use super::super::message::Join;
    use super::super::message::tests::a_join;
    use super::*;
    use causeway_wire::Grid;

    fn origins() -> Origins {
        let grid: Grid = "1|nancy;10.0.0.0/24;10.0.0.253:7000;20000-32767;10.0.0.0-10.0.0.2\
                          |rennes;10.1.0.0/24;10.1.0.253:7000;20000-32767;10.1.0.1"
            .parse()
            .unwrap();
        Origins {
            own: grid.sites[1].clone(),
            sites: grid.sites,
            host: [10, 1, 0, 250].into(),
        }
    }

    fn judge(source: Option<&str>, join: Join) -> String {
        let source = source.map(|source| source.parse().unwrap());
        let judged = origins().judge(source, &Incoming::Join(Box::new(join)));
        judged.err().unwrap_or_default()
    }

    fn at(site: &str, ip: [u8; 4], port: u16) -> Join {
        let mut join = a_join(site, 1);
        join.addresses[1..5].copy_from_slice(&ip);
        join.addresses[17..].copy_from_slice(&port.to_le_bytes());
        join
    }

    #[test]
    fn a_process_takes_a_place_of_its_own_site_alone() {
        let nancy = Some("10.0.0.1:40000");
        assert_eq!(judge(nancy, a_join("nancy", 3)), "");
        assert_eq!(judge(None, at("rennes", [10, 1, 0, 1], 4000)), "");
        let said = judge(nancy, at("rennes", [10, 1, 0, 1], 4000));
        assert!(said.contains("at nancy joined as one at rennes"), "{said}");
        let said = judge(None, a_join("nancy", 1));
        assert!(said.contains("at rennes joined as one at nancy"), "{said}");
        let said = judge(Some("10.9.0.1:40000"), a_join("a\x1b[2J", 1));
        assert!(
            said.contains("at no site of this run") && !said.contains('\x1b'),
            "{said}"
        );
        let site = "rennes".to_owned();
        let said = origins().judge(nancy.map(|one| one.parse().unwrap()), &Incoming::Process { site });
        assert!(said.is_err());
    }

    #[test]
    fn its_addresses_are_those_of_its_sites_nodes() {
        let nancy = Some("10.0.0.1:40000");
        for (ip, port) in [
            ([10, 0, 0, 3], 4000),
            ([10, 1, 0, 1], 4000),
            ([10, 0, 0, 1], 22),
            ([10, 1, 0, 250], 4000),
        ] {
            let said = judge(nancy, at("nancy", ip, port));
            assert!(said.contains("but lists no node there"), "{ip:?} {port}: {said}");
        }
        // Ranks on the launcher's host, and on the gateway's.
        assert_eq!(judge(None, at("rennes", [10, 1, 0, 250], 4000)), "");
        assert_eq!(judge(nancy, at("nancy", [10, 0, 0, 253], 4000)), "");
    }
}
