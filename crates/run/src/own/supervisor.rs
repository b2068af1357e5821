//! Supervises a run over sites that each run their own MPI: what an event means for the other sites, and
//! which status results. Pure: it takes events and the time, and returns orders.
//!
//! A site is done when its ranks have said DONE and its command has ended. If a command ends in any other
//! way, the run ends: the messages of its ranks would never come. The user gets one line, about the first
//! site that failed; what the others say as a consequence is not shown.

use causeway_rendezvous::{Event, FAILURE};
use causeway_wire::shown::Line;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// What the caller must do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Order {
    /// Tell the user this.
    Say(String),
    /// Have a site's launcher end its ranks, as if by Ctrl-C. The ranks are not told themselves: mpirun
    /// crashes when they abort, or are ended, while it is ending them (Open MPI 4.1.4).
    Interrupt(usize),
    /// End a site's command and everything that it started.
    End(usize),
}

/// How a site's command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// The command ended with this status, as shells count it.
    Status(u8),
    /// The command did not start, or could not go on.
    Failed(String),
}

/// See the module.
#[derive(Debug)]
pub struct Supervisor {
    sites: Vec<Site>,
    orders: VecDeque<Order>,
    /// The status of the site that failed first.
    failure: Option<u8>,
    /// The site that failed first, whose status counts if it comes in time.
    failed: Option<usize>,
    is_verbose: bool,
}

#[derive(Debug, Default)]
struct Site {
    name: String,
    /// How many ranks the site must have.
    ranks: Option<u32>,
    joined: bool,
    is_done: bool,
    /// Whether the connection of the site's first rank has ended, so that it sends nothing more.
    is_lost: bool,
    ended: Option<u8>,
    /// When the site counts as failed unless news comes before, and the line to show then.
    suspect: Option<(Instant, String)>,
    /// When the site is interrupted.
    end_at: Option<Instant>,
    /// When the site is ended, if it is still running.
    kill_at: Option<Instant>,
    /// Until when to wait for a site that was told to end.
    awaited: Option<Instant>,
}

/// How much later than its ranks a site's launcher may report the cause of a failure: mpirun takes a second
/// or two.
const GRACE: Duration = Duration::from_secs(3);

/// How long to wait for DONE after the end of a command. They come by different paths, and either may be
/// delayed. The proof that DONE will not come is the end of the connection of the site's first rank; this
/// limit is for a connection that something else holds open.
const CROSSING: Duration = Duration::from_secs(60);

/// The same for ABORT after a command's failure, which must not delay the other sites' ranks for long.
const ABORT_CROSSING: Duration = Duration::from_millis(300);

/// How long a launcher has to end after an interrupt: mpirun gives its ranks a second to end, and ends a
/// little later.
const INTERRUPTED: Duration = Duration::from_millis(1500);

/// How long a site has to end: node-exec kills after two seconds what SIGTERM does not end; the rest is for a
/// long path.
const FAREWELL: Duration = Duration::from_secs(8);

/// The status of a run whose input the user must correct, as for `causeway run` in general.
const WRONG_USE: u8 = 2;

impl Supervisor {
    /// Begins the run of these sites with these ranks each; `ranks` is empty if the commands decide.
    pub fn new(names: &[String], ranks: &[u32], is_verbose: bool) -> Supervisor {
        let site = |(number, name): (usize, &String)| Site {
            name: name.clone(),
            ranks: ranks.get(number).copied(),
            ..Site::default()
        };
        Supervisor {
            sites: names.iter().enumerate().map(site).collect(),
            orders: VecDeque::new(),
            failure: None,
            failed: None,
            is_verbose,
        }
    }

    /// Returns the next thing to do.
    pub fn poll_order(&mut self) -> Option<Order> {
        self.orders.pop_front()
    }

    /// The run's status, once nothing of it is running or awaited.
    pub fn status(&self) -> Option<u8> {
        let is_over = |site: &Site| site.ended.is_some() && site.suspect.is_none();
        let is_over = self.sites.iter().all(is_over);
        is_over.then_some(self.failure.unwrap_or(0))
    }

