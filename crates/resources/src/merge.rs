//! Combines what several gateways report about one grid: each knows most about its own site.

use crate::model::{Graph, Link, Source};
use std::collections::HashMap;

/// Merges several graphs. A site is taken from the graph that has it first in its list, since that graph is
/// the answer of the site's own gateway; if there is none, from the first graph that has it. A link is as the
/// lanes of its site's gateway, a graph's first site, saw it; if none did, as the first graph says.
pub fn merged(graphs: Vec<Graph>) -> Graph {
    let mut all = Graph::default();
    let mut sites = HashMap::new();
    let mut links = HashMap::new();
    for (at, graph) in graphs.into_iter().enumerate() {
        if at == 0 {
            all.name = graph.name;
        }
        for (place, site) in graph.sites.into_iter().enumerate() {
            let is_first = place == 0;
            match sites.get_mut(&site.name) {
                None => {
                    sites.insert(site.name.clone(), (all.sites.len(), is_first));
                    all.sites.push(site);
                }
                Some((number, has_own)) if is_first && !*has_own => {
                    *has_own = true;
                    all.sites[*number] = site;
                }
                Some(_) => {}
            }
        }
        for link in graph.links {
            let pair = (link.from.clone(), link.to.clone());
            match links.get(&pair).copied() {
                None => {
                    links.insert(pair, all.links.len());
                    all.links.push(link);
                }
                Some(number) if is_seen(&link) && !is_seen(&all.links[number]) => all.links[number] = link,
                Some(_) => {}
            }
        }
    }
    all
}

fn is_seen(link: &Link) -> bool {
    link.source == Some(Source::Lanes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Site;

    fn graph(name: &str, sites: &[&str], links: &[(&str, &str, Source)]) -> Graph {
        let site = |site: &&str| Site {
            name: (*site).to_owned(),
            why_unreachable: Some(format!("says {name}")),
            ..Site::default()
        };
        let link = |(from, to, source): &(&str, &str, Source)| Link {
            from: (*from).to_owned(),
            to: (*to).to_owned(),
            source: Some(*source),
            seen_at: Some(name.len() as u64),
            ..Link::default()
        };
        Graph {
            name: name.into(),
            sites: sites.iter().map(site).collect(),
            links: links.iter().map(link).collect(),
        }
    }

    #[test]
    fn each_site_is_as_its_own_gateway_says_and_each_link_as_lanes_saw_it() {
        let all = merged(vec![
            graph(
                "x",
                &["rennes", "nancy", "lyon"],
                &[
                    ("rennes", "nancy", Source::Lanes),
                    ("nancy", "rennes", Source::Told),
                ],
            ),
            graph(
                "yy",
                &["nancy", "rennes", "orsay"],
                &[
                    ("nancy", "rennes", Source::Lanes),
                    ("rennes", "nancy", Source::Told),
                ],
            ),
            graph("zzz", &["nancy", "lyon"], &[]),
        ]);
        assert_eq!(all.name, "x");
        let sites = all.sites.iter();
        let sites = sites.map(|site| format!("{} {}", site.name, site.why_unreachable.as_deref().unwrap()));
        assert_eq!(
            sites.collect::<Vec<_>>(),
            ["rennes says x", "nancy says yy", "lyon says x", "orsay says yy"]
        );
        let links: Vec<_> = all
            .links
            .iter()
            .map(|link| (link.from.as_str(), link.seen_at))
            .collect();
        assert_eq!(links, [("rennes", Some(1)), ("nancy", Some(2))]);
        assert_eq!(merged(vec![]), Graph::default());
    }
}
