//! Whether what a site's gateway says about its site is what the broker has recorded about it. Pure.
//!
//! The broker compares the records of sites, and the first one wins. If a gateway says something else over a
//! tunnel, it would be believed only by those that it tells.

use causeway_broker::api::{Node, Record, Subnet};
use causeway_broker::holds;
use causeway_broker::members::Members;
use causeway_control::SiteInfo;
use causeway_wire::TextError;
use std::collections::HashMap;

/// The verdict on what a site says about itself.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Claims {
    /// The site's record contains the claims.
    Recorded,
    /// The broker has not reported this part; it is put into words. The site may have told the broker only a
    /// moment ago; otherwise the claims never count.
    Unrecorded(String),
}

/// Judges what a site says about itself.
///
/// # Errors
/// The site claims something that is another site's, or contradicts its record.
pub(super) fn judge(members: &Members, site: &str, info: &SiteInfo) -> Result<Claims, TextError> {
    let said = info.site()?;
    let Some(known) = members.site(site) else {
        return Ok(Claims::Unrecorded("itself".to_owned()));
    };
    let texts = |subnets: &[Subnet]| {
        subnets
            .iter()
            .map(|subnet| subnet.0.to_string())
            .collect::<Vec<_>>()
    };
    let is_known_as = match known.virtual_subnets.as_slice() {
        [] => &known.record.subnets,
        ranges => ranges,
    };
    let is_virtual = !known.virtual_subnets.is_empty();
    if (said.is_virtual() || is_virtual) && info.subnets != texts(is_known_as) {
        return Err(format!(
            "announces itself as {}, but the grid knows it as {}",
            info.subnets.join(", "),
            texts(is_known_as).join(", ")
        )
        .into());
    }
    let real = if said.is_virtual() {
        &said.real_subnets
    } else {
        &said.subnets
    };
    let nodes = info.nodes.iter().map(|node| Node {
        name: node.name.clone(),
        addresses: vec![said.real(node.address)],
        slots: node.slots,
    });
    let record = Record {
        subnets: real.iter().copied().map(Subnet).collect(),
        lan: said.gateways.clone(),
        nodes: nodes.collect(),
        ..known.record.clone()
    };
    let admitted = members.admit(site, &record);
    admitted.map_err(|conflict| format!("announces what is another's: {conflict}"))?;
    Ok(beyond(&record, &known.record).map_or(Claims::Recorded, Claims::Unrecorded))
}

