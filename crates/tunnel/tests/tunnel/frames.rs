//! How one end handles frames that the other would never send, or not in this way.

use causeway_tunnel::frame::{HEADER_BYTES, MAX_PAYLOAD};
use causeway_tunnel::messages::MAX_MESSAGE;
use causeway_tunnel::{Event, Header, Kind, ProtocolError, Settings, Side, StreamId, Tunnel};
use causeway_tunnel_model::{Random, request, settings};
use std::time::Instant;

fn every_second_byte(stream: u32, count: u64) -> Vec<u8> {
    (0..count)
        .flat_map(|at| frame(Kind::Data, stream, 1 + 2 * at, b"x"))
        .collect()
}

#[test]
fn a_stream_cut_into_single_bytes_makes_its_receiver_keep_no_more_pieces_than_it_can_bear() {
    let now = Instant::now();
    let mut tunnel = Tunnel::new(Side::Even, Settings::default(), now);
    tunnel.lane_up(0, now);
    // A window of 2 MiB has room for a million gaps; half as many are kept.
    let id = tunnel.open(&request());
    let bytes = every_second_byte(id.0, (1 << 19) + 1);
    let mut input = &bytes[..bytes.len() - HEADER_BYTES - 1];
    assert_eq!(tunnel.on_input(0, &mut input, now), Ok(None));
    let mut input = &bytes[bytes.len() - HEADER_BYTES - 1..];
    assert_eq!(tunnel.on_input(0, &mut input, now), Err(ProtocolError::Early));
    // The byte for which they waited still arrives, and makes room.
    tunnel.lane_up(0, now);
    let first = frame(Kind::Data, id.0, 0, b"x");
    let mut input = &first[..];
    while tunnel.on_input(0, &mut input, now).unwrap().is_some() {}
    let mut input = &bytes[bytes.len() - HEADER_BYTES - 1..];
    assert_eq!(tunnel.on_input(0, &mut input, now), Ok(None));
}

#[test]
fn bytes_ahead_of_their_open_count_with_what_keeping_each_piece_takes() {
    let now = Instant::now();
    let mut tunnel = Tunnel::new(Side::Even, settings(), now);
    tunnel.lane_up(0, now);
    let taken = (0..100).position(|stream| {
        let bytes = every_second_byte(1 + 2 * stream, 32_000);
        tunnel.on_input(0, &mut &bytes[..], now) == Err(ProtocolError::Early)
    });
    // 64 MiB have room for this many pieces of one byte, each with 96 bytes of overhead.
    assert_eq!(taken, Some((64 << 20) / 97 / 32_000));
}

#[test]
fn only_who_opened_a_stream_is_told_that_it_is_open() {
    let now = Instant::now();
    let mut tunnel = Tunnel::new(Side::Even, settings(), now);
    tunnel.lane_up(0, now);
    let mut payload = 0_u64.to_be_bytes().to_vec();
    payload.extend(request().encode());
    let mut bytes = frame(Kind::Open, 1, 65_536, &payload);
    bytes.extend(frame(Kind::Opened, 1, 65_536, &[]));
    let mut input = &bytes[..];
    let event = tunnel.on_input(0, &mut input, now);
    assert!(matches!(event, Ok(Some(Event::Open(StreamId(1), _)))));
    assert_eq!(tunnel.on_input(0, &mut input, now), Ok(None));
}

fn frame(kind: Kind, stream: u32, position: u64, payload: &[u8]) -> Vec<u8> {
    let header = Header {
        kind,
        detail: 0,
        length: payload.len() as u16,
        stream,
        position,
    };
    [&header.encode()[..], payload].concat()
}

#[test]
fn a_message_longer_than_the_bound_keeps_no_tunnel_from_expiring() {
    let start = Instant::now();
    let mut tunnel = Tunnel::new(Side::Even, settings(), start);
    tunnel.lane_up(0, start);
    let part = vec![7; MAX_PAYLOAD];
    let frames = MAX_MESSAGE / MAX_PAYLOAD + 1;
    let mut bytes = Vec::new();
    for number in 0..frames as u64 {
        let header = Header {
            kind: Kind::Message,
            detail: 1,
            length: part.len() as u16,
            stream: 0,
            position: number,
        };
        bytes.extend(header.encode());
        bytes.extend(&part);
    }
    // The input ends here, and nothing follows it.
    let _ = tunnel.on_input(0, &mut &bytes[..], start);
    assert_eq!(tunnel.poll_event(), None);
    tunnel.lane_down(0, start);
    let end = start + settings().resume;
    tunnel.on_time(end);
    assert_eq!(tunnel.poll_event(), Some(Event::Expired));
    assert_eq!(tunnel.poll_event(), None);
    tunnel.lane_up(0, end);
    let error = tunnel.on_input(0, &mut &[][..], end);
    assert_eq!(error, Err(ProtocolError::Message(MAX_MESSAGE)));
}

#[test]
fn frames_nobody_sends_end_in_an_error_or_are_dropped_but_never_panic() {
    for seed in 0..3000 {
        let random = &mut Random::of(seed);
        let now = Instant::now();
        let mut tunnel = Tunnel::new(Side::Even, settings(), now);
        tunnel.lane_up(0, now);
        tunnel.lane_up(1, now);
        tunnel.open(&request());
        for lane in [0, 1, 0, 1] {
            let mut bytes = Vec::new();
            for _ in 0..12 {
                bytes.extend(random_frame(random));
            }
            let mut input = &bytes[..];
            while let Ok(Some(_)) = tunnel.on_input(lane, &mut input, now) {}
            tunnel.prepare(lane, 1 << 20, now);
            let unsent = tunnel.unsent(lane).len();
            tunnel.sent(lane, unsent, now);
            if random.below(4) == 0 {
                tunnel.lane_down(lane, now);
                tunnel.lane_up(lane, now);
            }
        }
    }
}

/// A frame of any kind, with small numbers, so that they are often meaningful.
fn random_frame(random: &mut Random) -> Vec<u8> {
    use Kind::*;
    let kinds = [
        Data, Open, Opened, Finish, Reset, Credit, Ping, Message, Ack, Skip,
    ];
    let kind = kinds[random.below(kinds.len())];
    let mut payload = vec![0; random.below(200)];
    if kind == Open {
        payload = (random.below(3) as u64).to_be_bytes().to_vec();
        payload.extend(request().encode());
    }
    let position = match random.below(8) {
        0 => random.next(),
        1 => u64::MAX,
        _ => random.below(300) as u64,
    };
    let header = Header {
        kind,
        detail: random.below(10) as u8,
        length: payload.len() as u16,
        stream: random.below(6) as u32,
        position,
    };
    let mut bytes = header.encode().to_vec();
    bytes.extend(payload);
    if random.below(20) == 0 {
        bytes.truncate(HEADER_BYTES.min(random.below(bytes.len())));
    }
    bytes
}
