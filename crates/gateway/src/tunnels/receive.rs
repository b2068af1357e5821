//! What arrives on a lane, and how a lane ends. See `pump` for what it sends.

use crate::gateway::Gateway;
use crate::sys::token::Class;
use crate::tunnels::lane::{Lane, LaneEnd};
use crate::tunnels::lane_status::lane_status;
use causeway_tunnel::ProtocolError;
use std::io;

/// Reads of one lane before the others get their turn.
const ROUNDS: usize = 8;

impl Gateway {
    /// The kernel says that a lane is readable or writable.
    pub(crate) fn on_lane(&mut self, key: usize, event: &mio::event::Event) {
        let Some(lane) = self.tunnels.lanes.get_mut(key) else {
            return;
        };
        lane.writable |= event.is_writable();
        lane.end_known |= event.is_read_closed() || event.is_error();
        let pair = lane.pair;
        self.touch(pair);
        if event.is_readable() {
            self.receive(key);
        }
    }

    /// Takes in what has arrived.
    pub(crate) fn receive(&mut self, key: usize) {
        match self.try_receive(key) {
            Ok(true) => self.tunnels.unread.push(key),
            Ok(false) => {}
            Err(end) => self.fail_lane(key, &end),
        }
    }

    /// What the far gateway did wrong ends the pair: sent again, it would be as wrong. Anything else ends the lane.
    pub(crate) fn fail_lane(&mut self, key: usize, end: &LaneEnd) {
        let Some(lane) = self.tunnels.lanes.get(key) else {
            return;
        };
        match end {
            LaneEnd::Protocol(ProtocolError::Early) => self.close_lane(key, end),
            LaneEnd::Protocol(_) | LaneEnd::Refused(_) => self.end_pair(lane.pair, end, true),
            _ => self.close_lane(key, end),
        }
    }

    /// True when there may be more to read.
    fn try_receive(&mut self, key: usize) -> Result<bool, LaneEnd> {
        for _ in 0..ROUNDS {
            let Some(lane) = self.tunnels.lanes.get_mut(key) else {
                return Ok(false);
            };
            let space = &mut lane.input[lane.filled..];
            let room = space.len();
            let emptied = match lane.carrier.read(space) {
                Ok(0) => return Err(LaneEnd::Closed),
                Ok(count) => {
                    lane.filled += count;
                    lane.received_bytes += count as u64;
                    // As with a leg: a short read has emptied the socket, unless its end is known and still to be read.
                    count < room && !lane.end_known && lane.carrier.short_read_empties()
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.into()),
            };
            self.digest(key)?;
            if emptied {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Acts on the whole frames of a lane's input and keeps the rest.
    pub(crate) fn digest(&mut self, key: usize) -> Result<(), LaneEnd> {
        let now = self.driver.now;
        let Some(lane) = self.tunnels.lanes.get_mut(key) else {
            return Ok(());
        };
        let (pair_key, number) = (lane.pair, lane.number);
        // Out of the lane while its events are handled: they may touch any part of the gateway.
        let mut input = std::mem::take(&mut lane.input);
        let filled = lane.filled;
        let mut rest = &input[..filled];
        let mut result = Ok(());
        while let Some(pair) = self.tunnels.pairs.get_mut(pair_key) {
            result = match pair.tunnel.on_input(number, &mut rest, now) {
                Ok(None) => break,
                Ok(Some(event)) => self.on_tunnel_event(pair_key, event),
                Err(error) => Err(error.into()),
            };
            if result.is_err() {
                break;
            }
        }
        let left = rest.len();
        input.copy_within(filled - left..filled, 0);
        if let Some(lane) = self.tunnels.lanes.get_mut(key) {
            lane.input = input;
            lane.filled = left;
        }
        result
    }

    /// Ends a lane; its pair goes on.
    pub(crate) fn close_lane(&mut self, key: usize, end: &LaneEnd) {
        let through = self.tunnels.lanes.get(key).and_then(|lane| lane.through.clone());
        let Some((pair_key, number)) = self.discard_lane(key) else {
            return;
        };
        self.part_lane(pair_key, number, end, through.as_ref());
        // Where a better lane took its place, the relay is not to blame.
        let through = through.filter(|_| !matches!(end, LaneEnd::Replaced));
        if let Some(pair) = self.tunnels.pairs.get(pair_key) {
            self.bring_back(pair.peer, number, through.as_ref());
        }
    }

    /// Forgets a lane and closes its socket; its pair and its number there.
    pub(crate) fn discard_lane(&mut self, key: usize) -> Option<(usize, usize)> {
        let mut lane = self.tunnels.lanes.try_remove(key)?;
        self.keep_counts(&lane);
        lane.carrier.deregister(self.driver.registry());
        Some((lane.pair, lane.number))
    }

    pub(crate) fn lane_token(key: usize) -> mio::Token {
        Class::Lane.token(key)
    }

    /// A lane ends; its pair is still known.
    pub(crate) fn keep_counts(&mut self, lane: &Lane) {
        if let Some(pair) = self.tunnels.pairs.get(lane.pair) {
            self.tunnels.peers[pair.peer].totals.add_lane(&lane_status(lane));
        }
    }
}
