//! Plays any bytes as if a hostile far gateway had sent them on the lanes of one end, between the actions of
//! this end's driver. The far gateway may make its own streams useless; it may neither make this end panic
//! nor make it keep more than `Settings` and `Limits` say. The seeded test (programs.rs) and the fuzz target
//! `tunnel_input` (fuzz/) both call [`play`].

use crate::program::{self, Bytes};
use causeway_tunnel::frame::HEADER_BYTES;
use causeway_tunnel::{Event, Header, Kind, MAX_PAYLOAD, Settings, Side, StreamId, Tunnel, steps};
use causeway_wire::Reason;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

const MAX_STEPS: usize = 2000;
const LANES: usize = 2;
const BATCH: u64 = 128 * 1024;

/// Most turns of loops for each header's length of bytes that has arrived, and for each look of this end: a
/// frame is read, reported, kept and used again once each. Work that grows with the amount of kept data
/// exceeds this.
const STEPS_FOR_A_HEADER: u64 = 8;

pub fn play(bytes: &[u8]) {
    let mut program = Bytes(bytes);
    let mut target = Target::new(&mut program);
    for _ in 0..MAX_STEPS {
        if program.0.is_empty() {
            return;
        }
        target.step(&mut program);
        target.check_bounds();
    }
}

struct Target {
    tunnel: Tunnel,
    settings: Settings,
    now: Instant,
    input: [Vec<u8>; LANES],
    /// How many bytes this end has sent on each lane: an acknowledgement of these is the most likely to be
    /// meaningful.
    sent: [u64; LANES],
    streams: BTreeMap<StreamId, Stream>,
    /// How many bytes all control frames that this end may have made have.
    control_bytes: u64,
    /// How many bytes have arrived, and how often this end has looked at them.
    arrived: u64,
    looks: u64,
    /// How many steps this thread had taken before.
    began: u64,
}

#[derive(Debug, Default)]
struct Stream {
    /// Whether this end has opened it.
    own: bool,
    answered: bool,
    held: usize,
    received: u64,
    finished: bool,
    /// Whether either end has reset it.
    gone: bool,
}

impl Target {
    fn new(program: &mut Bytes<'_>) -> Target {
        let now = Instant::now();
        let settings = program::settings(program);
        let side = program.pick(&[Side::Odd, Side::Even]);
        let mut tunnel = Tunnel::new(side, settings, now);
        (0..LANES).for_each(|lane| tunnel.lane_up(lane, now));
        Target {
            tunnel,
            settings,
            now,
            input: Default::default(),
            sent: [0; LANES],
            streams: BTreeMap::new(),
            control_bytes: 0,
            arrived: 0,
            looks: 0,
            began: steps::taken(),
        }
    }

    fn step(&mut self, program: &mut Bytes<'_>) {
        let code = program.next();
        let lane = (code >> 7) % LANES;
        match code % 32 {
            0 => {
                let count = program.next().min(program.0.len());
                let (bytes, rest) = program.0.split_at(count);
                program.0 = rest;
                self.take_in(lane, bytes);
            }
            1..=15 => {
                let bytes = self.frame(lane, program);
                self.take_in(lane, &bytes);
            }
            16 | 17 => {
                let bytes = self.frame(lane, program);
                self.take_in_many(lane, bytes, program);
            }
            18 => self.open(),
            19 | 20 => self.send(lane, program),
            21 | 22 => self.write(lane, program.size()),
            23 => self.pass(Duration::from_millis(program.size() as u64 / 4)),
            24 => self.replace(lane),
            25 => {
                let length = 1 + program.size();
                self.tunnel.message(&vec![7; length]);
                self.control_bytes += (length + 2 * HEADER_BYTES) as u64;
            }
            what => {
                let Some(id) = self.known(program.next()) else {
                    return;
                };
                self.control_bytes += HEADER_BYTES as u64;
                match what {
                    26 => self.tunnel.opened(id),
                    27 => self.tunnel.finish(id),
                    28 => {
                        self.tunnel.reset(id, Reason::Denied);
                        self.stream(id).gone = true;
                    }
                    _ => self.consume(id, program.size()),
                }
            }
        }
    }

