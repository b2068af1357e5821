//! Two ends of a tunnel joined by a lane that cuts the bytes anywhere: what is sent arrives, in order and
//! once, whatever the cuts, the order of reading and the slowness of readers. The tests are seeded; a failure
//! prints the seed.

use causeway_tunnel::frame::HEADER_BYTES;
use causeway_tunnel::{Event, Limits, Settings, Side, StreamId, Tunnel};
use causeway_tunnel_model::{Random, pattern, request};
use causeway_wire::Reason;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Instant;

/// A gateway reduced to memory: what applications want to send, and what has arrived for them.
struct End {
    tunnel: Tunnel,
    now: Instant,
    out: VecDeque<u8>,
    input: Vec<u8>,
    unsent: BTreeMap<StreamId, VecDeque<u8>>,
    arrived: HashMap<StreamId, Vec<u8>>,
    held: BTreeMap<StreamId, usize>,
    finished: Vec<StreamId>,
    resets: Vec<(StreamId, Reason)>,
    messages: Vec<Vec<u8>>,
}

impl End {
    fn new(side: Side, limits: Limits) -> End {
        let now = Instant::now();
        let settings = Settings {
            limits,
            ..Settings::default()
        };
        let mut tunnel = Tunnel::new(side, settings, now);
        tunnel.lane_up(0, now);
        End {
            tunnel,
            now,
            out: VecDeque::new(),
            input: Vec::new(),
            unsent: BTreeMap::new(),
            arrived: HashMap::new(),
            held: BTreeMap::new(),
            finished: Vec::new(),
            resets: Vec::new(),
            messages: Vec::new(),
        }
    }

    fn open(&mut self, payload: Vec<u8>) -> StreamId {
        let id = self.tunnel.open(&request());
        self.unsent.insert(id, payload.into());
        id
    }

    fn write_out(&mut self) {
        self.tunnel.prepare(0, u64::MAX, self.now);
        self.tunnel.put_ack(0, self.now);
        while !self.tunnel.unsent(0).is_empty() {
            let bytes = self.tunnel.unsent(0);
            let count = bytes.len();
            self.out.extend(bytes);
            self.tunnel.sent(0, count, self.now);
        }
    }

    fn send_some(&mut self, random: &mut Random) {
        self.write_out();
        let ids: Vec<StreamId> = self.unsent.keys().copied().collect();
        for id in ids {
            let Some(bytes) = self.unsent.get_mut(&id) else {
                continue;
            };
            let space = self.tunnel.reserve(0, id);
            let most = space.len().min(bytes.len());
            if most > 0 {
                let count = 1 + random.below(most);
                space
                    .iter_mut()
                    .zip(bytes.drain(..count))
                    .for_each(|(place, byte)| *place = byte);
                self.tunnel.commit(0, id, count, self.now);
            }
            if bytes.is_empty() {
                self.unsent.remove(&id);
                self.tunnel.finish(id);
            }
        }
        self.write_out();
    }

    fn take_in(&mut self, bytes: impl Iterator<Item = u8>, answer: &dyn Fn(usize) -> Vec<u8>) {
        self.input.extend(bytes);
        let input = std::mem::take(&mut self.input);
        let mut rest = &input[..];
        while let Some(event) = self
            .tunnel
            .on_input(0, &mut rest, self.now)
            .expect("the far side keeps to the protocol")
        {
            match event {
                Event::Open(id, asked) => {
                    assert_eq!(asked, request());
                    self.tunnel.opened(id);
                    self.unsent.insert(id, answer(id.0 as usize).into());
                }
                Event::Data(id, data) => {
                    self.arrived.entry(id).or_default().extend(&*data);
                    *self.held.entry(id).or_default() += data.len();
                }
                Event::Finished(id) => self.finished.push(id),
                Event::Reset(id, reason) => self.resets.push((id, reason)),
                Event::Message(bytes) => self.messages.push(bytes),
                Event::Opened(_)
                | Event::Sendable(_)
                | Event::LaneSilent(_)
                | Event::LaneDead(_)
                | Event::Expired => {}
            }
        }
        self.input = rest.to_vec();
    }

    fn read_some(&mut self, random: &mut Random, stuck: Option<StreamId>) {
        for (id, held) in &mut self.held {
            if Some(*id) != stuck && *held > 0 {
                let count = 1 + random.below(*held);
                *held -= count;
                self.tunnel.consumed(*id, count);
            }
        }
    }
}

fn small_limits() -> Limits {
    Limits {
        most: 200_000,
        initial: 100_000,
        budget: 300_000,
        ..Limits::default()
    }
}

fn step(
    from: &mut End,
    to: &mut End,
    random: &mut Random,
    answer: &dyn Fn(usize) -> Vec<u8>,
    stuck: Option<StreamId>,
) {
    from.send_some(random);
    let count = random.below(from.out.len().min(70_000) + 1);
    let bytes: Vec<u8> = from.out.drain(..count).collect();
    to.take_in(bytes.into_iter(), answer);
    to.read_some(random, stuck);
}

