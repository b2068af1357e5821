//! A job and its resources as tables over groups, classes and sites, without names. Requirements that are
//! left out in order to explain a refusal are left out here.

use crate::answer::Requirement;
use crate::model::{Alternative, Job, Link, Network, Resources, Traffic};
use crate::tree::{self, Edge};
use std::collections::BTreeSet;
use std::ops::Range;

/// A set of sites: site 0 is the lowest bit.
pub(crate) type Sites = u128;

/// The sites of a set, in order.
pub(crate) fn members(mut sites: Sites) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let site = (sites != 0).then(|| sites.trailing_zeros() as usize)?;
        sites &= sites - 1;
        Some(site)
    })
}

/// A class of equal nodes.
#[derive(Debug, Clone)]
pub(crate) struct ClassRow {
    pub site: usize,
    pub nodes: u64,
    pub slots: u64,
    pub start: u64,
}

/// One alternative for a group.
#[derive(Debug, Clone)]
pub(crate) struct Choice {
    pub ranks: u64,
    /// For each class, the ranks that fit on a node; 0 if the class is not suitable.
    pub fit: Vec<u64>,
    /// For each class, the price of a rank.
    pub price: Vec<u64>,
    /// For each class, how long a rank computes, in microseconds.
    pub compute: Vec<u64>,
}

/// What the traffic of two groups takes between any two sites.
#[derive(Debug, Clone)]
pub(crate) struct Pair {
    pub groups: (usize, usize),
    /// In microseconds, by both sites: `[one * sites + other]`. It is symmetric.
    pub cost: Vec<u64>,
    /// For each site, the other sites, from the cheapest on.
    pub order: Vec<Vec<usize>>,
}

#[derive(Debug, Clone)]
pub(crate) struct Tables {
    pub sites: usize,
    pub classes: Vec<ClassRow>,
    /// The classes of each site.
    pub classes_at: Vec<Range<usize>>,
    /// For each group, its alternatives; if there are several, the last one is at least as easy as each of
    /// them, and represents a group whose alternative has not been chosen yet.
    pub choices: Vec<Vec<Choice>>,
    /// For two groups and a site of the first one, the sites that the second one may use.
    compatible: Vec<Sites>,
    pub pairs: Vec<Pair>,
    /// Pairs that form a forest over the groups.
    pub forest: Vec<Edge>,
}

/// Which parts of a job count.
pub(crate) struct Scope<'a> {
    pub resources: &'a Resources,
    pub job: &'a Job,
    /// Requirements that are left out.
    pub without: &'a BTreeSet<Requirement>,
}

impl Tables {
    pub fn new(scope: &Scope) -> Tables {
        let resources = scope.resources;
        let mut classes_at = Vec::new();
        let mut classes = Vec::new();
        for (site, row) in resources.sites.iter().enumerate() {
            let first = classes.len();
            classes.extend(row.classes.iter().map(|class| ClassRow {
                site,
                nodes: class.nodes.into(),
                slots: class.slots.into(),
                start: class.start_seconds,
            }));
            classes_at.push(first..classes.len());
        }
        let paths = paths(resources);
        let sites = resources.sites.len();
        let pairs = { scope.job.traffic.iter() }.map(|traffic| pair(traffic, &paths, sites));
        let pairs: Vec<Pair> = pairs.collect();
        let total = |pair: &Pair| (pair.groups, pair.cost.iter().map(|cost| u128::from(*cost)).sum());
        let weighed: Vec<((usize, usize), u128)> = pairs.iter().map(total).collect();
        Tables {
            sites,
            classes,
            classes_at,
            choices: (0..scope.job.groups.len())
                .map(|group| choices(scope, group))
                .collect(),
            compatible: compatible(scope, &paths),
            forest: tree::grow(scope.job.groups.len(), &weighed),
            pairs,
        }
    }

    /// All slots of a site.
    pub fn slots(&self, site: usize) -> u64 {
        let classes = &self.classes[self.classes_at[site].clone()];
        classes.iter().map(|class| class.nodes * class.slots).sum()
    }

    pub fn groups(&self) -> usize {
        self.choices.len()
    }

    /// The sites that one group may use while another, or itself, uses this site.
    pub fn compatible(&self, group: usize, site: usize, other: usize) -> Sites {
        self.compatible[(group * self.groups() + other) * self.sites + site]
    }

    /// Leaves out classes that begin later.
    pub fn until(&self, start: u64) -> Tables {
        let mut tables = self.clone();
        for choice in tables.choices.iter_mut().flatten() {
            for (fit, class) in choice.fit.iter_mut().zip(&self.classes) {
                *fit = if class.start <= start { *fit } else { 0 };
            }
        }
        tables
    }
}

/// The path between any two sites, by both; inside a site that says nothing about it, the path is perfect.
fn paths(resources: &Resources) -> Vec<Option<Link>> {
    let sites = resources.sites.len();
    let mut paths = vec![None; sites * sites];
    for site in 0..sites {
        paths[site * sites + site] = Some(Link {
            sites: (site, site),
            bytes_per_second: u64::MAX,
            ..Link::default()
        });
    }
    for link in &resources.links {
        let (one, other) = link.sites;
        paths[one * sites + other] = Some(*link);
        paths[other * sites + one] = Some(*link);
    }
    paths
}

