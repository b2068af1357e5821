//! The pairs of this site with others: callers name one by its key, or by the other site.

use crate::driver::Driver;
use crate::keys::{PairKey, Table};
use crate::tunnels::message::GatewayToGateway;
use crate::tunnels::pair::Pair;
use std::collections::HashMap;
use std::ops::{Index, IndexMut};

#[derive(Default)]
pub(crate) struct Pairs {
    table: Table<PairKey, Pair>,
    /// The pair with each site that has a tunnel.
    by_site: HashMap<String, PairKey>,
    /// Pairs that may have something to send.
    dirty: Vec<PairKey>,
    /// The numbers of tunnels that are over, and that may have been written down.
    gone: Vec<u64>,
}

impl Pairs {
    pub(crate) fn get(&self, key: PairKey) -> Option<&Pair> {
        self.table.get(key)
    }

    pub(in crate::tunnels) fn get_mut(&mut self, key: PairKey) -> Option<&mut Pair> {
        self.table.get_mut(key)
    }

    /// Finds the pair with a site.
    pub(crate) fn of(&self, site: &str) -> Option<&Pair> {
        self.get(self.key_of(site)?)
    }

    pub(crate) fn key_of(&self, site: &str) -> Option<PairKey> {
        self.by_site.get(site).copied()
    }

    /// Names the site at the other end of a pair; empty if the pair has ended.
    pub(crate) fn site_of(&self, key: PairKey) -> &str {
        self.get(key).map_or("", |pair| pair.site())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (PairKey, &Pair)> {
        self.table.iter()
    }

    /// Lists the keys of all pairs. They are collected first, because what is done with one pair may end
    /// others.
    pub(crate) fn keys(&self) -> Vec<PairKey> {
        self.table.keys()
    }

    /// Sends a message to the gateway of another site.
    pub(crate) fn tell(&mut self, driver: &Driver, key: PairKey, message: GatewayToGateway) {
        let Some(pair) = self.table.get_mut(key) else {
            return;
        };
        match message.encode() {
            Ok(bytes) => pair.tunnel.message(&bytes),
            Err(error) => driver.say(format_args!("message to {} not sent: {error}", pair.site)),
        }
        self.touch(key);
    }

    /// Gives a pair that may have something to send its turn before the loop sleeps.
    pub(crate) fn touch(&mut self, key: PairKey) {
        if let Some(pair) = self.table.get_mut(key)
            && !std::mem::replace(&mut pair.dirty, true)
        {
            self.dirty.push(key);
        }
    }

    /// Takes the pairs that may have something to send.
    pub(in crate::tunnels) fn take_dirty(&mut self) -> Vec<PairKey> {
        std::mem::take(&mut self.dirty)
    }

    pub(in crate::tunnels) fn has_dirty(&self) -> bool {
        !self.dirty.is_empty()
    }

    /// Notes that a pair gets its turn now; false if it has ended.
    pub(in crate::tunnels) fn untouch(&mut self, key: PairKey) -> bool {
        let pair = self.table.get_mut(key);
        pair.map(|pair| pair.dirty = false).is_some()
    }

    pub(in crate::tunnels) fn insert(&mut self, pair: Pair) -> PairKey {
        let site = pair.site.clone();
        let key = self.table.insert(pair);
        self.by_site.insert(site, key);
        key
    }

    pub(in crate::tunnels) fn try_remove(&mut self, key: PairKey) -> Option<Pair> {
        let pair = self.table.try_remove(key)?;
        self.by_site.remove(&pair.site);
        self.gone.push(pair.tunnel.owner());
        Some(pair)
    }

    /// Notes everything present as changed, and every change from now on.
    pub(in crate::tunnels) fn note_changes(&mut self) {
        self.table.note_changes();
    }

    /// Takes the keys of what has changed, or is gone.
    pub(in crate::tunnels) fn take_touched(&mut self) -> Vec<PairKey> {
        self.table.take_touched()
    }

    pub(in crate::tunnels) fn take_gone(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.gone)
    }

    /// Lends a pair for something that does not count as a change of it.
    pub(in crate::tunnels) fn untouched_mut(&mut self, key: PairKey) -> Option<&mut Pair> {
        self.table.untouched_mut(key)
    }

    /// Pretends that there is a tunnel with a site.
    #[cfg(test)]
    pub(crate) fn pretend(&mut self, site: &str, key: PairKey) {
        self.by_site.insert(site.to_owned(), key);
    }

    /// Pretends that there is no tunnel.
    #[cfg(test)]
    pub(crate) fn pretend_none(&mut self) {
        self.by_site.clear();
    }
}

impl Index<PairKey> for Pairs {
    type Output = Pair;

    fn index(&self, key: PairKey) -> &Pair {
        &self.table[key]
    }
}

impl IndexMut<PairKey> for Pairs {
    fn index_mut(&mut self, key: PairKey) -> &mut Pair {
        &mut self.table[key]
    }
}

impl FromIterator<(usize, Pair)> for Pairs {
    fn from_iter<I: IntoIterator<Item = (usize, Pair)>>(entries: I) -> Pairs {
        let table: Table<PairKey, Pair> = entries.into_iter().collect();
        let by_site = table.iter().map(|(key, pair)| (pair.site.clone(), key));
        Pairs {
            by_site: by_site.collect(),
            table,
            dirty: Vec::new(),
            gone: Vec::new(),
        }
    }
}
