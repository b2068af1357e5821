//! Goes on where the worker before this one was killed, or has handed this gateway over: from what it had
//! written down (`book`), and from what the kernel reports about the sockets that both have.
//!
//! Lanes and handshakes are not taken up; nor, after a kill, are the connections carried for other sites. All
//! of these are connections between gateways, which recover from their loss. All descriptors that belong to
//! nothing taken up are closed, except connections of shims from which nothing was read: they are as good as
//! new.

use crate::book::{Numbers, Records, kind};
use crate::commands;
use crate::config::Config;
use crate::inherited::{STATE_VERSION, StateError};
use crate::lifecycle::state::State;
use crate::membership;
use crate::site::intake::KeptIntake;
use crate::site::leg::KeptLeg;
use crate::site::written::{self as legs, Followed};
use crate::sys::process;
use crate::sys::socket::counts;
use crate::traversal;
use crate::tunnels::pair::KeptPair;
use crate::tunnels::written as tunnels;
use causeway_memory::{Found, Key};
use causeway_tunnel::Moved;
use nix::sys::socket::{SockaddrStorage, getpeername, getsockname};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::SocketAddr;
use std::os::fd::RawFd;

/// A gateway that can go on.
pub(crate) struct TakenUp {
    pub(crate) state: State,
    /// The number under which each pair's tunnel is written down.
    pub(crate) owners: HashMap<usize, u64>,
}

/// Reads what can go on. `inherited` are the descriptors that the previous worker may have had; those that
/// are not needed are closed. `was_killed`: it may have been in the middle of something. `None` if it had
/// written nothing down.
///
/// # Errors
/// What was written down contradicts itself, or is of another version.
pub(crate) fn take_up(
    config: &Config,
    (records, found): (&Records, Vec<Found>),
    (inherited, was_killed): (&[RawFd], bool),
) -> Result<Option<(TakenUp, Vec<Found>)>, StateError> {
    let Some(numbers) = numbers(records)? else {
        return Ok(None);
    };
    let (mut queues, mut lanes): (Vec<Found>, Vec<Found>) = found.into_iter().partition(Found::is_of_queue);
    let Streams { legs, pairs, owners } = streams(records, (&queues, &mut lanes), was_killed)?;
    let site = legs::follow_counts(records)?;
    let kept_membership = membership::written::follow(records)?;
    let kept_commands = commands::written::follow(records, was_killed)?;
    let mut state = State {
        handed_over: numbers.handed_over,
        generations: numbers.generations,
        streams_opened: site.streams_opened,
        streams_peak: site.streams_peak,
        next_delivery_port: site.next_delivery_port,
        refused: refused(records)?,
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
        // The splices of an abandoned hand-over are out of date.
        splices: match was_killed {
            true => Vec::new(),
            false => traversal::written::follow(records)?,
        },
    };
    state.check()?;
    state.intakes = sort_out(config, &state, inherited);
    queues.append(&mut lanes);
    Ok(Some((TakenUp { state, owners }, queues)))
}

/// Reads the gateway's numbers; `None` if nothing was ever written down.
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

/// Reads the counts of refusals, in a hand-over.
fn refused(records: &Records) -> Result<BTreeMap<String, u64>, StateError> {
    let refused = records.get(&Key::new(kind::REFUSED, 0, 0));
    Ok(refused.map_or(Ok(BTreeMap::new()), |refused| postcard::from_bytes(refused))?)
}

/// Streams that go on, both of whose ends are in this gateway.
struct Streams {
    legs: Vec<(usize, KeptLeg)>,
    pairs: Vec<(usize, KeptPair)>,
    owners: HashMap<usize, u64>,
}

fn streams(
    records: &Records,
    (queues, lanes): (&[Found], &mut Vec<Found>),
    was_killed: bool,
) -> Result<Streams, StateError> {
    let by_number = queues.iter().map(|found| (found.block.id(), found)).collect();
    let followed = legs::follow(records, &by_number, was_killed)?;
    let mut moved: HashMap<usize, HashMap<u32, Moved>> = HashMap::new();
    for one in &followed {
        let moved_of_pair = moved.entry(one.leg.pair).or_default();
        moved_of_pair.insert(one.leg.stream, one.moved);
    }
    let (mut pairs, mut owners, mut lost) = (Vec::new(), HashMap::new(), HashMap::new());
    for pair in tunnels::follow_pairs(records, lanes, &moved)? {
        lost.insert(pair.key, pair.lost);
        owners.insert(pair.key, pair.owner);
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
        owners,
    })
}

