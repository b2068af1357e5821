//! Small random instances, compared with all possible placements, judged by code that shares only the model
//! with the crate.

use causeway_placement::{
    Alternative, Between, Class, Group, Job, Link, Network, Objective, Outcome, Refusal, Requirement,
    Resources, Share, Site, Traffic, place, steps,
};
use fastrand::Rng;
use std::collections::BTreeSet;

const ENOUGH: u64 = 1_000_000;

fn small_resources(random: &mut Rng) -> Resources {
    let count = random.usize(1..4);
    let class = |random: &mut Rng| Class {
        name: "c".into(),
        nodes: random.u32(0..4),
        slots: random.u32(0..4),
        memory_bytes: random.u64(0..6),
        features: { ["a", "b"].into_iter() }
            .filter(|_| random.u32(0..4) > 0)
            .map(str::to_owned)
            .collect(),
        speed: [500, 1000, 2000][random.usize(0..3)],
        start_seconds: random.u64(0..3) * 10,
        cost: random.u64(0..4),
    };
    let mut left = 4;
    let mut sites = Vec::new();
    for _ in 0..count {
        let classes = random.usize(1..3).min(left);
        left -= classes;
        sites.push(Site {
            name: "s".into(),
            classes: (0..classes).map(|_| class(random)).collect(),
        });
    }
    let mut links = Vec::new();
    for one in 0..count {
        for other in one..count {
            if random.u32(0..100) < if one == other { 30 } else { 85 } {
                links.push(Link {
                    sites: (other, one),
                    latency_us: random.u64(0..4),
                    bytes_per_second: random.u64(1..4) * 1_000_000,
                    loss_ppm: random.u32(0..3),
                });
            }
        }
    }
    Resources { sites, links }
}

fn small_network(random: &mut Rng) -> Network {
    Network {
        max_latency_us: random.bool().then(|| random.u64(1..4)),
        min_bytes_per_second: random.bool().then(|| random.u64(1..3) * 1_000_000),
        max_loss_ppm: random.bool().then(|| random.u32(0..3)),
    }
}

fn small_job(sites: usize, random: &mut Rng) -> Job {
    let count = random.usize(1..4);
    let alternative = |random: &mut Rng| Alternative {
        ranks: random.u32(1..4),
        memory_bytes: random.u64(0..4),
        features: { ["a", "b"].into_iter() }
            .filter(|_| random.u32(0..5) == 0)
            .map(str::to_owned)
            .collect(),
        min_speed: [0, 0, 0, 1000][random.usize(0..4)],
        sites: (random.u32(0..5) == 0).then(|| (0..sites).filter(|_| random.bool()).collect()),
        work_us: random.u64(0..3) * 5,
    };
    let groups = (0..count).map(|_| Group {
        name: "g".into(),
        alternatives: (0..random.usize(1..3)).map(|_| alternative(random)).collect(),
        within: (random.u32(0..3) == 0).then(|| small_network(random)),
    });
    let groups = groups.collect();
    let mut job = Job {
        groups,
        latest_start_seconds: (random.u32(0..8) == 0).then_some(10),
        ..Job::default()
    };
    for one in 0..count {
        for other in one..count {
            if one != other && random.u32(0..3) == 0 {
                let network = small_network(random);
                job.between.push(Between {
                    groups: (other, one),
                    network,
                });
            }
            if random.u32(0..2) == 0 {
                job.traffic.push(Traffic {
                    groups: (one, other),
                    round_trips: random.u64(0..3),
                    bytes: random.u64(0..5),
                });
            }
        }
    }
    job
}

/// Where a group could have its ranks: an alternative, and the ranks on each class of all sites.
type Spread = (usize, Vec<u32>);

struct Judge<'a> {
    resources: &'a Resources,
    job: &'a Job,
    without: &'a BTreeSet<Requirement>,
    classes: Vec<(usize, &'a Class)>,
}

