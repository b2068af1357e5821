//! What the process knows about the grid: it is read once, by the first call that needs it, and does not
//! change after that.
//!
//! It is read lazily, so that the many processes that never open a connection have no costs and print
//! nothing; and without a lock, which a fork in another thread could leave locked for ever in the child.
//!
//! If several sites have the node's addresses, the gateway that started the process has named the own site;
//! if no gateway did, all are asked. If none answers, everything else is still known: a connection that
//! certainly leads to no neighbour is refused, and a later call asks again.

use crate::address::in_family_of;
use crate::ifaddrs::{self, Own};
use crate::report::{self, Matter};
use crate::{ask, sys};
use causeway_wire::{Cidr, Grid, Site, Token, env};
use std::ffi::OsString;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::time::Instant;

/// The grid as seen from this process.
#[derive(Debug)]
pub struct Context {
    /// All sites.
    pub grid: Grid,
    /// The own site.
    pub here: Site,
    /// The job's token.
    pub token: Token,
    /// The node's own addresses.
    pub addresses: Vec<Own>,
    /// The networks that the node reaches directly.
    pub neighbours: Vec<Cidr>,
    /// Whether to print each decision.
    pub debug: bool,
    /// Whether the process's MPI is that of its site alone. It must then see the node as it is: it chooses
    /// among all of the node's networks, and talks to processes without the shim.
    pub is_own_mpi: bool,
}

/// What the process knows, from the first call on.
enum State {
    /// Connections do not concern the shim, for good.
    Off,
    /// The node may be at any of several sites, and no gateway has told yet at which.
    Lost(Box<Lost>),
    /// The node is at this site, for good.
    At(Box<Context>),
}

/// A grid in which this node has not found its place.
struct Lost {
    grid: Grid,
    token: Token,
    addresses: Vec<Own>,
    debug: bool,
    again: Again,
}

/// Whether this process is a rank of a world; once set, it stays so.
static IS_RANK: AtomicBool = AtomicBool::new(false);

static STATE: AtomicPtr<State> = AtomicPtr::new(std::ptr::null_mut());

/// Records that this process is a rank of a world, whose listener other sites know.
pub fn become_rank() {
    IS_RANK.store(true, Ordering::Relaxed);
}

/// The context; `None` if the process is not part of a job, or, as far as it knows, not at a site.
pub fn context() -> Option<&'static Context> {
    let state = match state() {
        State::Lost(lost) if lost.again.is_due() => lost.find_again().map_or_else(state, publish),
        known => known,
    };
    match state {
        State::At(context) => Some(context),
        State::Off | State::Lost(_) => None,
    }
}

/// The context for a connection from this peer. A connection that looks like a gateway's delivery shows that
/// this gateway is running. So the gateway is asked at once: without an answer, the program would read the
/// preface as data.
pub fn context_for(peer: SocketAddr) -> Option<&'static Context> {
    let State::Lost(lost) = state() else {
        return context();
    };
    if !lost.candidates().iter().any(|site| site.delivers_from(peer)) {
        return context();
    }
    match lost.find_again().map(publish) {
        Some(State::At(context)) => Some(context),
        _ => None,
    }
}

/// Whether an address leads nowhere while the own site is not known: it is a virtual address, which no kernel
/// knows, so that a native attempt would hang.
pub fn leads_nowhere(destination: IpAddr) -> bool {
    let State::Lost(lost) = state() else { return false };
    let mut sites = lost.grid.sites.iter();
    sites.any(|site| site.is_virtual() && site.contains(destination))
}

fn state() -> &'static State {
    let state = STATE.load(Ordering::Acquire);
    if state.is_null() {
        return publish(read());
    }
    // SAFETY: the pointer came from Box::into_raw, and its target is never freed.
    unsafe { &*state }
}