fn pair(traffic: &Traffic, paths: &[Option<Link>], sites: usize) -> Pair {
    let nothing = |link: &Link| link.bytes_per_second == u64::MAX && link.latency_us == 0;
    let cost = paths.iter().map(|path| match path {
        Some(link) if nothing(link) => 0,
        Some(link) => traffic.time_us(link),
        // Such sites are not used together.
        None => 0,
    });
    let cost: Vec<u64> = cost.collect();
    let order = (0..sites).map(|site| {
        let mut order: Vec<usize> = (0..sites).collect();
        order.sort_by_key(|other| (cost[site * sites + other], *other));
        order
    });
    Pair {
        groups: traffic.groups,
        order: order.collect(),
        cost,
    }
}

fn choices(scope: &Scope, group: usize) -> Vec<Choice> {
    let alternatives = &scope.job.groups[group].alternatives;
    let mut choices: Vec<Choice> = { alternatives.iter() }
        .map(|alternative| choice(scope, group, alternative))
        .collect();
    if choices.len() > 1 {
        let least = |of: fn(&Choice) -> &Vec<u64>| -> Vec<u64> {
            let at = |class: usize| {
                { choices.iter() }
                    .map(|choice| of(choice)[class])
                    .min()
                    .unwrap_or(0)
            };
            (0..choices[0].fit.len()).map(at).collect()
        };
        let most = |class: usize| {
            { choices.iter() }
                .map(|choice| choice.fit[class])
                .max()
                .unwrap_or(0)
        };
        let easiest = Choice {
            ranks: choices.iter().map(|choice| choice.ranks).min().unwrap_or(0),
            fit: (0..choices[0].fit.len()).map(most).collect(),
            price: least(|choice| &choice.price),
            compute: least(|choice| &choice.compute),
        };
        choices.push(easiest);
    }
    choices
}

fn choice(scope: &Scope, group: usize, alternative: &Alternative) -> Choice {
    let asks = |requirement: Requirement| !scope.without.contains(&requirement);
    let latest = { scope.job.latest_start_seconds }.filter(|_| asks(Requirement::Start));
    let ranks = if asks(Requirement::Ranks(group)) {
        alternative.ranks
    } else {
        0
    };
    let memory = if asks(Requirement::Memory(group)) {
        alternative.memory_bytes
    } else {
        0
    };
    let sites = { alternative.sites.as_ref() }.filter(|_| asks(Requirement::Sites(group)));
    let mut choice = Choice {
        ranks: ranks.into(),
        fit: Vec::new(),
        price: Vec::new(),
        compute: Vec::new(),
    };
    for (site, row) in scope.resources.sites.iter().enumerate() {
        for class in &row.classes {
            let does = sites.is_none_or(|sites| sites.contains(&site))
                && latest.is_none_or(|latest| class.start_seconds <= latest)
                && (!asks(Requirement::Features(group)) || alternative.features.is_subset(&class.features))
                && (!asks(Requirement::Speed(group)) || class.speed >= alternative.min_speed);
            let fit = u64::from(if does && class.nodes > 0 {
                class.ranks_per_node(memory)
            } else {
                0
            });
            let node = class.cost.saturating_mul(class.slots.into());
            let work = alternative.work_us.saturating_mul(1000);
            choice.fit.push(fit);
            choice.price.push(node.div_ceil(fit.max(1)));
            choice.compute.push(work.div_ceil(u64::from(class.speed.max(1))));
        }
    }
    choice
}

fn compatible(scope: &Scope, paths: &[Option<Link>]) -> Vec<Sites> {
    let sites = scope.resources.sites.len();
    let groups = scope.job.groups.len();
    let asks = |requirement: Requirement| !scope.without.contains(&requirement);
    let meeting = |site: usize, network: Option<&Network>| {
        let does = |other: &usize| match &paths[site * sites + other] {
            Some(link) => network.is_none_or(|network| network.is_met_by(link)),
            // A link that does not exist fails every requirement.
            None => network.is_none_or(|network| *network == Network::default()) && !asks(Requirement::Reach),
        };
        (0..sites)
            .filter(does)
            .fold(0, |set: Sites, other| set | 1 << other)
    };
    let mut compatible = Vec::with_capacity(groups * groups * sites);
    let free: Vec<Sites> = (0..sites).map(|site| meeting(site, None)).collect();
    for _ in 0..groups * groups {
        compatible.extend_from_slice(&free);
    }
    let mut narrow = |one: usize, other: usize, network: &Network| {
        for site in 0..sites {
            compatible[(one * groups + other) * sites + site] &= meeting(site, Some(network));
        }
    };
    for (group, asked) in scope.job.groups.iter().enumerate() {
        if let Some(network) = { asked.within.as_ref() }.filter(|_| asks(Requirement::Within(group))) {
            narrow(group, group, network);
        }
    }
    for between in &scope.job.between {
        let (one, other) = between.groups;
        if asks(Requirement::between(one, other)) {
            narrow(one, other, &between.network);
            narrow(other, one, &between.network);
        }
    }
    compatible
}
