//! Looks after the lanes that have just sent.

use crate::driver::Driver;
use crate::keys::{LaneNumber, PairKey};
use crate::sys::socket::{self};
use crate::sys::timers::TunnelsDeadline;
use crate::tunnels::Tunnels;
use crate::tunnels::capacity;
use crate::tunnels::lanes::lane::Lane;
use crate::tunnels::pacing::remembered_rate::Step;
use crate::tunnels::pair::Pair;
use crate::tunnels::peers::Peers;
use mio::net::TcpStream;
use std::time::{Duration, Instant};

impl Tunnels {
    /// Looks after the lanes of a pair that have just sent.
    pub(in crate::tunnels) fn steer(&mut self, driver: &mut Driver, key: PairKey) {
        let now = driver.now;
        let (mut lossy, mut untrained, mut unfilled) = (false, Vec::new(), Vec::new());
        let Some(pair) = self.pairs.get(key) else {
            return;
        };
        for (number, key) in pair.lanes.iter() {
            let Some((key, lane)) = key.and_then(|key| Some((key, self.lanes.get_mut(key)?))) else {
                continue;
            };
            if lane.sent_at != Some(now) {
                continue;
            }
            if pair.tunnel.unsent_bytes(number.0) == 0
                && let Some(after) = lane.tail_probe.arm(lane.sent_bytes, now)
            {
                driver.set_deadline(after, TunnelsDeadline::TailProbe(key));
            }
            let trains = lane.training.is_some() || lane.training_turn.is_some();
            if trains || now < lane.remembered.look_at {
                continue;
            }
            note_path(&mut self.peers, pair, lane, now);
            let Some(tcp) = lane.carrier.tcp() else {
                if driver.config.train && is_quic_due(lane, now) {
                    untrained.push(key);
                }
                continue;
            };
            if !self.steers {
                continue;
            }
            let (Some(bbr), Ok(path)) = (socket::bbr(tcp), socket::path_info(tcp)) else {
                continue;
            };
            let rtt = Duration::from_micros(path.rtt_microseconds.into());
            lane.remembered.count_sent(lane.sent_bytes, now);
            lane.tail_probe.learn(path.retransmits, rtt, now);
            lossy |= lane.remembered.loses_by_chance(&path, now);
            let reserved = capacity::most_rate(&driver.config, &self.peers, pair);
            // If there is a lane over QUIC, it carries everything: padding on others would only fill its
            // queue.
            let trains = driver.config.train && pair.lanes[LaneNumber::QUIC].is_none();
            match lane.remembered.look(&path, &bbr, (reserved, trains), now) {
                Step::Train => untrained.push(key),
                Step::Fill => unfilled.push(key),
                step => take(&step, tcp),
            }
        }
        for lane in untrained {
            self.train_new(driver, lane);
        }
        for lane in unfilled {
            self.begin_training(driver, lane);
        }
        if lossy {
            self.on_lossy(driver, key);
        }
    }
}

/// Makes the lane's congestion control take this step.
fn take(step: &Step, tcp: &TcpStream) {
    match *step {
        Step::Begin(rate) => {
            // The bound comes first, because a start-up begins at nearly three times the pace of the window.
            let _ = socket::set_most_rate(tcp, Some(rate));
            socket::begin_anew(tcp);
        }
        Step::Bound(rate) => drop(socket::set_most_rate(tcp, Some(rate))),
        Step::Release => drop(socket::set_most_rate(tcp, None)),
        Step::Train | Step::Fill | Step::Nothing => {}
    }
}

/// Makes the next lane over the same path begin with what this one has found out.
fn note_path(peers: &mut Peers, pair: &Pair, lane: &mut Lane, now: Instant) {
    if let Some(path) = lane.known_path(now)
        && peers[pair.peer].paths.lacks(lane.number, &path)
    {
        peers[pair.peer].paths.note(lane.number, path);
    }
}

/// Whether a lane over QUIC that came up under streams, and was not trained by them, has to be trained now.
fn is_quic_due(lane: &mut Lane, now: Instant) -> bool {
    let rtt = lane.carrier.path().unwrap_or_default().rtt_microseconds;
    lane.remembered.look_at = now + Duration::from_micros(rtt.into());
    !lane.knows_its_rate() && lane.remembered.is_due(now)
}
