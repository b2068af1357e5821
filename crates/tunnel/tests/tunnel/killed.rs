//! Ends of a tunnel that are killed between any two of their actions, and go on from what they had written
//! down and from what the sockets of their streams say. Seeded; a failure prints the seed. KILLED_CASES sets
//! how many seeds there are, KILLED_FIRST the first.

use crate::common::{Random, request};
use causeway_memory::{Arena, Found, Journal};
use causeway_tunnel::{Event, Limits, Moved, Settings, Side, StreamId, Tunnel, recover};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::{Duration, Instant};

const OWNER: u64 = 7;
const BATCH: u64 = 64 * 1024;
const LANES: usize = 2;
/// A process is killed at most so often, so that what is left can end.
const KILLS: usize = 6;

/// The process was killed.
struct Killed;

type Alive = Result<(), Killed>;

/// A connection with a process of a site: what the kernel knows of it.
#[derive(Clone)]
struct Socket {
    /// Bytes that the process has sent, and how many of them were read.
    source: u64,
    read: u64,
    /// Bytes that were written, all of them right, and whether the end was told.
    written: u64,
    ended: bool,
}

/// What a gateway keeps of a stream's connection; its socket is the kernel's.
#[derive(Clone, Default)]
struct Leg {
    read: u64,
    written: u64,
    read_ended: bool,
    peer_finished: bool,
    write_ended: bool,
    queue: Vec<u8>,
}

/// What a gateway writes down beside the tunnel.
#[derive(Clone, Default)]
struct Known {
    legs: BTreeMap<StreamId, Leg>,
    heard: u64,
    said: u64,
}

struct End {
    side: Side,
    arena: Arena,
    journal: Journal,
    tunnel: Tunnel,
    known: Known,
    committed: Known,
    /// What the process before has left, until this one has written down for the first time.
    old: Vec<Found>,
    /// Outlive the process.
    sockets: HashMap<StreamId, Socket>,
    input: [Vec<u8>; LANES],
    up: [bool; LANES],
    /// Actions until it is killed.
    life: usize,
    kills: usize,
}

struct World {
    now: Instant,
    random: Random,
    ends: Vec<End>,
    flying: [[Vec<u8>; LANES]; 2],
    /// Streams that an end has had written down.
    opened: BTreeSet<(usize, StreamId)>,
    /// Lengths of the halves of streams.
    longest: usize,
}

fn settings() -> Settings {
    Settings {
        limits: Limits {
            initial: 100_000,
            most: 200_000,
            budget: 300_000,
            ..Limits::default()
        },
        lane_bytes: 150_000,
        resume: Duration::from_secs(7 * 86_400),
        ..Settings::default()
    }
}

/// A byte of a half: `from` says whose.
fn byte(id: StreamId, from: Side, position: u64) -> u8 {
    let half = if from == Side::Odd { 17 } else { 91 };
    (position.wrapping_mul(31) ^ (position >> 8) ^ u64::from(id.0) ^ half) as u8
}

fn other(side: Side) -> Side {
    if side == Side::Odd { Side::Even } else { Side::Odd }
}

/// How much the process at this end of a stream sends.
fn length(id: StreamId, side: Side, longest: usize) -> u64 {
    let mut random = Random::of(u64::from(id.0) * 2 + u64::from(side == Side::Odd));
    random.next();
    random.below(longest) as u64
}

impl End {
    fn new(side: Side, now: Instant) -> End {
        let arena = Arena::shared().unwrap();
        End {
            side,
            journal: Journal::shared().unwrap(),
            tunnel: Tunnel::kept(side, settings(), now, &arena, OWNER),
            arena,
            known: Known::default(),
            committed: Known::default(),
            old: Vec::new(),
            sockets: HashMap::new(),
            input: Default::default(),
            up: [false; LANES],
            life: usize::MAX,
            kills: 0,
        }
    }

    /// Lives on to the next action, or not.
    fn act(&mut self) -> Alive {
        self.life -= 1;
        if self.life == 0 { Err(Killed) } else { Ok(()) }
    }

    fn commit(&mut self, now: Instant) -> Alive {
        self.act()?;
        self.tunnel.write_down(&mut self.journal, now);
        self.act()?;
        self.journal.commit(now).unwrap();
        self.committed = self.known.clone();
        self.act()?;
        self.old.clear();
        self.tunnel.written_down();
        self.act()?;
        self.arena.settle();
        self.act()
    }

