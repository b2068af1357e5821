//! How far the sites of the grid are from each other. Each gateway measures the links of its own site; its
//! answer to a job's start tells them, so that who starts the job knows those between any two sites, as they
//! were when each of them last answered one.

use crate::driver::Driver;
use crate::tunnels::Tunnels;
use crate::tunnels::pair::Pair;
use causeway_control::{LINKED_SITES, Link};
use std::collections::BTreeMap;

impl Tunnels {
    /// Links from this site to those that it has lanes with.
    pub(crate) fn own_links(&self) -> Vec<Link> {
        let up = self.pairs.iter().filter(|(_, pair)| pair.is_up());
        up.filter_map(|(_, pair)| self.tunnel_status(pair).link())
            .collect()
    }

    /// What a site says of its own. Names of sites that are not in the grid would reach the processes of
    /// jobs.
    pub(crate) fn learn_links(&mut self, driver: &mut Driver, site: &str, mut links: Vec<Link>) {
        links.truncate(LINKED_SITES);
        let is_known = |site: &str| site == driver.config.site || self.peer_of(site).is_some();
        links.retain(|link| link.rtt_microseconds > 0 && is_known(&link.to));
        if let Some(peer) = self.peer_of(site) {
            self.peers[peer].links = links;
        }
    }

    /// Links of every site that is reached and has told them, and of the own one, by the site that measured.
    pub(crate) fn links(&self, driver: &Driver) -> BTreeMap<String, Vec<Link>> {
        let is_small = self.peers.len() < LINKED_SITES;
        let peers = self.peers.values().filter(|_| is_small);
        let reached = peers.filter(|peer| self.pair_of(&peer.site).is_some_and(Pair::is_up));
        let others = reached.map(|peer| (peer.site.clone(), peer.links.clone()));
        let own = (driver.config.site.clone(), self.own_links());
        others
            .chain([own])
            .filter(|(_, links)| !links.is_empty())
            .collect()
    }
}
