//! Distributes the ranks over nodes: in proportion over sites, evenly over the nodes of a site, in blocks.
//! Pure.
//!
//! Proportion precedes evenness, so that of two ranks on two equal sites each site gets one: this is what the
//! grid is for.

use causeway_control::NodeInfo;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// What the user requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wish {
    /// This number of ranks, at any sites.
    Total(u32),
    /// This number of ranks at each of these sites.
    PerSite(Vec<(String, u32)>),
    /// The MPI decides: every node offers all its slots.
    Everything,
}

impl Wish {
    /// Returns how many ranks there are in all; `None` if the launcher decides.
    pub fn ranks(&self) -> Option<u32> {
        match self {
            Wish::Total(ranks) => Some(*ranks),
            Wish::PerSite(sites) => Some(sites.iter().map(|(_, ranks)| ranks).sum()),
            Wish::Everything => None,
        }
    }
}

/// A site that takes part.
#[derive(Debug, Clone, Copy)]
pub struct Offer<'a> {
    /// Its name.
    pub site: &'a str,
    /// The site's nodes, in the order in which they must be used.
    pub nodes: &'a [NodeInfo],
}

/// A node and its number of ranks, which is never 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share<'a> {
    /// The site's name.
    pub site: &'a str,
    /// The node.
    pub node: &'a NodeInfo,
    /// How many.
    pub ranks: u32,
}

/// Why a request cannot be met.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DistributionError {
    /// All slots together are too few.
    #[error("{wanted} ranks are requested, but the nodes of {sites} have {slots} slots{HINT}")]
    TooFewSlots {
        /// How many ranks are requested.
        wanted: u32,
        /// How many slots there are.
        slots: u32,
        /// The sites whose slots were counted.
        sites: String,
    },
    /// The slots of one site are too few.
    #[error("--sites asks for {wanted} ranks at {site}, whose nodes have {slots} slots{HINT}")]
    TooFewAtSite {
        /// The site.
        site: String,
        /// How many ranks are requested.
        wanted: u32,
        /// How many slots there are.
        slots: u32,
    },
}

const HINT: &str = " (--oversubscribe, or hosts named on the launcher's command line, allow more)";

/// Distributes ranks over `offers`, in their order. With `oversubscribe`, slots are weights and no longer
/// limits.
///
/// # Errors
/// See [`DistributionError`].
pub fn distribute<'a>(
    offers: &[Offer<'a>],
    wish: &Wish,
    oversubscribe: bool,
) -> Result<Vec<Share<'a>>, DistributionError> {
    let slots: Vec<u32> = offers.iter().map(|offer| sum(offer.nodes)).collect();
    let quotas = match wish {
        Wish::Everything => slots.clone(),
        Wish::Total(wanted) => {
            let all = slots.iter().fold(0, |sum: u32, slots| sum.saturating_add(*slots));
            if *wanted > all && !oversubscribe {
                let sites: Vec<&str> = offers.iter().map(|offer| offer.site).collect();
                return Err(DistributionError::TooFewSlots {
                    wanted: *wanted,
                    slots: all,
                    sites: sites.join(", "),
                });
            }
            in_proportion(*wanted, &slots, oversubscribe)
        }
        Wish::PerSite(wishes) => {
            let wanted = |site| {
                wishes
                    .iter()
                    .find(|(name, _)| name == site)
                    .map_or(0, |(_, ranks)| *ranks)
            };
            offers.iter().map(|offer| wanted(offer.site)).collect()
        }
    };
    let mut shares = Vec::new();
    for ((offer, quota), slots) in offers.iter().zip(quotas).zip(slots) {
        if quota > slots && !oversubscribe {
            return Err(DistributionError::TooFewAtSite {
                site: offer.site.to_owned(),
                wanted: quota,
                slots,
            });
        }
        let ranks = evenly(quota, offer.nodes, oversubscribe);
        let nodes = offer.nodes.iter().zip(ranks).filter(|(_, ranks)| *ranks > 0);
        shares.extend(nodes.map(|(node, ranks)| Share {
            site: offer.site,
            node,
            ranks,
        }));
    }
    Ok(shares)
}

fn sum(nodes: &[NodeInfo]) -> u32 {
    nodes
        .iter()
        .fold(0, |sum: u32, node| sum.saturating_add(node.slots))
}

/// Gives each rank to the site that is furthest below its share (Sainte-Laguë's rule), and to the first of
/// several equal ones.
fn in_proportion(wanted: u32, slots: &[u32], oversubscribe: bool) -> Vec<u32> {
    let mut ranks = vec![0_u32; slots.len()];
    let claim = |site: usize, ranks: u32| Claim {
        size: f64::from(slots[site]) / (2.0 * f64::from(ranks) + 1.0),
        site,
    };
    // With a heap, no rank requires a scan of all sites.
    let mut claims: BinaryHeap<Claim> = (0..slots.len()).map(|site| claim(site, 0)).collect();
    let mut left = wanted;
    while let (1.., Some(Claim { site, .. })) = (left, claims.pop()) {
        let is_open = slots[site] > 0 && (oversubscribe || ranks[site] < slots[site]);
        if is_open {
            ranks[site] += 1;
            left -= 1;
            claims.push(claim(site, ranks[site]));
        }
    }
    ranks
}

