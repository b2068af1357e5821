//! Sends on the lanes: decides which one takes a frame, what goes first, and what becomes of the frames of a
//! lane that stalls or dies.

use crate::event::{Event, StreamId};
use crate::frame::{HEADER_BYTES, Header, Kind, MAX_PAYLOAD};
use crate::lane::Lane;
use crate::ring::{Ring, frames};
use crate::settings::{CONTROL_BYTES, SMALL_FRAME};
use crate::tunnel::{MAX_LANES, Tunnel};
use std::time::{Duration, Instant};

/// The least rest of a block that a read may be cut to, so that few bytes of a block stay unused and few
/// reads are short.
const SHORTEST_READ: usize = 16 * 1024;

impl Tunnel {
    /// Adds a lane, new and empty in both directions. `lane` is below [`MAX_LANES`] and not up.
    pub fn lane_up(&mut self, lane: usize, now: Instant) {
        self.lane_down(lane, now);
        self.lanes[lane] = Some(Box::new(Lane::new(now, self.shelf.clone())));
        self.dark_since = None;
    }

    /// Removes a lane. What it carried and the far side has not acknowledged waits for the others, ahead of
    /// new data.
    pub fn lane_down(&mut self, lane: usize, now: Instant) {
        self.retransmit(lane);
        if self.lanes[lane].take().is_none() {
            return;
        }
        self.keep_orphaned_retransmits();
        if self.lanes_up() == 0 {
            self.dark_since = Some(now);
        }
    }

    /// Keeps the retransmits, whose lanes are gone, for the next process.
    pub(crate) fn keep_orphaned_retransmits(&mut self) {
        self.graves.clear();
        if !self.shelf.arena.is_shared() {
            return;
        }
        let mut ring = Ring::new(self.shelf.clone());
        let (taken, _) = self.retransmits.positions();
        frames(self.retransmits.since(taken)).for_each(|(_, frame)| ring.put(frame));
        self.graves = ring.into_blocks().collect();
        self.graves_from = taken;
    }

    /// Drops the copies of retransmits that are on a lane again.
    fn unearth(&mut self) {
        let (taken, _) = self.retransmits.positions();
        while let Some(block) = self.graves.front_mut() {
            let moved = taken - self.graves_from;
            let filled = block.filled() as u64;
            if moved < filled {
                // Fits: a block is shorter.
                return block.set_done(moved as usize);
            }
            self.graves_from += filled;
            self.graves.pop_front();
        }
    }

    /// Counts the lanes that are up.
    pub fn lanes_up(&self) -> usize {
        self.lanes.iter().flatten().count()
    }

    /// Whether [`Event::LaneSilent`] reported a lane that has not been heard since.
    pub fn is_silent(&self, lane: usize) -> bool {
        let state = self.lanes.get(lane).and_then(Option::as_ref);
        state.is_some_and(|state| state.silent)
    }

    /// Makes this lane carry everything while it is well: the others share its path, and know it less well.
    pub fn favour(&mut self, lane: usize) {
        if let Some(state) = self.lanes.get_mut(lane).and_then(Option::as_mut) {
            state.favoured = true;
        }
    }

    /// The best lane for the next frames among those the driver can write to: the one with the least to send.
    /// Stalled ones are left alone while there is another, and others while there is a favoured one.
    pub fn choose_lane(&self, usable: impl Fn(usize) -> bool) -> Option<usize> {
        let any_favoured = self
            .lanes
            .iter()
            .flatten()
            .any(|lane| !lane.stalled && lane.favoured);
        let is_eligible = |lane: &Lane| lane.favoured || !any_favoured;
        self.best_lane(|index, lane| is_eligible(lane) && usable(index))
    }

    fn best_lane(&self, usable: impl Fn(usize, &Lane) -> bool) -> Option<usize> {
        let any_good = self.lanes.iter().flatten().any(|lane| !lane.stalled);
        let lanes = self.lanes.iter().enumerate();
        let lanes = lanes.filter_map(|(index, lane)| Some((index, lane.as_ref()?)));
        lanes
            .filter(|(index, lane)| !(any_good && lane.stalled) && usable(*index, lane))
            .min_by_key(|(_, lane)| {
                (
                    lane.ring.kept() >= self.settings.lane_bytes,
                    lane.ring.unsent_bytes(),
                )
            })
            .map(|(index, _)| index)
    }

