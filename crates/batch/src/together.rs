//! How a run gets allocations of several sites at the same time, or none: what the sites' holders tell and
//! the time go in, orders come out. Pure.

use crate::word::{FromHolder, HeldNode, ToHolder, UNAVAILABLE};
use std::cmp::Reverse;
use std::collections::VecDeque;
use std::time::Duration;

/// How much earlier than the common start the other sites are asked to begin: batch systems begin late rather
/// than early.
const AHEAD: Duration = Duration::from_secs(120);

/// How the attempt ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// Every site holds its allocation.
    Held(Vec<(String, Vec<HeldNode>)>),
    /// A site has waited for the others for too long: give everything back, and try again.
    Idle(String),
    /// A site cannot give its allocation, or has lost it.
    Failed(usize, String),
    /// Not all allocations had begun in time.
    Late(String),
}

/// What the run is to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Order {
    /// Tell the holder of this site.
    Tell(usize, ToHolder),
    /// Tell the user about this site.
    Say(usize, String),
    /// The attempt is over. Whatever it says, sites that hold something give it back unless it is
    /// [`Ended::Held`].
    End(Ended),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    Asked,
    Estimated(Duration),
    Waits(String),
    Holds(Duration, String, Vec<HeldNode>),
}

/// See the module.
///
/// Two runs that want the same sites could each get one of them and wait for the other's. So an attempt after
/// one that has idled asks the sites one after the other, in the order of their names, but those that can
/// begin soon come last: the run that is second at the first site then holds nothing while it waits.
#[derive(Debug)]
pub struct Together {
    sites: Vec<(String, State)>,
    in_turn: bool,
    /// Sites that are to be asked once those before them hold their allocations; the next one comes last.
    later: Vec<usize>,
    /// Sites that were asked to begin later.
    delayed: Vec<usize>,
    until: Duration,
    idle: Duration,
    orders: VecDeque<Order>,
    is_over: bool,
}

impl Together {
    /// Begins an attempt at these sites, all of which were asked. It may take until `until`, and no site may
    /// hold an allocation for longer than `idle` while others hold none. `in_turn` says that an attempt
    /// before this one has idled.
    pub fn new(sites: &[String], until: Duration, idle: Duration, in_turn: bool) -> Together {
        Together {
            sites: sites.iter().map(|site| (site.clone(), State::Asked)).collect(),
            in_turn,
            later: Vec::new(),
            delayed: Vec::new(),
            until,
            idle,
            orders: VecDeque::new(),
            is_over: false,
        }
    }

    /// Takes the next order.
    pub fn poll(&mut self) -> Option<Order> {
        self.orders.pop_front()
    }

    /// When the next step is due even if no holder reports anything.
    pub fn deadline(&self) -> Duration {
        let held = self.sites.iter().filter_map(|(_, state)| match state {
            State::Holds(since, ..) => Some(*since + self.idle),
            _ => None,
        });
        held.chain([self.until]).min().unwrap_or(self.until)
    }

    /// A holder has reported something.
    pub fn on_word(&mut self, site: usize, word: FromHolder, now: Duration) {
        if self.is_over || site >= self.sites.len() {
            return;
        }
        let name = self.sites[site].0.clone();
        match (word, &self.sites[site].1) {
            (FromHolder::Failed(why), _) => self.end(Ended::Failed(site, why)),
            (FromHolder::Estimate(after), State::Asked) => {
                self.say(site, format!("{name}: {}", estimated(after)));
                let after = Duration::from_secs(after.unwrap_or(0));
                self.sites[site].1 = State::Estimated(now.saturating_add(after));
                self.submit(now);
            }
            (
                FromHolder::Queued {
                    id,
                    reason,
                    after_seconds,
                },
                State::Estimated(_) | State::Waits(_),
            ) => {
                let begins =
                    after_seconds.map(|after| format!(", begins {}", shown(Duration::from_secs(after))));
                let reason = match reason.as_str() {
                    "" => "no reason is told yet",
                    reason => reason,
                };
                let text = format!("{name}: allocation {id} waits: {reason}");
                let line = format!("{text}{}", begins.unwrap_or_default());
                // The expected wait changes with every poll; only a new reason is worth reporting.
                if self.sites[site].1 != State::Waits(text.clone()) {
                    self.say(site, line);
                }
                self.sites[site].1 = State::Waits(text);
            }
            (FromHolder::Held { id, nodes }, State::Estimated(_) | State::Waits(_)) => {
                let count = nodes.len();
                let plural = if count == 1 { "" } else { "s" };
                self.say(
                    site,
                    format!("{name}: holds {count} node{plural}, allocation {id}"),
                );
                self.sites[site].1 = State::Holds(now, id, nodes);
                self.ask_next();
                self.hasten(site);
                self.finish();
            }
            // Nobody has asked for the allocation at this point.
            _ => {}
        }
        self.on_time(now);
    }

