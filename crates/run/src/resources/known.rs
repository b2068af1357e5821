//! Builds the graph from what a gateway says. Pure.

use super::measured::Measured;
use causeway_control::{self as control, SiteStatus, Sites, Status};
use causeway_resources::{Described, Graph, Link, Node, Site, Source, classes_of};
use std::collections::HashSet;

/// The graph from a gateway's two answers. What is known about links of other sites' gateways is as old as
/// those gateways' last messages, whose age is not reported.
pub fn graph(sites: &Sites, status: &Status, measured: &Measured, now: u64) -> Graph {
    let own = status.tunnels.iter().filter_map(|tunnel| {
        let link = tunnel.link()?;
        Some(Link {
            loss_ppb: Some((tunnel.loss.clamp(0.0, 1.0) * 1e9) as u32),
            source: Some(Source::Lanes),
            seen_at: Some(now),
            ..link_from(&sites.site, &link)
        })
    });
    let told = { sites.links.iter() }
        .filter(|(from, _)| **from != sites.site)
        .flat_map(|(from, links)| links.iter().map(|link| link_from(from, link)));
    let names: HashSet<&str> = sites.sites.iter().map(|site| site.name.as_str()).collect();
    let mut pairs = HashSet::new();
    // Another gateway may report about a site that has gone, or send anything else.
    let mut is_new = |link: &Link| {
        let is_known = names.contains(&*link.from) && names.contains(&*link.to);
        is_known && link.from != link.to && pairs.insert((link.from.clone(), link.to.clone()))
    };
    Graph {
        name: super::grid_name(status),
        sites: sites.sites.iter().map(|site| site_from(site, measured)).collect(),
        links: own.chain(told).filter(|link| is_new(link)).collect(),
    }
}

fn link_from(from: &str, link: &control::Link) -> Link {
    let rate = link.rate_bits_per_second;
    Link {
        from: from.to_owned(),
        to: link.to.clone(),
        latency_ns: Some(u64::from(link.rtt_microseconds) * 500),
        bandwidth_bits_per_second: (rate > 0).then_some(rate),
        source: Some(Source::Told),
        ..Link::default()
    }
}

fn site_from(site: &SiteStatus, measured: &Measured) -> Site {
    let nodes = site.info.iter().flat_map(|info| &info.nodes);
    let described = nodes.map(|node| {
        let known = measured.of(&site.name, &node.name);
        Described {
            node: Node {
                name: node.name.clone(),
                address: Some(node.address),
                ..Node::default()
            },
            slots: node.slots,
            cores: known.map(|known| known.node.cores),
            memory_bytes: known.and_then(|known| known.node.memory_bytes),
            speed_thousandths: known.and_then(|known| known.speed_thousandths),
            ..Described::default()
        }
    });
    let classes = classes_of(described.collect(), &HashSet::new());
    Site {
        name: site.name.clone(),
        why_unreachable: site.unreachable.clone(),
        classes: classes.into_iter().map(|(class, _)| class).collect(),
        ..Site::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_control::{NodeInfo, SiteInfo, TunnelStatus};
    use std::collections::BTreeMap;

    fn site(name: &str, slots: &[u32]) -> SiteStatus {
        let node = |(number, slots): (usize, &u32)| NodeInfo {
            name: format!("{name}-{number}"),
            address: [10, 0, 0, 1].into(),
            slots: *slots,
        };
        SiteStatus {
            name: name.into(),
            info: Some(SiteInfo {
                name: name.into(),
                subnets: vec![],
                real_subnets: vec![],
                gateways: vec![],
                delivery_ports: String::new(),
                nodes: slots.iter().enumerate().map(node).collect(),
                relays: false,
                transparent: false,
                local: vec![],
            }),
            unreachable: None,
        }
    }

    fn told(to: &str, rtt_microseconds: u32) -> control::Link {
        control::Link {
            to: to.into(),
            rtt_microseconds,
            rate_bits_per_second: 0,
        }
    }

    #[test]
    fn a_graph_has_nodes_by_classes_own_links_with_loss_and_those_of_others_between_known_sites() {
        let sites = Sites {
            site: "rennes".into(),
            sites: vec![site("rennes", &[4, 8, 4]), site("nancy", &[])],
            links: BTreeMap::from([
                ("rennes".into(), vec![told("nancy", 1)]),
                (
                    "nancy".into(),
                    vec![told("rennes", 11_000), told("gone", 1), told("rennes", 2)],
                ),
            ]),
            mpi: control::SiteMpi::default(),
            allocated_by: None,
            batch: None,
            start: BTreeMap::new(),
        };
        let tunnel = serde_json::json!({
            "site": "nancy", "peer": "10.0.0.9:7000", "rtt_microseconds": 11_601,
            "rate_bits_per_second": 940_000_000, "loss": 0.001, "congestion_control": "bbr", "streams": 0,
            "sent_bytes": 0, "received_bytes": 0,
        });
        let status = Status {
            tunnels: vec![serde_json::from_value::<TunnelStatus>(tunnel).unwrap()],
            ..Status::default()
        };
        let seen = serde_json::json!({"rennes": {"rennes-2": {
            "node": {"cores": 2, "memory_bytes": 8, "processor": "p", "load_thousandths": 0},
            "speed_thousandths": 1500, "at": 1,
        }}});
        let measured = serde_json::from_value(seen).unwrap();
        let graph = graph(&sites, &status, &measured, 1000);
        let classes = graph.sites[0].classes.iter();
        let classes: Vec<_> = classes
            .map(|class| (class.name.as_str(), class.nodes.len()))
            .collect();
        assert_eq!(
            classes,
            [("4-slots", 1), ("8-slots", 1), ("4-slots-8B", 1)],
            "what was measured of a node sets it apart"
        );
        let apart = &graph.sites[0].classes[2];
        assert_eq!((apart.cores, apart.speed_thousandths), (Some(2), Some(1500)));
        let [own, other] = &graph.links[..] else {
            panic!("{:?}", graph.links);
        };
        assert_eq!((own.latency_ns, own.loss_ppb), (Some(5_800_500), Some(1_000_000)));
        assert_eq!((own.source, own.seen_at), (Some(Source::Lanes), Some(1000)));
        assert_eq!(
            (other.from.as_str(), other.latency_ns),
            ("nancy", Some(5_500_000))
        );
        assert_eq!((other.bandwidth_bits_per_second, other.seen_at), (None, None));
    }
}
