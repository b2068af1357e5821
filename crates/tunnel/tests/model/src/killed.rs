//! Ends of a tunnel that are killed between any two of their actions, and continue from their journals and
//! from what the sockets of their streams show. The tests are seeded; a failure prints the seed. KILLED_CASES
//! sets how many seeds there are, and KILLED_FIRST the first one.

use crate::killable::{Alive, End, Killed, LANES, length};
use crate::{Random, request};
use causeway_tunnel::{Side, StreamId};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// How often a process is killed at most, so that the rest can finish.
const KILLS: usize = 6;

struct World {
    now: Instant,
    random: Random,
    ends: Vec<End>,
    flying: [[Vec<u8>; LANES]; 2],
    /// Streams that an end has written to its journal.
    opened: BTreeSet<(usize, StreamId)>,
    /// The longest half of a stream.
    longest: usize,
}

impl World {
    fn new(mut random: Random) -> World {
        let now = Instant::now();
        let longest = 1 + [100, 5000, 600_000][random.below(3)];
        World {
            now,
            random,
            ends: vec![End::new(Side::Odd, now), End::new(Side::Even, now)],
            flying: Default::default(),
            opened: BTreeSet::new(),
            longest,
        }
    }

    fn lane_up(&mut self, lane: usize) {
        for end in 0..2 {
            self.flying[end][lane].clear();
            self.ends[end].input[lane].clear();
            self.ends[end].up[lane] = true;
            self.ends[end].tunnel.lane_up(lane, self.now);
        }
    }

    /// Runs one turn of an end's loop.
    fn turn(&mut self, end: usize, is_last: bool) {
        let before: Vec<StreamId> = self.ends[end].committed.legs.keys().copied().collect();
        if self.try_turn(end, is_last).is_err() {
            let state = &mut self.ends[end];
            state.kills += 1;
            (state.life, state.seen_life) = (None, None);
            for lane in 0..LANES {
                // What was in flight may or may not arrive.
                if self.random.below(2) == 0 {
                    self.flying[1 - end][lane].clear();
                }
                self.flying[end][lane].clear();
                self.ends[end].input[lane].clear();
                self.ends[end].up[lane] = false;
            }
            self.ends[end].go_on(self.now);
            if let Err(Killed) = self.take_events(end) {
                unreachable!("it lives on");
            }
        }
        let legs = self.ends[end].committed.legs.keys();
        for id in legs.filter(|id| !before.contains(id)) {
            self.opened.insert((end, *id));
        }
    }

    fn take_events(&mut self, end: usize) -> Alive {
        let state = &mut self.ends[end];
        while let Some(event) = state.tunnel.poll_event() {
            state.on_event(event, &mut self.random, self.longest)?;
            if self.random.below(8) == 0 {
                break;
            }
        }
        Ok(())
    }

