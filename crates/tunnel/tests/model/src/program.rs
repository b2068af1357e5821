//! Plays any bytes as a program on two ends of a tunnel: streams, lanes that are cut, replaced or not read,
//! ends that continue in another process, and time. After every step, and after all lanes have healed, it
//! checks what a tunnel promises. The seeded test (programs.rs) and the fuzz target `tunnel` (fuzz/) both
//! call [`play`].

use crate::next;
use causeway_tunnel::frame::{HEADER_BYTES, ProtocolError};
use causeway_tunnel::messages::MAX_MESSAGE;
use causeway_tunnel::{Event, Limits, MAX_PAYLOAD, OpenRequest, Settings, Side, StreamId, Target, Tunnel};
use causeway_wire::{Reason, Token};
use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// The limit that a sender of messages observes; see [`Tunnel::message`].
const MAX_UNDER_WAY: usize = 2 * MAX_MESSAGE;

/// Most steps and streams: a program that reaches a state with more of them reaches it with fewer, too.
const MAX_STEPS: usize = 2000;
const MAX_STREAMS: usize = 24;

/// How many bytes a driver puts onto a lane before it writes.
const BATCH: u64 = 128 * 1024;

/// How many rounds, each 50 ms long, two ends whose lanes all work need at most to tell each other
/// everything.
const HEALING_ROUNDS: u64 = 400;

/// How many of the waiting bytes each further round transfers at least: half a frame, on lanes that have room
/// for 1000 bytes.
const HEALED_BYTES: u64 = 20_000;

/// The rest of a program.
pub struct Bytes<'a>(pub &'a [u8]);

impl Bytes<'_> {
    /// The next byte; 0 at the end.
    pub fn next(&mut self) -> usize {
        let Some((first, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        usize::from(*first)
    }

    /// A number from 0 to 65025: the square of a byte, so that small ones are frequent.
    pub fn size(&mut self) -> usize {
        self.next().pow(2)
    }

    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.next() % choices.len()]
    }
}

/// Settings that are small enough for a program to reach their limits.
pub fn settings(program: &mut Bytes<'_>) -> Settings {
    Settings {
        limits: Limits {
            initial: program.pick(&[64 << 10, 100_000, 200_000]),
            most: program.pick(&[200_000, 400_000]),
            budget: program.pick(&[0, 150_000, 1_000_000]),
            ..Limits::default()
        },
        lane_bytes: program.pick(&[1000, 70_000, 200_000]),
        // This is longer than any program lasts: `lanes.rs` tests how it ends.
        resume: Duration::from_secs(7 * 86_400),
        duplicate_small: program.next() % 2 == 1,
        ..Settings::default()
    }
}

pub fn play(program: &[u8]) {
    let mut program = Bytes(program);
    let mut world = World::new(&mut program);
    for _ in 0..MAX_STEPS {
        if program.0.is_empty() {
            break;
        }
        world.step(&mut program);
        world
            .ends
            .iter_mut()
            .for_each(|end| next::end_turn(&mut end.tunnel));
        world.check_bounds();
    }
    world.heal();
    world.check_all_arrived();
}

struct World {
    settings: Settings,
    now: Instant,
    ends: [End; 2],
    wires: Vec<Wire>,
    streams: BTreeMap<StreamId, Stream>,
}

struct End {
    tunnel: Tunnel,
    /// The lengths of the messages that were sent, and how many of the far end's have come.
    messages: Vec<usize>,
    heard: usize,
    /// How many bytes all control frames that this end may have made have.
    control_bytes: u64,
}

/// A lane, in both directions.
#[derive(Default)]
struct Wire {
    up: [bool; 2],
    alive: bool,
    /// Bytes in flight to each end, and bytes there that are not a whole frame yet.
    flying: [Vec<u8>; 2],
    input: [Vec<u8>; 2],
}

struct Stream {
    opener: usize,
    /// How many messages the opener had sent before.
    messages_before: usize,
    halves: [Half; 2],
}

/// What one end has done with a stream, and what it has seen of it.
#[derive(Debug, Default)]
struct Half {
    known: bool,
    accepted: bool,
    answered: bool,
    sent: u64,
    finished: bool,
    reset: Option<Reason>,
    received: u64,
    consumed: u64,
    saw_finish: bool,
    saw_reset: bool,
}