    fn on_event(&mut self, event: Event<'_>, random: &mut Random, longest: usize) -> Alive {
        match event {
            Event::Open(id, _) => {
                let source = length(id, self.side, longest);
                self.connect(id, source);
                self.tunnel.opened(id);
            }
            Event::Data(id, bytes) => {
                let side = self.side;
                let leg = self.known.legs.get_mut(&id).expect("a stream has a leg");
                let mut taken = 0;
                if leg.queue.is_empty() && random.below(3) > 0 {
                    taken = 1 + random.below(bytes.len());
                    let socket = self.sockets.get_mut(&id).unwrap();
                    socket.write(id, other(side), &bytes[..taken]);
                }
                leg.queue.extend_from_slice(&bytes[taken..]);
                self.act()?;
                let leg = self.known.legs.get_mut(&id).unwrap();
                leg.written += taken as u64;
                self.tunnel.consumed(id, taken);
            }
            Event::Finished(id) => {
                // It may have gone: its socket says so before the far side says it again.
                if let Some(leg) = self.known.legs.get_mut(&id) {
                    leg.peer_finished = true;
                    self.flush(id, usize::MAX)?;
                }
            }
            Event::Message(bytes) => {
                assert_eq!(bytes, self.known.heard.to_be_bytes());
                self.known.heard += 1;
            }
            Event::Reset(id, _) => panic!("{id:?} is reset, and nobody did that"),
            _ => {}
        }
        self.act()
    }

    fn connect(&mut self, id: StreamId, source: u64) {
        self.known.legs.insert(id, Leg::default());
        self.sockets.insert(
            id,
            Socket {
                source,
                read: 0,
                written: 0,
                ended: false,
            },
        );
    }

    /// Writes what waits for a process.
    fn flush(&mut self, id: StreamId, most: usize) -> Alive {
        let Some(leg) = self.known.legs.get_mut(&id) else {
            return Ok(());
        };
        let count = leg.queue.len().min(most);
        let bytes = leg.queue[..count].to_vec();
        let socket = self.sockets.get_mut(&id).unwrap();
        socket.write(id, other(self.side), &bytes);
        self.act()?;
        let leg = self.known.legs.get_mut(&id).unwrap();
        leg.queue.drain(..count);
        leg.written += count as u64;
        let ends = leg.queue.is_empty() && leg.peer_finished && !leg.write_ended;
        self.tunnel.consumed(id, count);
        if ends {
            self.act()?;
            self.sockets.get_mut(&id).unwrap().ended = true;
            self.act()?;
            self.known.legs.get_mut(&id).unwrap().write_ended = true;
        }
        self.drop_if_done(id)
    }

    fn drop_if_done(&mut self, id: StreamId) -> Alive {
        let leg = &self.known.legs[&id];
        if leg.read_ended && leg.write_ended {
            // Its socket is closed after the next commit.
            self.known.legs.remove(&id);
            self.act()?;
        }
        Ok(())
    }

    /// Reads processes into a lane.
    fn fill(&mut self, lane: usize, now: Instant, random: &mut Random) -> Alive {
        self.act()?;
        if !self.tunnel.prepare(lane, BATCH, now) {
            return Ok(());
        }
        self.act()?;
        let ids: Vec<StreamId> = self.known.legs.keys().copied().collect();
        for id in ids {
            let side = self.side;
            let leg = &self.known.legs[&id];
            if leg.read_ended || self.tunnel.unsent_bytes(lane) >= BATCH || random.below(4) == 0 {
                continue;
            }
            let socket = self.sockets.get_mut(&id).unwrap();
            let space = self.tunnel.reserve(lane, id);
            let left = socket.source - socket.read;
            let most = space.len().min(usize::try_from(left).unwrap());
            if space.is_empty() {
                continue;
            }
            let count = if most > 0 { 1 + random.below(most) } else { 0 };
            for (place, position) in space[..count].iter_mut().zip(socket.read..) {
                *place = byte(id, side, position);
            }
            socket.read += count as u64;
            self.act()?;

            if count > 0 {
                self.tunnel.commit(lane, id, count, now);
                self.act()?;
                self.known.legs.get_mut(&id).unwrap().read += count as u64;
            } else {
                self.tunnel.release(lane);
                self.known.legs.get_mut(&id).unwrap().read_ended = true;
                self.act()?;
                self.tunnel.finish(id);
                self.act()?;
                self.drop_if_done(id)?;
            }
        }
        Ok(())
    }