impl<'a> Judge<'a> {
    fn new(resources: &'a Resources, job: &'a Job, without: &'a BTreeSet<Requirement>) -> Judge<'a> {
        let sites = resources.sites.iter().enumerate();
        Judge {
            resources,
            job,
            without,
            classes: sites
                .flat_map(|(site, row)| row.classes.iter().map(move |class| (site, class)))
                .collect(),
        }
    }

    fn asks(&self, requirement: Requirement) -> bool {
        !self.without.contains(&requirement)
    }

    fn memory(&self, group: usize, alternative: usize) -> u64 {
        let asks = self.asks(Requirement::Memory(group));
        if asks {
            self.job.groups[group].alternatives[alternative].memory_bytes
        } else {
            0
        }
    }

    fn link(&self, one: usize, other: usize) -> Option<Link> {
        let joins_both = |link: &&Link| link.sites == (one, other) || link.sites == (other, one);
        let told = self.resources.links.iter().find(joins_both).copied();
        told.or((one == other).then_some(Link {
            bytes_per_second: u64::MAX,
            ..Link::default()
        }))
    }

    fn meets(&self, network: &Network, one: usize, other: usize) -> bool {
        self.link(one, other).is_some_and(|link| {
            link.latency_us <= network.max_latency_us.unwrap_or(u64::MAX)
                && link.bytes_per_second >= network.min_bytes_per_second.unwrap_or(0)
                && link.loss_ppm <= network.max_loss_ppm.unwrap_or(u32::MAX)
        }) || *network == Network::default()
    }

    fn spreads(&self, group: usize) -> Vec<Spread> {
        let mut all = Vec::new();
        for (index, alternative) in self.job.groups[group].alternatives.iter().enumerate() {
            let ranks = if self.asks(Requirement::Ranks(group)) {
                alternative.ranks
            } else {
                0
            };
            let mut row = vec![0; self.classes.len()];
            self.spread((group, index), 0, ranks, &mut row, &mut all);
        }
        all
    }

    fn spread(&self, at: (usize, usize), class: usize, left: u32, row: &mut Vec<u32>, all: &mut Vec<Spread>) {
        if class == row.len() {
            if left == 0 {
                all.push((at.1, row.clone()));
            }
            return;
        }
        for ranks in 0..=left {
            row[class] = ranks;
            if ranks == 0 || self.suits(at.0, at.1, class) {
                self.spread(at, class + 1, left - ranks, row, all);
            }
        }
        row[class] = 0;
    }

    fn suits(&self, group: usize, index: usize, class: usize) -> bool {
        let alternative = &self.job.groups[group].alternatives[index];
        let (site, class) = self.classes[class];
        let sites = alternative
            .sites
            .as_ref()
            .filter(|_| self.asks(Requirement::Sites(group)));
        sites.is_none_or(|sites| sites.contains(&site))
            && (!self.asks(Requirement::Features(group))
                || alternative
                    .features
                    .iter()
                    .all(|feature| class.features.contains(feature)))
            && (!self.asks(Requirement::Speed(group)) || class.speed >= alternative.min_speed)
            && (!self.asks(Requirement::Start)
                || class.start_seconds <= self.job.latest_start_seconds.unwrap_or(u64::MAX))
    }

    fn used(&self, spread: &Spread) -> Vec<usize> {
        let used = { spread.1.iter().zip(&self.classes) }.filter(|(ranks, _)| **ranks > 0);
        let mut sites: Vec<usize> = used.map(|(_, (site, _))| *site).collect();
        sites.dedup();
        sites
    }

    fn fits(&self, spreads: &[&Spread]) -> bool {
        { self.classes.iter().enumerate() }.all(|(index, (_, class))| {
            let (mut nodes, mut light) = (0, 0);
            for (group, (alternative, row)) in spreads.iter().enumerate() {
                let memory = self.memory(group, *alternative);
                if row[index] == 0 {
                    continue;
                }
                if memory * u64::from(class.slots) <= class.memory_bytes {
                    light += row[index];
                } else if memory > class.memory_bytes {
                    return false;
                } else {
                    nodes +=
                        u64::from(row[index]).div_ceil((class.memory_bytes / memory).min(class.slots.into()));
                }
            }
            light == 0 && nodes <= u64::from(class.nodes)
                || class.slots > 0 && nodes + u64::from(light.div_ceil(class.slots)) <= u64::from(class.nodes)
        })
    }

    fn is_connected(&self, used: &[Vec<usize>]) -> bool {
        let every = |one: &Vec<usize>, other: &Vec<usize>, does: &dyn Fn(usize, usize) -> bool| {
            one.iter().all(|one| other.iter().all(|other| does(*one, *other)))
        };
        let all: Vec<usize> = used.iter().flatten().copied().collect();
        let reaches = |one, other| self.link(one, other).is_some();
        if self.asks(Requirement::Reach) && !every(&all, &all, &reaches) {
            return false;
        }
        let within = self
            .job
            .groups
            .iter()
            .enumerate()
            .all(|(group, asked)| match &asked.within {
                Some(network) if self.asks(Requirement::Within(group)) => {
                    every(&used[group], &used[group], &|one, other| {
                        self.meets(network, one, other)
                    })
                }
                _ => true,
            });
        within
            && self.job.between.iter().all(|between| {
                let (one, other) = between.groups;
                !self.asks(Requirement::between(one, other))
                    || every(&used[one], &used[other], &|one, other| {
                        self.meets(&between.network, one, other)
                    })
            })
    }

    fn is_met(&self, spreads: &[&Spread]) -> bool {
        let used: Vec<Vec<usize>> = spreads.iter().map(|spread| self.used(spread)).collect();
        self.is_connected(&used) && self.fits(spreads)
    }

    fn value(&self, objective: Objective, spreads: &[&Spread]) -> u64 {
        let used: Vec<Vec<usize>> = spreads.iter().map(|spread| self.used(spread)).collect();
        let rows = spreads
            .iter()
            .enumerate()
            .flat_map(|(group, (alternative, row))| {
                let told = &self.job.groups[group].alternatives[*alternative];
                let cells = row.iter().zip(&self.classes).filter(|(ranks, _)| **ranks > 0);
                cells.map(move |(ranks, (_, class))| (told, u64::from(*ranks), *class))
            });
        match objective {
            Objective::Start => rows.map(|(_, _, class)| class.start_seconds).max().unwrap_or(0),
            Objective::Cost => {
                let price = |(told, ranks, class): (&Alternative, u64, &Class)| {
                    let fit = (class.memory_bytes.checked_div(told.memory_bytes)).unwrap_or(u64::MAX);
                    ranks * (class.cost * u64::from(class.slots)).div_ceil(fit.min(class.slots.into()))
                };
                rows.map(price).sum()
            }
            Objective::Sites => used.iter().flatten().collect::<BTreeSet<_>>().len() as u64,
            Objective::Time => {
                let work = |(told, _, class): (&Alternative, u64, &Class)| {
                    (told.work_us * 1000).div_ceil(class.speed.into())
                };
                let longest = rows.map(work).max().unwrap_or(0);
                let traffic = self.job.traffic.iter().map(|traffic| {
                    let (one, other) = (&used[traffic.groups.0], &used[traffic.groups.1]);
                    let paths = one
                        .iter()
                        .flat_map(|one| other.iter().map(move |other| (*one, *other)));
                    let cost = |(one, other)| match self.link(one, other) {
                        Some(link) if link.bytes_per_second < u64::MAX => {
                            2 * traffic.round_trips * link.latency_us
                                + (traffic.bytes * 1_000_000).div_ceil(link.bytes_per_second)
                        }
                        _ => 0,
                    };
                    paths.map(cost).max().unwrap_or(0)
                });
                longest + traffic.sum::<u64>()
            }
        }
    }

    /// The least values of the objectives, if there is a placement. Without objectives, any placement will
    /// do.
    fn least(&self, objectives: &[Objective]) -> Option<Vec<u64>> {
        let spreads: Vec<Vec<Spread>> = (0..self.job.groups.len())
            .map(|group| self.spreads(group))
            .collect();
        let mut least = None;
        self.try_all(&spreads, &mut Vec::new(), objectives, &mut least);
        least
    }

    fn try_all<'s>(
        &self,
        spreads: &'s [Vec<Spread>],
        picked: &mut Vec<&'s Spread>,
        objectives: &[Objective],
        least: &mut Option<Vec<u64>>,
    ) {
        if least.is_some() && objectives.is_empty() || !self.fits(picked) {
            return;
        }
        if picked.len() == spreads.len() {
            if self.is_met(picked) {
                let values: Vec<u64> = objectives.iter().map(|one| self.value(*one, picked)).collect();
                if least.as_ref().is_none_or(|least| values < *least) {
                    *least = Some(values);
                }
            }
            return;
        }
        for spread in &spreads[picked.len()] {
            picked.push(spread);
            self.try_all(spreads, picked, objectives, least);
            picked.pop();
        }
    }