impl Half {
    /// Whether the stream was reset here or by the far end: whatever else it brings then means nothing.
    fn is_gone(&self) -> bool {
        self.reset.is_some() || self.saw_reset
    }

    fn is_over(&self) -> bool {
        self.is_gone() || self.finished && self.saw_finish
    }
}

impl World {
    fn new(program: &mut Bytes<'_>) -> World {
        let now = Instant::now();
        let lanes = 1 + program.next() % 4;
        let settings = settings(program);
        let end = |side| End {
            tunnel: next::tunnel(side, settings, now),
            messages: Vec::new(),
            heard: 0,
            control_bytes: 0,
        };
        let mut world = World {
            settings,
            now,
            ends: [end(Side::Odd), end(Side::Even)],
            wires: (0..lanes).map(|_| Wire::default()).collect(),
            streams: BTreeMap::new(),
        };
        (0..lanes).for_each(|lane| world.lane_up(lane));
        world
    }

    fn step(&mut self, program: &mut Bytes<'_>) {
        let code = program.next();
        let end = code >> 7;
        let what = program.next();
        let lane = what % self.wires.len();
        let ids: Vec<StreamId> = self.streams.keys().copied().collect();
        let id = ids.get(what % ids.len().max(1)).copied();
        match code % 16 {
            0 => self.open(end),
            1 => self.send(end, id, program.size(), Some(lane)),
            2 => self.send(end, id, program.size(), None),
            3 => (0..10).for_each(|_| self.send(end, id, MAX_PAYLOAD, None)),
            4 => self.finish(end, id),
            5 => self.reset(end, id, Reason::Reset),
            6 => self.consume(end, id, program.size()),
            7 => ids.iter().for_each(|id| self.consume(end, Some(*id), usize::MAX)),
            8 => self.accept(end, id),
            9 => self.write(end, lane, program.size()),
            10 => self.deliver(end, lane, program.size()),
            11 => {
                self.write(end, lane, usize::MAX);
                self.deliver(1 - end, lane, usize::MAX);
            }
            12 => self.lane_down(end, lane),
            13 => self.lane_up(lane),
            14 => self.pass(Duration::from_millis(program.size() as u64 / 4)),
            _ if what & 1 == 0 => self.message(end, 2 * program.size()),
            _ if what & 2 == 0 => self.hand_over(end),
            _ => drop(self.ends[end].tunnel.pad(lane, self.now)),
        }
    }

    fn open(&mut self, end: usize) {
        if self.streams.len() >= MAX_STREAMS {
            return;
        }
        let state = &mut self.ends[end];
        // The number is known only later; the request contains the count instead.
        let request = request(self.streams.len());
        let id = state.tunnel.open(&request);
        state.control_bytes += 2 * HEADER_BYTES as u64 + 64;
        let stream = Stream {
            opener: end,
            messages_before: state.messages.len(),
            halves: Default::default(),
        };
        assert!(self.streams.insert(id, stream).is_none(), "{id:?} given twice");
        self.half(end, id).known = true;
    }

    fn half(&mut self, end: usize, id: StreamId) -> &mut Half {
        let stream = self
            .streams
            .get_mut(&id)
            .expect("only what an end opened is told of");
        &mut stream.halves[end]
    }

    /// Sends on this lane, or on the one that the tunnel chooses.
    fn send(&mut self, end: usize, id: Option<StreamId>, most: usize, lane: Option<usize>) {
        let Some(id) = id.filter(|id| self.half(end, *id).known) else {
            return;
        };
        let (now, wires) = (self.now, &self.wires);
        let tunnel = &mut self.ends[end].tunnel;
        let usable = |lane: usize| wires[lane].up[end];
        let lane = lane
            .filter(|lane| usable(*lane))
            .or_else(|| tunnel.choose_lane(usable));
        let Some(lane) = lane.filter(|lane| tunnel.prepare(*lane, BATCH, now)) else {
            return;
        };
        let sendable = tunnel.sendable(id);
        let space = tunnel.reserve(lane, id);
        assert!(space.len() <= sendable);
        let count = most.min(space.len());
        if count == 0 {
            return;
        }
        let sent = self.streams[&id].halves[end].sent;
        space[..count].copy_from_slice(&pattern(id, end, sent, count));
        tunnel.commit(lane, id, count, now);
        let half = self.half(end, id);
        assert!(
            !half.finished && !half.is_gone(),
            "{id:?} sends though it has ended"
        );
        half.sent += count as u64;
    }