    /// Puts onto a lane what goes before data: control frames, and retransmits while it has less than
    /// `batch` bytes to send. False when retransmits are left, which new data must not overtake.
    pub fn prepare(&mut self, lane: usize, batch: u64, now: Instant) -> bool {
        let Some(state) = self.lanes.get_mut(lane).and_then(Option::as_mut) else {
            return false;
        };
        let before = state.ring.end();
        let most = (self.settings.lane_bytes + CONTROL_BYTES).saturating_sub(state.ring.kept());
        let unsent = state.ring.unsent_bytes() + most;
        self.control.move_to(&mut state.ring, unsent);
        let room = self.settings.lane_bytes.saturating_sub(state.ring.kept());
        let most = batch.min(state.ring.unsent_bytes() + room);
        let all = self.retransmits.move_to(&mut state.ring, most);
        if state.ring.end() > before {
            state.asked(now);
        }
        self.unearth();
        all
    }

    /// Puts the acknowledgement of what arrived onto a lane, if it may wait no longer or has company. Call it
    /// before a lane is written: alone, it would cost a packet and wake the far gateway for nothing.
    pub fn put_ack(&mut self, lane: usize, now: Instant) {
        // Twice the room: if both ends withheld acknowledgements, both would wait for ever.
        let most = self.settings.lane_bytes + 2 * CONTROL_BYTES;
        if let Some(state) = self.lanes.get_mut(lane).and_then(Option::as_mut)
            && (state.ring.unsent_bytes() > 0 || state.owes_now(now))
            && state.ring.kept() < most
        {
            state.acknowledge();
        }
    }

    /// Repeats the acknowledgement on a lane though the far side has it: a small frame that arrives after
    /// what was sent before.
    pub fn repeat_ack(&mut self, lane: usize) {
        if let Some(state) = self.lanes.get_mut(lane).and_then(Option::as_mut) {
            state.repeat_ack();
        }
    }

    /// Returns room for the next bytes of a stream on a lane; empty when the stream or the lane must wait.
    /// Tell [`Tunnel::commit`] how many it took.
    pub fn reserve(&mut self, lane: usize, id: StreamId) -> &mut [u8] {
        let most = self.sendable(id);
        let sent = self.streams.get(id.0).map_or(0, |stream| stream.sent);
        let lane_bytes = self.settings.lane_bytes;
        match self.lanes.get_mut(lane).and_then(Option::as_mut) {
            Some(state) if most > 0 && state.ring.kept() < lane_bytes => {
                let (id, position) = (id.0, sent);
                let space = state
                    .ring
                    .space_for(HEADER_BYTES + most.min(SHORTEST_READ), id, position);
                let end = space.len().min(HEADER_BYTES + most);
                &mut space[HEADER_BYTES..end]
            }
            _ => &mut [],
        }
    }

    /// Ends the last [`Tunnel::reserve`] of this lane, which got no bytes.
    pub fn release(&self, lane: usize) {
        if let Some(state) = self.lanes.get(lane).and_then(Option::as_ref) {
            state.ring.end_reading();
        }
    }

    /// Whether a lane takes data at all now.
    pub fn has_room(&self, lane: usize) -> bool {
        let state = self.lanes.get(lane).and_then(Option::as_ref);
        state.is_some_and(|state| state.ring.kept() < self.settings.lane_bytes)
    }

    /// Commits the last [`Tunnel::reserve`], which got `count` bytes, at least one.
    pub fn commit(&mut self, lane: usize, id: StreamId, count: usize, now: Instant) {
        debug_assert!((1..=self.sendable(id)).contains(&count));
        let Some(stream) = self.streams.get_mut(id.0) else {
            return;
        };
        let position = stream.sent;
        stream.sent += count as u64;
        // Fits: reserve gives at most MAX_PAYLOAD.
        let header = Header {
            kind: Kind::Data,
            detail: 0,
            length: count as u16,
            stream: id.0,
            position,
        };
        let length = HEADER_BYTES + count;
        let Some(state) = &mut self.lanes[lane] else {
            return;
        };
        let space = state.ring.space(length);
        space[..HEADER_BYTES].copy_from_slice(&header.encode());
        if self.settings.duplicate_small && count <= SMALL_FRAME {
            let mut copy = [0; HEADER_BYTES + SMALL_FRAME];
            copy[..length].copy_from_slice(&space[..length]);
            state.ring.commit(length);
            state.ring.end_reading();
            state.asked(now);
            self.duplicate(lane, &copy[..length], now);
        } else {
            state.ring.commit(length);
            state.ring.end_reading();
            state.asked(now);
        }
    }

    fn duplicate(&mut self, lane: usize, frame: &[u8], now: Instant) {
        // A second lane that is itself behind would bring the copy too late to help, and one that is full
        // keeps enough.
        let idle = |index: usize, state: &Lane| {
            index != lane
                && self.has_room(index)
                && state.ring.unsent_bytes() < MAX_PAYLOAD as u64
                && !state.stalled
        };
        let second = self.best_lane(idle).and_then(|index| self.lanes[index].as_mut());
        if let Some(second) = second {
            second.ring.put(frame);
            second.asked(now);
        }
    }