    /// The spreads that a placement describes.
    fn read(&self, alternatives: &[usize], shares: &[Share]) -> Vec<Spread> {
        let mut spreads: Vec<Spread> = alternatives
            .iter()
            .map(|alternative| (*alternative, vec![0; self.classes.len()]))
            .collect();
        for share in shares {
            let first: usize = { self.resources.sites[..share.site].iter() }
                .map(|site| site.classes.len())
                .sum();
            spreads[share.group].1[first + share.class] += share.ranks;
        }
        spreads
    }
}

fn some_objectives(random: &mut Rng) -> Vec<Objective> {
    let mut objectives = vec![
        Objective::Start,
        Objective::Time,
        Objective::Cost,
        Objective::Sites,
    ];
    random.shuffle(&mut objectives);
    objectives.truncate(random.usize(0..5));
    objectives
}

/// Compares one instance; returns whether it could be placed.
fn compare(seed: u64) -> bool {
    let mut random = Rng::with_seed(seed);
    let resources = small_resources(&mut random);
    let job = small_job(resources.sites.len(), &mut random);
    let objectives = some_objectives(&mut random);
    let nothing = BTreeSet::new();
    let judge = Judge::new(&resources, &job, &nothing);
    let least = judge.least(&objectives);
    let outcome = place(&resources, &job, &objectives, &mut steps(ENOUGH)).expect("the model is right");
    let again = place(&resources, &job, &objectives, &mut steps(ENOUGH)).expect("the model is right");
    assert_eq!(outcome, again, "seed {seed}: two answers");
    match outcome {
        Outcome::Placed(placement) => {
            let spreads = judge.read(&placement.alternatives, &placement.shares);
            let picked: Vec<&Spread> = spreads.iter().collect();
            for (group, (alternative, row)) in spreads.iter().enumerate() {
                let asked = &job.groups[group].alternatives[*alternative];
                assert_eq!(
                    row.iter().sum::<u32>(),
                    asked.ranks,
                    "seed {seed}: ranks of group {group}"
                );
                let suits =
                    |(class, ranks): (usize, &u32)| *ranks == 0 || judge.suits(group, *alternative, class);
                assert!(row.iter().enumerate().all(suits), "seed {seed}: group {group}");
            }
            assert!(
                judge.is_met(&picked),
                "seed {seed}: a requirement is not met: {placement:?}"
            );
            let values: Vec<u64> = objectives.iter().map(|one| judge.value(*one, &picked)).collect();
            let told: Vec<u64> = placement.reached.iter().map(|reached| reached.value).collect();
            assert_eq!(values, told, "seed {seed}: values");
            assert_eq!(Some(told), least, "seed {seed}: {objectives:?}");
            assert!(
                placement.reached.iter().all(|reached| reached.is_proved()),
                "seed {seed}"
            );
            true
        }
        Outcome::Refused(refusal) => {
            assert_eq!(least, None, "seed {seed}: it can be placed");
            assert!(refusal.is_irreducible, "seed {seed}");
            check_refusal(&resources, &job, &refusal, seed);
            false
        }
        Outcome::Undecided => unreachable!("seed {seed}: undecided"),
    }
}