    fn finish(&mut self, end: usize, id: Option<StreamId>) {
        let Some(id) = id.filter(|id| self.half(end, *id).known) else {
            return;
        };
        self.ends[end].control_bytes += HEADER_BYTES as u64;
        self.ends[end].tunnel.finish(id);
        let half = self.half(end, id);
        half.finished |= !half.is_gone();
    }

    fn reset(&mut self, end: usize, id: Option<StreamId>, reason: Reason) {
        let Some(id) = id.filter(|id| self.half(end, *id).known) else {
            return;
        };
        self.ends[end].control_bytes += HEADER_BYTES as u64;
        self.ends[end].tunnel.reset(id, reason);
        let half = self.half(end, id);
        if !half.is_over() {
            half.reset = Some(reason);
        }
    }

    fn consume(&mut self, end: usize, id: Option<StreamId>, most: usize) {
        let Some(id) = id else { return };
        let half = self.half(end, id);
        let count = ((half.received - half.consumed) as usize).min(most);
        half.consumed += count as u64;
        self.ends[end].control_bytes += HEADER_BYTES as u64;
        self.ends[end].tunnel.consumed(id, count);
    }

    fn accept(&mut self, end: usize, id: Option<StreamId>) {
        let Some(id) = id else { return };
        let opener = self.streams[&id].opener;
        let half = self.half(end, id);
        if opener != end && half.known && !std::mem::replace(&mut half.accepted, true) {
            self.ends[end].control_bytes += HEADER_BYTES as u64;
            self.ends[end].tunnel.opened(id);
        }
    }

    fn message(&mut self, end: usize, length: usize) {
        // An empty message has no frame.
        let length = length.max(1);
        let heard = self.ends[1 - end].heard;
        let state = &mut self.ends[end];
        if state.messages[heard..].iter().sum::<usize>() + length > MAX_UNDER_WAY {
            return;
        }
        let bytes = message(state.messages.len(), length);
        state.tunnel.message(&bytes);
        state.messages.push(length);
        state.control_bytes += (length + 3 * HEADER_BYTES) as u64;
    }

    fn write(&mut self, end: usize, lane: usize, most: usize) {
        let (wire, state) = (&mut self.wires[lane], &mut self.ends[end]);
        if !wire.up[end] {
            return;
        }
        state.tunnel.prepare(lane, BATCH, self.now);
        state.tunnel.put_ack(lane, self.now);
        state.control_bytes += HEADER_BYTES as u64;
        let mut left = most;
        while left > 0 && !state.tunnel.unsent(lane).is_empty() {
            let bytes = state.tunnel.unsent(lane);
            let count = bytes.len().min(left);
            if wire.alive {
                wire.flying[1 - end].extend_from_slice(&bytes[..count]);
            }
            state.tunnel.sent(lane, count, self.now);
            left -= count;
        }
    }

    fn deliver(&mut self, end: usize, lane: usize, most: usize) {
        let wire = &mut self.wires[lane];
        if !wire.up[end] {
            return;
        }
        let count = most.min(wire.flying[end].len());
        let mut input = std::mem::take(&mut wire.input[end]);
        input.extend_from_slice(&wire.flying[end][..count]);
        wire.flying[end].drain(..count);
        let mut rest = &input[..];
        loop {
            let tunnel = &mut self.ends[end].tunnel;
            let event = tunnel.on_input(lane, &mut rest, self.now);
            // Too much has come ahead of a lane that stands still: this lane ends, and what it brought is
            // sent again.
            if event == Err(ProtocolError::Early) {
                return self.lane_down(end, lane);
            }
            let Some(event) = event.expect("the far end keeps to the protocol") else {
                break;
            };
            self.on_event(end, event);
        }
        self.wires[lane].input[end] = rest.to_vec();
    }

    fn lane_down(&mut self, end: usize, lane: usize) {
        let wire = &mut self.wires[lane];
        if std::mem::replace(&mut wire.up[end], false) {
            wire.alive = false;
            wire.flying = Default::default();
            wire.input[end].clear();
            self.ends[end].tunnel.lane_down(lane, self.now);
        }
    }