    /// Does what is due now.
    pub fn on_time(&mut self, now: Duration) {
        if self.is_over {
            return;
        }
        let missing = || {
            let without = self
                .sites
                .iter()
                .filter(|(_, state)| !matches!(state, State::Holds(..)));
            without
                .map(|(site, _)| site.as_str())
                .collect::<Vec<_>>()
                .join(", ")
        };
        let idles = self.sites.iter().find(|(_, state)| match state {
            State::Holds(since, ..) => now >= *since + self.idle,
            _ => false,
        });
        let ended = match idles {
            Some((site, _)) => Some(Ended::Idle(format!(
                "{site} has waited for {} for {:?}",
                missing(),
                self.idle
            ))),
            None => (now >= self.until).then(|| Ended::Late(format!("{} had not begun", missing()))),
        };
        if let Some(ended) = ended {
            self.end(ended);
        }
    }

    /// Once all have said when they could begin, makes each begin shortly before the last one can.
    fn submit(&mut self, now: Duration) {
        let starts = self.sites.iter().map(|(_, state)| match state {
            State::Estimated(at) => Some(*at),
            _ => None,
        });
        let Some(starts) = starts.collect::<Option<Vec<Duration>>>() else {
            return;
        };
        let last = starts.iter().copied().max().unwrap_or(now);
        if self.in_turn {
            // All that can begin soon count as equal: a difference of a second must not make two runs choose
            // differently.
            let is_late = |site: &usize| starts[*site] > now + AHEAD;
            self.later = (0..starts.len()).collect();
            self.later
                .sort_by_key(|site| (is_late(site), Reverse(self.sites[*site].0.clone())));
            return self.ask_next();
        }
        for (site, at) in starts.into_iter().enumerate() {
            // The last one keeps its place in the queue, and does not count as idle while it waits for nodes.
            let after = match at == last {
                true => Duration::ZERO,
                false => last.saturating_sub(AHEAD).saturating_sub(now),
            };
            let after_seconds = after.as_secs();
            if after_seconds > 0 {
                self.delayed.push(site);
            }
            self.orders
                .push_back(Order::Tell(site, ToHolder::Submit { after_seconds }));
        }
    }

    /// Asks the next one of the sites that are asked in turn.
    fn ask_next(&mut self) {
        if let Some(site) = self.later.pop() {
            let word = ToHolder::Submit { after_seconds: 0 };
            self.orders.push_back(Order::Tell(site, word));
        }
    }

    /// A site has begun: those that were to begin later no longer need to wait.
    fn hasten(&mut self, begun: usize) {
        for site in std::mem::take(&mut self.delayed) {
            if site != begun {
                self.orders.push_back(Order::Tell(site, ToHolder::Hasten));
            }
        }
    }

    fn finish(&mut self) {
        let held = self.sites.iter().map(|(_, state)| match state {
            State::Holds(_, id, nodes) => Some((id.clone(), nodes.clone())),
            _ => None,
        });
        if let Some(held) = held.collect::<Option<Vec<_>>>() {
            self.end(Ended::Held(held));
        }
    }

    fn say(&mut self, site: usize, line: String) {
        self.orders.push_back(Order::Say(site, line));
    }

    fn end(&mut self, ended: Ended) {
        self.is_over = true;
        self.orders.push_back(Order::End(ended));
    }
}

fn estimated(after: Option<u64>) -> String {
    match after {
        Some(UNAVAILABLE) => "nodes are down or drained; it begins when they are back".to_owned(),
        Some(after) => format!("could begin {}", shown(Duration::from_secs(after))),
        None => "does not say beforehand when it could begin".to_owned(),
    }
}

fn shown(after: Duration) -> String {
    match after.as_secs() {
        0..=10 => "now".to_owned(),
        seconds @ ..120 => format!("in {seconds} s"),
        seconds => format!("in {} min", seconds.div_ceil(60)),
    }
}

#[cfg(test)]
#[path = "competing.rs"]
mod competing;

#[cfg(test)]
mod tests {
    use super::*;

    fn node() -> HeldNode {
        HeldNode {
            name: "a-1".into(),
            address: [10, 1, 0, 1].into(),
            slots: 4,
        }
    }

    fn held(id: &str) -> FromHolder {
        FromHolder::Held {
            id: id.into(),
            nodes: vec![node()],
        }
    }

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn pair() -> Together {
        let sites = ["rennes".to_owned(), "nancy".to_owned()];
        Together::new(&sites, seconds(3600), seconds(300), false)
    }

    fn orders(together: &mut Together) -> Vec<Order> {
        std::iter::from_fn(|| together.poll()).collect()
    }

