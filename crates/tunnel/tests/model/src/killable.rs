//! An end of a tunnel whose process can be killed between any two of its actions, and the sockets of its
//! streams, which outlive the process.

use crate::Random;
use causeway_memory::{Arena, Found, Journal};
use causeway_tunnel::{Event, Limits, Moved, Settings, Side, StreamId, Tunnel, recover};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::{Duration, Instant};

pub const OWNER: u64 = 7;
pub const BATCH: u64 = 64 * 1024;
pub const LANES: usize = 2;

/// The error if the process was killed.
pub struct Killed;

pub type Alive = Result<(), Killed>;

/// A connection to a process of a site, as the kernel knows it.
#[derive(Clone)]
pub struct Socket {
    /// How many bytes the process has sent, and how many of them were read.
    pub source: u64,
    pub read: u64,
    /// Whether the process at the other end was reached, or was told about the answer.
    pub answered: bool,
    /// How many bytes were written, all of them correct, and whether the end was passed on.
    pub written: u64,
    pub ended: bool,
}

/// What a gateway keeps about a stream's connection; the socket belongs to the kernel.
#[derive(Clone, Default)]
pub struct Leg {
    /// Whether this side has opened the stream.
    pub own: bool,
    /// Whether the stream's open is not answered yet, so that nothing is written to its process.
    pub waits: bool,
    pub read: u64,
    pub written: u64,
    pub read_ended: bool,
    pub peer_finished: bool,
    pub write_ended: bool,
    pub queue: Vec<u8>,
}

/// What a gateway writes to the journal besides the tunnel.
#[derive(Clone, Default)]
pub struct Known {
    pub legs: BTreeMap<StreamId, Leg>,
    pub heard: u64,
    pub said: u64,
}

pub struct End {
    pub side: Side,
    pub arena: Arena,
    pub journal: Journal,
    pub tunnel: Tunnel,
    pub known: Known,
    pub committed: Known,
    /// What the previous process has left, until this one has committed its journal for the first time.
    pub old: Vec<Found>,
    /// The sockets, which outlive the process.
    pub sockets: HashMap<StreamId, Socket>,
    pub input: [Vec<u8>; LANES],
    pub up: [bool; LANES],
    /// Whether processes read at once what arrives.
    pub keeps_up: bool,
    /// How many more actions there are until the process is killed; also counted only by the actions that a
    /// process of a site sees.
    pub life: Option<usize>,
    pub seen_life: Option<usize>,
    pub kills: usize,
}

pub fn settings() -> Settings {
    Settings {
        limits: Limits {
            initial: 70_000,
            most: 200_000,
            budget: 300_000,
            ..Limits::default()
        },
        lane_bytes: 150_000,
        resume: Duration::from_secs(7 * 86_400),
        ..Settings::default()
    }
}

/// A byte of one half of a stream; `from` says which half.
pub fn byte(id: StreamId, from: Side, position: u64) -> u8 {
    let half = if from == Side::Odd { 17 } else { 91 };
    (position.wrapping_mul(31) ^ (position >> 8) ^ u64::from(id.0) ^ half) as u8
}

pub fn other(side: Side) -> Side {
    if side == Side::Odd { Side::Even } else { Side::Odd }
}

/// How much the process at this end of a stream sends.
pub fn length(id: StreamId, side: Side, longest: usize) -> u64 {
    let mut random = Random::of(u64::from(id.0) * 2 + u64::from(side == Side::Odd));
    random.next();
    random.below(longest) as u64
}

pub fn count_down(life: &mut Option<usize>) -> Alive {
    match life {
        Some(0) => Err(Killed),
        Some(left) => {
            *left -= 1;
            Ok(())
        }
        None => Ok(()),
    }
}

