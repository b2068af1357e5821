//! Two ends of a tunnel over lanes that delay, stall, die in the middle of a frame and come back, in virtual
//! time: a step is a millisecond.

use crate::{Random, next, request};
use causeway_tunnel::{Event, Settings, Side, StreamId, Tunnel};
use causeway_wire::Reason;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::time::{Duration, Instant};

/// How many bytes a lane accepts before it reports that it is full.
const IN_FLIGHT: usize = 300_000;

/// How many bytes a driver puts onto a lane before it writes.
const BATCH: u64 = 64 * 1024;

/// One end, with what its applications do and see.
pub struct End {
    pub tunnel: Tunnel,
    pub unsent: BTreeMap<StreamId, VecDeque<u8>>,
    pub arrived: HashMap<StreamId, Vec<u8>>,
    pub held: BTreeMap<StreamId, usize>,
    pub opened: HashSet<StreamId>,
    pub finished: HashSet<StreamId>,
    pub resets: HashMap<StreamId, Reason>,
    pub messages: Vec<Vec<u8>>,
    /// How many messages had come when each stream was opened.
    pub messages_at_open: HashMap<StreamId, usize>,
    pub silent: Vec<usize>,
    pub dead: Vec<usize>,
    pub expired: usize,
    /// Streams whose readers read nothing.
    pub stuck: HashSet<StreamId>,
    /// What this end sends on streams that the far end opens.
    pub answer: fn(u32) -> Vec<u8>,
}

struct Flight {
    arrives: Instant,
    bytes: Vec<u8>,
}

/// A lane, in both directions.
pub struct Wire {
    pub delay: Duration,
    pub stalled_until: Instant,
    /// Whether each end believes that the lane is up: it may still send on a dead lane.
    known_up: [bool; 2],
    alive: bool,
    /// When each end learns that the lane is dead, and when the lane comes back.
    deaf_at: [Instant; 2],
    back_at: Option<Instant>,
    flying: [VecDeque<Flight>; 2],
    input: [Vec<u8>; 2],
}

pub struct Sim {
    pub now: Instant,
    pub ends: [End; 2],
    pub wires: Vec<Wire>,
    pub random: Random,
    settings: Settings,
}

impl End {
    fn new(side: Side, settings: Settings, now: Instant) -> End {
        End {
            tunnel: next::tunnel(side, settings, now),
            unsent: BTreeMap::new(),
            arrived: HashMap::new(),
            held: BTreeMap::new(),
            opened: HashSet::new(),
            finished: HashSet::new(),
            resets: HashMap::new(),
            messages: Vec::new(),
            messages_at_open: HashMap::new(),
            silent: Vec::new(),
            dead: Vec::new(),
            expired: 0,
            stuck: HashSet::new(),
            answer: |_| Vec::new(),
        }
    }

    /// Opens a stream that sends `payload` and then ends.
    pub fn open(&mut self, payload: Vec<u8>) -> StreamId {
        let id = self.tunnel.open(&request());
        self.unsent.insert(id, payload.into());
        id
    }

    fn on_event(&mut self, event: Event<'_>) {
        match event {
            Event::Open(id, asked) => {
                assert_eq!(asked, request());
                assert!(
                    self.messages_at_open.insert(id, self.messages.len()).is_none(),
                    "{id:?} opened twice"
                );
                self.tunnel.opened(id);
                self.unsent.insert(id, (self.answer)(id.0).into());
            }
            Event::Opened(id) => assert!(self.opened.insert(id), "{id:?} answered twice"),
            Event::Data(id, data) => {
                assert!(!self.finished.contains(&id) && !self.resets.contains_key(&id));
                self.arrived.entry(id).or_default().extend(&*data);
                *self.held.entry(id).or_default() += data.len();
            }
            Event::Finished(id) => assert!(self.finished.insert(id), "{id:?} finished twice"),
            Event::Reset(id, reason) => {
                self.unsent.remove(&id);
                assert!(self.resets.insert(id, reason).is_none(), "{id:?} reset twice");
            }
            Event::Message(bytes) => self.messages.push(bytes),
            Event::Sendable(_) => {}
            Event::LaneSilent(lane) => self.silent.push(lane),
            Event::LaneDead(lane) => self.dead.push(lane),
            Event::Expired => self.expired += 1,
        }
    }

