//! The gateways of the other sites: where they are, how they are dialled, and what they have announced.

pub(crate) mod dial;
pub(crate) mod known_path;
pub(crate) mod paths;
pub(crate) mod peer;
pub(crate) mod proxied;
pub(crate) mod rate;
pub(crate) mod reach;
pub(crate) mod totals;

use crate::keys::{List, PeerIndex};
use peer::Peer;
use std::collections::BTreeSet;
use std::ops::{Index, IndexMut};

/// Most gateways that are known: sixteen times the sites of the largest grid, because those that have left
/// count, too, and a broker whose keys were stolen may name new ones each time.
const MOST: usize = 4 * 4096;

/// The gateways that are known. They are only ever added: a `PeerIndex` is a position here.
pub(crate) struct Peers {
    list: List<PeerIndex, Peer>,
    /// Peers that have changed since this was last asked, if changes are noted.
    touched: Option<BTreeSet<PeerIndex>>,
}

impl Peers {
    pub(in crate::tunnels) fn new(peers: Vec<Peer>) -> Peers {
        Peers {
            list: peers.into(),
            touched: None,
        }
    }

    /// Notes everything present as changed, and every change from now on.
    pub(in crate::tunnels) fn note_changes(&mut self) {
        self.touched = Some(self.indexes().collect());
    }

    /// Takes the peers that have changed.
    pub(in crate::tunnels) fn take_touched(&mut self) -> BTreeSet<PeerIndex> {
        self.touched.as_mut().map(std::mem::take).unwrap_or_default()
    }

    fn touch(&mut self, index: PeerIndex) {
        if let Some(touched) = &mut self.touched {
            touched.insert(index);
        }
    }

    /// Finds the place of a site's gateway.
    pub(crate) fn of(&self, site: &str) -> Option<PeerIndex> {
        self.iter()
            .find_map(|(index, peer)| (peer.site == site).then_some(index))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (PeerIndex, &Peer)> {
        self.list.iter()
    }

    pub(crate) fn indexes(&self) -> impl Iterator<Item = PeerIndex> + use<> {
        self.list.keys()
    }

    pub(in crate::tunnels) fn get(&self, index: PeerIndex) -> Option<&Peer> {
        self.list.get(index)
    }

    pub(in crate::tunnels) fn len(&self) -> usize {
        self.list.len()
    }

    pub(in crate::tunnels) fn values(&self) -> impl Iterator<Item = &Peer> {
        self.list.values()
    }

    /// Adds a peer; `None` if there are too many.
    pub(in crate::tunnels) fn add(&mut self, peer: Peer) -> Option<PeerIndex> {
        if self.len() >= MOST {
            return None;
        }
        let index = self.list.push(peer);
        self.touch(index);
        Some(index)
    }
}

impl Index<PeerIndex> for Peers {
    type Output = Peer;

    fn index(&self, index: PeerIndex) -> &Peer {
        &self.list[index]
    }
}

impl IndexMut<PeerIndex> for Peers {
    fn index_mut(&mut self, index: PeerIndex) -> &mut Peer {
        self.touch(index);
        &mut self.list[index]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_without_end_fill_no_more_than_a_bound() {
        let mut peers = Peers::new(Vec::new());
        let added =
            (0..3 * MOST).map_while(|number| peers.add(Peer::new(format!("site-{number}"), None, None)));
        assert_eq!(added.count(), MOST);
        assert_eq!(peers.len(), MOST);
    }
}