    /// Continues the end in another process, without its lanes.
    fn hand_over(&mut self, end: usize) {
        (0..self.wires.len()).for_each(|lane| self.lane_down(end, lane));
        let tunnel = &mut self.ends[end].tunnel;
        self.ends[end].tunnel = next::process_of(tunnel, self.settings, self.now);
        while let Some(event) = self.ends[end].tunnel.poll_event() {
            self.on_event(end, event);
        }
    }

    /// Makes a new connection, whether or not the ends have noticed that the old one is gone.
    fn lane_up(&mut self, lane: usize) {
        self.wires[lane] = Wire {
            up: [true; 2],
            alive: true,
            ..Wire::default()
        };
        self.ends
            .iter_mut()
            .for_each(|end| end.tunnel.lane_up(lane, self.now));
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
        for end in 0..2 {
            let state = &mut self.ends[end];
            state.tunnel.on_time(self.now);
            state.control_bytes += (self.wires.len() * HEADER_BYTES) as u64;
            while let Some(event) = self.ends[end].tunnel.poll_event() {
                self.on_event(end, event);
            }
        }
    }

    fn on_event(&mut self, end: usize, event: Event<'_>) {
        match event {
            Event::Open(id, asked) => {
                let index = self
                    .streams
                    .iter()
                    .filter(|(_, stream)| stream.halves[end].known)
                    .count();
                let heard = self.ends[end].heard;
                let stream = self.streams.get_mut(&id).expect("somebody opened it");
                let half = &mut stream.halves[end];
                assert!(
                    stream.opener != end && !std::mem::replace(&mut half.known, true),
                    "{index}"
                );
                assert!(heard >= stream.messages_before, "{id:?} overtook a message");
                assert!(matches!(asked.target, Target::Node(_)) && asked.token == Token([9; 16]));
            }
            Event::Opened(id) => {
                let stream = &self.streams[&id];
                let far = &stream.halves[1 - end];
                assert!(stream.opener == end && (far.accepted || far.sent > 0 || far.finished));
                let half = self.half(end, id);
                assert!(
                    !half.is_gone() && !std::mem::replace(&mut half.answered, true),
                    "{id:?}"
                );
            }
            Event::Data(id, data) => {
                let sent = self.streams[&id].halves[1 - end].sent;
                let half = self.half(end, id);
                assert!(half.known && !half.saw_finish && !half.is_gone() && !data.is_empty());
                let at = half.received;
                half.received += data.len() as u64;
                assert!(half.received <= sent, "{id:?} grew");
                let same = *data == pattern(id, 1 - end, at, data.len());
                assert!(same, "{id:?} differs after byte {at}");
            }
            Event::Finished(id) => {
                let stream = &self.streams[&id];
                let (half, far) = (&stream.halves[end], &stream.halves[1 - end]);
                assert!(
                    far.finished && half.received == far.sent && !half.is_gone(),
                    "{id:?}"
                );
                assert!(!std::mem::replace(&mut self.half(end, id).saw_finish, true));
            }
            Event::Reset(id, reason) => {
                let stream = &self.streams[&id];
                let (half, far) = (&stream.halves[end], &stream.halves[1 - end]);
                assert_eq!(far.reset, Some(reason));
                // Both halves may have ended: the far end did not know that yet when it reset the stream.
                assert!(
                    half.received == far.sent && !half.is_gone(),
                    "{id:?} {half:?} {far:?}"
                );
                self.half(end, id).saw_reset = true;
            }
            Event::Sendable(id) => assert!(self.ends[end].tunnel.sendable(id) > 0),
            Event::Message(bytes) => {
                let number = self.ends[end].heard;
                assert!(bytes == message(number, self.ends[1 - end].messages[number]));
                self.ends[end].heard += 1;
            }
            Event::LaneDead(lane) => self.lane_down(end, lane),
            // A rival would be another lane, which the program may or may not bring up.
            Event::LaneSilent(_) => {}
            Event::Expired => panic!("expired though the program is shorter than that"),
        }
    }

