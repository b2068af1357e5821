//! The gateways of the other sites: where they are, how they are dialled, and what they have told.

pub(crate) mod dial;
pub(crate) mod peer;
pub(crate) mod proxied;
pub(crate) mod rate;
pub(crate) mod reach;
pub(crate) mod totals;

use crate::keys::{List, PeerIndex};
use peer::Peer;
use std::ops::{Index, IndexMut};

/// The gateways that are known. They are only ever added: a `PeerIndex` is a position here.
pub(crate) struct Peers(List<PeerIndex, Peer>);

impl Peers {
    pub(in crate::tunnels) fn new(peers: Vec<Peer>) -> Peers {
        Peers(peers.into())
    }

    /// Finds the place of a site's gateway.
    pub(crate) fn of(&self, site: &str) -> Option<PeerIndex> {
        self.iter()
            .find_map(|(index, peer)| (peer.site == site).then_some(index))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (PeerIndex, &Peer)> {
        self.0.iter()
    }

    pub(crate) fn indexes(&self) -> impl Iterator<Item = PeerIndex> + use<> {
        self.0.keys()
    }

    pub(in crate::tunnels) fn get(&self, index: PeerIndex) -> Option<&Peer> {
        self.0.get(index)
    }

    pub(in crate::tunnels) fn len(&self) -> usize {
        self.0.len()
    }

    pub(in crate::tunnels) fn values(&self) -> impl Iterator<Item = &Peer> {
        self.0.values()
    }

    pub(in crate::tunnels) fn add(&mut self, peer: Peer) -> PeerIndex {
        self.0.push(peer)
    }
}

impl Index<PeerIndex> for Peers {
    type Output = Peer;

    fn index(&self, index: PeerIndex) -> &Peer {
        &self.0[index]
    }
}

impl IndexMut<PeerIndex> for Peers {
    fn index_mut(&mut self, index: PeerIndex) -> &mut Peer {
        &mut self.0[index]
    }
}