/// All requirements that a job could have.
fn every_requirement(job: &Job) -> BTreeSet<Requirement> {
    let groups = 0..job.groups.len();
    let mut all = BTreeSet::from([Requirement::Reach, Requirement::Start]);
    for one in groups.clone() {
        all.extend([
            Requirement::Ranks(one),
            Requirement::Memory(one),
            Requirement::Features(one),
        ]);
        all.extend([
            Requirement::Speed(one),
            Requirement::Sites(one),
            Requirement::Within(one),
        ]);
        all.extend(groups.clone().map(|other| Requirement::between(one, other)));
    }
    all
}

fn check_refusal(resources: &Resources, job: &Job, refusal: &Refusal, seed: u64) {
    let conflict = &refusal.conflict;
    let all = every_requirement(job);
    let can_be = |these: &BTreeSet<Requirement>| {
        let without: BTreeSet<Requirement> = all.difference(these).copied().collect();
        Judge::new(resources, job, &without).least(&[]).is_some()
    };
    assert!(!can_be(conflict), "seed {seed}: {conflict:?} can hold together");
    for one in conflict {
        let mut fewer = conflict.clone();
        fewer.remove(one);
        assert!(
            can_be(&fewer),
            "seed {seed}: {one:?} is not needed in {conflict:?}"
        );
    }
}

#[test]
fn a_thousand_random_instances_agree_with_all_placements_tried_in_turn() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let placed = (0..1000).filter(|step| compare(seed.wrapping_add(*step))).count();
    println!("{placed} of 1000 could be placed");
    assert!(
        (100..900).contains(&placed),
        "{placed} of 1000 could be placed: such instances test little"
    );
}