/// How far a site is below its share.
struct Claim {
    size: f64,
    site: usize,
}

impl Ord for Claim {
    fn cmp(&self, other: &Claim) -> Ordering {
        let by_size = self.size.total_cmp(&other.size);
        by_size.then_with(|| other.site.cmp(&self.site))
    }
}

impl PartialOrd for Claim {
    fn partial_cmp(&self, other: &Claim) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Claim {
    fn eq(&self, other: &Claim) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Claim {}

/// Gives one rank to each node in turn, for as long as the node has slots.
fn evenly(wanted: u32, nodes: &[NodeInfo], oversubscribe: bool) -> Vec<u32> {
    let mut ranks = vec![0_u32; nodes.len()];
    let mut left = wanted;
    while left > 0 {
        let before = left;
        for (ranks, node) in ranks.iter_mut().zip(nodes) {
            if left > 0 && (oversubscribe || *ranks < node.slots) {
                *ranks += 1;
                left -= 1;
            }
        }
        if left == before {
            break;
        }
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(site: u8, count: u8, slots: u32) -> Vec<NodeInfo> {
        let node = |i| NodeInfo {
            name: format!("s{site}-{i}"),
            address: [10, site, 0, i].into(),
            slots,
        };
        (1..=count).map(node).collect()
    }

    fn ranks(
        sites: &[Vec<NodeInfo>],
        wish: &Wish,
        over: bool,
    ) -> Result<Vec<(String, u32)>, DistributionError> {
        let names = ["rennes", "nancy", "orsay"];
        let offers: Vec<Offer> = names
            .iter()
            .zip(sites)
            .map(|(site, nodes)| Offer { site, nodes })
            .collect();
        let shares = distribute(&offers, wish, over)?;
        Ok(shares
            .iter()
            .map(|share| (share.node.name.clone(), share.ranks))
            .collect())
    }

    fn counts(sites: &[Vec<NodeInfo>], wish: &Wish) -> Vec<u32> {
        ranks(sites, wish, false)
            .unwrap()
            .iter()
            .map(|(_, ranks)| *ranks)
            .collect()
    }

    #[test]
    fn two_equal_sites_share_equally() {
        let sites = [nodes(1, 2, 4), nodes(2, 2, 4)];
        assert_eq!(counts(&sites, &Wish::Total(4)), [1, 1, 1, 1]);
        assert_eq!(counts(&sites, &Wish::Total(6)), [2, 1, 2, 1]);
        assert_eq!(counts(&sites, &Wish::Total(16)), [4, 4, 4, 4]);
        assert_eq!(
            ranks(&sites, &Wish::Total(2), false).unwrap(),
            [("s1-1".to_owned(), 1), ("s2-1".to_owned(), 1)]
        );
    }

    #[test]
    fn unequal_sites_share_by_their_slots() {
        let sites = [nodes(1, 8, 1), nodes(2, 2, 1)];
        assert_eq!(counts(&sites, &Wish::Total(10)), [1; 10]);
        assert_eq!(ranks(&sites, &Wish::Total(5), false).unwrap().len(), 5);
        assert_eq!(ranks(&sites, &Wish::Total(5), false).unwrap()[4].0, "s2-1");
    }

    #[test]
    fn the_user_can_say_how_many_where() {
        let sites = [nodes(1, 2, 4), nodes(2, 2, 4)];
        let wish = Wish::PerSite(vec![("nancy".into(), 3), ("rennes".into(), 1)]);
        let wanted = [
            ("s1-1".to_owned(), 1),
            ("s2-1".to_owned(), 2),
            ("s2-2".to_owned(), 1),
        ];
        assert_eq!(ranks(&sites, &wish, false).unwrap(), wanted);
        assert_eq!(counts(&sites, &Wish::Everything), [4, 4, 4, 4]);
    }

    #[test]
    fn slots_bound_the_ranks_unless_oversubscribed() {
        let sites = [nodes(1, 2, 1), nodes(2, 2, 1)];
        assert!(matches!(
            ranks(&sites, &Wish::Total(5), false),
            Err(DistributionError::TooFewSlots {
                wanted: 5,
                slots: 4,
                ..
            })
        ));
        let wish = Wish::PerSite(vec![("nancy".into(), 3)]);
        assert!(matches!(
            ranks(&sites, &wish, false),
            Err(DistributionError::TooFewAtSite { slots: 2, .. })
        ));
        let over = ranks(&sites, &Wish::Total(5), true).unwrap();
        assert_eq!(over.iter().map(|(_, ranks)| ranks).sum::<u32>(), 5);
    }

    #[test]
    fn a_site_without_nodes_takes_no_rank() {
        let sites = [nodes(1, 0, 1), nodes(2, 2, 2)];
        assert_eq!(counts(&sites, &Wish::Total(3)), [2, 1]);
    }
}
