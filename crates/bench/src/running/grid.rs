//! The sites of a measurement, their nodes and ranks.

use super::Failure;
use crate::cell::Way;
use crate::plan::KnownLink;
use causeway_control::{NodeInfo, SiteStatus, Status};
use std::net::IpAddr;
use std::path::PathBuf;

/// See the module.
#[derive(Debug)]
pub struct Grid {
    /// The causeway binary.
    pub causeway: PathBuf,
    /// The link between the first two sites.
    pub link: Option<KnownLink>,
    /// Whether the nodes share the cores of this host.
    pub shares_cores: bool,
    pub seed: u64,
    /// There are at least two.
    pub sites: Vec<Members>,
    /// Ranks at each site.
    pub ranks_each: u32,
    /// Whether the user has named sites.
    pub named: bool,
}

/// A site and its nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Members {
    pub name: String,
    pub nodes: Vec<NodeInfo>,
}

/// The sites of these names; without names the first two that have nodes, this gateway's own first.
///
/// # Errors
/// A name is unknown, or there are fewer than two.
pub fn sites(status: &Status, names: &[String]) -> Result<Vec<Members>, Failure> {
    let place = |site: &SiteStatus| {
        let info = site.info.as_ref().filter(|info| !info.nodes.is_empty())?;
        Some(Members {
            name: site.name.clone(),
            nodes: info.nodes.clone(),
        })
    };
    let chosen: Vec<Members> = match names.is_empty() {
        true => status.sites.iter().filter_map(place).take(2).collect(),
        false => {
            let found = names.iter().map(|name| {
                let site = status.sites.iter().find(|site| site.name == *name);
                site.and_then(place).ok_or_else(|| {
                    Failure::usage(format_args!(
                        "site {name:?} is not known or has no nodes; 'causeway status' lists the sites"
                    ))
                })
            });
            found.collect::<Result<_, _>>()?
        }
    };
    match chosen.len() {
        0 | 1 => Err(Failure::usage(
            "two sites with nodes are needed; 'causeway status' says which can be reached",
        )),
        _ => Ok(chosen),
    }
}

impl Grid {
    /// Ranks of a run.
    pub fn ranks(&self) -> u32 {
        self.ranks_each.saturating_mul(self.sites.len() as u32)
    }

    /// The address of rank 1 if there is one rank at each site, or if two share the first.
    pub fn second_rank(&self, way: Way) -> IpAddr {
        let [first, second] = [&self.sites[0].nodes, &self.sites[1].nodes];
        match way {
            Way::Site => first.get(1).unwrap_or(&first[0]).address,
            _ => second[0].address,
        }
    }

    /// What `causeway run --sites` gets. The user's own command says how many ranks it has.
    pub fn sites_option(&self, way: Way, is_own_command: bool) -> String {
        let each = match is_own_command {
            true => String::new(),
            false => format!("={}", self.ranks_each),
        };
        match way {
            Way::Site if is_own_command => self.sites[0].name.clone(),
            Way::Site => format!("{}={}", self.sites[0].name, self.ranks()),
            _ if is_own_command && !self.named => String::new(),
            _ => self.joined(&each),
        }
    }

    /// The same for one rank at each of the first two.
    pub fn one_at_each(&self) -> String {
        format!("{}=1,{}=1", self.sites[0].name, self.sites[1].name)
    }

    /// A node of each of the first two sites that has no rank of a run, for traffic beside it; `None` if all
    /// have ranks.
    pub fn beside(&self) -> Option<[&NodeInfo; 2]> {
        let free = |site: usize| {
            let (last, others) = self.sites[site].nodes.split_last()?;
            let slots: u32 = others.iter().map(|node| node.slots).sum();
            (slots >= self.ranks_each).then_some(last)
        };
        Some([free(0)?, free(1)?])
    }

    fn joined(&self, each: &str) -> String {
        let all = self.sites.iter().map(|site| format!("{}{each}", site.name));
        all.collect::<Vec<_>>().join(",")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_control::SiteInfo;

    fn site(name: &str, nodes: u8) -> SiteStatus {
        let node = |n: u8| NodeInfo {
            name: format!("{name}-{n}"),
            address: [10, nodes, 0, n].into(),
            slots: 4,
        };
        SiteStatus {
            name: name.into(),
            info: Some(SiteInfo {
                name: name.into(),
                subnets: vec![],
                real_subnets: vec![],
                gateways: vec![],
                delivery_ports: String::new(),
                nodes: (1..=nodes).map(node).collect(),
                relays: false,
                transparent: false,
                local: vec![],
            }),
            unreachable: None,
        }
    }

    fn grid(ranks_each: u32, named: bool) -> Grid {
        let status = Status {
            sites: vec![site("rennes", 2), site("empty", 0), site("nancy", 1)],
            ..Status::default()
        };
        Grid {
            causeway: "causeway".into(),
            link: None,
            shares_cores: true,
            seed: 1,
            sites: sites(&status, &[]).unwrap(),
            ranks_each,
            named,
        }
    }

    #[test]
    fn the_first_two_sites_with_nodes_are_taken() {
        let grid = grid(2, false);
        assert_eq!(grid.sites_option(Way::Causeway, false), "rennes=2,nancy=2");
        assert_eq!(grid.sites_option(Way::Site, false), "rennes=4");
        assert_eq!(grid.second_rank(Way::Site), IpAddr::from([10, 2, 0, 2]));
        assert_eq!(grid.second_rank(Way::Direct), IpAddr::from([10, 1, 0, 1]));
    }

    #[test]
    fn traffic_beside_starts_at_nodes_without_ranks_where_both_sites_have_one() {
        let mut grid = grid(4, false);
        assert!(grid.beside().is_none());
        let more = grid.sites[0].nodes.clone();
        grid.sites[1].nodes = more;
        let names = grid.beside().map(|nodes| nodes.map(|node| node.name.as_str()));
        assert_eq!(names, Some(["rennes-2", "rennes-2"]));
        grid.ranks_each = 5;
        assert!(grid.beside().is_none());
    }

    #[test]
    fn the_users_command_says_how_many_ranks_there_are() {
        assert_eq!(grid(2, false).sites_option(Way::Causeway, true), "");
        assert_eq!(grid(2, true).sites_option(Way::Causeway, true), "rennes,nancy");
        assert_eq!(grid(2, true).sites_option(Way::Site, true), "rennes");
    }

    #[test]
    fn a_site_that_nobody_knows_is_named() {
        let status = Status {
            sites: vec![site("rennes", 2), site("empty", 0)],
            ..Status::default()
        };
        for names in [&["paris".to_owned()][..], &["empty".to_owned()], &[]] {
            assert!(sites(&status, names).is_err(), "{names:?}");
        }
    }
}