    /// A frame of any kind, with numbers that are often meaningful.
    fn frame(&self, lane: usize, program: &mut Bytes<'_>) -> Vec<u8> {
        use Kind::*;
        let kinds = [
            Data, Data, Open, Opened, Finish, Reset, Credit, Ping, Message, Ack, Skip,
        ];
        let kind = program.pick(&kinds);
        let stream = match program.next() {
            near @ 0..200 => near as u32 % 12,
            far => [u32::MAX, u32::MAX - 1, 1 << 21, 3 << 20, 1 << 31][far % 5],
        };
        let number = program.next();
        let known = self
            .streams
            .get(&StreamId(stream))
            .map_or(0, |stream| stream.received);
        let position = match program.next() {
            0..80 => known + number as u64,
            80..140 => number as u64,
            140..160 => (number * number) as u64,
            160..180 => self.settings.limits.least - number as u64,
            180..220 => self.sent[lane].saturating_sub(number as u64 / 16),
            _ => u64::MAX - number as u64,
        };
        let mut payload = vec![1; program.size().min(MAX_PAYLOAD)];
        if kind == Open && number < 250 {
            payload = (number as u64 % 3).to_be_bytes().to_vec();
            payload.extend(program::request(number).encode());
        }
        let header = Header {
            kind,
            detail: (number % 10) as u8,
            length: payload.len() as u16,
            stream,
            position,
        };
        let mut bytes = header.encode().to_vec();
        bytes.extend(payload);
        bytes
    }

    /// Plays the same frame many times, each time a step further: the work for one frame must not grow with
    /// their number.
    fn take_in_many(&mut self, lane: usize, mut frame: Vec<u8>, program: &mut Bytes<'_>) {
        let (stream_step, step) = (program.next() as u32 % 3, program.next() as u64 % 5);
        let Ok(mut header) = Header::decode(frame.first_chunk().expect("frames have headers")) else {
            return;
        };
        for _ in 0..program.next() {
            self.take_in(lane, &frame);
            header.stream = header.stream.wrapping_add(2 * stream_step);
            header.position = header.position.wrapping_add(step);
            frame[..HEADER_BYTES].copy_from_slice(&header.encode());
        }
    }

    fn take_in(&mut self, lane: usize, bytes: &[u8]) {
        let mut input = std::mem::take(&mut self.input[lane]);
        input.extend(bytes);
        self.arrived += bytes.len() as u64;
        self.looks += 1;
        let mut rest = &input[..];
        loop {
            match self.tunnel.on_input(lane, &mut rest, self.now) {
                Ok(Some(event)) => self.on_event(event),
                Ok(None) => break,
                Err(_) => return self.replace(lane),
            }
        }
        assert!(rest.len() < HEADER_BYTES + MAX_PAYLOAD, "whole frames are taken");
        self.input[lane] = rest.to_vec();
    }

    fn on_event(&mut self, event: Event<'_>) {
        match event {
            Event::Open(id, _) => {
                let before = self.streams.insert(id, Stream::default());
                assert!(before.is_none(), "{id:?} opened twice");
            }
            Event::Data(id, data) => {
                let stream = self.stream(id);
                assert!(
                    !data.is_empty() && !stream.finished && !stream.gone,
                    "{id:?} {stream:?}"
                );
                stream.held += data.len();
                stream.received += data.len() as u64;
            }
            Event::Finished(id) => {
                let stream = self.stream(id);
                assert!(
                    !stream.gone && !std::mem::replace(&mut stream.finished, true),
                    "{id:?}"
                );
            }
            Event::Reset(id, _) => {
                let stream = self.stream(id);
                assert!(!std::mem::replace(&mut stream.gone, true), "{id:?} reset twice");
            }
            Event::Opened(id) => {
                let stream = self.stream(id);
                assert!(stream.own && !stream.gone, "{id:?} {stream:?}");
                assert!(
                    !std::mem::replace(&mut stream.answered, true),
                    "{id:?} {stream:?}"
                );
            }
            Event::Sendable(id) => assert!(self.tunnel.sendable(id) > 0),
            Event::Message(_) => {}
            Event::LaneDead(lane) => self.replace(lane),
            Event::LaneSilent(_) => {}
            Event::Expired => panic!("a lane is always up"),
        }
    }

