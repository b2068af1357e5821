//! What tunnels have to do in each turn of the loop that no event of the kernel brings.

use crate::driver::Driver;
use crate::keys::{LaneKey, PairKey};
use crate::tunnels::Tunnels;
use std::time::{Duration, Instant};

/// Lends what a turn of the loop does for tunnels.
pub(crate) struct Chores<'a> {
    tunnels: &'a mut Tunnels,
}

impl Tunnels {
    /// Lends what a turn of the loop does.
    pub(crate) fn chores(&mut self) -> Chores<'_> {
        Chores { tunnels: self }
    }

    /// Whether something is to be done that the kernel does not report.
    fn is_busy(&self) -> bool {
        let lanes = !self.unread.is_empty() || self.has_unread_datagrams();
        lanes || self.pairs.has_dirty() || !self.eventful.is_empty()
    }

    /// When the tunnels, or connections of QUIC, are due next.
    fn deadline(&mut self) -> Option<Instant> {
        let tunnels = self.pairs.iter().filter_map(|(_, pair)| pair.tunnel.deadline());
        [tunnels.min(), self.quic_deadline()].into_iter().flatten().min()
    }
}

impl Chores<'_> {
    /// Returns how long the loop may sleep, and notes what the turn before has left.
    pub(crate) fn wait(&mut self) -> Option<Duration> {
        if let Some(quic) = &mut self.tunnels.quic {
            quic.is_left = quic.unread;
        }
        if self.tunnels.is_busy() {
            return Some(Duration::ZERO);
        }
        let at = self.tunnels.deadline()?;
        Some(at.saturating_duration_since(Instant::now()))
    }

    /// Reads the datagrams that the turn before has left, and runs the connections of QUIC that are due.
    pub(crate) fn look_after_quic(&mut self, driver: &mut Driver) {
        if self.tunnels.quic.as_ref().is_some_and(|quic| quic.is_left) {
            self.tunnels.receive_quic(driver);
        }
        self.tunnels.look_after_quic(driver);
    }

    /// Takes the lanes that are to be read on, each once.
    pub(crate) fn take_unread(&mut self) -> Vec<LaneKey> {
        let mut unread = std::mem::take(&mut self.tunnels.unread);
        unread.sort_unstable();
        unread.dedup();
        unread
    }

    /// Takes the pairs that may have something to send.
    pub(crate) fn take_dirty(&mut self) -> Vec<PairKey> {
        self.tunnels.pairs.take_dirty()
    }

    /// Gives a pair its turn now; false where it has ended.
    pub(crate) fn untouch(&mut self, pair: PairKey) -> bool {
        self.tunnels.pairs.untouch(pair)
    }

    /// Takes what connections of QUIC have for their endpoint, and the other way round.
    pub(crate) fn drive_quic(&mut self, driver: &mut Driver) {
        self.tunnels.drive_quic(driver);
    }
}