    fn try_turn(&mut self, end: usize, is_last: bool) -> Alive {
        let (now, random) = (self.now, &mut self.random);
        let state = &mut self.ends[end];
        let is_sure_to_live = (state.life, state.seen_life) == (None, None);
        if state.kills < KILLS && !is_last && is_sure_to_live && random.below(6) == 0 {
            match random.below(2) {
                0 => state.life = Some(random.below(200)),
                _ => state.seen_life = Some(random.below(15)),
            }
        }
        // If there is time, everything arrives that may arrive, and the processes read it.
        let has_time = is_last || random.below(2) == 0;
        state.keeps_up = has_time;
        if state.tunnel.deadline().is_some_and(|at| at <= now) {
            state.tunnel.on_time(now);
        }
        self.take_events(end)?;
        for lane in 0..LANES {
            let (random, state) = (&mut self.random, &mut self.ends[end]);
            if !state.up[lane] {
                continue;
            }
            let flying = &mut self.flying[end][lane];
            let count = if has_time {
                flying.len()
            } else {
                random.below(flying.len().min(90_000) + 1)
            };
            let mut input = std::mem::take(&mut state.input[lane]);
            input.extend_from_slice(&flying[..count]);
            flying.drain(..count);
            let mut rest = &input[..];
            while let Some(event) = state
                .tunnel
                .on_input(lane, &mut rest, now)
                .expect("both keep to it")
            {
                state.on_event(event, random, self.longest)?;
                // There may be no time for more in this turn.
                if !has_time && random.below(8) == 0 {
                    break;
                }
            }
            state.input[lane] = rest.to_vec();
        }
        let (random, state) = (&mut self.random, &mut self.ends[end]);
        if !is_last && random.below(3) == 0 && state.known.legs.len() < 6 && state.sockets.len() < 30 {
            let id = state.tunnel.open(&request());
            state.connect(id, length(id, state.side, self.longest), true);
            state.act()?;
        }
        if !is_last && random.below(4) == 0 {
            state.tunnel.message(&state.known.said.to_be_bytes());
            state.known.said += 1;
            state.act()?;
        }
        for id in state.known.legs.keys().copied().collect::<Vec<_>>() {
            let most = if has_time {
                usize::MAX
            } else {
                1 + random.below(60_000)
            };
            if random.below(2) == 0 || has_time {
                if state.known.legs.get(&id).is_some_and(|leg| leg.waits && !leg.own) {
                    state.answer(id)?;
                }
                state.flush(id, most)?;
            }
        }
        state.commit(now)?;
        let usable = state.up;
        if let Some(lane) = state.tunnel.choose_lane(|lane| usable[lane]) {
            state.fill(lane, now, random)?;
        }
        for lane in (0..LANES).filter(|lane| usable[*lane]) {
            state.tunnel.put_ack(lane, now);
            state.act()?;
            let bytes = state.tunnel.unsent(lane);
            let count = if bytes.is_empty() {
                continue;
            } else {
                1 + random.below(bytes.len())
            };
            self.flying[1 - end][lane].extend_from_slice(&bytes[..count]);
            state.act()?;
            state.tunnel.sent(lane, count, now);
        }
        state.commit(now)
    }

    fn play(&mut self, turns: usize) {
        for _ in 0..turns {
            let end = self.random.below(2);
            self.turn(end, false);
            self.now += Duration::from_millis(5);
            let lane = self.random.below(LANES);
            let is_up = (0..2).all(|end| self.ends[end].up[lane]);
            if !is_up || self.random.below(40) == 0 {
                self.lane_up(lane);
            }
        }
        let live_on = |end: &mut End| (end.life, end.seen_life) = (None, None);
        self.ends.iter_mut().for_each(live_on);
        (0..LANES).for_each(|lane| self.lane_up(lane));
        let mut quiet = 0;
        for _ in 0..2000 {
            (0..2).for_each(|end| self.turn(end, true));
            self.now += Duration::from_millis(5);
            quiet = if self.is_quiet() { quiet + 1 } else { 0 };
            if quiet > 3 {
                return;
            }
        }
    }

    fn is_quiet(&self) -> bool {
        let flying = self.flying.iter().flatten().all(Vec::is_empty);
        let has_all = |end: usize| self.ends[end].known.heard == self.ends[1 - end].known.said;
        let ended = |end: &End| end.tunnel.streams() == 0 && !end.tunnel.has_frames();
        flying && self.ends.iter().all(ended) && (0..2).all(has_all)
    }

    fn check(&self) {
        for end in 0..2 {
            let (near, far) = (&self.ends[end], &self.ends[1 - end]);
            assert_eq!(
                near.tunnel.streams(),
                0,
                "streams are left: {:?}",
                near.known.legs.keys()
            );
            assert!(near.known.legs.is_empty());
            assert_eq!(near.known.heard, far.known.said, "messages");
            for (of, id) in self.opened.iter().filter(|(of, _)| *of == end) {
                let socket = &self.ends[*of].sockets[id];
                assert_eq!(socket.read, socket.source, "{id:?} was not read to its end");
                let far = &far.sockets[id];
                assert!(far.ended && socket.ended, "{id:?} has not ended");
                assert_eq!(far.written, socket.source, "{id:?}");
                assert_eq!(socket.written, far.source, "{id:?}");
            }
        }
    }
}

/// Plays one history; returns how often an end was killed.
pub fn play(random: Random) -> usize {
    let mut world = World::new(random);
    world.play(120);
    world.check();
    world.ends.iter().map(|end| end.kills).sum()
}