/// The part of a record that another record of the same site does not contain.
fn beyond(said: &Record, recorded: &Record) -> Option<String> {
    let is_in = |range: &Subnet| recorded.subnets.iter().any(|known| holds(&known.0, &range.0));
    if let Some(range) = said.subnets.iter().find(|range| !is_in(range)) {
        return Some(format!("subnet {}", range.0));
    }
    if let Some(gateway) = said.lan.iter().find(|gateway| !recorded.lan.contains(gateway)) {
        return Some(format!("gateway {gateway}"));
    }
    let known = recorded.nodes.iter().map(|node| (node.name.as_str(), node));
    let known: HashMap<&str, &Node> = known.collect();
    let is_there = |node: &&Node| {
        let known = known.get(node.name.as_str());
        known.is_some_and(|known| {
            node.addresses
                .iter()
                .all(|address| known.addresses.contains(address))
        })
    };
    let node = said.nodes.iter().find(|node| !is_there(node))?;
    let addresses = node.addresses.iter().map(|address| format!(" at {address}"));
    Some(format!("node {}{}", node.name, addresses.collect::<String>()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_broker::api::{Member, Reach};
    use causeway_control::NodeInfo;

    fn member(site: &str, number: u8) -> Member {
        let address = [10, number, 0, 1].into();
        Member {
            virtual_subnets: vec![],
            site: site.into(),
            record: Record {
                instance: "00".repeat(16),
                subnets: vec![Subnet(format!("10.{number}.0.0/24").parse().unwrap())],
                lan: vec![format!("10.{number}.0.253:7000").parse().unwrap()],
                reach: Reach::default(),
                udp_port: None,
                nodes: vec![Node {
                    name: format!("{site}-1"),
                    addresses: vec![address],
                    slots: 4,
                }],
                overlap_ok: false,
                virtual_subnets: vec![],
                version: String::new(),
            },
            observed: None,
            last_seen: 0,
            serial: String::new(),
            not_before: 0,
        }
    }

    fn info(site: &str, number: u8) -> SiteInfo {
        SiteInfo {
            real_subnets: vec![],
            transparent: false,
            local: vec![],
            name: site.into(),
            subnets: vec![format!("10.{number}.0.0/24")],
            gateways: vec![format!("10.{number}.0.253:7000").parse().unwrap()],
            delivery_ports: "20000-32767".into(),
            nodes: vec![NodeInfo {
                name: format!("{site}-1"),
                address: [10, number, 0, 1].into(),
                slots: 4,
            }],
            relays: false,
        }
    }

    #[test]
    fn a_member_that_claims_what_the_broker_says_is_anothers_is_refused_even_before_that_one_is_there() {
        let mut members = Members::default();
        members.put(member("nancy", 2));
        members.put(member("aix", 3));
        assert_eq!(judge(&members, "aix", &info("aix", 3)), Ok(Claims::Recorded));
        let mut node = info("aix", 3);
        node.nodes[0].name = "nancy-1".into();
        for (claim, what) in [(info("aix", 2), "subnet 10.2.0.0/24"), (node, "node nancy-1")] {
            let why = judge(&members, "aix", &claim).unwrap_err();
            assert!(why.contains(what) && why.contains("to site nancy"), "{why}");
        }
        let virtually = SiteInfo {
            subnets: vec!["100.64.5.0/24".into()],
            real_subnets: vec!["10.3.0.0/24".into()],
            ..info("aix", 3)
        };
        let why = judge(&members, "aix", &virtually).unwrap_err();
        assert!(why.contains("100.64.5.0/24"), "{why}");
        let given = Subnet("100.64.5.0/24".parse().unwrap());
        members.put(Member {
            virtual_subnets: vec![given],
            ..member("aix", 3)
        });
        assert_eq!(judge(&members, "aix", &virtually), Ok(Claims::Recorded));
        let why = judge(&members, "aix", &info("aix", 3)).unwrap_err();
        assert!(
            why.contains("as 10.3.0.0/24, but the grid knows it as 100.64.5.0/24"),
            "{why}"
        );
    }

    #[test]
    fn what_the_broker_has_not_recorded_does_not_count_whoever_has_it() {
        let mut members = Members::default();
        let unrecorded = |members: &Members, info: &SiteInfo| match judge(members, "aix", info) {
            Ok(Claims::Unrecorded(what)) => what,
            other => panic!("{other:?}"),
        };
        assert_eq!(unrecorded(&members, &info("aix", 3)), "itself");
        let mut wide = member("aix", 3);
        wide.record.subnets = vec![Subnet("10.3.0.0/16".parse().unwrap())];
        members.put(wide);
        assert_eq!(
            judge(&members, "aix", &info("aix", 3)),
            Ok(Claims::Recorded),
            "less"
        );
        for (spoil, what) in [
            (
                (|info| info.subnets.push("0.0.0.0/0".into())) as fn(&mut SiteInfo),
                "subnet 0.0.0.0/0",
            ),
            (
                |info| info.subnets = vec!["198.51.100.0/24".into()],
                "subnet 198.51.100.0/24",
            ),
            (|info| info.gateways[0].set_port(22), "gateway 10.3.0.253:22"),
            (
                |info| info.nodes[0].name = "aix-2".into(),
                "node aix-2 at 10.3.0.1",
            ),
            (
                |info| info.nodes[0].address = [10, 3, 0, 9].into(),
                "node aix-1 at 10.3.0.9",
            ),
        ] {
            let mut claim = info("aix", 3);
            spoil(&mut claim);
            assert_eq!(unrecorded(&members, &claim), what);
        }
    }
}
