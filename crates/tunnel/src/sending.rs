//! Sends on the lanes: decides which lane a frame is put on, what is sent first, and where the frames of a
//! lane that stalls or dies are sent.

use crate::event::{Event, StreamId};
use crate::frame::{HEADER_BYTES, Header, Kind, MAX_PAYLOAD};
use crate::lane::Lane;
use crate::ring::{Ring, frames};
use crate::settings::{CONTROL_BYTES, SMALL_FRAME};
use crate::tunnel::{MAX_LANES, Tunnel};
use std::time::{Duration, Instant};

/// The shortest rest of a block to which a read may be limited, so that few bytes of a block stay unused and
/// few reads are short.
const SHORTEST_READ: usize = 16 * 1024;

impl Tunnel {
    /// Adds a lane, which is new and empty in both directions. `lane` is below [`MAX_LANES`] and not up.
    pub fn lane_up(&mut self, lane: usize, now: Instant) {
        self.lane_down(lane, now);
        self.lanes[lane] = Some(Box::new(Lane::new(now, self.shelf.clone())));
        self.dark_since = None;
    }

    /// Removes a lane. Whatever was sent on it and not acknowledged by the far side waits for the other
    /// lanes, ahead of new data.
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

    /// Keeps copies of the retransmits, whose lanes are gone, for the next process.
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
                // The number fits: a block is shorter.
                return block.set_done(moved as usize);
            }
            self.graves_from += filled;
            self.graves.pop_front();
        }
    }

    /// How many lanes are up.
    pub fn lanes_up(&self) -> usize {
        self.lanes.iter().flatten().count()
    }

    /// Whether [`Event::LaneSilent`] was reported for a lane that has not been heard since.
    pub fn is_silent(&self, lane: usize) -> bool {
        let state = self.lanes.get(lane).and_then(Option::as_ref);
        state.is_some_and(|state| state.silent)
    }

    /// Makes this lane carry everything while it is in order: the others share its path, and know less about
    /// it.
    pub fn favour(&mut self, lane: usize) {
        if let Some(state) = self.lanes.get_mut(lane).and_then(Option::as_mut) {
            state.favoured = true;
        }
    }

    /// The best lane for the next frames, among those to which the driver can write: the one with the least
    /// to send. Stalled lanes are not used while another is available, and other lanes are not used while a
    /// favoured one is available.
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

    /// Puts onto a lane what precedes data: control frames, and retransmits as long as it has less than
    /// `batch` bytes to send. Returns false if retransmits are left, which new data must not overtake.
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

    /// Puts the acknowledgement of what has arrived onto a lane, if it may wait no longer, or other bytes are
    /// sent anyway. It must be called before a lane is written: sent alone, the acknowledgement would cost a
    /// packet and wake the far gateway for nothing.
    pub fn put_ack(&mut self, lane: usize, now: Instant) {
        // This is twice the room: if both ends withheld acknowledgements, both would wait for ever.
        let most = self.settings.lane_bytes + 2 * CONTROL_BYTES;
        if let Some(state) = self.lanes.get_mut(lane).and_then(Option::as_mut)
            && (state.ring.unsent_bytes() > 0 || state.owes_now(now))
            && state.ring.kept() < most
        {
            state.acknowledge();
        }
    }

    /// Repeats the acknowledgement on a lane, although the far side has it: it serves as a small frame that
    /// arrives after what was sent before.
    pub fn repeat_ack(&mut self, lane: usize) {
        if let Some(state) = self.lanes.get_mut(lane).and_then(Option::as_mut) {
            state.repeat_ack();
        }
    }

    /// Returns room for the next bytes of a stream on a lane; empty if the stream or the lane must wait.
    /// [`Tunnel::commit`] must be told how many bytes were put there.
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

    /// Ends the last [`Tunnel::reserve`] of this lane, into which no bytes were put.
    pub fn release(&self, lane: usize) {
        if let Some(state) = self.lanes.get(lane).and_then(Option::as_ref) {
            state.ring.end_reading();
        }
    }

    /// Whether a lane accepts any data now.
    pub fn has_room(&self, lane: usize) -> bool {
        let state = self.lanes.get(lane).and_then(Option::as_ref);
        state.is_some_and(|state| state.ring.kept() < self.settings.lane_bytes)
    }

    /// Commits the last [`Tunnel::reserve`], into which `count` bytes were put, at least one.
    pub fn commit(&mut self, lane: usize, id: StreamId, count: usize, now: Instant) {
        debug_assert!((1..=self.sendable(id)).contains(&count));
        let Some(stream) = self.streams.get_mut(id.0) else {
            return;
        };
        let position = stream.sent;
        stream.sent += count as u64;
        // The number fits: reserve returns at most MAX_PAYLOAD.
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
        // If the second lane is behind, too, the copy would come too late to help; if it is full, it keeps
        // enough already.
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

    /// The next bytes for a lane's socket, as many as are contiguous.
    pub fn unsent(&self, lane: usize) -> &[u8] {
        let state = self.lanes.get(lane).and_then(Option::as_ref);
        state.map_or(&[], |state| state.ring.unsent())
    }

    /// How many bytes a lane still must send.
    pub fn unsent_bytes(&self, lane: usize) -> u64 {
        let state = self.lanes.get(lane).and_then(Option::as_ref);
        state.map_or(0, |state| state.ring.unsent_bytes())
    }

    /// How many bytes of frames wait to be sent or acknowledged; [`crate::Settings`] limit them.
    pub fn kept_bytes(&self) -> u64 {
        let lanes = self.lanes.iter().flatten().map(|lane| lane.ring.kept());
        lanes.sum::<u64>() + self.retransmits.len() + self.control.len()
    }

    /// Whether control frames are waiting.
    pub fn has_control(&self) -> bool {
        !self.control.is_empty()
    }

    /// Whether control frames are waiting that the next [`Tunnel::prepare`] of this lane will certainly put
    /// there.
    pub fn has_control_for(&self, lane: usize) -> bool {
        let state = self.lanes.get(lane).and_then(Option::as_ref);
        let most = self.settings.lane_bytes + CONTROL_BYTES;
        self.has_control() && state.is_some_and(|state| state.ring.kept() < most)
    }

    /// Whether something other than the streams' data waits for a lane.
    pub fn has_frames(&self) -> bool {
        !self.control.is_empty() || !self.retransmits.is_empty()
    }

    /// Records that the lane's socket has accepted `count` bytes of [`Tunnel::unsent`].
    pub fn sent(&mut self, lane: usize, count: usize, now: Instant) {
        if let Some(state) = self.lanes.get_mut(lane).and_then(Option::as_mut) {
            state.on_sent(count, now);
        }
    }

    /// Returns when to call [`Tunnel::on_time`] at the latest. Without lanes, this is when the tunnel
    /// expires.
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

    /// Handles timeouts: pings lanes, gives them up, or moves their frames to others. Afterwards the driver
    /// must handle the events of [`Tunnel::poll_event`] and send what there is to send.
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
            // It is reported once; the driver drops the tunnel.
            self.dark_since = Some(now + Duration::from_secs(3600));
            self.dues.event(Event::Expired);
        }
    }

    /// Returns when a lane's frames are given to others, if there are others and they do not have these
    /// frames.
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