    fn read(&mut self, random: &mut Random) {
        for (id, held) in &mut self.held {
            if !self.stuck.contains(id) && *held > 0 {
                let count = 1 + random.below(*held);
                *held -= count;
                self.tunnel.consumed(*id, count);
            }
        }
    }

    /// Fills a lane that accepts bytes, as a driver does.
    fn fill(&mut self, lane: usize, now: Instant, random: &mut Random) {
        if !self.tunnel.prepare(lane, BATCH, now) {
            return;
        }
        let ids: Vec<StreamId> = self.unsent.keys().copied().collect();
        for id in ids {
            let bytes = self.unsent.get_mut(&id).unwrap();
            if self.tunnel.unsent_bytes(lane) >= BATCH {
                return;
            }
            let space = self.tunnel.reserve(lane, id);
            let most = space.len().min(bytes.len());
            if most > 0 {
                let count = 1 + random.below(most);
                let (front, back) = bytes.as_slices();
                let first = count.min(front.len());
                space[..first].copy_from_slice(&front[..first]);
                space[first..count].copy_from_slice(&back[..count - first]);
                bytes.drain(..count);
                self.tunnel.commit(lane, id, count, now);
            }
            if bytes.is_empty() {
                self.unsent.remove(&id);
                self.tunnel.finish(id);
            }
        }
    }
}

impl Sim {
    /// Makes one lane for each delay in milliseconds; all are up.
    pub fn new(seed: u64, settings: Settings, delays: &[u64]) -> Sim {
        println!("seed {seed}");
        let now = Instant::now();
        let mut ends = [Side::Odd, Side::Even].map(|side| End::new(side, settings, now));
        for end in &mut ends {
            (0..delays.len()).for_each(|lane| end.tunnel.lane_up(lane, now));
        }
        let wire = |delay: &u64| Wire {
            delay: Duration::from_millis(*delay),
            stalled_until: now,
            known_up: [true; 2],
            alive: true,
            deaf_at: [now; 2],
            back_at: None,
            flying: Default::default(),
            input: Default::default(),
        };
        Sim {
            now,
            ends,
            wires: delays.iter().map(wire).collect(),
            random: Random::of(seed),
            settings,
        }
    }

    /// Cuts a lane: what is in flight is lost, each end learns of the cut within 30 ms, and the lane is back
    /// after `pause`.
    pub fn cut(&mut self, lane: usize, pause: Duration) {
        let wire = &mut self.wires[lane];
        if !std::mem::replace(&mut wire.alive, false) {
            return;
        }
        for end in 0..2 {
            wire.flying[end].clear();
            wire.deaf_at[end] = self.now + Duration::from_millis(self.random.below(30) as u64);
        }
        wire.back_at = Some(self.now + Duration::from_millis(30) + pause);
    }

    /// Continues one end in another process: its lanes close, and its state is passed on as bytes. The lanes
    /// are back after `pause`.
    pub fn hand_over(&mut self, end: usize, pause: Duration) {
        for lane in 0..self.wires.len() {
            self.cut(lane, pause);
            self.wires[lane].known_up[end] = false;
            self.wires[lane].input[end].clear();
        }
        let state = &mut self.ends[end];
        state.tunnel = next::process_of(&mut state.tunnel, self.settings, self.now);
        while let Some(event) = state.tunnel.poll_event() {
            state.on_event(event);
        }
    }

    pub fn is_alive(&self, lane: usize) -> bool {
        self.wires[lane].alive
    }

