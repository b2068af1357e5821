//! Who has come to the rendezvous, and what each is told. Pure: it takes messages and the ends of
//! connections, and returns bytes for connections and events for the caller.
//!
//! A site is represented by its native rank 0. When all have come, each gets the same WORLD. From then on its
//! connection serves only to report how the site ends, so it must last until DONE.

use super::message::{self, Incoming, Join};
use std::collections::{HashMap, VecDeque};

/// The number of a connection.
pub type Key = u64;

/// What the caller must know. Sites are numbered in the order of the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A site's ranks have come.
    Joined {
        /// The site.
        site: usize,
        /// How many processes it has.
        processes: u32,
        /// Its MPI.
        mpi: String,
    },
    /// All sites have come, and have been told about each other.
    Made {
        /// How many processes they have together.
        processes: u32,
    },
    /// A world of these sites cannot exist.
    Refused {
        /// The site whose fault this is, if it is the fault of one.
        site: Option<usize>,
        /// A sentence for the user.
        reason: String,
    },
    /// A rank has called MPI_Abort.
    Aborted {
        /// The site of the rank.
        site: usize,
        /// The program's error code.
        code: u32,
        /// Who has called MPI_Abort.
        text: String,
    },
    /// All ranks of a site have finished.
    Done {
        /// The site.
        site: usize,
    },
    /// A site that had joined is gone without having finished.
    Lost {
        /// The site.
        site: usize,
    },
}

/// What the caller must do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Send these bytes.
    Send(Key, Vec<u8>),
    /// Send these bytes, then close the connection.
    Last(Key, Vec<u8>),
    /// Close the connection.
    Close(Key),
    /// Handle an event.
    Tell(Event),
}

/// One run's rendezvous.
#[derive(Debug)]
pub struct Meeting {
    number: u64,
    seats: Vec<Seat>,
    /// Connections that have identified themselves.
    known: HashMap<Key, usize>,
    actions: VecDeque<Action>,
}

#[derive(Debug)]
struct Seat {
    name: String,
    state: State,
}

#[derive(Debug)]
enum State {
    /// The site's ranks have not come; they may still be waiting in its batch system.
    Missing,
    /// The site's native rank 0 waits for the others.
    Waits(Key, Box<Join>),
    /// The site has its world.
    InWorld(Key),
    /// The site has finished, or was told to end.
    Over,
}

/// The code of an ABORT that no program has caused: a general failure.
pub const FAILURE: u32 = 1;

impl Meeting {
    /// Creates a rendezvous for these sites; `number` is random.
    pub fn new(sites: &[String], number: u64) -> Meeting {
        let seat = |name: &String| Seat {
            name: name.clone(),
            state: State::Missing,
        };
        Meeting {
            number,
            seats: sites.iter().map(seat).collect(),
            known: HashMap::new(),
            actions: VecDeque::new(),
        }
    }

    /// Returns the next thing to do.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// Whether every site has finished, or was told to end.
    pub fn is_over(&self) -> bool {
        self.seats.iter().all(|seat| matches!(seat.state, State::Over))
    }

    /// How many sites there are.
    pub fn sites(&self) -> usize {
        self.seats.len()
    }

    /// Handles a frame from a process of this job.
    pub fn on_message(&mut self, key: Key, message: Incoming) {
        match (self.known.get(&key).copied(), message) {
            (None, Incoming::Join(join)) => self.on_join(key, join),
            (None, Incoming::Process { site }) => match self.seat_of(&site) {
                Some(seat) => drop(self.known.insert(key, seat)),
                None => self.actions.push_back(Action::Close(key)),
            },
            (Some(site), Incoming::Abort { code, text }) => {
                self.tell(Event::Aborted { site, code, text });
            }
            (Some(site), Incoming::Done) if self.is_in_world(site, key) => {
                self.seats[site].state = State::Over;
                self.tell(Event::Done { site });
            }
            _ => {
                self.actions.push_back(Action::Close(key));
                self.on_closed(key);
            }
        }
    }