    fn stream(&mut self, id: StreamId) -> &mut Stream {
        self.streams
            .get_mut(&id)
            .expect("events are of streams that were opened")
    }

    fn known(&self, index: usize) -> Option<StreamId> {
        let count = self.streams.len().max(1);
        self.streams.keys().nth(index % count).copied()
    }

    fn open(&mut self) {
        let id = self.tunnel.open(&program::request(0));
        self.control_bytes += 2 * HEADER_BYTES as u64 + 64;
        let stream = Stream {
            own: true,
            ..Stream::default()
        };
        assert!(self.streams.insert(id, stream).is_none(), "{id:?} given twice");
    }

    fn send(&mut self, lane: usize, program: &mut Bytes<'_>) {
        let (index, most) = (program.next(), program.size());
        let Some(id) = self.known(index) else { return };
        if !self.tunnel.prepare(lane, BATCH, self.now) {
            return;
        }
        let count = self.tunnel.reserve(lane, id).len().min(most);
        if count > 0 {
            self.tunnel.commit(lane, id, count, self.now);
        }
    }

    fn write(&mut self, lane: usize, most: usize) {
        self.tunnel.prepare(lane, BATCH, self.now);
        self.tunnel.put_ack(lane, self.now);
        self.control_bytes += HEADER_BYTES as u64;
        let count = self.tunnel.unsent(lane).len().min(most);
        self.tunnel.sent(lane, count, self.now);
        self.sent[lane] += count as u64;
    }

    fn consume(&mut self, id: StreamId, most: usize) {
        let stream = self.stream(id);
        let count = stream.held.min(most);
        stream.held -= count;
        self.tunnel.consumed(id, count);
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
        self.tunnel.on_time(self.now);
        self.control_bytes += (LANES * HEADER_BYTES) as u64;
        while let Some(event) = self.tunnel.poll_event() {
            self.on_event(event);
        }
    }

    /// Replaces a lane, as a driver does if the lane has broken the protocol or is dialled again.
    fn replace(&mut self, lane: usize) {
        self.tunnel.lane_up(lane, self.now);
        self.input[lane].clear();
        self.sent[lane] = 0;
    }

    fn check_bounds(&self) {
        let frame = (HEADER_BYTES + MAX_PAYLOAD) as u64;
        let bound = 2 * (LANES as u64 * (self.settings.lane_bytes + frame) + self.control_bytes);
        let kept = self.tunnel.kept_bytes();
        assert!(kept <= bound, "keeps {kept} bytes, not {bound} at most");
        let limits = &self.settings.limits;
        // What is kept of streams that have ended is for the driver to drop.
        let live: Vec<&Stream> = self
            .streams
            .values()
            .filter(|stream| !stream.gone && !stream.finished)
            .collect();
        let held: usize = live.iter().map(|stream| stream.held).sum();
        let bound = limits.budget + limits.least * live.len() as u64;
        assert!(held as u64 <= bound, "holds {held} bytes, not {bound} at most");
        let steps = steps::taken() - self.began;
        let bound = STEPS_FOR_A_HEADER * (self.arrived / HEADER_BYTES as u64 + self.looks);
        assert!(steps <= bound, "takes {steps} steps, not {bound} at most");
    }
}
