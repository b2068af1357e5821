//! A far end that makes this one produce frames and reads none of them: what waits for it is bounded, and it
//! is distinguished from one whose network is slow.

use causeway_tunnel::frame::HEADER_BYTES;
use causeway_tunnel::{
    CONTROL_BYTES, Event, Header, Kind, MAX_WAITING_BYTES, OpenRequest, ProtocolError, Settings, Side,
    Target, Tunnel,
};
use causeway_wire::{Reason, Token};
use std::time::Instant;

const BATCH: u64 = 128 * 1024;

fn tunnel(now: Instant) -> Tunnel {
    let mut tunnel = Tunnel::new(Side::Odd, Settings::default(), now);
    tunnel.lane_up(0, now);
    tunnel
}

fn request() -> OpenRequest {
    OpenRequest {
        token: Token([7; 16]),
        target: Target::Node("nancy-1".into()),
    }
}

/// Returns the frame with which the far end opens a stream.
fn open(stream: u32) -> Vec<u8> {
    let payload = [&0u64.to_be_bytes()[..], &request().encode()].concat();
    let header = Header {
        kind: Kind::Open,
        detail: 0,
        length: payload.len() as u16,
        stream,
        position: 0,
    };
    [&header.encode()[..], &payload].concat()
}

/// Refuses the streams that the far end opens, one after the other, until there is an error; `after_each` is
/// what the driver does after each.
fn refuse_until_error(tunnel: &mut Tunnel, now: Instant, after_each: impl Fn(&mut Tunnel)) -> ProtocolError {
    let settings = Settings::default();
    // The lane has unacknowledged frames, others wait, and one of each kind is being handled.
    let bound = settings.lane_bytes + CONTROL_BYTES + MAX_WAITING_BYTES + 2 * BATCH;
    for stream in (2..).step_by(2) {
        match tunnel.on_input(0, &mut open(stream).as_slice(), now) {
            Ok(Some(Event::Open(id, _))) => tunnel.reset(id, Reason::Denied),
            Ok(other) => panic!("{other:?}"),
            Err(error) => return error,
        }
        after_each(tunnel);
        assert!(
            tunnel.kept_bytes() <= bound,
            "keeps {} bytes",
            tunnel.kept_bytes()
        );
    }
    unreachable!("ids are not used up")
}

#[test]
fn answers_to_a_far_end_that_reads_nothing_are_bounded_and_then_an_error() {
    let now = Instant::now();
    let mut tunnel = tunnel(now);
    let error = refuse_until_error(&mut tunnel, now, |_| {});
    assert!(matches!(error, ProtocolError::Unread(_)), "{error}");
}

#[test]
fn answers_to_a_far_end_that_reads_and_acknowledges_nothing_are_bounded_and_then_an_error() {
    let now = Instant::now();
    let mut tunnel = tunnel(now);
    let error = refuse_until_error(&mut tunnel, now, |tunnel| {
        tunnel.prepare(0, BATCH, now);
        let count = tunnel.unsent(0).len();
        tunnel.sent(0, count, now);
    });
    assert!(matches!(error, ProtocolError::Unread(_)), "{error}");
    assert!(
        !tunnel.has_control_for(0),
        "a driver that waits for this lane would not sleep"
    );
    assert!(tunnel.has_control());
}

#[test]
fn no_stream_is_opened_while_as_much_waits_as_may_and_one_is_when_it_was_taken() {
    let now = Instant::now();
    let mut tunnel = tunnel(now);
    let mut opened = 0;
    while tunnel.may_open() {
        // The stream is reset while the far end does not read: only the frames are left of it.
        let id = tunnel.open(&request());
        tunnel.reset(id, Reason::Reset);
        opened += 1;
    }
    assert!(opened > 10_000, "{opened}");
    assert!(tunnel.kept_bytes() <= MAX_WAITING_BYTES / 4 + 200);
    // A dozen frames more are no fault of the far end's, which has done nothing.
    assert_eq!(tunnel.on_input(0, &mut [].as_slice(), now), Ok(None));
    tunnel.prepare(0, BATCH, now);
    assert!(tunnel.may_open());
    assert!(tunnel.unsent(0).len() >= HEADER_BYTES);
}