    /// Handles a connection of this job that has broken the protocol, or has another version.
    pub fn on_broken(&mut self, key: Key, reason: &str) {
        match self.known.get(&key).copied() {
            Some(site) => {
                let reason = format!("site {}: {reason}", self.seats[site].name);
                self.refuse(key, Some(site), reason);
            }
            None => self.refuse(key, None, format!("a process of this run: {reason}")),
        }
        self.known.remove(&key);
    }

    /// Handles the end of a connection.
    pub fn on_closed(&mut self, key: Key) {
        let Some(site) = self.known.remove(&key) else {
            return;
        };
        match self.seats[site].state {
            State::Waits(own, _) | State::InWorld(own) if own == key => {
                self.seats[site].state = State::Over;
                self.tell(Event::Lost { site });
            }
            _ => {}
        }
    }

    /// Ends the world: sites that wait for it are told NO, and those that have it ABORT.
    pub fn end(&mut self, code: u32, text: &str) {
        for seat in &mut self.seats {
            let told = match std::mem::replace(&mut seat.state, State::Over) {
                State::Waits(key, _) => Action::Last(key, message::no(text)),
                State::InWorld(key) => Action::Last(key, message::abort(code, text)),
                State::Missing | State::Over => continue,
            };
            self.actions.push_back(told);
        }
    }

    fn on_join(&mut self, key: Key, join: Box<Join>) {
        let Some(site) = self.seat_of(&join.site) else {
            let names: Vec<&str> = self.seats.iter().map(|seat| seat.name.as_str()).collect();
            let (unknown, names) = (&join.site, names.join(", "));
            let reason = format!("processes of site {unknown:?} joined, but this run has {names}");
            return self.refuse(key, None, reason);
        };
        if let Some(reason) = self.why_not_again(site, &join) {
            return self.refuse(key, Some(site), reason);
        }
        self.known.insert(key, site);
        self.tell(Event::Joined {
            site,
            processes: join.processes,
            mpi: join.mpi.clone(),
        });
        self.seats[site].state = State::Waits(key, join);
        self.make();
    }

    /// Why a site that has already come may not come again.
    fn why_not_again(&self, site: usize, join: &Join) -> Option<String> {
        let name = &self.seats[site].name;
        match self.seats[site].state {
            State::Missing => None,
            State::Waits(..) | State::InWorld(_) if join.processes == 1 => Some(format!(
                "site {name}: its processes joined one by one, each as a world of its own: the program and the launcher belong to \
                 different MPIs; start it with its own MPI's mpirun"
            )),
            State::Waits(..) | State::InWorld(_) => Some(format!(
                "site {name}: two MPI programs joined at the same time; its command must start only one"
            )),
            State::Over => Some(format!(
                "site {name}: an MPI program joined after another one had ended; its command must start only one"
            )),
        }
    }

    /// Once all sites have come, tells each about the others.
    fn make(&mut self) {
        let waiting = self.seats.iter().filter_map(|seat| match &seat.state {
            State::Waits(_, join) => Some(join.as_ref()),
            _ => None,
        });
        let joins: Vec<&Join> = waiting.collect();
        if joins.len() < self.seats.len() {
            return;
        }
        if let Some(reason) = unlike(&joins) {
            return self.refuse_all(&reason);
        }
        let tag_ub = joins.iter().map(|join| join.tag_ub).min().unwrap_or_default();
        let processes = joins.iter().map(|join| u64::from(join.processes)).sum::<u64>();
        let (Some(world), Ok(processes)) = (
            message::world(self.number, tag_ub, &joins),
            u32::try_from(processes),
        ) else {
            let most = message::MOST_PROCESSES;
            return self.refuse_all(&format!(
                "the sites have {processes} processes; a world has {most} at most"
            ));
        };
        for seat in &mut self.seats {
            if let State::Waits(key, _) = seat.state {
                seat.state = State::InWorld(key);
                self.actions.push_back(Action::Send(key, world.clone()));
            }
        }
        self.tell(Event::Made { processes });
    }

