//! What strangers and the first ranks of sites send to the rendezvous of a world, and what it decides: see
//! `crates/rendezvous`. The server's sockets are played.
//!
//! The input is a program: an operation and a connection in one byte; with `FRAME`, the frame's length in two
//! bytes, and what is behind its length.
#![no_main]

use causeway_rendezvous::message;
use causeway_wire::{Grid, Token};
use causeway_rendezvous::meeting::{Action, Event, FAILURE, Key, Meeting};
use causeway_rendezvous::message::{HEAD_BYTES, Incoming, Join, MessageError};
use causeway_rendezvous::origins::Origins;
use std::collections::HashMap;
use std::net::SocketAddr;

const NUMBER: u64 = 5;
const TOKEN: Token = Token([7; Token::BYTES]);
const SITES: [&str; 2] = ["rennes", "nancy"];
/// Connections at a time; the source of each.
const SOURCES: [Option<&str>; 8] = [
    None,
    None,
    None,
    Some("10.0.0.1:40000"),
    Some("10.0.0.2:40000"),
    Some("10.0.0.2:40001"),
    Some("[fd00::1]:40000"),
    Some("10.9.0.1:40000"),
];

const FRAME: u8 = 0;
const CLOSE: u8 = 1;
const BREAK: u8 = 2;
const END: u8 = 3;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    begin(bytes);
    let mut run = Run::new();
    let mut left = bytes;
    while let [first, rest @ ..] = left {
        let (operation, place) = (first >> 3 & 3, usize::from(first & 7));
        left = match operation {
            FRAME => run.frame(place, rest),
            CLOSE => {
                run.close(place);
                rest
            }
            BREAK => {
                run.broken(place, &MessageError::Version(*first));
                rest
            }
            _ => {
                debug_assert_eq!(operation, END);
                run.meeting.end(FAILURE, "over");
                rest
            }
        };
        run.act();
    }
    (0..SOURCES.len()).for_each(|place| run.close(place));
    run.act();
});

/// The beginning of a connection: what is refused stays refused, however much follows.
fn begin(bytes: &[u8]) {
    let longer = [bytes, &[0; 32]].concat();
    match message::greets(bytes, &TOKEN) {
        Ok(known) => assert!(!known || bytes.len() >= message::GREETING_BYTES),
        Err(error) => assert_eq!(message::greets(&longer, &TOKEN), Err(error)),
    }
    match message::length(bytes) {
        Ok(None) => assert!(bytes.len() < HEAD_BYTES),
        other => assert_eq!(message::length(&longer), other),
    }
    if let Ok(Some(length)) = message::length(bytes) {
        assert!((HEAD_BYTES + 1..=HEAD_BYTES + message::MAX_BYTES).contains(&length));
    }
}

struct Run {
    meeting: Meeting,
    origins: Origins,
    next: Key,
    /// The connection at each place; None where it was told its last.
    keys: [Option<Key>; SOURCES.len()],
    /// What sites said of themselves, and was theirs to say.
    joins: HashMap<Key, Join>,
    worlds: Vec<(Key, Vec<u8>)>,
    told: Vec<Event>,
}

impl Run {
    fn new() -> Run {
        let grid: Grid = "1|rennes;10.1.0.0/24;10.1.0.253:7000;20000-32767;10.1.0.1-10.1.0.9\
                          |nancy;10.0.0.0/24,fd00::/64;10.0.0.253:7000;20000-32767;10.0.0.0-10.0.0.2,fd00::1"
            .parse()
            .expect("a grid");
        Run {
            meeting: Meeting::new(&SITES.map(str::to_owned), NUMBER),
            origins: Origins {
                own: grid.sites[0].clone(),
                sites: grid.sites,
                host: [10, 1, 0, 250].into(),
            },
            next: SOURCES.len() as Key,
            keys: std::array::from_fn(|place| Some(place as Key)),
            joins: HashMap::new(),
            worlds: Vec::new(),
            told: Vec::new(),
        }
    }