fn drive(
    a: &mut End,
    b: &mut End,
    random: &mut Random,
    answer: &dyn Fn(usize) -> Vec<u8>,
    stuck: Option<StreamId>,
) {
    let mut quiet = 0;
    for _ in 0..1_000_000 {
        step(a, b, random, answer, stuck);
        step(b, a, random, answer, stuck);
        let idle = a.out.is_empty() && b.out.is_empty() && !a.tunnel.has_frames() && !b.tunnel.has_frames();
        quiet = if idle { quiet + 1 } else { 0 };
        if quiet > 50 {
            return;
        }
    }
    panic!("no end in sight");
}

#[test]
fn what_goes_in_comes_out_in_order_and_once_whatever_the_cuts() {
    for seed in 0..40 {
        println!("seed {seed}");
        let random = &mut Random::of(seed);
        let (mut a, mut b) = (
            End::new(Side::Odd, small_limits()),
            End::new(Side::Even, small_limits()),
        );
        let answer = |id: usize| pattern(id + 1000, 1000 * id);
        let mut sent = HashMap::new();
        for index in 0..12 {
            let payload = pattern(index, random.below(400_000));
            let end = if index % 2 == 0 { &mut a } else { &mut b };
            sent.insert((index % 2, end.open(payload.clone())), payload);
        }
        drive(&mut a, &mut b, random, &answer, None);
        for ((opener, id), payload) in &sent {
            let (near, far) = if *opener == 0 { (&a, &b) } else { (&b, &a) };
            assert!(
                far.arrived
                    .get(id)
                    .map_or(payload.is_empty(), |arrived| arrived == payload)
            );
            assert!(near.arrived.get(id) == Some(&answer(id.0 as usize)));
        }
        assert_eq!((a.finished.len(), b.finished.len()), (12, 12));
        assert_eq!((a.tunnel.streams(), b.tunnel.streams()), (0, 0));
    }
}

#[test]
fn a_reader_that_stops_stops_its_own_stream_only_and_within_its_window() {
    let random = &mut Random::of(1);
    let (mut a, mut b) = (
        End::new(Side::Odd, small_limits()),
        End::new(Side::Even, small_limits()),
    );
    let stuck = a.open(pattern(1, 2_000_000));
    let free = a.open(pattern(2, 2_000_000));
    drive(&mut a, &mut b, random, &|_| Vec::new(), Some(stuck));
    assert_eq!(b.arrived[&free], pattern(2, 2_000_000));
    assert!(b.arrived[&stuck].len() as u64 <= small_limits().initial);
    drive(&mut a, &mut b, random, &|_| Vec::new(), None);
    assert_eq!(b.arrived[&stuck], pattern(1, 2_000_000));
}

#[test]
fn one_half_ends_while_the_other_goes_on() {
    let random = &mut Random::of(2);
    let (mut a, mut b) = (
        End::new(Side::Odd, small_limits()),
        End::new(Side::Even, small_limits()),
    );
    let id = a.open(Vec::new());
    drive(&mut a, &mut b, random, &|_| pattern(3, 500_000), None);
    assert_eq!(b.finished, [id]);
    assert_eq!(a.arrived[&id], pattern(3, 500_000));
}

#[test]
fn a_reset_ends_the_stream_at_both_ends_and_late_bytes_are_dropped() {
    let random = &mut Random::of(3);
    let (mut a, mut b) = (
        End::new(Side::Odd, small_limits()),
        End::new(Side::Even, small_limits()),
    );
    let id = a.open(pattern(1, 300_000));
    step(&mut a, &mut b, random, &|_| Vec::new(), None);
    a.write_out();
    let late: Vec<u8> = a.out.drain(..).collect();
    b.tunnel.reset(id, Reason::Refused);
    b.take_in(late.into_iter(), &|_| Vec::new());
    drive(&mut a, &mut b, random, &|_| Vec::new(), None);
    assert_eq!(a.resets, [(id, Reason::Refused)]);
    assert_eq!((a.tunnel.streams(), b.tunnel.streams()), (0, 0));
    assert_eq!(a.tunnel.sendable(id), 0);
}

#[test]
fn messages_longer_than_a_frame_arrive_whole() {
    let random = &mut Random::of(4);
    let (mut a, mut b) = (
        End::new(Side::Odd, small_limits()),
        End::new(Side::Even, small_limits()),
    );
    a.tunnel.message(&pattern(5, 200_000));
    a.tunnel.message(b"short");
    drive(&mut a, &mut b, random, &|_| Vec::new(), None);
    assert_eq!(b.messages, [pattern(5, 200_000), b"short".to_vec()]);
}

#[test]
fn damaged_lane_bytes_end_in_an_error_or_are_dropped_but_never_panic() {
    for seed in 0..2000 {
        let random = &mut Random::of(seed);
        let (mut a, mut b) = (
            End::new(Side::Odd, small_limits()),
            End::new(Side::Even, small_limits()),
        );
        a.open(pattern(1, 500));
        a.send_some(random);
        let mut bytes: Vec<u8> = a.out.drain(..).collect();
        for _ in 0..3 {
            let at = random.below(bytes.len().min(4 * HEADER_BYTES));
            bytes[at] = random.next() as u8;
        }
        let mut input = &bytes[..];
        while let Ok(Some(_)) = b.tunnel.on_input(0, &mut input, b.now) {}
    }
}