    fn check_bounds(&self) {
        let limits = &self.settings.limits;
        let lanes = self.wires.len() as u64;
        let frame = (HEADER_BYTES + MAX_PAYLOAD) as u64;
        for (end, state) in self.ends.iter().enumerate() {
            // This is in flight, and counts again while it waits for another lane (settings.rs).
            let bound = 2 * (lanes * (self.settings.lane_bytes + frame) + state.control_bytes);
            let kept = state.tunnel.kept_bytes();
            assert!(kept <= bound, "end {end} keeps {kept} bytes, not {bound} at most");
            let live = self
                .streams
                .values()
                .filter(|stream| !stream.halves[end].is_over());
            let (mut streams, mut held) = (0, 0);
            for stream in live {
                streams += 1;
                held += stream.halves[1 - end].sent - stream.halves[end].consumed;
            }
            let bound = limits.budget + limits.least * streams;
            assert!(
                held <= bound,
                "end {end} may hold {held} bytes, not {bound} at most"
            );
        }
    }

    /// Makes every lane work from now on, every reader read and every stream end.
    fn heal(&mut self) {
        let mut quiet = 0;
        let waiting: u64 = self.ends.iter().map(|end| end.tunnel.kept_bytes()).sum();
        let rounds = HEALING_ROUNDS + waiting / HEALED_BYTES;
        for _ in 0..rounds {
            // A lane that was silent for too long may be given up even now.
            for lane in 0..self.wires.len() {
                if self.wires[lane].up != [true; 2] || !self.wires[lane].alive {
                    self.lane_up(lane);
                }
            }
            self.pass(Duration::from_millis(50));
            let ids: Vec<StreamId> = self.streams.keys().copied().collect();
            for end in 0..2 {
                for id in &ids {
                    self.accept(end, Some(*id));
                    self.consume(end, Some(*id), usize::MAX);
                    if !self.half(end, *id).finished {
                        self.finish(end, Some(*id));
                    }
                }
                for lane in 0..self.wires.len() {
                    self.write(end, lane, usize::MAX);
                    self.deliver(1 - end, lane, usize::MAX);
                }
            }
            let busy = self.ends.iter().any(|end| end.tunnel.has_frames());
            quiet = if busy { 0 } else { quiet + 1 };
            if quiet == 10 {
                return;
            }
        }
        panic!("frames still wait after {rounds} rounds in which every lane worked");
    }

    fn check_all_arrived(&self) {
        for (id, stream) in &self.streams {
            for end in 0..2 {
                let (half, far) = (&stream.halves[end], &stream.halves[1 - end]);
                if half.reset.is_none() {
                    assert!(
                        half.received == far.sent && half.is_over(),
                        "{id:?} {half:?} {far:?}"
                    );
                    let is_answered = end != stream.opener || half.answered || half.saw_reset;
                    assert!(is_answered, "{id:?} was never answered");
                }
            }
        }
        for (end, state) in self.ends.iter().enumerate() {
            assert_eq!(state.tunnel.streams(), 0, "end {end}");
            assert_eq!(state.heard, self.ends[1 - end].messages.len(), "end {end}");
            // The last acknowledgements are acknowledged only by the next ping.
            let kept = state.tunnel.kept_bytes();
            assert!(kept <= 10_000, "end {end} still keeps {kept} bytes");
        }
    }
}

/// Returns the bytes that `end` sends on a stream from position `at` on. They are slices of a table, because
/// a fuzzer counts every comparison in a loop.
fn pattern(id: StreamId, end: usize, at: u64, length: usize) -> Vec<u8> {
    const PERIOD: usize = 65_521;
    static TABLE: LazyLock<Vec<u8>> = LazyLock::new(|| {
        let random = (0..PERIOD as u64).map(|at| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8);
        random.collect()
    });
    let start = (at as usize + id.0 as usize * 7919 + end * 31_337) % PERIOD;
    let mut bytes = Vec::with_capacity(length);
    let mut rest = &TABLE[start..];
    while bytes.len() < length {
        bytes.extend_from_slice(&rest[..rest.len().min(length - bytes.len())]);
        rest = &TABLE;
    }
    bytes
}

fn message(number: usize, length: usize) -> Vec<u8> {
    pattern(StreamId(number as u32), 2, 0, length)
}

pub fn request(number: usize) -> OpenRequest {
    OpenRequest {
        token: Token([9; 16]),
        target: Target::Node(format!("node-{number}")),
    }
}