    fn frame<'a>(&mut self, place: usize, bytes: &'a [u8]) -> &'a [u8] {
        let Some((length, rest)) = bytes.split_first_chunk() else {
            return &[];
        };
        let length = usize::from(u16::from_le_bytes(*length));
        let (frame, rest) = rest.split_at(length.min(rest.len()));
        let Some(key) = self.keys[place] else { return rest };
        match message::decode(frame) {
            Ok(message) => {
                assert_eq!(encode(&message, frame), frame);
                self.message(key, place, message);
            }
            Err(error) => self.broken(place, &error),
        }
        rest
    }

    fn message(&mut self, key: Key, place: usize, message: Incoming) {
        let source = SOURCES[place].map(|source| source.parse::<SocketAddr>().expect("an address"));
        if let Err(why) = self.origins.judge(source, &message) {
            assert!(!why.contains(|letter: char| letter.is_control() && letter != '\t'));
            return self.meeting.on_broken(key, &why);
        }
        if let Incoming::Join(join) = &message {
            let wanted = if source.is_none() { SITES[0] } else { SITES[1] };
            assert_eq!(join.site, wanted);
            self.joins.entry(key).or_insert_with(|| Join::clone(join));
        }
        self.meeting.on_message(key, message);
    }

    fn broken(&mut self, place: usize, error: &MessageError) {
        if let Some(key) = self.keys[place] {
            self.meeting.on_broken(key, &error.to_string());
        }
    }

    /// Another connection comes in its place.
    fn close(&mut self, place: usize) {
        if let Some(key) = self.keys[place] {
            self.meeting.on_closed(key);
        }
        self.next += 1;
        self.keys[place] = Some(self.next);
    }

    fn act(&mut self) {
        while let Some(action) = self.meeting.poll_action() {
            match action {
                Action::Tell(event) => self.tell(event),
                Action::Send(key, world) => self.world(key, world),
                Action::Close(key) => self.forget(key),
                Action::Last(key, bytes) => {
                    assert_eq!(message::length(&bytes), Ok(Some(bytes.len())));
                    self.forget(key);
                }
            }
        }
    }

    /// Nothing is heard from this connection any more.
    fn forget(&mut self, key: Key) {
        for at in &mut self.keys {
            at.take_if(|at| *at == key);
        }
        self.meeting.on_closed(key);
    }

    fn world(&mut self, key: Key, world: Vec<u8>) {
        assert!(self.joins.contains_key(&key), "who gets a world has joined");
        assert!(
            self.worlds
                .iter()
                .all(|(other, bytes)| *other != key && *bytes == world)
        );
        self.worlds.push((key, world));
    }

    fn tell(&mut self, event: Event) {
        let before = |wanted: &dyn Fn(&Event) -> bool| self.told.iter().any(wanted);
        match &event {
            Event::Joined { site, .. } => {
                assert!(!before(
                    &|event| matches!(event, Event::Joined { site: other, .. } if other == site)
                ));
            }
            Event::Made { processes } => {
                assert!(!before(&|event| matches!(event, Event::Made { .. })));
                let joins = SITES.map(|site| {
                    let mut of = self.worlds.iter().map(|(key, _)| &self.joins[key]);
                    of.find(|join| join.site == site)
                        .expect("each site has its world")
                });
                let tag_ub = joins.iter().map(|join| join.tag_ub).min().unwrap_or_default();
                let world = message::world(NUMBER, tag_ub, &joins).expect("few processes");
                assert!(self.worlds.len() == SITES.len() && self.worlds[0].1 == world);
                assert_eq!(joins.iter().map(|join| join.processes).sum::<u32>(), *processes);
            }
            Event::Done { site } | Event::Lost { site } => {
                assert!(before(
                    &|event| matches!(event, Event::Joined { site: other, .. } if other == site)
                ));
                let is_end = |event: &Event| matches!(event, Event::Done { site: other } | Event::Lost { site: other } if other == site);
                assert!(!before(&is_end));
            }
            Event::Refused { reason, .. } => assert!(!reason.is_empty()),
            Event::Aborted { .. } => {}
        }
        self.told.push(event);
    }
}

/// The frame behind its length as its sender writes it; version and token, which decoding does not look at,
/// are those of `frame`.
fn encode(message: &Incoming, frame: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let text = |bytes: &mut Vec<u8>, text: &str| {
        bytes.extend((text.len() as u16).to_le_bytes());
        bytes.extend(text.as_bytes());
    };
    match message {
        Incoming::Join(join) => {
            bytes.extend(&frame[..2 + Token::BYTES]);
            text(&mut bytes, &join.site);
            bytes.extend(join.processes.to_le_bytes());
            text(&mut bytes, &join.mpi);
            bytes.extend(join.layout.to_le_bytes());
            bytes.push(join.forms);
            bytes.extend(join.tag_ub.to_le_bytes());
            bytes.push(join.thread_level);
            bytes.extend(&join.addresses);
        }
        Incoming::Process { site } => {
            bytes.extend(&frame[..2 + Token::BYTES]);
            text(&mut bytes, site);
        }
        Incoming::Abort { code, text } => bytes.extend(&message::abort(*code, text)[HEAD_BYTES..]),
        Incoming::Done => bytes.extend(&frame[..1]),
    }
    bytes
}
