//! Chooses the lane of a pair that takes data next, and writes lanes to their connections: control frames
//! are sent before data, an acknowledgement with it. In between, `site::fill` reads the data of legs straight
//! into the lane's memory.

use crate::driver::Driver;
use crate::keys::{LaneKey, LaneNumber, PairKey, Table};
use crate::tunnels::capacity::BATCH;
use crate::tunnels::lanes::Traffic;
use crate::tunnels::lanes::lane::{Lane, LaneEnd};
use crate::tunnels::pair::Pair;
use std::io;

/// Where a pair's next data is put.
pub(crate) enum Supply {
    /// Into this lane.
    Lane(LaneNumber),
    /// Nowhere now: no lane takes data.
    Full,
    /// Nowhere: the pair has ended.
    NoPair,
}

/// The result of writing a pair's lanes.
#[derive(Default)]
struct Written {
    /// Whether bytes were sent, or a lane turned out to be full, so that another may take over.
    progress: bool,
    lost: Option<(LaneKey, io::Error)>,
}

impl Traffic<'_> {
    /// Puts what is sent before data into a pair's lanes, and returns the lane that takes data next.
    pub(crate) fn supply(&mut self, driver: &mut Driver, key: PairKey) -> Supply {
        let now = driver.now;
        let (lanes, Some(pair)) = (&self.tunnels.lanes, self.tunnels.pairs.get_mut(key)) else {
            return Supply::NoPair;
        };
        let writable = |number: LaneNumber| {
            let lane = pair.lanes[number].and_then(|lane| lanes.get(lane));
            lane.is_some_and(|lane| lane.writable)
        };
        let number = pair.tunnel.choose_lane(|number| writable(LaneNumber(number)));
        let number = number.map(LaneNumber);
        match number.filter(|number| pair.tunnel.prepare(number.0, BATCH, now)) {
            Some(number) => Supply::Lane(number),
            None => Supply::Full,
        }
    }

    /// Writes a pair's lanes, of which `filled` has been given data. True if there is more to do for the pair
    /// now.
    pub(crate) fn write_pair(
        &mut self,
        driver: &mut Driver,
        key: PairKey,
        filled: Option<LaneNumber>,
    ) -> bool {
        let trains = self.tunnels.train(driver, key);
        let Some(pair) = self.tunnels.pairs.get_mut(key) else {
            return false;
        };
        let written = write_lanes(driver, pair, &mut self.tunnels.lanes);
        let more = !pair.turns.is_empty() || pair.tunnel.has_frames() || trains;
        // A leg that ended in this round has put in a frame, although nothing else was to be written.
        let takes = filled.is_some_and(|number| pair.tunnel.has_control_for(number.0));
        if written.progress {
            // After the bytes have been sent, so that no message waits for it.
            self.tunnels.steer(driver, key);
        }
        if let Some((lane, error)) = written.lost {
            self.tunnels.close_lane(driver, lane, &LaneEnd::Io(error));
            return true;
        }
        (written.progress || takes) && more
    }
}

/// Writes what the lanes of a pair have to send, each until it is empty or the kernel accepts no more.
fn write_lanes(driver: &Driver, pair: &mut Pair, lanes: &mut Table<LaneKey, Lane>) -> Written {
    let now = driver.now;
    let mut written = Written::default();
    for (number, key) in pair.lanes.iter() {
        let Some((key, lane)) = key.and_then(|key| Some((key, lanes.get_mut(key)?))) else {
            continue;
        };
        pair.tunnel.put_ack(number.0, now);
        if lane.writable {
            match lane.carrier.flush() {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => lane.writable = false,
                // Any other error shows again at the next write or read.
                _ => {}
            }
        }
        while lane.writable {
            let bytes = pair.tunnel.unsent(number.0);
            if bytes.is_empty() {
                break;
            }
            match lane.carrier.write(bytes) {
                Ok(count) => {
                    pair.tunnel.sent(number.0, count, now);
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
        // TLS has accepted bytes that the kernel has not: the kernel will report when it can take them.
        lane.writable &= !lane.carrier.has_pending();
        if !lane.writable {
            lane.watch_writable(driver.registry(), key, true);
        }
        lane.remembered.on_written(!lane.writable, now);
        // Training always has more to send.
        let full = !lane.writable || lane.training.is_some();
        lane.carrier.on_written(full, now);
    }
    written
}