/// Sets the state, if there is none or it is a [`State::Lost`]. A state that is replaced, or that comes too
/// late, stays allocated, because other threads may be reading it: this happens once or twice in a process's
/// life.
fn publish(new: State) -> &'static State {
    let is_better = matches!(new, State::At(_));
    let new = Box::into_raw(Box::new(new));
    let mut present = STATE.load(Ordering::Acquire);
    loop {
        // SAFETY: as in `state`.
        match unsafe { present.as_ref() } {
            Some(known) if !(is_better && matches!(known, State::Lost(_))) => return known,
            _ => {}
        }
        match STATE.compare_exchange(present, new, Ordering::AcqRel, Ordering::Acquire) {
            // SAFETY: as in `state`.
            Ok(_) => return unsafe { &*new },
            Err(other) => present = other,
        }
    }
}

fn read() -> State {
    let debug = std::env::var_os(env::DEBUG).is_some_and(|value| value == "1");
    let grid = std::env::var_os(env::GRID).or_else(|| std::env::var_os(env::GRID_BY_OPEN_MPI));
    let (grid, token) = match settings(grid, std::env::var_os(env::TOKEN)) {
        Ok(None) => return State::Off,
        Ok(Some(settings)) => settings,
        Err(Unusable::NoJob(line)) => {
            let line = format_args!("{line}; connections stay native");
            report::once(Matter::Environment, 0, line);
            return State::Off;
        }
        Err(Unusable::Job(line)) => {
            let line = format_args!(
                "{line}; this process is of a job over several sites and cannot tell its own, so it ends"
            );
            report::once(Matter::Environment, 0, line);
            sys::end(UNUSABLE);
        }
    };
    let addresses = ifaddrs::own_addresses();
    let ips: Vec<IpAddr> = addresses.iter().map(|own| own.ip).collect();
    let candidates = grid.sites_of(&ips);
    let here = match candidates.as_slice() {
        [] => {
            let line = format_args!(
                "no address of this node lies in a site of {} ({})",
                env::GRID,
                names(&mut grid.sites.iter())
            );
            report::once(Matter::NoSite, 0, format_args!("{line}; connections stay native"));
            return State::Off;
        }
        [here] => Some((*here).clone()),
        several => {
            told(several, std::env::var_os(env::SITE)).or_else(|| ask::which(several, &token).cloned())
        }
    };
    let Some(here) = here else {
        tell_lost(&candidates);
        return State::Lost(Box::new(Lost {
            token,
            addresses,
            debug,
            again: Again::from_now(),
            grid,
        }));
    };
    if debug {
        report::debug(format_args!("at site {}", here.name));
    }
    State::At(Box::new(Context {
        grid,
        here,
        token,
        neighbours: networks(&addresses),
        addresses,
        debug,
        is_own_mpi: is_of_own_mpi(),
    }))
}

/// The networks that a node reaches directly, without loopback: everybody has that, and in tests whole grids
/// use it.
fn networks(addresses: &[Own]) -> Vec<Cidr> {
    let own = addresses.iter().filter(|own| !own.ip.is_loopback());
    own.filter_map(|own| own.network).collect()
}

fn is_of_own_mpi() -> bool {
    std::env::var_os(env::WORLD).is_some()
}

/// The candidate that the gateway of this node named when it started this process, or an ancestor of it. No
/// other site's gateway starts processes here.
fn told(candidates: &[&Site], name: Option<OsString>) -> Option<Site> {
    let name = name?;
    let mut candidates = candidates.iter().copied();
    candidates.find(|site| name == *site.name.as_str()).cloned()
}

/// Names the sites in one line: of a thousand, only a few.
fn names(sites: &mut dyn Iterator<Item = &Site>) -> String {
    let names: Vec<&str> = (&mut *sites).take(8).map(|site| site.name.as_str()).collect();
    let more = match sites.count() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    names.join(", ") + &more
}

fn tell_lost(candidates: &[&Site]) {
    let gateways: Vec<String> = candidates
        .iter()
        .flat_map(|site| site.gateways.iter().map(SocketAddr::to_string))
        .collect();
    let line = format_args!(
        "this node may be at any of {}, which have the same addresses, and none of their gateways ({}) answers here; \
         connections to virtual addresses fail until one does, others stay native",
        names(&mut candidates.iter().copied()),
        gateways.join(", ")
    );
    report::once(Matter::NoSite, 0, line);
}

