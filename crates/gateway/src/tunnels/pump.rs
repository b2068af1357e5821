//! Keeps the lanes of a pair supplied: acknowledgements and control frames first, then the legs that have something
//! to say, small frames before bulk, each read straight into the lane's memory behind its frame header.

use crate::gateway::Gateway;
use crate::site::leg::Leg;
use crate::tunnels::lane::{Lane, LaneEnd};
use crate::tunnels::pair::Pair;
use causeway_wire::Reason;
use slab::Slab;
use std::io;
use std::time::Instant;

/// Bytes that may wait unsent in the kernel, over all lanes of a pair (`socket::set_unsent_low_water`). Small frames
/// cannot overtake them: a millisecond at 1 Gbit/s.
pub(crate) const UNSENT_BYTES: u32 = 128 * 1024;

/// A lane's share of [`UNSENT_BYTES`] is never less than one large frame.
pub(crate) const LEAST_UNSENT_BYTES: u32 = 64 * 1024;

/// What a lane is filled with before it is written.
pub(crate) const BATCH: u64 = UNSENT_BYTES as u64;

/// Fillings of one pair's lanes before the others get their turn.
const ROUNDS: usize = 8;

/// What one turn of a leg brought.
enum Filled {
    /// It may have more.
    More,
    /// It has no bytes or no credit now.
    Waits,
    /// The process ended its half.
    Ended,
    /// The connection with the process broke.
    Broken,
}

/// What writing a pair's lanes came to.
#[derive(Default)]
struct Written {
    /// Bytes left, or a lane turned out to be full: another may take over.
    progress: bool,
    lost: Option<(usize, io::Error)>,
}

impl Gateway {
    /// Fills and writes a pair's lanes until there is nothing to send, the kernel has enough, or others must have their
    /// turn.
    pub(crate) fn pump(&mut self, key: usize) {
        for _ in 0..ROUNDS {
            let Some(number) = self.supply(key) else { return };
            if let Some(number) = number {
                self.fill(key, number);
            }
            let trains = self.train(key);
            let Some(pair) = self.tunnels.pairs.get_mut(key) else {
                return;
            };
            let written = write_lanes(pair, &mut self.tunnels.lanes, self.driver.now);
            let more = !pair.turns.is_empty() || pair.tunnel.has_frames() || trains;
            // A leg that ended in this round put a frame in where nothing else was to be written.
            let takes = number.is_some_and(|number| pair.tunnel.has_control_for(number));
            let progress = written.progress || takes;
            if written.progress {
                // After the bytes have left: a message does not wait for it.
                self.steer(key);
            }
            if let Some((lane, error)) = written.lost {
                self.close_lane(lane, &LaneEnd::Io(error));
            } else if !progress || !more {
                return;
            }
        }
        self.touch(key);
    }

    /// Puts what goes before data onto a pair's lanes. The lane that takes data next, if one does; nothing when there
    /// is no such pair.
    fn supply(&mut self, key: usize) -> Option<Option<usize>> {
        let now = self.driver.now;
        let (lanes, pair) = (&self.tunnels.lanes, self.tunnels.pairs.get_mut(key)?);
        let writable = |number: usize| {
            let lane = pair.lanes[number].and_then(|lane| lanes.get(lane));
            lane.is_some_and(|lane| lane.writable)
        };
        let number = pair.tunnel.choose_lane(writable);
        let takes_data = number.filter(|number| pair.tunnel.prepare(*number, BATCH, now));
        Some(takes_data)
    }

    /// Reads legs into a lane's memory.
    fn fill(&mut self, key: usize, number: usize) {
        let now = self.driver.now;
        loop {
            let Some(pair) = self.tunnels.pairs.get_mut(key) else {
                return;
            };
            let enough = pair.tunnel.unsent_bytes(number) >= BATCH;
            if enough || !pair.tunnel.has_room(number) {
                return;
            }
            let Some(leg_key) = pair.turns.pop() else { return };
            let leg = self.site.legs.get_mut(leg_key);
            let Some(leg) = leg.filter(|leg| leg.pair == key && leg.scheduled) else {
                continue;
            };
            leg.scheduled = false;
            let id = leg.id;
            match fill_from(pair, number, leg, now) {
                Filled::More => {
                    leg.take_turn(leg_key, &mut pair.turns, now);
                }
                Filled::Waits => {}
                Filled::Ended => {
                    leg.read_ended = true;
                    pair.tunnel.finish(id);
                    if leg.is_done() {
                        self.drop_leg(leg_key);
                    }
                }
                Filled::Broken => {
                    pair.tunnel.reset(id, Reason::Reset);
                    self.drop_leg(leg_key);
                }
            }
        }
    }
}

/// A lane's share of [`UNSENT_BYTES`].
pub(crate) fn unsent_share(lanes: usize) -> u32 {
    (UNSENT_BYTES / lanes.max(1) as u32).max(LEAST_UNSENT_BYTES)
}

/// Reads one leg into a lane's memory.
fn fill_from(pair: &mut Pair, number: usize, leg: &mut Leg, now: Instant) -> Filled {
    if leg.read_ended || !leg.readable {
        return Filled::Waits;
    }
    let space = pair.tunnel.reserve(number, leg.id);
    let most = space.len();
    if most == 0 {
        return Filled::Waits;
    }
    match leg.socket.read(space) {
        // Its error was taken when it was told of: what is left of it looks like an end, or like silence.
        Ok(0) if leg.broken => Filled::Broken,
        Ok(0) => Filled::Ended,
        Ok(count) => {
            pair.tunnel.commit(number, leg.id, count, now);
            pair.sent_bytes += count as u64;
            leg.sent_bytes += count as u64;
            pair.turns.spent(count);
            // A short read of a stream socket has emptied it: the next edge will tell (epoll(7), question 9), unless
            // the edge that told of the end has been and gone.
            leg.readable = count == most || leg.end_known;
            leg.pace.on_read(count, count < most, now);
            if leg.readable { Filled::More } else { Filled::Waits }
        }
        Err(error) if error.kind() == io::ErrorKind::WouldBlock && !leg.broken => {
            leg.readable = false;
            Filled::Waits
        }
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Filled::More,
        Err(_) => Filled::Broken,
    }
}

/// Writes what the lanes of a pair have to send, each until it is empty or the kernel has enough.
fn write_lanes(pair: &mut Pair, lanes: &mut Slab<Lane>, now: Instant) -> Written {
    let mut written = Written::default();
    for (number, key) in pair.lanes.iter().enumerate() {
        let Some((key, lane)) = key.and_then(|key| Some((key, lanes.get_mut(key)?))) else {
            continue;
        };
        pair.tunnel.put_ack(number, now);
        if lane.writable {
            match lane.carrier.flush() {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => lane.writable = false,
                // Whatever else is wrong, the next write or read tells.
                _ => {}
            }
        }
        while lane.writable {
            let bytes = pair.tunnel.unsent(number);
            if bytes.is_empty() {
                break;
            }
            match lane.carrier.write(bytes) {
                Ok(count) => {
                    pair.tunnel.sent(number, count, now);
                    lane.on_sent(count, now);
                    written.progress = true;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    lane.writable = false;
                    written.progress = true;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    written.lost = Some((key, error));
                    break;
                }
            }
        }
        // TLS has taken bytes that the kernel has not: it will tell when it can.
        lane.writable &= !lane.carrier.has_pending();
        lane.course.on_written(!lane.writable, now);
        // Training has always more.
        let full = !lane.writable || lane.training.is_some();
        lane.carrier.on_written(full, now);
    }
    written
}