    #[test]
    fn sites_begin_shortly_before_the_last_one_can() {
        let mut together = pair();
        together.on_word(0, FromHolder::Estimate(Some(0)), seconds(0));
        assert!(
            !orders(&mut together)
                .iter()
                .any(|order| matches!(order, Order::Tell(..)))
        );
        together.on_word(1, FromHolder::Estimate(Some(600)), seconds(1));
        let told: Vec<Order> = { orders(&mut together).into_iter() }
            .filter(|order| matches!(order, Order::Tell(..)))
            .collect();
        let submit = |site, after_seconds| Order::Tell(site, ToHolder::Submit { after_seconds });
        assert_eq!(told, [submit(0, 480), submit(1, 0)]);
        // The late site begins early: nothing waits for the appointed time any more.
        together.on_word(1, held("8"), seconds(400));
        assert!(orders(&mut together).contains(&Order::Tell(0, ToHolder::Hasten)));
        together.on_word(0, held("7"), seconds(401));
        let nodes = |id: &str| (id.to_owned(), vec![node()]);
        let end = Order::End(Ended::Held(vec![nodes("7"), nodes("8")]));
        assert_eq!(orders(&mut together).last(), Some(&end));
    }

    #[test]
    fn after_an_idle_attempt_sites_are_asked_in_the_order_of_their_names() {
        let sites = ["rennes".to_owned(), "nancy".to_owned()];
        let mut together = Together::new(&sites, seconds(3600), seconds(300), true);
        for site in 0..2 {
            together.on_word(site, FromHolder::Estimate(None), seconds(0));
        }
        let told = |together: &mut Together| {
            let told = orders(together).into_iter();
            told.filter(|order| matches!(order, Order::Tell(..)))
                .collect::<Vec<_>>()
        };
        let submit = |site| Order::Tell(site, ToHolder::Submit { after_seconds: 0 });
        assert_eq!(told(&mut together), [submit(1)]);
        together.on_word(1, held("8"), seconds(5));
        assert_eq!(told(&mut together), [submit(0)]);
        together.on_word(0, held("7"), seconds(6));
        assert!(matches!(
            orders(&mut together).last(),
            Some(Order::End(Ended::Held(_)))
        ));
    }

    #[test]
    fn a_refusal_ends_the_attempt_and_so_does_an_idle_site() {
        let mut together = pair();
        together.on_word(1, FromHolder::Failed("no such partition".into()), seconds(0));
        let failed = Order::End(Ended::Failed(1, "no such partition".into()));
        assert_eq!(orders(&mut together), [failed]);
        let mut together = pair();
        for site in 0..2 {
            together.on_word(site, FromHolder::Estimate(None), seconds(0));
        }
        together.on_word(0, held("7"), seconds(10));
        assert_eq!(together.deadline(), seconds(310));
        together.on_time(seconds(310));
        assert!(matches!(
            orders(&mut together).last(),
            Some(Order::End(Ended::Idle(_)))
        ));
        // The attempt is over.
        together.on_word(1, held("8"), seconds(311));
        assert!(orders(&mut together).is_empty());
    }

    #[test]
    fn a_reason_is_told_once() {
        let mut together = pair();
        for site in 0..2 {
            together.on_word(site, FromHolder::Estimate(None), seconds(0));
        }
        orders(&mut together);
        for after in [90, 80] {
            let queued = FromHolder::Queued {
                id: "7".into(),
                reason: "Resources".into(),
                after_seconds: Some(after),
            };
            together.on_word(0, queued, seconds(1));
        }
        let line = "rennes: allocation 7 waits: Resources, begins in 90 s".to_owned();
        assert_eq!(orders(&mut together), [Order::Say(0, line)]);
    }

    /// Sites hold, lose and refuse at random; messages arrive late, twice and out of order.
    #[test]
    fn in_a_million_schedules_a_job_begins_only_where_all_sites_hold() {
        let seed = fastrand::u64(..);
        println!("seed {seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        for _ in 0..1_000_000 {
            let names: Vec<String> = (0..random.usize(1..4)).map(|site| site.to_string()).collect();
            let mut together = Together::new(&names, seconds(1000), seconds(100), random.bool());
            let mut holds = vec![false; names.len()];
            let (mut now, mut ended) = (Duration::ZERO, None);
            while ended.is_none() {
                now += seconds(random.u64(0..40));
                let site = random.usize(0..names.len());
                match random.u8(0..12) {
                    0..4 => together.on_word(site, FromHolder::Estimate(random.bool().then_some(50)), now),
                    4..10 => {
                        let asked = !matches!(together.sites[site].1, State::Asked);
                        together.on_word(site, held("1"), now);
                        holds[site] |= asked;
                    }
                    10 => together.on_time(now),
                    _ if random.u8(..) < 20 => {
                        together.on_word(site, FromHolder::Failed("lost".into()), now);
                        holds[site] = false;
                    }
                    _ => {}
                }
                while let Some(order) = together.poll() {
                    if let Order::End(how) = order {
                        assert!(ended.is_none(), "it ended twice");
                        ended = Some(how);
                    }
                }
                assert!(now < seconds(1100) || ended.is_some(), "it never ends");
            }
            if let Some(Ended::Held(all)) = ended {
                assert!(all.len() == names.len() && holds.iter().all(|holds| *holds));
            }
        }
    }
}