    /// Tells one process NO; the caller ends the rest.
    fn refuse(&mut self, key: Key, site: Option<usize>, reason: String) {
        self.actions.push_back(Action::Last(key, message::no(&reason)));
        self.tell(Event::Refused { site, reason });
    }

    fn refuse_all(&mut self, reason: &str) {
        self.end(FAILURE, reason);
        self.tell(Event::Refused {
            site: None,
            reason: reason.to_owned(),
        });
    }

    fn seat_of(&self, name: &str) -> Option<usize> {
        self.seats.iter().position(|seat| seat.name == name)
    }

    fn is_in_world(&self, site: usize, key: Key) -> bool {
        matches!(self.seats[site].state, State::InWorld(own) if own == key)
    }

    fn tell(&mut self, event: Event) {
        self.actions.push_back(Action::Tell(event));
    }
}

/// Why these sites cannot exchange data as it lies in memory.
fn unlike(joins: &[&Join]) -> Option<String> {
    let first = joins.first()?;
    let other = joins.iter().find(|join| join.layout != first.layout)?;
    Some(format!(
        "{} at {} and {} at {} use different data layouts, which is not supported yet; use the same kind of processor at \
         both sites, and MPI versions whose types have the same sizes",
        first.mpi, first.site, other.mpi, other.site
    ))
}

#[cfg(test)]
mod tests {
    use super::super::message::tests::a_join;
    use super::*;

    fn meeting() -> Meeting {
        Meeting::new(&["rennes".to_owned(), "nancy".to_owned()], 5)
    }

    fn join(meeting: &mut Meeting, key: Key, site: &str, processes: u32) -> Vec<Action> {
        meeting.on_message(key, Incoming::Join(Box::new(a_join(site, processes))));
        actions(meeting)
    }

    fn actions(meeting: &mut Meeting) -> Vec<Action> {
        std::iter::from_fn(|| meeting.poll_action()).collect()
    }

    fn refusal(actions: &[Action]) -> (Option<usize>, String) {
        let refused = actions.iter().find_map(|action| match action {
            Action::Tell(Event::Refused { site, reason }) => Some((*site, reason.clone())),
            _ => None,
        });
        refused.unwrap_or_else(|| panic!("{actions:?}"))
    }

    fn closed_with(actions: &[Action], key: Key) -> bool {
        { actions.iter() }.any(|action| matches!(action, Action::Last(last, _) if *last == key))
    }

    #[test]
    fn the_last_that_comes_makes_the_world_in_the_order_of_the_command_line() {
        let mut meeting = meeting();
        assert_eq!(join(&mut meeting, 1, "nancy", 2).len(), 1);
        let made = join(&mut meeting, 2, "rennes", 3);
        let (rennes, nancy) = (a_join("rennes", 3), a_join("nancy", 2));
        let world = message::world(5, 1000, &[&rennes, &nancy]).unwrap();
        assert_eq!(
            made[1..],
            [
                Action::Send(2, world.clone()),
                Action::Send(1, world),
                Action::Tell(Event::Made { processes: 5 })
            ]
        );
        meeting.on_message(1, Incoming::Done);
        assert!(!meeting.is_over());
        meeting.on_message(2, Incoming::Done);
        assert!(meeting.is_over());
        meeting.on_closed(1);
        let told = actions(&mut meeting);
        assert_eq!(
            told,
            [
                Action::Tell(Event::Done { site: 1 }),
                Action::Tell(Event::Done { site: 0 })
            ]
        );
    }

    #[test]
    fn one_site_alone_is_a_world_too() {
        let mut meeting = Meeting::new(&["rennes".to_owned()], 5);
        let made = join(&mut meeting, 1, "rennes", 2);
        assert!(made.contains(&Action::Tell(Event::Made { processes: 2 })));
    }

