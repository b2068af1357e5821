//! How much of a turn goes into handshakes of strangers: a hello costs its sender little, but costs this
//! gateway a signature. Those that get no time wait for the next turn.

use crate::keys::HandshakeKey;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The part of a turn for strangers: a quarter of what a tunnel has.
const SHARE: Duration = Duration::from_micros(500);

/// How much of this turn strangers have used, and which of them wait.
#[derive(Default)]
pub(in crate::tunnels) struct Share {
    /// The turn, identified by its beginning.
    turn: Option<Instant>,
    used: Duration,
    waiting: VecDeque<HandshakeKey>,
    is_due: bool,
}

impl Share {
    /// Whether there is time for one more handshake in the turn that began at `turn`.
    pub(super) fn is_left(&mut self, turn: Instant) -> bool {
        if self.turn != Some(turn) {
            (self.turn, self.used) = (Some(turn), Duration::ZERO);
        }
        self.used < SHARE
    }

    pub(super) fn count(&mut self, used: Duration) {
        self.used += used;
    }

    /// Makes a handshake wait; true if a deadline has to be set for those that wait.
    pub(super) fn wait(&mut self, key: HandshakeKey) -> bool {
        if !self.waiting.contains(&key) {
            self.waiting.push_back(key);
        }
        !std::mem::replace(&mut self.is_due, true)
    }

    /// Takes the handshakes that have waited: some of them may have to wait again, and some may have ended.
    pub(super) fn take(&mut self) -> VecDeque<HandshakeKey> {
        self.is_due = false;
        std::mem::take(&mut self.waiting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strangers_have_a_share_of_each_turn_and_wait_in_order_for_the_next() {
        let (mut share, turn) = (Share::default(), Instant::now());
        let key = HandshakeKey;
        let mut done = 0;
        while share.is_left(turn) {
            share.count(SHARE / 4);
            done += 1;
        }
        assert_eq!(done, 4);
        assert!(share.wait(key(1)) && !share.wait(key(2)) && !share.wait(key(1)));
        assert_eq!(share.take(), [key(1), key(2)]);
        assert!(!share.is_left(turn) && share.is_left(turn + SHARE));
        assert!(share.wait(key(3)));
    }
}