    /// When to call [`Supervisor::on_time`].
    pub fn deadline(&self) -> Option<Instant> {
        let running = self.sites.iter().filter(|site| site.ended.is_none());
        let orders = running.flat_map(|site| [site.end_at, site.kill_at, site.awaited]);
        let suspects = self
            .sites
            .iter()
            .map(|site| site.suspect.as_ref().map(|(due, _)| *due));
        orders.chain(suspects).flatten().min()
    }

    /// Handles an event of the rendezvous.
    pub fn on_rendezvous(&mut self, event: Event, now: Instant) {
        match event {
            Event::Joined { site, processes, mpi } => {
                self.sites[site].joined = true;
                if let Some(ranks) = self.sites[site].ranks.filter(|ranks| *ranks != processes) {
                    let name = &self.sites[site].name;
                    let line = format!(
                        "site {name}: its launcher started {processes} processes, but --sites says {ranks}; see start in [mpi] of its gateway; \
                         all sites are ended"
                    );
                    return self.fail(Some(site), line, WRONG_USE, now);
                }
                let missing = self.missing();
                let name = &self.sites[site].name;
                let waits = if missing.is_empty() {
                    String::new()
                } else {
                    format!("; waiting for {missing}")
                };
                self.tell(format!(
                    "site {name} has joined: {processes} processes of {}{waits}",
                    Line(&mpi)
                ));
            }
            Event::Made { processes } => {
                self.tell(format!("all sites have joined: a world of {processes} processes"));
            }
            Event::Done { site } => {
                self.sites[site].is_done = true;
                self.sites[site].suspect = None;
                self.tell(format!("site {}: all ranks have finished", self.sites[site].name));
            }
            Event::Refused { site, reason } => self.fail(site, reason, WRONG_USE, now),
            Event::Aborted { site, code, text } => {
                let status = match (self.sites[site].ended, code) {
                    (Some(status @ 1..), _) => status,
                    (_, 1..=255) => code as u8,
                    _ => FAILURE as u8,
                };
                let line = format!("site {}: {text}; all sites are ended", self.sites[site].name);
                self.fail(Some(site), line, status, now);
            }
            Event::Lost { site } => {
                self.sites[site].is_lost = true;
                let name = &self.sites[site].name;
                if let Some(status) = self.sites[site].ended {
                    // Nothing of the site is left that could say more.
                    let line = why_ended(name, status, true);
                    self.sites[site].suspect = Some((now, line));
                    return self.on_time(now);
                }
                let line = format!(
                    "site {name}: its first rank ended before MPI_Finalize, but its launcher still runs; all sites are ended"
                );
                self.suspect(site, now + GRACE, line);
            }
        }
    }

    /// Handles the end of a site's command, of which nothing is running any more.
    pub fn on_ended(&mut self, site: usize, how: Ended, now: Instant) {
        let one = &mut self.sites[site];
        let status = match &how {
            Ended::Status(status) => *status,
            Ended::Failed(_) => FAILURE as u8,
        };
        one.ended = Some(status);
        // What is known now replaces the suspicion.
        one.suspect = None;
        if self.failure.is_some() {
            // The launcher's own status says more than the one that was used in its place.
            if self.failed == Some(site) && one.end_at.is_some() && status != 0 {
                self.failure = Some(status);
            }
            return;
        }
        let name = one.name.as_str();
        match how {
            Ended::Failed(reason) => {
                let line = format!("site {name}: {reason}");
                self.fail(Some(site), line, status, now);
            }
            Ended::Status(_) if one.is_done && status == 0 => {}
            Ended::Status(_) if one.is_done => {
                // The ranks have finished, so nobody waits for them: the other sites may finish, too.
                self.failure = Some(status);
                self.tell(format!(
                    "site {}: its command ended with status {status}",
                    self.sites[site].name
                ));
            }
            Ended::Status(status) if one.joined => {
                // What the ranks have said, DONE or ABORT, comes by another path.
                let line = why_ended(name, status, true);
                let may_say_done = status == 0 && !one.is_lost;
                one.suspect = Some((now + if may_say_done { CROSSING } else { ABORT_CROSSING }, line));
            }
            Ended::Status(_) => {
                let line = why_ended(name, status, false);
                self.fail(Some(site), line, status.max(1), now);
            }
        }
    }