impl Lost {
    /// The sites at which the node may be.
    fn candidates(&self) -> Vec<&Site> {
        let addresses: Vec<IpAddr> = self.addresses.iter().map(|own| own.ip).collect();
        self.grid.sites_of(&addresses)
    }

    /// Asks the gateways once more.
    fn find_again(&self) -> Option<State> {
        let here = ask::which(&self.candidates(), &self.token).cloned();
        self.again.has_asked();
        let here = here?;
        if self.debug {
            report::debug(format_args!("at site {}, as its gateway says now", here.name));
        }
        Some(State::At(Box::new(Context {
            grid: self.grid.clone(),
            here,
            token: self.token,
            neighbours: networks(&self.addresses),
            addresses: self.addresses.clone(),
            debug: self.debug,
            is_own_mpi: is_of_own_mpi(),
        })))
    }
}

/// When to ask again. A gateway that is being restarted answers some seconds later, but one that does not run
/// at all must not delay every call. A child of fork continues with its parent's state.
struct Again {
    since: Instant,
    /// The time before which not to ask, in milliseconds since then.
    not_before: AtomicU64,
    left: AtomicU32,
}

/// How many more questions to ask: each takes up to three seconds, in a call that would otherwise take no
/// time.
const QUESTIONS_AGAIN: u32 = 5;
const MILLISECONDS_BETWEEN: u64 = 1000;

impl Again {
    fn from_now() -> Again {
        Again {
            since: Instant::now(),
            not_before: AtomicU64::new(MILLISECONDS_BETWEEN),
            left: AtomicU32::new(QUESTIONS_AGAIN),
        }
    }

    fn now(&self) -> u64 {
        self.since.elapsed().as_millis() as u64
    }

    fn is_due(&self) -> bool {
        self.is_due_at(self.now())
    }

    /// Whether the caller, and no other thread, must ask.
    fn is_due_at(&self, now: u64) -> bool {
        let not_before = self.not_before.load(Ordering::Relaxed);
        if now < not_before || self.left.load(Ordering::Relaxed) == 0 {
            return false;
        }
        let later = now + MILLISECONDS_BETWEEN;
        let claim = self
            .not_before
            .compare_exchange(not_before, later, Ordering::Relaxed, Ordering::Relaxed);
        claim.is_ok()
            && self
                .left
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1))
                .is_ok()
    }

    /// Begins the time between questions anew, as it counts from the end of a question.
    fn has_asked(&self) {
        self.not_before
            .fetch_max(self.now() + MILLISECONDS_BETWEEN, Ordering::Relaxed);
    }
}

impl Context {
    /// Whether connections from other sites are for this process. If each site has an MPI of its own, they
    /// are for ranks alone: launchers and daemons start what they are told to start, and nobody at another
    /// site needs to tell them anything.
    pub fn takes_deliveries(&self) -> bool {
        !self.is_own_mpi || IS_RANK.load(Ordering::Relaxed)
    }

    /// This node's address as the grid knows it; the IPv4 one, if it has both.
    pub fn own_address(&self) -> Option<IpAddr> {
        let own = self.addresses.iter().map(|own| own.ip);
        let own = own.filter(|ip| self.here.has_node(*ip));
        own.min_by_key(IpAddr::is_ipv6).map(|ip| self.here.in_grid(ip))
    }

    /// The address that a process sees instead of an address of this site; `None` if it is the same.
    pub fn shown(&self, real: SocketAddr) -> Option<SocketAddr> {
        if self.is_own_mpi { None } else { self.in_grid(real) }
    }

    /// The address by which the grid knows an address of this site; `None` if it is the same.
    pub fn in_grid(&self, real: SocketAddr) -> Option<SocketAddr> {
        self.translated(real, |ip| self.here.in_grid(ip))
    }

