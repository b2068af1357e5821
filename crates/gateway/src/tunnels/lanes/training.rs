//! Fills new lanes until their congestion control knows the path; see `train`.

use crate::driver::Driver;
use crate::keys::{LaneKey, LaneNumber, PairKey};
use crate::sys::socket::{self};
use crate::sys::timers::TunnelsDeadline;
use crate::tunnels::Tunnels;
use crate::tunnels::capacity;
use crate::tunnels::capacity::BATCH;
use crate::tunnels::pacing::train::{TURN_LOOK, Training, TrainingTurn};

impl Tunnels {
    /// A lane has come up. If its path is known, it is filled at once. If not, the path is measured, but only
    /// if there are no streams: their bytes may train it, and padding would delay them.
    pub(in crate::tunnels) fn begin_training(&mut self, driver: &mut Driver, key: LaneKey) {
        let Some(lane) = self.lanes.get_mut(key) else {
            return;
        };
        let Some(pair) = self.pairs.get(lane.pair).filter(|_| driver.config.train) else {
            return;
        };
        let idle = pair.tunnel.streams() == 0;
        // A congestion control that cannot be bounded by what is known gains nothing by it.
        if lane.remembered.is_sure() && self.steers {
            let reserved = capacity::most_rate(&driver.config, &self.peers, pair);
            let rates = (lane.remembered.rate(), reserved);
            lane.training = Some(Training::fill(&lane.carrier, rates, idle, driver.now));
        } else if idle && !lane.knows_its_rate() {
            self.train_new(driver, key);
        }
    }

    /// Finds out the unknown rate of a lane.
    pub(in crate::tunnels) fn train_new(&mut self, driver: &mut Driver, key: LaneKey) {
        let now = driver.now;
        let Some(lane) = self.lanes.get_mut(key) else {
            return;
        };
        if lane.dialled || lane.carrier.tcp().is_none() {
            let idle = self
                .pairs
                .get(lane.pair)
                .is_some_and(|pair| pair.tunnel.streams() == 0);
            lane.training = Some(Training::begin(&lane.carrier, idle, now));
            return;
        }
        let path = lane.carrier.path().unwrap_or_default();
        lane.training_turn = Some(TrainingTurn::new(path.rtt_microseconds, now));
        driver.set_deadline(TURN_LOOK, TunnelsDeadline::TrainingTurn(key));
    }

    pub(in crate::tunnels) fn on_training_turn(&mut self, driver: &mut Driver, key: LaneKey) {
        let now = driver.now;
        let Some(lane) = self.lanes.get_mut(key) else {
            return;
        };
        // If the deadline comes too early, it was that of another lane with the same key.
        let Some(turn) = lane.training_turn.as_mut().filter(|turn| now >= turn.look_at) else {
            return;
        };
        if !turn.has_come(lane.received_bytes, now) {
            return driver.set_deadline(TURN_LOOK, TunnelsDeadline::TrainingTurn(key));
        }
        lane.training_turn = None;
        let Some(pair) = self.pairs.get(lane.pair) else {
            return;
        };
        // If there is a lane over QUIC, it carries everything; see `train`.
        if pair.lanes[LaneNumber::QUIC].is_none() && lane.training.is_none() {
            let idle = pair.tunnel.streams() == 0;
            lane.training = Some(Training::begin(&lane.carrier, idle, now));
            let pair = lane.pair;
            self.pairs.touch(pair);
        }
    }

    /// Fills the lanes of a pair that are being trained and have nothing else to do; true if there was one.
    pub(in crate::tunnels) fn train(&mut self, driver: &mut Driver, key: PairKey) -> bool {
        let now = driver.now;
        let Some(pair) = self.pairs.get_mut(key) else {
            return false;
        };
        let (mut trains, mut ended) = (false, false);
        // A lane over QUIC that has come up carries everything: padding on others would only fill its queue.
        let is_spare = pair.lanes[LaneNumber::QUIC].is_some();
        for number in LaneNumber::all() {
            let Some(lane) = pair.lanes[number].and_then(|lane| self.lanes.get_mut(lane)) else {
                continue;
            };
            let Some(mut training) = lane.training.take() else {
                continue;
            };
            let rate = capacity::most_rate(&driver.config, &self.peers, pair);
            let is_over = match lane.carrier.tcp() {
                Some(tcp) if is_spare || training.is_over(tcp, self.steers, rate, now) => {
                    let is_filled = training.is_filled(&lane.carrier.path().unwrap_or_default());
                    if is_filled || (is_spare && training.fills()) {
                        lane.remembered.filled(tcp, lane.sent_bytes, now);
                    } else if training.fills() {
                        lane.remembered.doubt(tcp, lane.sent_bytes, now);
                    } else {
                        let found = training.rate();
                        if found == 0 {
                            // The last bound was only a step on the way up.
                            let _ = socket::set_most_rate(tcp, rate);
                        }
                        lane.remembered.trained(tcp, found, lane.sent_bytes, now);
                    }
                    true
                }
                Some(_) => false,
                None => training.is_over_for(lane.knows_its_rate(), now),
            };
            if is_over {
                ended = true;
                continue;
            }
            let training = lane.training.insert(training);
            if !lane.writable || pair.tunnel.unsent_bytes(number.0) >= BATCH {
                continue;
            }
            let before = pair.tunnel.unsent_bytes(number.0);
            if pair.tunnel.pad(number.0, now) {
                training.sent_bytes += pair.tunnel.unsent_bytes(number.0) - before;
                trains = true;
            }
        }
        if ended {
            self.size_pair(driver, key);
        }
        trains
    }
}
