//! What tunnels have to do in each turn of the loop without an event of the kernel.

use crate::driver::Driver;
use crate::keys::{LaneKey, PairKey};
use crate::tunnels::Tunnels;
use std::time::{Duration, Instant};

/// Lends what does the tunnels' part of a turn of the loop.
pub(crate) struct Chores<'a> {
    tunnels: &'a mut Tunnels,
}

impl Tunnels {
    /// Lends what does the tunnels' part of a turn.
    pub(crate) fn chores(&mut self) -> Chores<'_> {
        Chores { tunnels: self }
    }

    /// Whether there is something to do that the kernel does not report.
    fn is_busy(&self) -> bool {
        let lanes = !self.unread.is_empty() || self.has_unread_datagrams();
        lanes || self.pairs.has_dirty() || !self.eventful.is_empty()
    }

    /// When the next tunnel or QUIC connection is due.
    fn deadline(&mut self) -> Option<Instant> {
        let tunnels = self.pairs.iter().filter_map(|(_, pair)| pair.tunnel.deadline());
        [tunnels.min(), self.quic_deadline()].into_iter().flatten().min()
    }
}

impl Chores<'_> {
    /// Returns how long the loop may sleep, and notes what the last turn left over.
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

    /// Reads the datagrams that the last turn left over, and runs the QUIC connections that are due.
    pub(crate) fn look_after_quic(&mut self, driver: &mut Driver) {
        if self.tunnels.quic.as_ref().is_some_and(|quic| quic.is_left) {
            self.tunnels.receive_quic(driver);
        }
        self.tunnels.look_after_quic(driver);
    }

    /// Takes the lanes from which more is to be read, each once.
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

    /// Notes that a pair gets its turn now; false if it has ended.
    pub(crate) fn untouch(&mut self, pair: PairKey) -> bool {
        self.tunnels.pairs.untouch(pair)
    }

    /// Passes events from QUIC connections to their endpoint, and back.
    pub(crate) fn drive_quic(&mut self, driver: &mut Driver) {
        self.tunnels.drive_quic(driver);
    }
}