    pub fn step(&mut self) {
        self.now += Duration::from_millis(1);
        for lane in 0..self.wires.len() {
            self.change(lane);
        }
        for end in 0..2 {
            let state = &mut self.ends[end];
            if state.tunnel.deadline().is_some_and(|at| at <= self.now) {
                state.tunnel.on_time(self.now);
                while let Some(event) = state.tunnel.poll_event() {
                    state.on_event(event);
                }
            }
            state.read(&mut self.random);
            next::end_turn(&mut state.tunnel);
            self.send(end);
        }
        for lane in 0..self.wires.len() {
            (0..2).for_each(|end| self.deliver(lane, end));
        }
    }

    /// Steps until both ends have sent everything, every lane is quiet, and nothing has happened for a while.
    pub fn run_until_quiet(&mut self, most: Duration) {
        let end = self.now + most;
        let mut quiet = 0;
        while quiet < 200 {
            assert!(self.now < end, "not settled within {most:?} of virtual time");
            self.step();
            let busy = self
                .ends
                .iter()
                .any(|end| !end.unsent.is_empty() || end.tunnel.has_frames())
                || self
                    .wires
                    .iter()
                    .any(|wire| !wire.alive || wire.flying.iter().any(|flying| !flying.is_empty()));
            quiet = if busy { 0 } else { quiet + 1 };
        }
    }

    fn change(&mut self, lane: usize) {
        let wire = &mut self.wires[lane];
        for end in 0..2 {
            if !wire.alive && wire.known_up[end] && self.now >= wire.deaf_at[end] {
                wire.known_up[end] = false;
                wire.input[end].clear();
                self.ends[end].tunnel.lane_down(lane, self.now);
            }
        }
        if wire.back_at.take_if(|at| *at <= self.now).is_some() {
            (wire.alive, wire.known_up) = (true, [true; 2]);
            for end in 0..2 {
                wire.flying[end].clear();
                self.ends[end].tunnel.lane_up(lane, self.now);
            }
        }
    }

    fn send(&mut self, end: usize) {
        let state = &mut self.ends[end];
        for _ in 0..8 {
            let wires = &mut self.wires;
            let takes = |lane: usize| {
                let flying: usize = wires[lane].flying[end]
                    .iter()
                    .map(|flight| flight.bytes.len())
                    .sum();
                wires[lane].known_up[end] && flying < IN_FLIGHT
            };
            let chosen = state.tunnel.choose_lane(takes);
            let takes: Vec<bool> = (0..wires.len()).map(takes).collect();
            if let Some(lane) = chosen {
                state.fill(lane, self.now, &mut self.random);
            }
            for lane in (0..wires.len()).filter(|lane| takes[*lane]) {
                let wire = &mut wires[lane];
                state.tunnel.put_ack(lane, self.now);
                let bytes = state.tunnel.unsent(lane);
                if bytes.is_empty() {
                    continue;
                }
                let bytes = bytes[..1 + self.random.below(bytes.len())].to_vec();
                state.tunnel.sent(lane, bytes.len(), self.now);
                let arrives = (self.now + wire.delay).max(wire.stalled_until);
                if wire.alive {
                    wire.flying[end].push_back(Flight { arrives, bytes });
                }
            }
        }
    }

    /// Lets what `from` has sent on a lane reach the other end.
    fn deliver(&mut self, lane: usize, from: usize) {
        let (wire, to) = (&mut self.wires[lane], 1 - from);
        let stalled = wire.stalled_until > self.now;
        while let Some(flight) =
            wire.flying[from].pop_front_if(|flight| !stalled && flight.arrives <= self.now)
        {
            if !wire.known_up[to] {
                continue;
            }
            let mut input = std::mem::take(&mut wire.input[to]);
            input.extend(flight.bytes);
            let mut rest = &input[..];
            let end = &mut self.ends[to];
            while let Some(event) = end
                .tunnel
                .on_input(lane, &mut rest, self.now)
                .expect("the far side keeps to the protocol")
            {
                end.on_event(event);
            }
            wire.input[to] = rest.to_vec();
        }
    }
}