    /// The next bytes for a lane's socket, as many as lie together.
    pub fn unsent(&self, lane: usize) -> &[u8] {
        let state = self.lanes.get(lane).and_then(Option::as_ref);
        state.map_or(&[], |state| state.ring.unsent())
    }

    /// All bytes a lane still has to send.
    pub fn unsent_bytes(&self, lane: usize) -> u64 {
        let state = self.lanes.get(lane).and_then(Option::as_ref);
        state.map_or(0, |state| state.ring.unsent_bytes())
    }

    /// Memory of frames that wait to be sent or acknowledged, in bytes; bounded by [`crate::Settings`].
    pub fn kept_bytes(&self) -> u64 {
        let lanes = self.lanes.iter().flatten().map(|lane| lane.ring.kept());
        lanes.sum::<u64>() + self.retransmits.len() + self.control.len()
    }

    /// Control frames are waiting.
    pub fn has_control(&self) -> bool {
        !self.control.is_empty()
    }

    /// Control frames are waiting that the next [`Tunnel::prepare`] of this lane is sure to take.
    pub fn has_control_for(&self, lane: usize) -> bool {
        let state = self.lanes.get(lane).and_then(Option::as_ref);
        let most = self.settings.lane_bytes + CONTROL_BYTES;
        self.has_control() && state.is_some_and(|state| state.ring.kept() < most)
    }

    /// Something waits for a lane beside the streams' own data.
    pub fn has_frames(&self) -> bool {
        !self.control.is_empty() || !self.retransmits.is_empty()
    }

    /// The lane's socket took `count` bytes of [`Tunnel::unsent`].
    pub fn sent(&mut self, lane: usize, count: usize, now: Instant) {
        if let Some(state) = self.lanes.get_mut(lane).and_then(Option::as_mut) {
            state.on_sent(count, now);
        }
    }

    /// Returns the latest time at which [`Tunnel::on_time`] is to be called. Without lanes that is when the
    /// tunnel expires.
    pub fn deadline(&self) -> Option<Instant> {
        let dark = self.dark_since.map(|since| since + self.settings.resume);
        let lanes = self
            .lanes
            .iter()
            .flatten()
            .map(|lane| lane.deadline(&self.settings));
        let stalls = (0..MAX_LANES).filter_map(|lane| self.stalls_at(lane));
        lanes.chain(dark).chain(stalls).min()
    }

    /// Handles timeouts: pings lanes, gives them up, or moves their frames elsewhere. Afterwards take
    /// [`Tunnel::poll_event`]'s events and send what there is.
    pub fn on_time(&mut self, now: Instant) {
        for lane in 0..MAX_LANES {
            if self.stalls_at(lane).is_some_and(|at| at <= now) {
                self.retransmit(lane);
                if let Some(state) = &mut self.lanes[lane] {
                    state.stalled = true;
                }
            }
            let Some(state) = &mut self.lanes[lane] else {
                continue;
            };
            state.keep_alive(&self.settings, now);
            if state.is_dead(&self.settings, now) {
                self.dues.event(Event::LaneDead(lane));
            } else if state.has_fallen_silent(now) {
                self.dues.event(Event::LaneSilent(lane));
            }
        }
        if self
            .dark_since
            .is_some_and(|since| now >= since + self.settings.resume)
        {
            // Reported once; the driver drops the tunnel.
            self.dark_since = Some(now + Duration::from_secs(3600));
            self.dues.event(Event::Expired);
        }
    }

    /// Returns the time at which a lane's frames go to others, if there are others and they lack frames.
    fn stalls_at(&self, lane: usize) -> Option<Instant> {
        let state = self.lanes[lane].as_ref()?;
        let mut others = self.lanes.iter().enumerate();
        let relief =
            others.any(|(other, state)| other != lane && state.as_ref().is_some_and(|state| !state.stalled));
        state
            .stalls_at()
            .filter(|_| relief && state.has_more_to_retransmit())
    }

    /// Queues what a lane carries for the others, once.
    fn retransmit(&mut self, lane: usize) {
        let Some(state) = &mut self.lanes[lane] else {
            return;
        };
        let from = state.retransmitted.max(state.ring.acked());
        for frame in state.ring.frames_beyond(from) {
            let (header, payload) = frame.split_at(HEADER_BYTES);
            let belongs_to_this_lane = [Kind::Ack as u8, Kind::Ping as u8].contains(&header[0]);
            if !belongs_to_this_lane {
                self.retransmits.push(header, payload);
            }
        }
        state.retransmitted = state.ring.end();
    }
}
