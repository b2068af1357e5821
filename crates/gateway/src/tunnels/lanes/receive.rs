//! Reads lanes, takes frames out of what has arrived, and ends lanes. `flow` acts on the frames.

use crate::driver::Driver;
use crate::keys::{LaneKey, LaneNumber, PairKey};
use crate::tunnels::Tunnels;
use crate::tunnels::lanes::Traffic;
use crate::tunnels::lanes::lane::{Lane, LaneEnd};
use crate::tunnels::lanes::status::lane_status;
use crate::turn::Turn;
use causeway_tunnel::{Event, ProtocolError};
use std::io::ErrorKind;
use std::time::Instant;

/// What one read of a lane returned.
pub(crate) enum Read {
    /// Bytes; `emptied`: the kernel has no more now.
    Bytes { emptied: bool },
    /// A signal came before any byte: the read has to be repeated.
    Interrupted,
    /// Nothing: the kernel will report when there is more.
    Nothing,
}

/// A lane's input, taken out of it while its events are acted on, because these may touch any part of the
/// gateway.
pub(crate) struct Input {
    pub(crate) pair: PairKey,
    number: LaneNumber,
    bytes: Vec<u8>,
    filled: usize,
}

impl Input {
    pub(crate) fn unread(&self) -> &[u8] {
        &self.bytes[..self.filled]
    }
}

impl Traffic<'_> {
    /// Notes that the kernel reports a lane as readable or writable. True if it is to be read now: if it
    /// still holds input from an earlier turn, that comes first, in the lane's next turn.
    pub(crate) fn on_lane_ready(&mut self, driver: &Driver, key: LaneKey, event: &mio::event::Event) -> bool {
        let Some(lane) = self.tunnels.lanes.get_mut(key) else {
            return false;
        };
        let is_over = event.is_read_closed() || event.is_error();
        if lane.writable && !event.is_readable() && !is_over {
            // The event woke this process for nothing.
            lane.watch_writable(driver.registry(), key, false);
            return false;
        }
        lane.writable |= event.is_writable();
        if is_over {
            lane.end_known = true;
            lane.carrier.note_end();
        }
        let (pair, waits) = (lane.pair, lane.is_behind);
        self.tunnels.pairs.touch(pair);
        event.is_readable() && !waits
    }

    /// Begins a lane's turn, and returns whether its input holds something that an earlier turn left over.
    pub(crate) fn begin_turn(&self, key: LaneKey) -> Option<(Turn, bool)> {
        let lane = self.tunnels.lanes.get(key)?;
        let pair = self.tunnels.pairs.get(lane.pair);
        let lanes = pair.map_or(1, |pair| pair.tunnel.lanes_up());
        Some((Turn::begin(Instant::now(), lanes), lane.is_behind))
    }

    /// Reads what has arrived on a lane into its input, once.
    pub(crate) fn read_lane(&mut self, key: LaneKey) -> Result<Read, LaneEnd> {
        let Some(lane) = self.tunnels.lanes.get_mut(key) else {
            return Ok(Read::Nothing);
        };
        let space = &mut lane.input[lane.filled..];
        let room = space.len();
        match lane.carrier.read(space) {
            Ok(0) => Err(LaneEnd::Closed),
            Ok(count) => {
                lane.filled += count;
                lane.received_bytes += count as u64;
                // As with a leg: after a short read the socket is empty, unless its end is known and has yet
                // to be read.
                let emptied = count < room && !lane.end_known && lane.carrier.short_read_empties();
                Ok(Read::Bytes { emptied })
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(Read::Nothing),
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(Read::Interrupted),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes a lane's input out of it; [`Traffic::give_back`] puts it back.
    pub(crate) fn take_input(&mut self, key: LaneKey) -> Option<Input> {
        let lane = self.tunnels.lanes.get_mut(key)?;
        Some(Input {
            pair: lane.pair,
            number: lane.number,
            bytes: std::mem::take(&mut lane.input),
            filled: lane.filled,
        })
    }

    /// Takes the next event of a lane's input, of which `rest` has yet to be acted on; `None` at its end.
    pub(crate) fn next_event<'a>(
        &mut self,
        input: &Input,
        rest: &mut &'a [u8],
        now: Instant,
    ) -> Result<Option<Event<'a>>, LaneEnd> {
        let Some(pair) = self.tunnels.pairs.get_mut(input.pair) else {
            return Ok(None);
        };
        Ok(pair.tunnel.on_input(input.number.0, rest, now)?)
    }

    /// Puts a lane's input back, whose last `left` bytes have yet to be acted on. `done`: they are not a
    /// whole frame.
    pub(crate) fn give_back(&mut self, key: LaneKey, mut input: Input, left: usize, done: bool) {
        let Some(lane) = self.tunnels.lanes.get_mut(key) else {
            return;
        };
        input.bytes.copy_within(input.filled - left..input.filled, 0);
        lane.input = input.bytes;
        lane.filled = left;
        lane.is_behind = !done;
    }

    /// Notes that a lane's turn is over, and that there may be more to read.
    pub(crate) fn read_later(&mut self, key: LaneKey) {
        self.tunnels.unread.push(key);
    }

    /// Runs the tunnels that are due; returns these, and those that had no time for their events.
    pub(crate) fn on_time(&mut self, now: Instant) -> Vec<PairKey> {
        let mut due = std::mem::take(&mut self.tunnels.eventful);
        for (key, pair) in self.tunnels.pairs.iter() {
            if pair.tunnel.deadline().is_some_and(|at| at <= now) {
                due.push(key);
            }
        }
        due.sort_unstable();
        due.dedup();
        for key in &due {
            if let Some(pair) = self.tunnels.pairs.get_mut(*key) {
                pair.tunnel.on_time(now);
            }
        }
        due
    }

    /// Takes the next event that a tunnel has without any input.
    pub(crate) fn poll_tunnel(&mut self, key: PairKey) -> Option<Event<'static>> {
        self.tunnels.pairs.get_mut(key)?.tunnel.poll_event()
    }

    /// Notes that a tunnel has more events than there is time for now.
    pub(crate) fn tell_later(&mut self, key: PairKey) {
        self.tunnels.eventful.push(key);
    }

    /// Ends what has failed. A mistake of the far gateway ends the pair, because the same bytes would be sent
    /// again. Anything else ends the lane.
    pub(crate) fn fail_lane(&mut self, driver: &mut Driver, key: LaneKey, end: &LaneEnd) {
        let Some(lane) = self.tunnels.lanes.get(key) else {
            return;
        };
        match end {
            LaneEnd::Protocol(ProtocolError::Early) => self.tunnels.close_lane(driver, key, end),
            LaneEnd::Protocol(_) | LaneEnd::Refused(_) => self.tunnels.end_pair(driver, lane.pair, end, true),
            _ => self.tunnels.close_lane(driver, key, end),
        }
    }
}

