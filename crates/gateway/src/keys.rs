//! How owners name what another owner has: by numbers of different types, so that they cannot be confused.

use causeway_tunnel::tunnel::MAX_LANES;
use slab::Slab;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

/// A number of one kind.
pub(crate) trait Key: Copy {
    fn new(number: usize) -> Self;
    fn number(self) -> usize;
}

macro_rules! keys {
    ($($(#[$doc:meta])* $name:ident,)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub(crate) struct $name(pub(crate) usize);

        impl Key for $name {
            fn new(number: usize) -> $name {
                $name(number)
            }

            fn number(self) -> usize {
                self.0
            }
        }
    )*};
}

keys! {
    /// A pair of sites, this one and another, with their tunnel.
    PairKey,
    /// A connection under a tunnel.
    LaneKey,
    /// A connection with a process of this site.
    LegKey,
    /// Another site's place among those that are known; see `Tunnels::peers`.
    PeerIndex,
    /// A connection whose preface is being read.
    IntakeKey,
    /// A connection between gateways that is not a lane yet.
    HandshakeKey,
    /// A connection of a command of this host.
    CommandKey,
    /// Two connections of other sites that are carried as one.
    SpliceKey,
    /// A lane's number in its pair, from 0.
    LaneNumber,
}

/// Values by keys of one kind, which are reused once they are free.
pub(crate) struct Table<K, T> {
    slab: Slab<T>,
    key: PhantomData<K>,
    /// What has changed since this was last asked, if changes are noted.
    touched: Option<Vec<usize>>,
}

impl<K: Key, T> Table<K, T> {
    pub(crate) fn new() -> Table<K, T> {
        Table {
            slab: Slab::new(),
            key: PhantomData,
            touched: None,
        }
    }

    /// Notes everything present as changed, and every change from now on.
    pub(crate) fn note_changes(&mut self) {
        self.touched = Some(self.slab.iter().map(|(key, _)| key).collect());
    }

    fn touch(&mut self, key: usize) {
        if let Some(touched) = &mut self.touched
            && touched.last() != Some(&key)
        {
            touched.push(key);
        }
    }

    /// Takes the keys of entries that have changed or are gone, each once.
    pub(crate) fn take_touched(&mut self) -> Vec<K> {
        let mut touched = self.touched.as_mut().map(std::mem::take).unwrap_or_default();
        touched.sort_unstable();
        touched.dedup();
        touched.into_iter().map(K::new).collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.slab.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.slab.is_empty()
    }

    pub(crate) fn vacant_key(&self) -> K {
        K::new(self.slab.vacant_key())
    }

    pub(crate) fn insert(&mut self, value: T) -> K {
        let key = self.slab.insert(value);
        self.touch(key);
        K::new(key)
    }

    pub(crate) fn get(&self, key: K) -> Option<&T> {
        self.slab.get(key.number())
    }

    pub(crate) fn get_mut(&mut self, key: K) -> Option<&mut T> {
        self.touch(key.number());
        self.slab.get_mut(key.number())
    }

    /// The same, for uses that change nothing.
    pub(crate) fn untouched_mut(&mut self, key: K) -> Option<&mut T> {
        self.slab.get_mut(key.number())
    }

    pub(crate) fn try_remove(&mut self, key: K) -> Option<T> {
        self.touch(key.number());
        self.slab.try_remove(key.number())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (K, &T)> {
        self.slab.iter().map(|(key, value)| (K::new(key), value))
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (K, &mut T)> {
        if let Some(touched) = &mut self.touched {
            touched.extend(self.slab.iter().map(|(key, _)| key));
        }
        self.slab.iter_mut().map(|(key, value)| (K::new(key), value))
    }

    pub(crate) fn clear(&mut self) {
        if let Some(touched) = &mut self.touched {
            touched.extend(self.slab.iter().map(|(key, _)| key));
        }
        self.slab.clear();
    }

    /// Lists the keys first, because what is done with one entry may remove others.
    pub(crate) fn keys(&self) -> Vec<K> {
        self.iter().map(|(key, _)| key).collect()
    }
}

impl<K: Key, T> Index<K> for Table<K, T> {
    type Output = T;

    fn index(&self, key: K) -> &T {
        &self.slab[key.number()]
    }
}

impl<K: Key, T> IndexMut<K> for Table<K, T> {
    fn index_mut(&mut self, key: K) -> &mut T {
        self.touch(key.number());
        &mut self.slab[key.number()]
    }
}

impl<K: Key, T> Default for Table<K, T> {
    fn default() -> Table<K, T> {
        Table::new()
    }
}

impl<K, T> FromIterator<(usize, T)> for Table<K, T> {
    fn from_iter<I: IntoIterator<Item = (usize, T)>>(entries: I) -> Table<K, T> {
        Table {
            slab: entries.into_iter().collect(),
            key: PhantomData,
            touched: None,
        }
    }
}

/// Append-only values, whose numbers stay valid.
pub(crate) struct List<K, T> {
    values: Vec<T>,
    key: PhantomData<K>,
}

impl<K: Key, T> List<K, T> {
    pub(crate) fn len(&self) -> usize {
        self.values.len()
    }

    pub(crate) fn push(&mut self, value: T) -> K {
        self.values.push(value);
        K::new(self.values.len() - 1)
    }

    pub(crate) fn get(&self, key: K) -> Option<&T> {
        self.values.get(key.number())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (K, &T)> {
        self.values
            .iter()
            .enumerate()
            .map(|(key, value)| (K::new(key), value))
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &T> {
        self.values.iter()
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = K> + use<K, T> {
        (0..self.values.len()).map(K::new)
    }
}

impl<K, T> From<Vec<T>> for List<K, T> {
    fn from(values: Vec<T>) -> List<K, T> {
        List {
            values,
            key: PhantomData,
        }
    }
}

impl<K: Key, T> Index<K> for List<K, T> {
    type Output = T;

    fn index(&self, key: K) -> &T {
        &self.values[key.number()]
    }
}

impl<K: Key, T> IndexMut<K> for List<K, T> {
    fn index_mut(&mut self, key: K) -> &mut T {
        &mut self.values[key.number()]
    }
}

/// A value for each lane of a pair.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ByNumber<T>([T; MAX_LANES]);

impl<T> ByNumber<T> {
    pub(crate) fn iter(&self) -> impl Iterator<Item = (LaneNumber, &T)> {
        self.0
            .iter()
            .enumerate()
            .map(|(number, value)| (LaneNumber(number), value))
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &T> + Clone {
        self.0.iter()
    }

    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.0.iter_mut()
    }

    pub(crate) fn into_values(self) -> impl Iterator<Item = T> {
        self.0.into_iter()
    }
}

impl<T: Default + Copy> Default for ByNumber<T> {
    fn default() -> ByNumber<T> {
        ByNumber([T::default(); MAX_LANES])
    }
}

impl<T> Index<LaneNumber> for ByNumber<T> {
    type Output = T;

    fn index(&self, number: LaneNumber) -> &T {
        &self.0[number.0]
    }
}

impl<T> IndexMut<LaneNumber> for ByNumber<T> {
    fn index_mut(&mut self, number: LaneNumber) -> &mut T {
        &mut self.0[number.0]
    }
}

impl fmt::Display for LaneNumber {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(to)
    }
}

impl LaneNumber {
    /// Number of the lane over QUIC beside those over TCP.
    pub(crate) const QUIC: LaneNumber = LaneNumber(MAX_LANES - 1);

    /// The numbers of all lanes that a pair may have.
    pub(crate) fn all() -> impl Iterator<Item = LaneNumber> {
        (0..MAX_LANES).map(LaneNumber)
    }
}