    /// Another process goes on.
    fn go_on(&mut self, now: Instant) {
        self.arena.abandon();
        let (mut journal, records) = Journal::open(self.journal.duplicate().unwrap()).unwrap();
        let (arena, found) = Arena::open(self.arena.duplicate().unwrap()).unwrap();
        let mut found: Vec<Found> = found.into_iter().filter(|found| found.owner == OWNER).collect();
        let records: BTreeMap<_, _> = records.into_iter().collect();
        let mut known = self.committed.clone();
        let mut moved = HashMap::new();
        for (id, leg) in &mut known.legs {
            let socket = &self.sockets[id];
            let (read, written) = (socket.read - leg.read, socket.written - leg.written);
            moved.insert(id.0, Moved::Bytes { read, written });
            (leg.read, leg.written) = (socket.read, socket.written);
            leg.write_ended |= socket.ended;
            let from_queue = leg.queue.len().min(usize::try_from(written).unwrap());
            leg.queue.drain(..from_queue);
        }
        if records.is_empty() {
            // Killed before its first commit.
            assert!(known.legs.is_empty() && known.said == 0);
            (self.arena, self.journal) = (arena, journal);
            self.tunnel = Tunnel::kept(self.side, settings(), now, &self.arena, OWNER);
            self.known = known;
            return;
        }
        let recovered = recover(OWNER, &records, &mut found, &moved).unwrap();
        assert_eq!(recovered.lost, BTreeSet::new(), "every socket is there");
        Tunnel::forget(&mut journal, OWNER);
        let times = (settings(), now);
        let tunnel = recovered.snapshot.into_tunnel(times, (&arena, OWNER)).unwrap();
        self.old = found;
        (self.arena, self.journal, self.tunnel, self.known) = (arena, journal, tunnel, known);
    }
}

impl Socket {
    fn write(&mut self, id: StreamId, from: Side, bytes: &[u8]) {
        assert!(!self.ended || bytes.is_empty(), "{id:?} is written after its end");
        for given in bytes {
            assert_eq!(*given, byte(id, from, self.written), "{id:?} at {}", self.written);
            self.written += 1;
        }
    }
}

impl World {
    fn new(mut random: Random) -> World {
        let now = Instant::now();
        let longest = 1 + [100, 5000, 200_000][random.below(3)];
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

    /// A turn of an end's loop.
    fn turn(&mut self, end: usize, is_last: bool) {
        let before: Vec<StreamId> = self.ends[end].committed.legs.keys().copied().collect();
        if self.try_turn(end, is_last).is_err() {
            let state = &mut self.ends[end];
            state.kills += 1;
            state.life = usize::MAX;
            for lane in 0..LANES {
                // What was under way may arrive, or not.
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
        if state.kills < KILLS && !is_last && state.life == usize::MAX && random.below(6) == 0 {
            state.life = 1 + random.below(200);
        }
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
            let count = if is_last {
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
                if !is_last && random.below(8) == 0 {
                    break;
                }
            }
            state.input[lane] = rest.to_vec();
        }
        let (random, state) = (&mut self.random, &mut self.ends[end]);
        if !is_last && random.below(3) == 0 && state.known.legs.len() < 6 && state.sockets.len() < 30 {
            let id = state.tunnel.open(&request());
            state.connect(id, length(id, state.side, self.longest));
            state.act()?;
        }
        if !is_last && random.below(4) == 0 {
            state.tunnel.message(&state.known.said.to_be_bytes());
            state.known.said += 1;
            state.act()?;
        }
        for id in state.known.legs.keys().copied().collect::<Vec<_>>() {
            let most = if is_last {
                usize::MAX
            } else {
                1 + random.below(60_000)
            };
            if random.below(2) == 0 || is_last {
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
        self.ends.iter_mut().for_each(|end| end.life = usize::MAX);
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

/// One history; how often an end was killed.
pub fn play(random: Random) -> usize {
    let mut world = World::new(random);
    world.play(120);
    world.check();
    world.ends.iter().map(|end| end.kills).sum()
}

#[test]
fn an_end_that_is_killed_between_any_two_actions_goes_on_and_no_byte_is_lost_or_doubled() {
    let number = |name: &str, default: u64| {
        let text = std::env::var(name).ok();
        text.map_or(default, |text| text.parse().expect("a number"))
    };
    let first = number("KILLED_FIRST", 0);
    let mut kills = 0;
    for seed in first..first + number("KILLED_CASES", 1000) {
        println!("seed {seed}");
        kills += play(Random::of(seed));
    }
    println!("{kills} kills");
    assert!(kills > 0, "nobody was killed");
}

/// See fuzz/fuzz_targets/killed.rs.
#[test]
fn a_history_that_a_fuzzer_chooses_is_played_too() {
    let bytes = Vec::from_iter((0..4000_u32).map(|at| (at * 37 % 251) as u8));
    for length in [0, 100, 4000] {
        play(Random::chosen(&bytes[..length]));
    }
}