    #[test]
    fn singletons_and_second_programs_are_told_by_name() {
        for (processes, wanted) in [(1, "one by one"), (2, "two MPI programs")] {
            let mut meeting = meeting();
            join(&mut meeting, 1, "rennes", processes);
            let told = join(&mut meeting, 2, "rennes", processes);
            let (site, reason) = refusal(&told);
            assert!(
                site == Some(0) && reason.contains(wanted) && reason.contains("rennes"),
                "{reason}"
            );
            assert!(closed_with(&told, 2));
        }
    }

    #[test]
    fn a_program_that_comes_after_another_is_refused() {
        let mut meeting = Meeting::new(&["rennes".to_owned()], 5);
        join(&mut meeting, 1, "rennes", 2);
        meeting.on_message(1, Incoming::Done);
        actions(&mut meeting);
        assert!(
            refusal(&join(&mut meeting, 2, "rennes", 2))
                .1
                .contains("after another one")
        );
    }

    #[test]
    fn a_site_that_is_not_of_this_run_is_refused() {
        let mut meeting = meeting();
        let told = join(&mut meeting, 1, "lyon", 2);
        assert_eq!(refusal(&told).0, None);
        assert!(refusal(&told).1.contains("\"lyon\"") && closed_with(&told, 1));
    }

    #[test]
    fn unlike_data_is_refused_at_both_sites() {
        let mut meeting = meeting();
        join(&mut meeting, 1, "rennes", 2);
        let mut other = a_join("nancy", 2);
        other.layout += 1;
        meeting.on_message(2, Incoming::Join(Box::new(other)));
        let told = actions(&mut meeting);
        assert!(refusal(&told).1.contains("use different data layouts"));
        assert!(closed_with(&told, 1) && closed_with(&told, 2));
    }

    #[test]
    fn more_processes_than_a_world_has_are_refused() {
        let mut meeting = meeting();
        for (key, site) in [(1, "rennes"), (2, "nancy")] {
            let mut large = a_join(site, 1);
            large.processes = message::MOST_PROCESSES as u32;
            meeting.on_message(key, Incoming::Join(Box::new(large)));
        }
        assert!(refusal(&actions(&mut meeting)).1.contains("at most"));
    }

    #[test]
    fn a_connection_that_ends_early_is_a_lost_site_and_one_that_ends_after_done_is_not() {
        let mut meeting = meeting();
        join(&mut meeting, 1, "rennes", 2);
        join(&mut meeting, 2, "nancy", 2);
        meeting.on_message(1, Incoming::Done);
        meeting.on_closed(1);
        meeting.on_closed(2);
        let told = actions(&mut meeting);
        assert_eq!(
            told,
            [
                Action::Tell(Event::Done { site: 0 }),
                Action::Tell(Event::Lost { site: 1 })
            ]
        );
    }

    #[test]
    fn any_process_may_say_that_it_aborts_once_it_has_said_whose_it_is() {
        let mut meeting = meeting();
        let abort = || Incoming::Abort {
            code: 3,
            text: "rank 5".to_owned(),
        };
        meeting.on_message(1, abort());
        assert_eq!(actions(&mut meeting), [Action::Close(1)]);
        let site = "nancy".to_owned();
        meeting.on_message(2, Incoming::Process { site });
        meeting.on_message(2, abort());
        let (code, text) = (3, "rank 5".to_owned());
        let aborted = Event::Aborted { site: 1, code, text };
        assert_eq!(actions(&mut meeting), [Action::Tell(aborted)]);
    }

    #[test]
    fn the_end_is_told_to_those_that_wait_and_to_those_that_run() {
        let mut one = meeting();
        join(&mut one, 1, "rennes", 2);
        one.end(FAILURE, "over");
        assert_eq!(actions(&mut one), [Action::Last(1, message::no("over"))]);
        let mut both = meeting();
        join(&mut both, 1, "rennes", 2);
        join(&mut both, 2, "nancy", 2);
        both.end(9, "over");
        let told = [1, 2].map(|key| Action::Last(key, message::abort(9, "over")));
        assert_eq!(actions(&mut both), told);
    }
}
