//! Reads the sockets of processes straight into the memory of the lane that carries their streams.

use crate::base::Base;
use crate::keys::{LaneNumber, LegKey, PairKey};
use crate::site::SiteSide;
use crate::site::leg::Leg;
use crate::tunnels::capacity::BATCH;
use crate::tunnels::pair::Pair;
use causeway_wire::Reason;
use std::io;
use std::time::Instant;

/// The result of one turn of a leg.
enum Filled {
    /// The leg may have more.
    More,
    /// The leg has no bytes, or no credit, now.
    Waits,
    /// The process ended its half.
    Ended,
    /// The connection with the process broke.
    Broken,
}

impl SiteSide {
    /// Reads legs into a lane's memory.
    pub(crate) fn fill(&mut self, base: &mut Base<'_>, key: PairKey, number: LaneNumber) {
        let now = base.driver.now;
        loop {
            let Some(pair) = base.tunnels.pair_mut(key) else {
                return;
            };
            let enough = pair.tunnel().unsent_bytes(number.0) >= BATCH;
            if enough || !pair.tunnel().has_room(number.0) {
                return;
            }
            let Some(leg_key) = pair.turns().pop().map(LegKey) else {
                return;
            };
            let leg = self.legs.get_mut(leg_key);
            let Some(leg) = leg.filter(|leg| leg.pair == key && leg.scheduled) else {
                continue;
            };
            leg.scheduled = false;
            let id = leg.id;
            match fill_from(pair, number, leg, now) {
                Filled::More => {
                    leg.take_turn(leg_key, pair.turns(), now);
                }
                Filled::Waits => {}
                Filled::Ended => {
                    leg.read_ended = true;
                    pair.tunnel().finish(id);
                    if leg.is_done() {
                        self.drop_leg(base, leg_key);
                    }
                }
                Filled::Broken => {
                    pair.tunnel().reset(id, Reason::Reset);
                    self.drop_leg(base, leg_key);
                }
            }
        }
    }
}

/// Reads one leg into a lane's memory.
fn fill_from(pair: &mut Pair, number: LaneNumber, leg: &mut Leg, now: Instant) -> Filled {
    if leg.read_ended || !leg.readable {
        return Filled::Waits;
    }
    if leg.take_preface_off().is_err() {
        return Filled::Broken;
    }
    let space = pair.tunnel().reserve(number.0, leg.id);
    let most = space.len();
    if most == 0 {
        return Filled::Waits;
    }
    let read = leg.socket.read(space);
    if !matches!(read, Ok(1..)) {
        pair.tunnel().release(number.0);
    }
    match read {
        // Its error was taken when it was reported; the rest looks like an end, or like silence.
        Ok(0) if leg.broken => Filled::Broken,
        Ok(0) => Filled::Ended,
        Ok(count) => {
            pair.tunnel().commit(number.0, leg.id, count, now);
            leg.sent_bytes += count as u64;
            pair.count_sent(count);
            // A short read of a stream socket means that it is empty: the next edge will say when it no
            // longer is (epoll(7), question 9), unless the edge that reported the end or urgent data has
            // already come.
            leg.readable = count == most || leg.end_known || leg.has_urgent;
            leg.pace.on_read(count, count < most, now);
            if leg.readable { Filled::More } else { Filled::Waits }
        }
        Err(error) if error.kind() == io::ErrorKind::WouldBlock && !leg.broken => {
            leg.readable = false;
            leg.has_urgent = false;
            Filled::Waits
        }
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Filled::More,
        Err(_) => Filled::Broken,
    }
}