    /// Returns the real address for an address of this site in the grid; `None` if both are the same.
    pub fn real(&self, in_grid: SocketAddr) -> Option<SocketAddr> {
        self.translated(in_grid, |ip| self.here.real(ip))
    }

    fn translated(&self, address: SocketAddr, with: impl Fn(IpAddr) -> IpAddr) -> Option<SocketAddr> {
        if !self.here.is_virtual() {
            return None;
        }
        let ip = address.ip().to_canonical();
        let other = with(ip);
        let translated = SocketAddr::new(other, address.port());
        (other != ip).then(|| in_family_of(translated, address)).flatten()
    }
}

/// The exit status of a process that cannot use its job's environment: that of wrong use, as for `causeway
/// run`.
const UNUSABLE: libc::c_int = 2;

/// Why there is no context.
#[derive(Debug)]
enum Unusable {
    /// Only a part of an environment: whoever has set it does not mean a job.
    NoJob(String),
    /// The environment of a job, which cannot be read. If the process's connections stayed native, they would
    /// lead nowhere, or to hosts here that have another site's addresses.
    Job(String),
}

/// Grid and token from the values of their variables; `None` if neither is set.
fn settings(grid: Option<OsString>, token: Option<OsString>) -> Result<Option<(Grid, Token)>, Unusable> {
    let half = |set: &str, other: &str| Err(Unusable::NoJob(format!("{set} is set but {other} is not")));
    let (grid, token) = match (grid, token) {
        (None, None) => return Ok(None),
        (Some(_), None) => return half(env::GRID, env::TOKEN),
        (None, Some(_)) => return half(env::TOKEN, env::GRID),
        (Some(grid), Some(token)) => (
            grid.to_string_lossy().into_owned(),
            token.to_string_lossy().into_owned(),
        ),
    };
    let unusable = |name: &str, error: &dyn std::fmt::Display| Unusable::Job(format!("{name}: {error}"));
    let grid = grid.parse().map_err(|error| unusable(env::GRID, &error))?;
    let token = token.parse().map_err(|error| unusable(env::TOKEN, &error))?;
    Ok(Some((grid, token)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_repeated_once_a_second_by_one_caller_and_not_for_ever() {
        let again = Again::from_now();
        assert!(!again.is_due_at(MILLISECONDS_BETWEEN - 1));
        let mut now = MILLISECONDS_BETWEEN;
        for _ in 0..QUESTIONS_AGAIN {
            assert!(again.is_due_at(now) && !again.is_due_at(now), "at {now}");
            now += MILLISECONDS_BETWEEN;
        }
        assert!(!again.is_due_at(now) && !again.is_due_at(u64::MAX / 2));
    }

    const GRID: &str = "1|rennes;10.1.0.0/24;10.1.0.253:7000;20000-32767";

    fn outcome(grid: Option<&str>, token: Option<&str>) -> String {
        match settings(grid.map(OsString::from), token.map(OsString::from)) {
            Ok(None) => "off".to_owned(),
            Ok(Some((grid, _))) => grid.to_string(),
            Err(Unusable::NoJob(line) | Unusable::Job(line)) => line,
        }
    }

    #[test]
    fn without_either_variable_there_is_nothing_to_say() {
        assert_eq!(outcome(None, None), "off");
    }

    #[test]
    fn both_variables_make_a_grid() {
        assert_eq!(outcome(Some(GRID), Some(&"0f".repeat(16))), GRID);
    }

    #[test]
    fn half_an_environment_and_nonsense_are_named() {
        assert_eq!(
            outcome(Some(GRID), None),
            "CAUSEWAY_GRID is set but CAUSEWAY_TOKEN is not"
        );
        assert_eq!(
            outcome(None, Some("")),
            "CAUSEWAY_TOKEN is set but CAUSEWAY_GRID is not"
        );
        let token = "0f".repeat(16);
        assert!(outcome(Some("9|x"), Some(&token)).starts_with("CAUSEWAY_GRID: grid map version"));
        assert!(outcome(Some(GRID), Some("short")).starts_with("CAUSEWAY_TOKEN: a job token is"));
    }
}