impl Tunnels {
    /// Ends a lane; its pair goes on.
    pub(in crate::tunnels) fn close_lane(&mut self, driver: &mut Driver, key: LaneKey, end: &LaneEnd) {
        let through = self.lanes.get(key).and_then(|lane| lane.through.clone());
        let Some((pair_key, number)) = self.discard_lane(driver, key) else {
            return;
        };
        self.part_lane(driver, pair_key, number, end, through.as_ref());
        // If a better lane took its place, the relay is not to blame.
        let through = through.filter(|_| !matches!(end, LaneEnd::Replaced));
        if let Some(pair) = self.pairs.get(pair_key) {
            self.bring_back(driver, pair.peer, number, through.as_ref());
        }
    }

    /// Forgets a lane and closes its socket; returns its pair and its number there.
    pub(in crate::tunnels) fn discard_lane(
        &mut self,
        driver: &mut Driver,
        key: LaneKey,
    ) -> Option<(PairKey, LaneNumber)> {
        let mut lane = self.lanes.try_remove(key)?;
        self.keep_knowledge(&mut lane, driver.now);
        lane.carrier.say_bye();
        lane.carrier.deregister(driver.registry());
        Some((lane.pair, lane.number))
    }

    /// A lane ends; its pair is still known. Its counts, and what it has found out, are kept.
    fn keep_knowledge(&mut self, lane: &mut Lane, now: Instant) {
        if let Some(pair) = self.pairs.get(lane.pair) {
            let peer = &mut self.peers[pair.peer];
            peer.totals.add_lane(&lane_status(lane));
            if let Some(path) = lane.known_path(now) {
                peer.paths.note(lane.number, path);
            }
        }
    }
}
