//! Goes on where the worker before this one was killed: from what it had written down (`book`), and from
//! what the kernel says of the sockets that both have.
//!
//! Lanes, handshakes and what is carried for other sites are not taken up: they are connections between
//! gateways, which make up for their loss. All descriptors that nothing taken up has are closed, but for
//! connections of shims that nothing was read from: they are as good as new.

use crate::book::{Numbers, Records, kind};
use crate::commands;
use crate::config::Config;
use crate::inherited::{STATE_VERSION, StateError};
use crate::lifecycle::handover::State;
use crate::link::KeptKeeper;
use crate::membership;
use crate::site::intake::KeptIntake;
use crate::site::leg::KeptLeg;
use crate::site::written::{self as legs, Followed};
use crate::sys::process;
use crate::sys::socket::counts;
use crate::tunnels::pair::KeptPair;
use crate::tunnels::written as tunnels;
use causeway_memory::{Block, Found, Key};
use causeway_tunnel::Moved;
use nix::sys::socket::{SockaddrStorage, getpeername, getsockname};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::SocketAddr;
use std::os::fd::RawFd;

/// A gateway that goes on.
pub(crate) struct TakenUp {
    pub(crate) state: State<'static>,
    /// The memory of lanes by pair, and the number under which it is known.
    pub(crate) graves: HashMap<usize, (u64, Vec<Block>)>,
}

/// Reads what can go on. `inherited` are the descriptors that the worker before this one may have had; those
/// that are not needed are closed. Nothing where that one had written nothing down.
///
/// # Errors
/// What was written down contradicts itself, or is of another version.
pub(crate) fn take_up(
    config: &Config,
    (records, found): (&Records, Vec<Found>),
    inherited: &[RawFd],
) -> Result<Option<(TakenUp, Vec<Found>)>, StateError> {
    let Some(numbers) = numbers(records)? else {
        return Ok(None);
    };
    let (queues, lanes): (Vec<Found>, Vec<Found>) = found.into_iter().partition(Found::is_of_queue);
    let Streams { legs, pairs, graves } = streams(records, &queues, lanes)?;
    let site = legs::follow_counts(records)?;
    let kept_membership = membership::written::follow(records)?;
    let kept_commands = commands::written::follow(records)?;
    let mut state = State {
        keeper: KeptKeeper::default(),
        site: config.site.clone(),
        handed_over: numbers.handed_over,
        generations: numbers.generations,
        streams_opened: site.streams_opened,
        streams_peak: site.streams_peak,
        next_delivery_port: site.next_delivery_port,
        refused: BTreeMap::new(),
        carried_bytes: numbers.carried_bytes,
        virtual_subnets: kept_membership.virtual_subnets,
        others: kept_membership.others,
        unrecorded: kept_membership.unrecorded,
        peers: tunnels::follow_peers(records)?,
        jobs: kept_membership.jobs,
        starters: kept_commands.starters,
        pairs,
        legs,
        intakes: Vec::new(),
        commands: kept_commands.commands,
        splices: Vec::new(),
    };
    state.check()?;
    state.intakes = sort_out(config, &state, inherited);
    Ok(Some((TakenUp { state, graves }, queues)))
}

/// Reads the gateway's numbers; none where nothing was ever written down.
fn numbers(records: &Records) -> Result<Option<Numbers>, StateError> {
    let Some(numbers) = records.get(&Key::new(kind::GATEWAY, 0, 0)) else {
        return Ok(None);
    };
    let (version, rest): (u32, _) = postcard::take_from_bytes(numbers)?;
    if version != STATE_VERSION {
        return Err(StateError::Version(version));
    }
    Ok(Some(postcard::from_bytes(rest)?))
}

/// Streams that go on, at both of their ends in this gateway.
struct Streams {
    legs: Vec<(usize, KeptLeg<'static>)>,
    pairs: Vec<(usize, KeptPair<'static>)>,
    graves: HashMap<usize, (u64, Vec<Block>)>,
}

fn streams(records: &Records, queues: &[Found], lanes: Vec<Found>) -> Result<Streams, StateError> {
    let by_number = queues.iter().map(|found| (found.block.id(), found)).collect();
    let followed = legs::follow(records, &by_number)?;
    let mut moved: HashMap<usize, HashMap<u32, Moved>> = HashMap::new();
    for one in &followed {
        let of_pair = moved.entry(one.leg.pair).or_default();
        of_pair.insert(one.leg.stream, one.moved);
    }
    let (mut pairs, mut graves, mut lost) = (Vec::new(), HashMap::new(), HashMap::new());
    for pair in tunnels::follow_pairs(records, lanes, &moved)? {
        lost.insert(pair.key, pair.lost);
        graves.insert(pair.key, (pair.owner, pair.graves));
        pairs.push((pair.key, pair.pair));
    }
    let goes_on = |one: &Followed| {
        let lost = lost.get(&one.leg.pair);
        one.moved != Moved::Lost && lost.is_some_and(|lost| !lost.contains(&one.leg.stream))
    };
    let legs = followed.into_iter().filter(goes_on);
    Ok(Streams {
        legs: legs.map(|one| (one.key, one.leg)).collect(),
        pairs,
        graves,
    })
}

/// Closes the descriptors that nobody needs, and readies the others to be taken. Returns the connections of
/// shims that are as good as new.
fn sort_out(config: &Config, state: &State<'_>, inherited: &[RawFd]) -> Vec<KeptIntake> {
    let legs = state.legs.iter().map(|(_, leg)| leg.descriptor);
    let commands = state.commands.iter().map(|(_, command)| command.descriptor);
    let needed: HashSet<RawFd> = legs.chain(commands).collect();
    let mut intakes = Vec::new();
    for number in inherited {
        if needed.contains(number) {
            // By this it is known that nobody has taken it yet.
            let _ = process::set_closes_on_exec(*number, false);
        } else if let Some(intake) = as_intake(config, *number) {
            let _ = process::set_closes_on_exec(*number, false);
            intakes.push(intake);
        } else {
            process::close(*number);
        }
    }
    intakes
}

/// A connection that a shim has made, and that nothing was read from.
fn as_intake(config: &Config, number: RawFd) -> Option<KeptIntake> {
    let socket = process::borrow(number)?;
    let address = |name: nix::Result<SockaddrStorage>| {
        let name = name.ok()?;
        let v4 = name.as_sockaddr_in().map(|name| SocketAddr::V4((*name).into()));
        v4.or_else(|| name.as_sockaddr_in6().map(|name| SocketAddr::V6((*name).into())))
    };
    let own = address(getsockname(number))?;
    let peer = address(getpeername(number))?;
    let listens = |listener: &SocketAddr| {
        listener.port() == own.port() && (listener.ip() == own.ip() || listener.ip().is_unspecified())
    };
    let counts = counts(&socket, false).ok()?;
    let is_new = config.lan.iter().any(listens) && counts.read == 0 && !counts.is_closed;
    is_new.then_some(KeptIntake {
        descriptor: number,
        peer,
        is_answered: counts.written > 0,
    })
}
