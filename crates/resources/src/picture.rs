//! The small picture: the sites as a tree of their shortest links, so that near ones are together.

use crate::dot::link_label;
use crate::model::{Graph, Link, Site};
use crate::shown::{count, cut};
use crate::table::summary;
use std::collections::HashMap;

/// Longest line, in columns.
const COLUMNS: usize = 100;

/// Most sites of a picture; with more, it would not be small, and would take long.
const MOST: usize = 200;

/// The picture, in lines of at most 100 columns, each with its end. It begins at the first site. A site
/// without a known link begins a tree of its own.
pub fn picture(graph: &Graph) -> String {
    let mut text = format!("grid {}: {}\n", cut(&graph.name, 40), summary(&graph.sites));
    let sites = graph.sites.get(..MOST).unwrap_or(&graph.sites);
    let tree = Tree::new(sites, &graph.links);
    let roots = (0..sites.len()).filter(|site| !tree.above.contains_key(site));
    for root in roots {
        tree.draw(root, String::new(), String::new(), &mut text);
    }
    if sites.len() < graph.sites.len() {
        text += &format!("and {}\n", count((graph.sites.len() - MOST) as u64, "more site"));
    }
    text
}

struct Tree<'a> {
    sites: &'a [Site],
    /// For each site except the roots, the site to which it is attached, and the link.
    above: HashMap<usize, (usize, &'a Link)>,
    below: HashMap<usize, Vec<usize>>,
}

impl<'a> Tree<'a> {
    /// Builds the tree from the first site on (Prim's algorithm, 1957): the nearest remaining site is added
    /// next. A link with an unknown latency counts as longer than all others.
    fn new(sites: &'a [Site], links: &'a [Link]) -> Tree<'a> {
        let numbers = sites
            .iter()
            .enumerate()
            .map(|(at, site)| (site.name.as_str(), at));
        let numbers: HashMap<&str, usize> = numbers.collect();
        let ends = |link: &Link| Some((*numbers.get(&*link.from)?, *numbers.get(&*link.to)?));
        let mut near = vec![Vec::new(); sites.len()];
        for (link, (from, to)) in links.iter().filter_map(|link| Some((link, ends(link)?))) {
            near[from].push((to, link));
            near[to].push((from, link));
        }
        let mut tree = Tree {
            sites,
            above: HashMap::new(),
            below: HashMap::new(),
        };
        let mut is_added = vec![false; sites.len()];
        for root in 0..sites.len() {
            if std::mem::replace(&mut is_added[root], true) {
                continue;
            }
            let mut added = vec![root];
            loop {
                let edges = added
                    .iter()
                    .flat_map(|from| near[*from].iter().map(move |edge| (*from, *edge)));
                let outward = edges.filter(|(_, (to, _))| !is_added[*to]);
                let length = |link: &Link| link.latency_ns.unwrap_or(u64::MAX);
                // If both directions have the same latency, the link that begins here is used.
                let nearest = outward.min_by_key(|(from, (to, link))| {
                    (length(link), *to, numbers.get(&*link.from) != Some(from))
                });
                let Some((from, (to, link))) = nearest else {
                    break;
                };
                is_added[to] = true;
                added.push(to);
                tree.above.insert(to, (from, link));
                tree.below.entry(from).or_default().push(to);
            }
        }
        tree
    }

    /// Draws a site and what is attached to it. The depth is limited by [`MOST`].
    fn draw(&self, number: usize, first: String, further: String, text: &mut String) {
        let link = self.above.get(&number).map(|(_, link)| link_label(link));
        let link = link.map_or_else(String::new, |label| match label.is_empty() {
            true => "-- ".to_owned(),
            false => format!("-- {label} -- "),
        });
        let line = format!("{first}{link}{}", site_line(&self.sites[number]));
        *text += &cut(&line, COLUMNS);
        text.push('\n');
        let below = self.below.get(&number).map_or(&[][..], Vec::as_slice);
        for (at, site) in below.iter().enumerate() {
            let is_last = at + 1 == below.len();
            let branch = if is_last { '`' } else { '|' };
            let trunk = if is_last { ' ' } else { '|' };
            self.draw(
                *site,
                format!("{further}  {branch}"),
                format!("{further}  {trunk}"),
                text,
            );
        }
    }
}

fn site_line(site: &Site) -> String {
    let nodes = count(site.node_count() as u64, "node");
    let slots = count(site.slot_count(), "slot");
    let reached = if site.why_unreachable.is_some() {
        "not reachable"
    } else {
        ""
    };
    match (reached, site.node_count()) {
        ("", 0) => format!("{} (no node is known)", site.name),
        ("", _) => format!("{} ({nodes}, {slots})", site.name),
        (reached, _) => format!("{} ({reached})", site.name),
    }
}
