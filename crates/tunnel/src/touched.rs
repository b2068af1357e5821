//! What has changed since it was last written to the journal.

use std::fmt;

/// Collects the keys of what has changed, if it is written to a journal.
pub(crate) struct Touched<K> {
    keys: Vec<K>,
    is_on: bool,
}

impl<K: Copy + Ord> Touched<K> {
    /// Records changes from now on.
    pub(crate) fn turn_on(&mut self) {
        self.is_on = true;
    }

    pub(crate) fn is_on(&self) -> bool {
        self.is_on
    }

    pub(crate) fn note(&mut self, key: K) {
        if self.is_on && self.keys.last() != Some(&key) {
            self.keys.push(key);
        }
    }

    /// Removes and returns each key once, in order.
    pub(crate) fn take(&mut self) -> Vec<K> {
        let mut keys = std::mem::take(&mut self.keys);
        keys.sort_unstable();
        keys.dedup();
        keys
    }
}

impl<K> Default for Touched<K> {
    fn default() -> Touched<K> {
        Touched {
            keys: Vec::new(),
            is_on: false,
        }
    }
}

/// All values are equal: what has changed is not part of the state.
impl<K> PartialEq for Touched<K> {
    fn eq(&self, _: &Touched<K>) -> bool {
        true
    }
}

/// A copy records nothing: it is not written to a journal.
impl<K> Clone for Touched<K> {
    fn clone(&self) -> Touched<K> {
        Touched::default()
    }
}

impl<K: fmt::Debug> fmt::Debug for Touched<K> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_list().entries(&self.keys).finish()
    }
}
