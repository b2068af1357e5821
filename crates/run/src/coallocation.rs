//! `causeway run --sites rennes=16,nancy=8 --time 1h`: gets allocations at all these sites at the same time,
//! or none. Each site's holder gets one; this module decides when, using `causeway_batch::together`.

use super::LOST;
use super::allocations::Allocations;
use super::error::RunError;
use super::job::start_job;
use super::meant::{Nodes, Run};
use super::phase::{self, Phase};
use crate::batch::far::{self, GONE, Line, send};
use causeway_batch::together::{Ended, Order, Together};
use causeway_batch::word::{FromHolder, HeldNode, Request, ToHolder};
use causeway_control::{ControlError, JobReply, NodeInfo, Plan, Sites};
use causeway_host::say;
use causeway_wire::grid::is_node_name;
use nix::sys::signal::SigSet;
use std::collections::BTreeMap;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How many attempts are made, each with twice the patience of the one before.
const ATTEMPTS: u32 = 3;

/// How long holders may take to learn that the run is over.
const GIVES_BACK_WITHIN: Duration = Duration::from_secs(60);

/// How long a batch system may take to free nodes before it is asked again.
const BETWEEN: Duration = Duration::from_secs(5);

/// How long the report of a lost allocation may take after the end of a program that the loss has made fail.
const TELLS_WITHIN: Duration = Duration::from_millis(500);

/// The allocations that are held; `None` for a run without them. Dropping this gives them back.
#[derive(Default)]
pub struct Held(Option<(Streams, Receiver<()>)>);

impl Held {
    /// The status of a run whose program has ended with this status.
    pub fn status_after(&self, status: u8) -> u8 {
        let is_lost = |lost: &Receiver<()>| lost.recv_timeout(TELLS_WITHIN).is_ok();
        match &self.0 {
            Some((_, lost)) if status != 0 && is_lost(lost) => LOST,
            _ => status,
        }
    }
}

/// Streams to holders, which give back what they have when the streams end. Threads that read share them, so
/// dropping them is not enough.
struct Streams(Vec<UnixStream>);

impl Streams {
    /// Ends the streams, and waits until the holders have noticed.
    fn end(&self, words: &Words) {
        for stream in &self.0 {
            let _ = stream.shutdown(Shutdown::Write);
        }
        let until = Instant::now() + GIVES_BACK_WITHIN;
        while words
            .recv_timeout(until.saturating_duration_since(Instant::now()))
            .is_ok()
        {}
    }
}

