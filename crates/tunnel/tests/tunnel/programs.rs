//! Random programs on two ends of a tunnel, and on one end with a hostile far gateway: the same interpreters
//! as in the fuzz targets `tunnel` and `tunnel_input`, seeded, in virtual time. A failure prints the seed.

use causeway_tunnel::{Event, Header, Kind, Settings, Side, Tunnel, steps};
use causeway_tunnel_model::{Random, hostile, program};
use std::time::Instant;

fn bytes(seed: u64) -> Vec<u8> {
    let random = &mut Random::of(seed);
    let length = 64 + random.below(3000);
    (0..length).map(|_| random.next() as u8).collect()
}

#[test]
fn whatever_happens_to_lanes_and_streams_all_that_was_sent_arrives_once_they_heal() {
    for seed in 0..150 {
        println!("seed {seed}");
        program::play(&bytes(seed));
    }
}

#[test]
fn a_hostile_gateway_ends_its_own_lanes_and_streams_and_makes_this_end_keep_no_more_than_its_bounds() {
    for seed in 0..1000 {
        println!("seed {seed}");
        hostile::play(&bytes(seed));
    }
}

/// Opens that wait for a message that never comes, in the smallest possible frames, must each cost the same.
#[test]
fn opens_that_wait_cost_the_same_however_many_there_are() {
    let now = Instant::now();
    let mut tunnel = Tunnel::new(Side::Odd, Settings::default(), now);
    tunnel.lane_up(0, now);
    let began = steps::taken();
    let opens = 20_000;
    for number in 1..=opens {
        let mut payload = 1_u64.to_be_bytes().to_vec();
        payload.extend(program::request(0).encode());
        let header = Header {
            kind: Kind::Open,
            detail: 0,
            length: payload.len() as u16,
            stream: 2 * number,
            position: 1 << 16,
        };
        let mut bytes = header.encode().to_vec();
        bytes.extend(payload);
        let mut input = &bytes[..];
        assert_eq!(tunnel.on_input(0, &mut input, now).unwrap(), None);
    }
    let waiting = steps::taken() - began;
    assert!(
        waiting <= 8 * u64::from(opens),
        "{waiting} steps for {opens} opens"
    );
    let header = Header {
        kind: Kind::Message,
        detail: 0,
        length: 0,
        stream: 0,
        position: 0,
    };
    let bytes = header.encode();
    let mut input = &bytes[..];
    let mut ids = Vec::new();
    while let Some(event) = tunnel.on_input(0, &mut input, now).unwrap() {
        match event {
            Event::Open(id, _) => ids.push(id.0),
            other => assert_eq!(other, Event::Message(Vec::new())),
        }
    }
    assert!(
        ids.iter().copied().eq((1..=opens).map(|number| 2 * number)),
        "in order"
    );
}
