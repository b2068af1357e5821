//! Runs that want all nodes of the same sites, in virtual time: each gets them in the end.

use super::*;
use std::collections::BTreeMap;

/// How long a run keeps its nodes, and how many seconds its first attempt may let nodes idle.
const RUNS: u64 = 100;
/// The time limit of an allocation; sites base their estimates on it.
const LIMIT: u64 = 150;
const IDLE: u64 = 30;

/// Pauses between attempts, and the number of attempts, as in `causeway run`.
const PAUSE: u64 = 5;
const ATTEMPTS: u32 = 3;

/// A site that gives all its nodes to one run at a time, in the order of the requests.
#[derive(Default)]
struct Site {
    /// For each run, when it may begin and when its request arrives, in order of arrival.
    queue: Vec<(usize, u64, u64)>,
    /// The run that has the nodes, and since when.
    given: Option<(usize, u64)>,
}

enum Stage {
    Pauses(u64),
    Asks(Together),
    Runs(u64),
    Done,
}

struct Run {
    order: Vec<String>,
    attempt: u32,
    stage: Stage,
}

struct Model {
    sites: BTreeMap<String, Site>,
    runs: Vec<Run>,
    now: u64,
}

impl Model {
    fn new(random: &mut fastrand::Rng) -> Model {
        let names: Vec<String> = (0..random.usize(2..4)).map(|site| site.to_string()).collect();
        let runs = (0..random.usize(2..4)).map(|_| {
            let mut order = names.clone();
            random.shuffle(&mut order);
            Run {
                order,
                attempt: 0,
                stage: Stage::Pauses(random.u64(0..5)),
            }
        });
        Model {
            runs: runs.collect(),
            sites: names.into_iter().map(|name| (name, Site::default())).collect(),
            now: 0,
        }
    }

    fn give_back(&mut self, run: usize) {
        for site in self.sites.values_mut() {
            site.queue.retain(|(other, ..)| *other != run);
            site.given = site.given.filter(|(other, _)| *other != run);
        }
    }

    /// A second of a batch system, which may or may not check its queue.
    fn schedule(&mut self, random: &mut fastrand::Rng) {
        let now = self.now;
        for site in self.sites.values_mut().filter(|site| site.given.is_none()) {
            let first = site
                .queue
                .iter()
                .position(|(_, begin, arrives)| *begin.max(arrives) <= now);
            if let Some(first) = first.filter(|_| random.u8(..) < 200) {
                site.given = Some((site.queue.remove(first).0, now));
            }
        }
    }

    fn step(&mut self, number: usize, random: &mut fastrand::Rng) {
        let now = Duration::from_secs(self.now);
        let run = &mut self.runs[number];
        match &mut run.stage {
            Stage::Done => {}
            Stage::Pauses(until) if *until > self.now => {}
            Stage::Pauses(_) => self.begin(number, random),
            Stage::Runs(until) if *until > self.now => {}
            Stage::Runs(_) => {
                run.stage = Stage::Done;
                self.give_back(number);
            }
            Stage::Asks(together) => {
                for (site, name) in run.order.iter().enumerate() {
                    if self.sites[name].given.is_some_and(|(run, _)| run == number) {
                        let id = name.clone();
                        together.on_word(
                            site,
                            FromHolder::Held {
                                id,
                                nodes: Vec::new(),
                            },
                            now,
                        );
                    }
                }
                together.on_time(now);
                self.carry_out(number, random);
            }
        }
    }

    fn begin(&mut self, number: usize, random: &mut fastrand::Rng) {
        let now = Duration::from_secs(self.now);
        let run = &mut self.runs[number];
        run.attempt += 1;
        assert!(run.attempt <= ATTEMPTS, "run {number} gets no nodes");
        let idle = Duration::from_secs(IDLE << (run.attempt - 1));
        let mut together = Together::new(&run.order, Duration::from_secs(100_000), idle, run.attempt > 1);
        for (site, name) in run.order.iter().enumerate() {
            let second = self.now;
            let at = &self.sites[name];
            let waiting = at.queue.iter().filter(|(.., arrives)| *arrives <= second).count() as u64;
            let left = at
                .given
                .map_or(0, |(_, since)| (since + LIMIT).saturating_sub(second));
            let after = LIMIT * waiting + left;
            together.on_word(site, FromHolder::Estimate(Some(after)), now);
        }
        run.stage = Stage::Asks(together);
        self.carry_out(number, random);
    }

    fn carry_out(&mut self, number: usize, random: &mut fastrand::Rng) {
        let run = &mut self.runs[number];
        let Stage::Asks(together) = &mut run.stage else {
            return;
        };
        let mut ended = None;
        while let Some(order) = together.poll() {
            match order {
                Order::Tell(site, ToHolder::Submit { after_seconds }) => {
                    let site = self.sites.get_mut(&run.order[site]).unwrap();
                    // Another run's request may overtake it.
                    site.queue
                        .push((number, self.now + after_seconds, self.now + random.u64(0..4)));
                    site.queue.sort_by_key(|(.., arrives)| *arrives);
                }
                Order::Tell(site, ToHolder::Hasten) => {
                    let site = self.sites.get_mut(&run.order[site]).unwrap();
                    for (_, begin, _) in site.queue.iter_mut().filter(|(run, ..)| *run == number) {
                        *begin = self.now;
                    }
                }
                Order::Tell(..) | Order::Say(..) => {}
                Order::End(how) => ended = Some(how),
            }
        }
        match ended {
            None => {}
            Some(Ended::Held(_)) => run.stage = Stage::Runs(self.now + RUNS),
            Some(Ended::Idle(_)) => {
                run.stage = Stage::Pauses(self.now + PAUSE);
                self.give_back(number);
            }
            Some(other) => panic!("{other:?}"),
        }
    }
}

#[test]
fn runs_that_want_the_same_sites_all_get_them() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    for _ in 0..200_000 {
        let mut model = Model::new(&mut random);
        while model.runs.iter().any(|run| !matches!(run.stage, Stage::Done)) {
            model.schedule(&mut random);
            let first = random.usize(0..model.runs.len());
            for step in 0..model.runs.len() {
                model.step((first + step) % model.runs.len(), &mut random);
            }
            model.now += 1;
            assert!(model.now < 10_000, "it never ends");
        }
    }
}
