//! What the next worker needs to know about tunnels if this one is killed.

use crate::book::{Book, Records, kind};
use crate::inherited::StateError;
use crate::tunnels::Tunnels;
use crate::tunnels::message::Acceptance;
use crate::tunnels::pair::{KeptPair, Pair};
use crate::tunnels::peers::peer::KeptPeer;
use causeway_memory::{Found, Key};
use causeway_tunnel::{Moved, Tunnel, recover};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// A pair in the form in which it is written down; its tunnel is written under a number of its own.
#[derive(Serialize, Deserialize)]
struct WrittenPair<'a> {
    site: Cow<'a, str>,
    peer_session: u64,
    own_session: u64,
    owner: u64,
    has_introduced_itself: bool,
    accepts: Option<Acceptance>,
    address: SocketAddr,
    sent_bytes: u64,
    received_bytes: u64,
    lanes_lost: u64,
    last_end: Cow<'a, str>,
}

impl Tunnels {
    /// Writes down what has changed.
    pub(crate) fn write_down(&mut self, book: &mut Book, now: Instant) {
        for index in self.peers.take_touched() {
            book.put(kind::PEER, index.0, &self.peers[index].keep());
        }
        for owner in self.pairs.take_gone() {
            Tunnel::forget(book.journal(), owner);
        }
        let touched = self.pairs.take_touched();
        for key in &touched {
            match self.pairs.untouched_mut(*key) {
                Some(pair) => {
                    book.put(kind::PAIR, key.0, &write(pair));
                    pair.tunnel.write_down(book.journal(), now);
                }
                None => book.remove(kind::PAIR, key.0),
            }
        }
        self.written = touched;
    }

    /// Notes that what was written down is committed.
    pub(crate) fn written_down(&mut self) {
        for key in std::mem::take(&mut self.written) {
            if let Some(pair) = self.pairs.untouched_mut(key) {
                pair.tunnel.written_down();
            }
        }
    }

    /// Notes everything present as changed, and every change from now on.
    pub(crate) fn note_changes(&mut self) {
        self.peers.note_changes();
        self.pairs.note_changes();
    }
}

fn write(pair: &Pair) -> WrittenPair<'_> {
    WrittenPair {
        site: Cow::Borrowed(&pair.site),
        peer_session: pair.peer_session,
        own_session: pair.own_session,
        owner: pair.tunnel.owner(),
        has_introduced_itself: pair.has_introduced_itself,
        accepts: pair.accepts,
        address: pair.address,
        sent_bytes: pair.sent_bytes,
        received_bytes: pair.received_bytes,
        lanes_lost: pair.lanes_lost,
        last_end: Cow::Borrowed(&pair.last_end),
    }
}

/// A pair that goes on.
pub(crate) struct Followed {
    pub(crate) key: usize,
    /// The number under which its tunnel is written down.
    pub(crate) owner: u64,
    pub(crate) pair: KeptPair,
    /// Streams that do not go on.
    pub(crate) lost: BTreeSet<u32>,
}

/// Reads the peers that were written down.
///
/// # Errors
/// A record cannot be read.
pub(crate) fn follow_peers(records: &Records) -> Result<Vec<KeptPeer>, StateError> {
    let (from, until) = (Key::new(kind::PEER, 0, 0), Key::new(kind::PEER, 0, u64::MAX));
    let peers = records.range(from..=until);
    Ok(peers
        .map(|(_, value)| postcard::from_bytes(value))
        .collect::<Result<_, _>>()?)
}

/// Reads the pairs that were written down. `moved` says, by pair and stream, how much the streams' sockets
/// have moved; `found` are the blocks of all lanes, which the tunnels keep.
///
/// # Errors
/// A record cannot be read, or contradicts another.
pub(crate) fn follow_pairs(
    records: &Records,
    found: &mut Vec<Found>,
    moved: &HashMap<usize, HashMap<u32, Moved>>,
) -> Result<Vec<Followed>, StateError> {
    let mut by_owner: HashMap<u64, Vec<Found>> = HashMap::new();
    for found in std::mem::take(found) {
        by_owner.entry(found.owner).or_default().push(found);
    }
    let (from, until) = (Key::new(kind::PAIR, 0, 0), Key::new(kind::PAIR, 0, u64::MAX));
    let mut pairs = Vec::new();
    for (key, value) in records.range(from..=until) {
        let written: WrittenPair<'_> = postcard::from_bytes(value)?;
        // The number fits: it was a usize before.
        let key = key.id as usize;
        let own = by_owner.entry(written.owner).or_default();
        let none = HashMap::new();
        let moved = moved.get(&key).unwrap_or(&none);
        let recovered = recover(written.owner, records, own, moved);
        let recovered = recovered.map_err(|_| StateError::Contradiction("a tunnel's records"))?;
        let pair = KeptPair {
            site: written.site.into_owned(),
            peer_session: written.peer_session,
            own_session: written.own_session,
            tunnel: recovered.snapshot,
            has_introduced_itself: written.has_introduced_itself,
            accepts: written.accepts,
            address: written.address,
            sent_bytes: written.sent_bytes,
            received_bytes: written.received_bytes,
            lanes_lost: written.lanes_lost,
            down: Duration::ZERO,
            last_end: written.last_end.into_owned(),
        };
        pairs.push(Followed {
            key,
            owner: written.owner,
            pair,
            lost: recovered.lost,
        });
    }
    found.extend(by_owner.into_values().flatten());
    Ok(pairs)
}

/// Records of a pair, its tunnel and its peer, for tests of the layout.
#[cfg(test)]
pub(crate) fn put_samples(book: &mut Book, tunnel: &mut Tunnel, now: Instant) {
    use crate::tunnels::message::JobRefusal;
    use crate::tunnels::peers::paths::Paths;
    use crate::tunnels::peers::totals::Totals;
    tunnel.write_down(book.journal(), now);
    let pair = WrittenPair {
        site: "nancy".into(),
        peer_session: 1,
        own_session: 2,
        owner: tunnel.owner(),
        has_introduced_itself: true,
        accepts: Some(Acceptance {
            jobs: None,
            connections: Some(JobRefusal::ConnectFrom),
        }),
        address: ([10, 1, 0, 1], 4000).into(),
        sent_bytes: 0,
        received_bytes: 0,
        lanes_lost: 1,
        last_end: "".into(),
    };
    book.put(kind::PAIR, 0, &pair);
    let peer = KeptPeer {
        site: "nancy".into(),
        session: 1,
        why_not_reached: String::new(),
        lanes: 1,
        is_lossy: true,
        paths: Paths::sample(),
        totals: Totals::default(),
    };
    book.put(kind::PEER, 0, &peer);
}