    /// Handles the user's request to end; the second one ends the run at once.
    pub fn on_signal(&mut self, signal: u8, now: Instant) {
        let again = { self.sites.iter() }.any(|site| site.kill_at.or(site.awaited).is_some());
        self.failure.get_or_insert(128 + signal);
        self.end_all(None, now);
        if again {
            for site in &mut self.sites {
                site.ended.get_or_insert(128 + signal);
            }
        }
    }

    /// Handles the end of this site's gateway, with which the job ends.
    pub fn on_gateway_gone(&mut self, now: Instant) {
        let line = "the connection to this site's gateway ended, and the job with it".to_owned();
        self.fail(None, line, FAILURE as u8, now);
    }

    /// Handles a rendezvous that cannot go on.
    pub fn on_rendezvous_failed(&mut self, reason: &str, now: Instant) {
        let line = format!("listen for the ranks of the sites: {reason}");
        self.fail(None, line, FAILURE as u8, now);
    }

    /// Handles the passing of time.
    pub fn on_time(&mut self, now: Instant) {
        for site in 0..self.sites.len() {
            if let Some((_, line)) = self.sites[site].suspect.take_if(|(due, _)| now >= *due) {
                let status = self.sites[site].ended.unwrap_or(0).max(1);
                self.fail(Some(site), line, status, now);
            }
            let one = &mut self.sites[site];
            if one.ended.is_some() {
                continue;
            }
            if one.end_at.take_if(|end| now >= *end).is_some() {
                one.kill_at = Some(now + INTERRUPTED);
                self.orders.push_back(Order::Interrupt(site));
            } else if one.kill_at.take_if(|kill| now >= *kill).is_some() {
                one.awaited = Some(now + FAREWELL);
                self.orders.push_back(Order::End(site));
            } else if one.awaited.is_some_and(|until| now >= until) {
                one.ended = Some(FAILURE as u8);
                let line = format!(
                    "site {} has not said within {} s that its command has ended; its gateway ends it with the job",
                    one.name,
                    FAREWELL.as_secs()
                );
                self.orders.push_back(Order::Say(line));
            }
        }
    }

    /// The names of the sites whose ranks have not come, for a message.
    fn missing(&self) -> String {
        let missing = self.sites.iter().filter(|site| !site.joined);
        missing
            .map(|site| site.name.as_str())
            .collect::<Vec<_>>()
            .join(", ")
    }

    fn suspect(&mut self, site: usize, due: Instant, line: String) {
        if self.failure.is_none() {
            self.sites[site].suspect.get_or_insert((due, line));
        }
    }

    /// Ends the run at the first failure; later ones are its consequences.
    fn fail(&mut self, site: Option<usize>, line: String, status: u8, now: Instant) {
        if self.failure.is_some() {
            return;
        }
        self.failure = Some(status);
        self.failed = site;
        self.orders.push_back(Order::Say(line));
        self.end_all(site, now);
    }

    /// Ends all sites. The one that has failed is ended a little later: it may still say why.
    fn end_all(&mut self, failed: Option<usize>, now: Instant) {
        for (number, site) in self.sites.iter_mut().enumerate() {
            site.suspect = None;
            if site.kill_at.or(site.awaited).is_none() {
                let end = if failed == Some(number) { now + GRACE } else { now };
                site.end_at = Some(end);
            }
        }
        self.on_time(now);
    }

    fn tell(&mut self, line: String) {
        if self.is_verbose {
            self.orders.push_back(Order::Say(line));
        }
    }
}

/// What a command's status means if it ended before its ranks were done.
fn why_ended(name: &str, status: u8, joined: bool) -> String {
    let ended = format!("site {name}: its command ended with status {status}");
    match (status, joined) {
        (_, true) => format!(
            "{ended} before all its ranks had called MPI_Finalize; the other sites are ended; see the command's messages above"
        ),
        (0, false) => format!(
            "{ended} before its ranks joined: it must start a program of Open MPI or MPICH that is dynamically linked, \
             and its launcher must forward the environment to the ranks"
        ),
        (126 | 127, false) => format!(
            "{ended}: a program in it was not found there, or cannot be executed; commands start in this directory if it exists \
             there, otherwise in the login directory"
        ),
        (_, false) => format!("{ended} before its ranks joined; see its messages above"),
    }
}

#[cfg(test)]
mod tests;