impl Drop for Streams {
    fn drop(&mut self) {
        for stream in &self.0 {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

/// The request to each site.
struct Wish {
    /// The sites and their ranks.
    shares: Vec<(String, u32)>,
    minutes: u32,
    wait: Duration,
    idle: Duration,
    options: BTreeMap<String, Vec<String>>,
}

impl Wish {
    /// What a run requests; `None` if it requests no nodes.
    fn of(run: &Run) -> Option<Wish> {
        let Nodes::Asked(asked) = &run.nodes else {
            return None;
        };
        let shares = run.sites.iter().flatten();
        let shares = shares.filter_map(|(site, ranks)| Some((site.clone(), (*ranks)?)));
        Some(Wish {
            shares: shares.collect(),
            minutes: u32::try_from(asked.time.as_secs().div_ceil(60)).unwrap_or(u32::MAX),
            wait: left(run),
            idle: asked.idle,
            options: asked.options.clone(),
        })
    }

    /// Names of the sites.
    fn sites(&self) -> Vec<String> {
        self.shares.iter().map(|(site, _)| site.clone()).collect()
    }

    /// How many ranks all sites have together.
    fn ranks(&self) -> u32 {
        self.shares
            .iter()
            .fold(0, |sum, (_, ranks)| sum.saturating_add(*ranks))
    }
}

/// How long this run may still wait: a submitted job may have waited already.
fn left(run: &Run) -> Duration {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let left = run.wait_until.map(|until| until.saturating_sub(now));
    left.map_or(run.wait(), |left| left.min(run.wait()))
}

/// A job whose allocations are held.
pub struct Begun {
    /// The job.
    pub job: JobReply,
    /// The connection: the job lasts as long as it.
    pub connection: UnixStream,
    /// The job's allocations, by site.
    pub allocations: Allocations,
    /// Dropping this gives the allocations back.
    pub held: Held,
}

/// Starts the job of a run with `--time`, and gets its allocations; `None` without that option.
///
/// # Errors
/// Those of [`start_job`] and [`hold`].
pub fn begin(run: &Run, known: &mut Sites) -> Result<Option<Begun>, RunError> {
    let Some(wish) = Wish::of(run) else {
        return Ok(None);
    };
    let plan = Plan {
        sites: wish.sites(),
        ranks: wish.ranks(),
        ..Plan::default()
    };
    let (job, connection) = start_job(run, plan)?;
    let (held, allocations) = hold(known, &wish, &job.token, run.report.as_deref())?;
    Ok(Some(Begun {
        job,
        connection,
        allocations,
        held,
    }))
}

/// Gets the allocations for a job that has started, and replaces the nodes that the sites list with those of
/// the allocations.
///
/// # Errors
/// A site refuses, or there is no common start.
fn hold(
    known: &mut Sites,
    wish: &Wish,
    token: &str,
    report: Option<&Path>,
) -> Result<(Held, Allocations), RunError> {
    let began = Instant::now();
    let mut idle = wish.idle;
    let mut last = String::new();
    for attempt in 1..=ATTEMPTS {
        let (streams, words) = open(wish, token)?;
        let mut together = Together::new(&wish.sites(), wish.wait, idle, attempt > 1);
        match follow(&mut together, (&streams.0, &words), began, report) {
            Ended::Held(all) => {
                let mut allocations = Allocations::new();
                for ((site, _), (id, nodes)) in wish.shares.iter().zip(all) {
                    place(known, site, nodes)?;
                    allocations.insert(site.clone(), id);
                }
                let lost = tell_losses(wish.sites(), words);
                return Ok((Held(Some((streams, lost))), allocations));
            }
            Ended::Failed(site, why) => {
                let site = wish.shares[site].0.clone();
                return Err(match why == GONE {
                    true => RunError::HolderGone(site),
                    false => RunError::NotGiven(site, why),
                });
            }
            Ended::Late(why) => return Err(RunError::NoCommonStart(format!("{why} within {:?}", wish.wait))),
            Ended::Idle(why) => {
                streams.end(&words);
                drop(streams);
                if attempt < ATTEMPTS {
                    say::error(format_args!(
                        "causeway: {why}: all is given back, and asked for again"
                    ));
                    std::thread::sleep(BETWEEN);
                }
                last = why;
                idle *= 2;
            }
        }
    }
    Err(RunError::NoCommonStart(format!("{last}, in attempt {ATTEMPTS}")))
}

type Words = Receiver<(usize, FromHolder)>;

/// Starts a holder at each site, and sends it the request.
fn open(wish: &Wish, token: &str) -> Result<(Streams, Words), RunError> {
    let (sender, words) = channel();
    let mut streams = Streams(Vec::new());
    for (number, (site, ranks)) in wish.shares.iter().enumerate() {
        let stream = match far::start(token, site) {
            Ok(stream) => stream,
            Err(ControlError::Refused(why)) => return Err(RunError::NotGiven(site.clone(), why)),
            Err(error) => return Err(error.into()),
        };
        let reader = stream.try_clone().map_err(RunError::Threads)?;
        let sender = sender.clone();
        let thread = std::thread::Builder::new().name("holder".to_owned());
        thread
            .spawn(move || {
                take_no_signals();
                read(reader, number, &sender);
            })
            .map_err(RunError::Threads)?;
        let ask = ToHolder::Ask(Request {
            ranks: *ranks,
            minutes: wish.minutes,
            options: wish.options.get(site).cloned().unwrap_or_default(),
        });
        send(&stream, &ask);
        streams.0.push(stream);
    }
    Ok((streams, words))
}

/// Blocks signals: the run blocks them only later, to read them, and threads that started earlier would
/// receive them.
fn take_no_signals() {
    let _ = SigSet::all().thread_block();
}

fn read(stream: UnixStream, number: usize, words: &Sender<(usize, FromHolder)>) {
    let mut line = Line::new(stream);
    loop {
        let word = line.read();
        let is_last = matches!(word, FromHolder::Failed(_));
        if words.send((number, word)).is_err() || is_last {
            return;
        }
    }
}

/// What each site said last. The user wants to know about every site: the last one that spoke need not be the
/// one for which the job waits.
fn last_words(said: &[Option<String>]) -> String {
    let lines: Vec<&str> = said.iter().flatten().map(String::as_str).collect();
    lines.join("; ")
}

/// Runs an attempt to its end.
fn follow(
    together: &mut Together,
    (streams, words): (&[UnixStream], &Words),
    began: Instant,
    report: Option<&Path>,
) -> Ended {
    let mut said: Vec<Option<String>> = vec![None; streams.len()];
    loop {
        while let Some(order) = together.poll() {
            match order {
                Order::Tell(site, word) => send(&streams[site], &word),
                Order::Say(site, line) => {
                    say::error(format_args!("causeway: {line}"));
                    said[site] = Some(line);
                    phase::report(
                        report,
                        &Phase::Waiting {
                            line: last_words(&said),
                        },
                    );
                }
                Order::End(ended) => return ended,
            }
        }
        let left = together.deadline().saturating_sub(began.elapsed());
        match words.recv_timeout(left) {
            Ok((site, word)) => together.on_word(site, word, began.elapsed()),
            // Without threads that read, no message comes, but time passes.
            Err(RecvTimeoutError::Disconnected) => std::thread::sleep(left.min(BETWEEN)),
            Err(RecvTimeoutError::Timeout) => {}
        }
        together.on_time(began.elapsed());
    }
}

/// Replaces the nodes that a site lists; they keep their order.
fn place(known: &mut Sites, site: &str, nodes: Vec<HeldNode>) -> Result<(), RunError> {
    let mut all = known.sites.iter_mut().filter(|known| known.name == site);
    let info = all.find_map(|known| known.info.as_mut());
    let info = info.ok_or_else(|| RunError::NoNodes(site.to_owned()))?;
    // What another site reports is put into the launcher's host list, and must not lead to a third site.
    let own = info.site().ok();
    let is_inside = |node: &HeldNode| own.as_ref().is_some_and(|own| own.contains(node.address));
    let is_sound = |node: &HeldNode| is_inside(node) && is_node_name(&node.name) && node.slots > 0;
    if let Some(node) = nodes.iter().find(|node| !is_sound(node)) {
        let why = format!("it names a node at {} that cannot be its own", node.address);
        return Err(RunError::NotGiven(site.to_owned(), why));
    }
    info.nodes = { nodes.into_iter() }
        .map(|node| NodeInfo {
            name: node.name,
            address: node.address,
            slots: node.slots,
        })
        .collect();
    Ok(())
}

/// Reports allocations that are lost while the job runs; such a loss ends the job.
fn tell_losses(sites: Vec<String>, words: Words) -> Receiver<()> {
    let (sender, lost) = channel();
    let thread = std::thread::Builder::new().name("losses".to_owned());
    let _ = thread.spawn(move || {
        take_no_signals();
        for (site, word) in words {
            let FromHolder::Failed(why) = word else { continue };
            // If the run has ended, nobody receives this.
            let _ = sender.send(());
            // A holder also ends at the end of every run; if a site is lost, the gateway reports it.
            if why != GONE {
                say::error(format_args!("causeway: {}: {why}", sites[site]));
            }
        }
    });
    lost
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_that_waits_tells_what_each_of_its_sites_said_last() {
        let rennes = "rennes: allocation 10 waits: BeginTime, begins in 8 min";
        let nancy = "nancy: allocation 10 waits: Resources";
        let said = [Some(rennes.to_owned()), None, Some(nancy.to_owned())];
        assert_eq!(last_words(&said), format!("{rennes}; {nancy}"));
    }
}
