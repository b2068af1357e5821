//! The map that a job's processes receive: the sites that take part in it. Pure.
//!
//! A process knows nothing about any other site, so none of these can attract its connections.

use causeway_wire::{Cidr, Grid, Site};

/// Makes a map of these sites; every gateway makes the same one.
pub(super) fn of<'a>(sites: impl Iterator<Item = &'a Site>) -> Grid {
    let mut sites: Vec<Site> = sites.cloned().collect();
    sites.sort_by(|a, b| a.name.cmp(&b.name));
    sites.dedup_by(|a, b| a.name == b.name);
    let announced: Vec<(String, Vec<Cidr>)> = sites
        .iter()
        .map(|site| (site.name.clone(), site.subnets.clone()))
        .collect();
    for site in &mut sites {
        let foreign = || announced.iter().filter(|(name, _)| *name != site.name);
        let is_announced = |network: &Cidr| {
            let mut subnets = foreign().flat_map(|(_, subnets)| subnets);
            subnets.any(|subnet| subnet.overlaps(network))
        };
        // Most ranges overlap with nothing, and an environment has little room.
        site.local = site.local.iter().copied().filter(is_announced).collect();
    }
    Grid { sites }
}

/// Lists where another site announces addresses that are local to this one, and the other way round.
pub(super) fn overlaps(own: &Site, other: &Site) -> Vec<String> {
    let name = &other.name;
    let ours = overlap(other, own).map(|(subnet, local)| {
        format!(
            "site {name} announces {subnet}, and {local} is a local network here: this site's processes reach only the \
             listed nodes of {name} there through the gateways, and everything else as ever (local in [site])"
        )
    });
    let theirs = overlap(own, other).map(|(subnet, local)| {
        format!(
            "site {name} has a local network {local} of its own, and this site announces {subnet}: processes there reach \
             only the listed nodes of this site in it"
        )
    });
    ours.into_iter().chain(theirs).collect()
}

/// The first range that one site announces that overlaps with a local network of another, and that network.
fn overlap(announces: &Site, has: &Site) -> Option<(Cidr, Cidr)> {
    let overlapping = |subnet: Cidr| {
        has.local
            .iter()
            .copied()
            .find(move |local| local.overlaps(&subnet))
    };
    { announces.subnets.iter() }.find_map(|subnet| Some((*subnet, overlapping(*subnet)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const AIX: &str = "aix;10.3.0.0/24;10.3.0.253:7000;20000-32767;10.3.0.1";
    const NANCY: &str = "nancy;10.64.0.0/10;10.65.0.253:7000;20000-32767;10.65.0.1";
    const RENNES: &str = "rennes;10.1.0.0/24;10.1.0.253:7000;20000-32767";
    const LOCAL: &str = "10.77.0.0/16,10.99.0.0/16";

    fn site(text: &str) -> Site {
        let grid: Grid = format!("1|{text}").parse().unwrap();
        grid.sites.into_iter().next().unwrap()
    }

    #[test]
    fn a_map_names_local_networks_only_where_another_of_its_sites_announces_them() {
        let rennes = site(&format!("{RENNES};;{LOCAL}"));
        let map = |others: &[&str]| {
            let others: Vec<Site> = others.iter().map(|text| site(text)).collect();
            of([&rennes, &rennes].into_iter().chain(&others)).to_string()
        };
        assert_eq!(map(&[]), format!("1|{RENNES}"));
        assert_eq!(map(&[AIX]), format!("1|{AIX}|{RENNES}"));
        assert_eq!(map(&[NANCY, AIX]), format!("1|{AIX}|{NANCY}|{RENNES};;{LOCAL}"));
    }

    #[test]
    fn both_sites_hear_that_one_announces_what_is_near_to_the_other() {
        let rennes = site(&format!("{RENNES};;{LOCAL}"));
        let told = |own: &Site, other: &Site| overlaps(own, other).join("");
        assert_eq!(told(&rennes, &site(AIX)), "");
        let said = told(&rennes, &site(NANCY));
        assert!(
            said.contains("announces 10.64.0.0/10, and 10.77.0.0/16 is a local network here"),
            "{said}"
        );
        let said = told(&site(NANCY), &rennes);
        assert!(
            said.contains("10.77.0.0/16 of its own, and this site announces 10.64.0.0/10"),
            "{said}"
        );
    }
}
