//! What flows between tunnels and their streams.

use crate::commands::{Below, Commands};
use crate::keys::{LaneKey, PairKey};
use crate::membership::consent;
use crate::site::streams::Delivery;
use crate::tunnels::Tunnels;
use crate::tunnels::lane::LaneEnd;
use crate::tunnels::pump::write_lanes;
use crate::turn::Turn;
use causeway_tunnel::{Event, OpenRequest, StreamId, Target};
use causeway_wire::Reason;
use std::io;
use std::time::Instant;

/// Reads of one lane before the others get their turn.
const ROUNDS: usize = 8;

/// Fillings of one pair's lanes before the others get their turn.
const FILLINGS: usize = 8;

/// All that a tunnel's events may concern.
pub(crate) struct Flow<'a> {
    pub(crate) below: Below<'a>,
    pub(crate) commands: &'a mut Commands,
}

/// That of a gateway, which borrows nothing else of it.
macro_rules! flow {
    ($gateway:ident) => {
        $crate::flow::Flow {
            below: $crate::commands::below!($gateway),
            commands: &mut $gateway.commands,
        }
    };
}
pub(crate) use flow;

impl Flow<'_> {
    fn tunnels(&mut self) -> &mut Tunnels {
        self.below.base.tunnels
    }

    fn now(&self) -> Instant {
        self.below.base.driver.now
    }

    /// The kernel says that a lane is readable or writable.
    pub(crate) fn on_lane(&mut self, key: LaneKey, event: &mio::event::Event) {
        let Some(lane) = self.tunnels().lanes.get_mut(key) else {
            return;
        };
        lane.writable |= event.is_writable();
        lane.end_known |= event.is_read_closed() || event.is_error();
        let pair = lane.pair;
        // What it still holds from an earlier turn comes first, when this one's turn comes.
        let waits = lane.is_behind;
        self.tunnels().touch(pair);
        if event.is_readable() && !waits {
            self.receive(key);
        }
    }

    /// Takes in what has arrived.
    pub(crate) fn receive(&mut self, key: LaneKey) {
        match self.try_receive(key) {
            Ok(true) => self.tunnels().unread.push(key),
            Ok(false) => {}
            Err(end) => {
                let base = &mut self.below.base;
                base.tunnels.fail_lane(base.driver, key, &end);
            }
        }
    }

    /// True when there may be more to read.
    fn try_receive(&mut self, key: LaneKey) -> Result<bool, LaneEnd> {
        let Some(lane) = self.tunnels().lanes.get(key) else {
            return Ok(false);
        };
        let (pair, behind) = (lane.pair, lane.is_behind);
        let lanes = self.tunnels().pairs.get(pair);
        let lanes = lanes.map_or(1, |pair| pair.tunnel.lanes_up());
        let mut turn = Turn::begin(Instant::now(), lanes);
        if behind && !self.digest(key, &mut turn)? {
            return Ok(true);
        }
        for _ in 0..ROUNDS {
            let Some(lane) = self.tunnels().lanes.get_mut(key) else {
                return Ok(false);
            };
            let space = &mut lane.input[lane.filled..];
            let room = space.len();
            let emptied = match lane.carrier.read(space) {
                Ok(0) => return Err(LaneEnd::Closed),
                Ok(count) => {
                    lane.filled += count;
                    lane.received_bytes += count as u64;
                    // As with a leg: a short read has emptied the socket, unless its end is known and still
                    // to be read.
                    count < room && !lane.end_known && lane.carrier.short_read_empties()
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.into()),
            };
            if !self.digest(key, &mut turn)? {
                return Ok(true);
            }
            if emptied {
                return Ok(false);
            }
            // Frames that tell nothing take time too.
            if turn.ended(Instant::now()) {
                return Ok(true);
            }
        }
        Ok(true)
    }

    /// Acts on the whole frames of a lane's input and keeps the rest. False when the lane's turn was over
    /// before.
    fn digest(&mut self, key: LaneKey, turn: &mut Turn) -> Result<bool, LaneEnd> {
        let now = self.now();
        let Some(lane) = self.tunnels().lanes.get_mut(key) else {
            return Ok(true);
        };
        let (pair_key, number) = (lane.pair, lane.number);
        // Out of the lane while its events are handled: they may touch any part of the gateway.
        let mut input = std::mem::take(&mut lane.input);
        let filled = lane.filled;
        let mut rest = &input[..filled];
        let mut result = Ok(());
        let mut done = true;
        while let Some(pair) = self.tunnels().pairs.get_mut(pair_key) {
            result = match pair.tunnel.on_input(number.0, &mut rest, now) {
                Ok(None) => break,
                Ok(Some(event)) => self.on_tunnel_event(pair_key, event),
                Err(error) => Err(error.into()),
            };
            if result.is_err() {
                break;
            }
            if turn.is_over(Instant::now) {
                done = false;
                break;
            }
        }
        let left = rest.len();
        input.copy_within(filled - left..filled, 0);
        if let Some(lane) = self.tunnels().lanes.get_mut(key) {
            lane.input = input;
            lane.filled = left;
            lane.is_behind = !done;
        }
        result.map(|()| done)
    }

    /// Lets time pass for the tunnels that wait for it, and goes on with what those have to tell that had no
    /// time for it in an earlier turn.
    pub(crate) fn look_after_tunnels(&mut self) {
        let now = self.now();
        let due = self.tunnels().pairs.iter();
        let due = due.filter(|(_, pair)| pair.tunnel.deadline().is_some_and(|at| at <= now));
        let mut due: Vec<PairKey> = due.map(|(key, _)| key).collect();
        due.append(&mut self.tunnels().eventful);
        due.sort_unstable();
        due.dedup();
        for key in due {
            if let Some(pair) = self.tunnels().pairs.get_mut(key) {
                pair.tunnel.on_time(now);
            }
            self.take_events(key);
            self.tunnels().touch(key);
        }
    }

    /// Acts on what a tunnel has to tell that no input brings now.
    fn take_events(&mut self, key: PairKey) {
        let mut turn = Turn::begin(Instant::now(), 1);
        while let Some(event) = self
            .tunnels()
            .pairs
            .get_mut(key)
            .and_then(|pair| pair.tunnel.poll_event())
        {
            if let Err(end) = self.on_tunnel_event(key, event) {
                let base = &mut self.below.base;
                base.tunnels.end_pair(base.driver, key, &end, true);
            }
            if turn.is_over(Instant::now) {
                self.tunnels().eventful.push(key);
                return;
            }
        }
    }

    /// Fills and writes a pair's lanes until there is nothing to send, the kernel has enough, or others must
    /// have their turn.
    pub(crate) fn pump(&mut self, key: PairKey) {
        for _ in 0..FILLINGS {
            let base = &mut self.below.base;
            let Some(number) = base.tunnels.supply(base.driver, key) else {
                return;
            };
            if let Some(number) = number {
                self.below.site.fill(base, key, number);
            }
            let trains = base.tunnels.train(base.driver, key);
            let tunnels = &mut *base.tunnels;
            let Some(pair) = tunnels.pairs.get_mut(key) else {
                return;
            };
            let written = write_lanes(pair, &mut tunnels.lanes, base.driver.now);
            let more = !pair.turns.is_empty() || pair.tunnel.has_frames() || trains;
            // A leg that ended in this round put a frame in where nothing else was to be written.
            let takes = number.is_some_and(|number| pair.tunnel.has_control_for(number.0));
            let progress = written.progress || takes;
            if written.progress {
                // After the bytes have left: a message does not wait for it.
                base.tunnels.steer(base.driver, key);
            }
            if let Some((lane, error)) = written.lost {
                base.tunnels.close_lane(base.driver, lane, &LaneEnd::Io(error));
            } else if !progress || !more {
                return;
            }
        }
        self.tunnels().touch(key);
    }

    pub(crate) fn on_tunnel_event(&mut self, pair_key: PairKey, event: Event<'_>) -> Result<(), LaneEnd> {
        let Below { base, site, .. } = &mut self.below;
        match event {
            Event::Data(id, bytes) => site.on_data(base, pair_key, id, &bytes),
            Event::Sendable(id) => site.schedule_stream(base, pair_key, id),
            Event::Open(id, request) => self.on_open(pair_key, id, request),
            Event::Opened(id) => site.on_opened(base, pair_key, id),
            Event::Finished(id) => site.on_finished(base, pair_key, id),
            Event::Reset(id, reason) => site.on_reset(base, pair_key, id, reason),
            Event::Message(bytes) => return self.commands.on_message(&mut self.below, pair_key, &bytes),
            Event::LaneSilent(_) | Event::LaneDead(_) | Event::Expired => {
                base.tunnels.on_lane_event(base.driver, pair_key, &event);
            }
        }
        Ok(())
    }

    pub(crate) fn on_open(&mut self, pair_key: PairKey, id: StreamId, request: OpenRequest) {
        self.below.site.streams_opened += 1;
        let streams = self
            .tunnels()
            .pairs
            .get(pair_key)
            .map_or(0, |pair| pair.legs.len());
        let site = self.below.site_of(pair_key);
        let jobs = &self.below.base.membership.jobs;
        let named = jobs.named(&request.token, &self.below.base.driver.config.site, &site);
        let token = named.unwrap_or(request.token);
        let result = match request.target {
            _ if named.is_none() => self.refuse_unknown(&site, &request),
            _ if streams >= self.below.base.driver.files / 4 * 3 => {
                self.below.site.refuse_stream(&mut self.below.base, pair_key)
            }
            Target::Connection { source, destination } => {
                match self.below.site.open_delivery(
                    &mut self.below.base,
                    pair_key,
                    id,
                    token,
                    source,
                    destination,
                ) {
                    Ok(Delivery::Sink) => self.commands.open_sink(&mut self.below, pair_key, id, token),
                    other => other.map(drop),
                }
            }
            Target::Node(node) => self
                .commands
                .open_node(&mut self.below, pair_key, id, token, &node),
        };
        if let (Err(reason), Some(pair)) = (result, self.tunnels().pairs.get_mut(pair_key)) {
            pair.tunnel.reset(id, reason);
        }
    }

    /// A stream of a job that is not known here, or under a name that is not for this pair of sites.
    fn refuse_unknown(&mut self, site: &str, request: &OpenRequest) -> Result<(), Reason> {
        let why = match &request.target {
            Target::Connection { destination, .. } => {
                format!("stream to {destination} with an unknown job token")
            }
            Target::Node(node) => format!("process asked for on {node:?} with an unknown job token"),
        };
        let base = &mut self.below.base;
        consent::record_refusal(base, "unknown-token", site, request.token, why);
        Err(Reason::Denied)
    }
}