impl End {
    pub fn new(side: Side, now: Instant) -> End {
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
            keeps_up: false,
            life: None,
            seen_life: None,
            kills: 0,
        }
    }

    /// Lives on to the next action, or is killed.
    pub fn act(&mut self) -> Alive {
        count_down(&mut self.life)
    }

    /// The same after something that a process sees: if it has not been written to the journal by then, only
    /// the socket knows it.
    pub fn act_in_sight(&mut self) -> Alive {
        count_down(&mut self.seen_life)?;
        self.act()
    }

    pub fn commit(&mut self, now: Instant) -> Alive {
        self.act()?;
        self.tunnel.write_down(&mut self.journal, now);
        self.act()?;
        self.journal.commit(now).unwrap();
        self.committed = self.known.clone();
        self.act()?;
        self.old.clear();
        self.tunnel.written_down();
        self.act()?;
        self.arena.reclaim();
        self.act()
    }

    pub fn on_event(&mut self, event: Event<'_>, random: &mut Random, longest: usize) -> Alive {
        match event {
            Event::Open(id, _) => {
                let source = length(id, self.side, longest);
                self.connect(id, source, false);
            }
            Event::Opened(id) => self.answer(id)?,
            Event::Data(id, bytes) => {
                let side = self.side;
                let leg = self.known.legs.get_mut(&id).expect("a stream has a leg");
                let mut taken = 0;
                if !leg.waits && leg.queue.is_empty() && random.below(3) > 0 {
                    taken = match self.keeps_up {
                        true => bytes.len(),
                        false => 1 + random.below(bytes.len()),
                    };
                    let socket = self.sockets.get_mut(&id).unwrap();
                    socket.write(id, other(side), &bytes[..taken]);
                }
                leg.queue.extend_from_slice(&bytes[taken..]);
                if taken > 0 {
                    self.act_in_sight()?;
                }
                let leg = self.known.legs.get_mut(&id).unwrap();
                leg.written += taken as u64;
                self.tunnel.consumed(id, taken);
            }
            Event::Finished(id) => {
                // The stream may have ended already: its socket shows this before the far side says it again.
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

    pub fn connect(&mut self, id: StreamId, source: u64, own: bool) {
        let leg = Leg {
            own,
            waits: true,
            ..Leg::default()
        };
        self.known.legs.insert(id, leg);
        self.sockets.insert(
            id,
            Socket {
                source,
                answered: false,
                read: 0,
                written: 0,
                ended: false,
            },
        );
    }

    /// Reaches the process for which a stream is meant, and tells the far side; or, if the far side has done
    /// so, tells the process.
    pub fn answer(&mut self, id: StreamId) -> Alive {
        // The stream may have ended already: its socket shows this before the far side says it again.
        let Some(own) = self.known.legs.get(&id).map(|leg| leg.own) else {
            return Ok(());
        };
        self.sockets.get_mut(&id).unwrap().answered = true;
        self.act_in_sight()?;
        self.known.legs.get_mut(&id).unwrap().waits = false;
        if !own {
            self.tunnel.opened(id);
        }
        self.act()
    }

    /// Writes what waits for a process.
    pub fn flush(&mut self, id: StreamId, most: usize) -> Alive {
        let Some(leg) = self.known.legs.get_mut(&id).filter(|leg| !leg.waits) else {
            return Ok(());
        };
        let count = leg.queue.len().min(most);
        let bytes = leg.queue[..count].to_vec();
        let socket = self.sockets.get_mut(&id).unwrap();
        socket.write(id, other(self.side), &bytes);
        if count > 0 {
            self.act_in_sight()?;
        }
        let leg = self.known.legs.get_mut(&id).unwrap();
        leg.queue.drain(..count);
        leg.written += count as u64;
        let ends = leg.queue.is_empty() && leg.peer_finished && !leg.write_ended;
        self.tunnel.consumed(id, count);
        if ends {
            self.act()?;
            self.sockets.get_mut(&id).unwrap().ended = true;
            self.act_in_sight()?;
            self.known.legs.get_mut(&id).unwrap().write_ended = true;
        }
        self.drop_if_done(id)
    }

    pub fn drop_if_done(&mut self, id: StreamId) -> Alive {
        let leg = &self.known.legs[&id];
        if leg.read_ended && leg.write_ended {
            // Its socket is closed after the next commit.
            self.known.legs.remove(&id);
            self.act()?;
        }
        Ok(())
    }

    /// Reads what processes have sent into a lane.
    pub fn fill(&mut self, lane: usize, now: Instant, random: &mut Random) -> Alive {
        self.act()?;
        if !self.tunnel.prepare(lane, BATCH, now) {
            return Ok(());
        }
        self.act()?;
        let ids: Vec<StreamId> = self.known.legs.keys().copied().collect();
        for id in ids {
            let side = self.side;
            let leg = &self.known.legs[&id];
            if !self.sockets[&id].speaks(id, leg)
                || leg.read_ended
                || self.tunnel.unsent_bytes(lane) >= BATCH
                || random.below(4) == 0
            {
                continue;
            }
            let socket = self.sockets.get_mut(&id).unwrap();
            let space = self.tunnel.reserve(lane, id);
            let left = socket.source - socket.read;
            let most = space.len().min(usize::try_from(left).unwrap());
            if space.is_empty() {
                continue;
            }
            let count = match random.below(2) {
                _ if most == 0 => 0,
                0 => most,
                _ => 1 + random.below(most),
            };
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

    /// Lets another process continue.
    pub fn go_on(&mut self, now: Instant) {
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
            leg.waits &= !socket.answered;
            leg.write_ended |= socket.ended;
            let from_queue = leg.queue.len().min(usize::try_from(written).unwrap());
            leg.queue.drain(..from_queue);
        }
        if records.is_empty() {
            // The process was killed before its first commit.
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
        let mut tunnel = recovered.snapshot.into_tunnel(times, (&arena, OWNER)).unwrap();
        let reached = known.legs.iter().filter(|(_, leg)| !leg.waits);
        reached.for_each(|(id, _)| tunnel.opened_again(*id));
        self.old = found;
        (self.arena, self.journal, self.tunnel, self.known) = (arena, journal, tunnel, known);
    }
}

impl Socket {
    /// Whether the socket's process sends by now. Some of the processes that have made a connection wait for
    /// the answer; those to which a connection was made wait for what the others say first.
    pub fn speaks(&self, id: StreamId, leg: &Leg) -> bool {
        match leg.own {
            true => !leg.waits || id.0.is_multiple_of(3),
            false => self.written > 0 || self.ended,
        }
    }

    pub fn write(&mut self, id: StreamId, from: Side, bytes: &[u8]) {
        assert!(!self.ended || bytes.is_empty(), "{id:?} is written after its end");
        for given in bytes {
            assert_eq!(*given, byte(id, from, self.written), "{id:?} at {}", self.written);
            self.written += 1;
        }
    }
}