/// Closes the descriptors that nobody needs, and prepares the others to be taken. Returns the connections of
/// shims from which nothing was read.
fn sort_out(config: &Config, state: &State, inherited: &[RawFd]) -> Vec<KeptIntake> {
    let legs = state.legs.iter().map(|(_, leg)| leg.descriptor);
    let commands = state.commands.iter().map(|(_, command)| command.descriptor);
    let splices = state.splices.iter().flat_map(|(_, splice)| splice.ends);
    let needed: HashSet<RawFd> = legs.chain(commands).chain(splices).collect();
    let mut intakes = Vec::new();
    for number in inherited {
        if needed.contains(number) {
            // Not closing on exec marks a descriptor that nobody has taken yet.
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

/// A connection that a shim has made and from which nothing was read.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::book::Book;
    use causeway_tunnel::{OpenRequest, Settings, Side, Target, Tunnel};
    use causeway_wire::Token;
    use sha2::{Digest, Sha256};
    use std::os::fd::AsFd;
    use std::os::unix::fs::PermissionsExt;
    use std::time::Instant;

    /// Records of everything, as a worker would have written them; a command has this descriptor.
    fn records(held: &std::fs::File) -> Records {
        let files = || causeway_memory::files().unwrap();
        let [blocks, first, second] = files();
        let again = [&blocks, &first, &second].map(|file| file.try_clone().unwrap());
        let mut book = Book::begin([blocks, first, second]).unwrap();
        let now = Instant::now();
        let mut tunnel = Tunnel::kept(Side::Odd, Settings::default(), now, book.arena(), 1);
        tunnel.message(b"hello");
        tunnel.open(&OpenRequest {
            token: Token([7; 16]),
            target: Target::Node("nancy-1".into()),
        });
        let numbers = Numbers {
            handed_over: 1,
            generations: 10,
            carried_bytes: 9,
        };
        book.put(kind::GATEWAY, 0, &(STATE_VERSION, numbers));
        let refused = BTreeMap::from([("preface-late".to_owned(), 1_u64)]);
        book.put(kind::REFUSED, 0, &refused);
        tunnels::put_samples(&mut book, &mut tunnel, now);
        legs::put_samples(&mut book);
        membership::written::put_samples(&mut book);
        commands::written::put_samples(&mut book, held.as_fd());
        traversal::written::put_samples(&mut book);
        book.commit(std::time::Instant::now()).unwrap();
        Book::open(again).unwrap().1
    }

    fn config(directory: &std::path::Path) -> Config {
        let key = directory.join("grid.key");
        std::fs::write(&key, "0123456789abcdef").unwrap();
        std::fs::set_permissions(&key, PermissionsExt::from_mode(0o600)).unwrap();
        let text = "[site]\nname = \"rennes\"\nsubnets = [\"127.0.0.0/8\"]\n[listen]\nlan = [\"127.0.0.1:1\"]\n\
                    [grid]\nkey_file = \"grid.key\"\n";
        Config::parse(text, &directory.join("gateway.toml")).unwrap()
    }

    #[test]
    fn other_records_are_another_version() {
        let held = tempfile::tempfile().unwrap();
        let mut digest = Sha256::new();
        for (key, value) in records(&held) {
            // What differs from run to run is a descriptor and its inode.
            let value = if key.kind == kind::COMMAND {
                &value[..0]
            } else {
                &value[..]
            };
            digest.update([key.kind]);
            digest.update(value);
        }
        let digest: String = digest.finalize()[..8]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        assert_eq!(
            (STATE_VERSION, digest.as_str()),
            (13, "51d1e1703720c51f"),
            "raise STATE_VERSION, and note the new digest here"
        );
    }

    #[test]
    fn what_was_written_down_is_taken_up_and_what_has_no_socket_is_left_out() {
        let directory = tempfile::tempdir().unwrap();
        let (config, held) = (config(directory.path()), tempfile::tempfile().unwrap());
        let records = records(&held);
        let taken = take_up(&config, (&records, Vec::new()), (&[], true)).unwrap();
        let state = taken.unwrap().0.state;
        assert_eq!((state.pairs.len(), state.legs.len(), state.jobs.len()), (1, 0, 1));
        assert_eq!(
            (state.commands.len(), state.starters.len(), state.splices.len()),
            (1, 1, 0)
        );
        assert_eq!(
            (state.others.len(), state.peers.len(), state.refused.len()),
            (1, 1, 1)
        );
    }

    #[test]
    fn what_is_carried_for_others_goes_on_in_a_hand_over_alone() {
        let directory = tempfile::tempdir().unwrap();
        let (config, held) = (config(directory.path()), tempfile::tempfile().unwrap());
        let records = records(&held);
        for (was_killed, splices) in [(true, 0), (false, 1)] {
            let taken = take_up(&config, (&records, Vec::new()), (&[], was_killed)).unwrap();
            assert_eq!(taken.unwrap().0.state.splices.len(), splices);
        }
    }

    #[test]
    fn damaged_records_never_panic_and_those_of_another_version_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let (config, held) = (config(directory.path()), tempfile::tempfile().unwrap());
        let records = records(&held);
        for (key, value) in &records {
            for at in 0..value.len() {
                for byte in [0, 1, 0x7f, 0x80, 0xff] {
                    let mut damaged = records.clone();
                    damaged.get_mut(key).unwrap()[at] = byte;
                    let _ = take_up(&config, (&damaged, Vec::new()), (&[], true));
                }
                let mut cut = records.clone();
                cut.get_mut(key).unwrap().truncate(at);
                let _ = take_up(&config, (&cut, Vec::new()), (&[], true));
            }
        }
        let mut other = records.clone();
        other.get_mut(&Key::new(kind::GATEWAY, 0, 0)).unwrap()[0] = 77;
        let refused = take_up(&config, (&other, Vec::new()), (&[], true));
        assert!(matches!(refused, Err(StateError::Version(77))));
    }
}
