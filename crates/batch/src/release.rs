//! How an allocation is given back: searched for by its name and cancelled, until the batch system says that
//! it is gone. Pure: polls and the time go in, steps come out.

use crate::Listed;
use std::time::Duration;

/// A request may be in flight while nobody knows its id: the allocation counts as gone only after it has been
/// absent for this long.
pub const SETTLED: Duration = Duration::from_secs(60);

/// What to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Cancel these, and poll again.
    Cancel(Vec<String>),
    /// Poll again.
    Wait,
    /// Nothing is left.
    Done,
}

/// See the module.
#[derive(Debug)]
pub struct Release {
    name: String,
    /// Whether the batch system has answered the request, or lists the allocation: then no request is in
    /// flight.
    is_answered: bool,
    /// Since when no poll has found the allocation.
    absent_since: Option<Duration>,
}

impl Release {
    /// Begins to give back what has this name.
    pub fn new(name: &str, is_answered: bool) -> Release {
        Release {
            name: name.to_owned(),
            is_answered,
            absent_since: None,
        }
    }

    /// Processes a poll. `None`, for a poll that failed, changes nothing.
    pub fn on_look(&mut self, look: Option<&[Listed]>, now: Duration) -> Step {
        let Some(look) = look else { return Step::Wait };
        let own = || look.iter().filter(|listed| listed.name == self.name);
        let living: Vec<String> = { own() }
            .filter(|listed| !listed.has_ended())
            .map(|listed| listed.id.clone())
            .collect();
        if !living.is_empty() {
            // The request has arrived, whatever happened to the answer.
            self.is_answered = true;
            self.absent_since = None;
            return Step::Cancel(living);
        }
        // An allocation that is listed as ended will not begin again.
        if own().next().is_some() {
            return Step::Done;
        }
        match self.absent_since {
            Some(since) if self.is_answered || now.saturating_sub(since) >= SETTLED => Step::Done,
            Some(_) => Step::Wait,
            None => {
                self.absent_since = Some(now);
                Step::Wait
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::State;

    const NAME: &str = "causeway-0123456789abcdef";

    /// A batch system that loses answers and forgets what has ended.
    struct Batch {
        /// When the request arrives, and whether it has arrived.
        arrives: Option<Duration>,
        state: Option<State>,
        ended: Option<Duration>,
    }

    impl Batch {
        fn at(&mut self, now: Duration, forgets: Duration) {
            if self.arrives.is_some_and(|at| at <= now) {
                self.arrives = None;
                self.state = Some(State::Queued);
            }
            if self.ended.is_some_and(|ended| now - ended > forgets) {
                self.state = None;
            }
        }

        fn list(&self) -> Vec<Listed> {
            let other = Listed {
                id: "1".into(),
                state: State::Active,
                name: "other".into(),
                ..Listed::default()
            };
            let own = self.state.map(|state| Listed {
                id: "7".into(),
                state,
                name: NAME.into(),
                ..Listed::default()
            });
            own.into_iter().chain([other]).collect()
        }
    }

    fn schedule(random: &mut fastrand::Rng) {
        let second = Duration::from_secs(1);
        // An answered request has arrived; one that was not may still arrive for as long as commands take.
        let is_answered = random.bool();
        let arrives = match is_answered {
            true => Some(Duration::ZERO),
            false => random.bool().then(|| second * random.u32(0..50)),
        };
        let mut batch = Batch {
            arrives,
            state: None,
            ended: None,
        };
        let forgets = second * random.u32(0..400);
        let away = second * random.u32(0..300);
        let mut release = Release::new(NAME, is_answered);
        let mut now = Duration::ZERO;
        for _ in 0..2000 {
            batch.at(now, forgets);
            if batch.state == Some(State::Queued) && random.u8(..) < 60 {
                batch.state = Some(State::Active);
            }
            let answers = now >= away && random.u8(..) < 200;
            let look = answers.then(|| batch.list());
            match release.on_look(look.as_deref(), now) {
                Step::Cancel(ids) => {
                    assert_eq!(ids, ["7"]);
                    // The order may be lost.
                    if random.u8(..) < 200 {
                        batch.state = Some(State::Ended);
                        batch.ended = Some(now);
                    }
                }
                Step::Wait => {}
                Step::Done => {
                    assert!(batch.arrives.is_none(), "a request is still on its way");
                    assert!(
                        !matches!(batch.state, Some(State::Queued | State::Active)),
                        "it lives"
                    );
                    return;
                }
            }
            now += second * random.u32(1..10);
        }
        panic!("it is never given back");
    }

    #[test]
    fn a_million_schedules_of_lost_and_late_answers_leave_no_allocation() {
        let seed = fastrand::u64(..);
        println!("seed {seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        (0..1_000_000).for_each(|_| schedule(&mut random));
    }
}
