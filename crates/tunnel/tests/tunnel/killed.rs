//! Ends of a tunnel that are killed, in random histories: see `causeway_tunnel_model::killed`.

use causeway_tunnel::{Side, StreamId};
use causeway_tunnel_model::killable::{End, byte};
use causeway_tunnel_model::killed::play;
use causeway_tunnel_model::{Random, request};
use std::time::Instant;

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

/// Carries everything that one end has for the other.
fn carry(ends: &mut [End; 2], from: usize, now: Instant) {
    let mut random = Random::of(1);
    let [near, far] = if from == 0 { [0, 1] } else { [1, 0] };
    ends[near].tunnel.prepare(0, u64::MAX, now);
    let mut bytes = Vec::new();
    while !ends[near].tunnel.unsent(0).is_empty() {
        let next = ends[near].tunnel.unsent(0).to_vec();
        ends[near].tunnel.sent(0, next.len(), now);
        bytes.extend(next);
    }
    let mut rest = &bytes[..];
    while let Some(event) = ends[far].tunnel.on_input(0, &mut rest, now).unwrap() {
        assert!(ends[far].on_event(event, &mut random, usize::MAX).is_ok());
    }
}

/// Has a process send for as long as it may.
fn send_all(end: &mut End, id: StreamId, now: Instant) {
    while end.tunnel.sendable(id) > 0 {
        let side = end.side;
        let socket = end.sockets.get_mut(&id).unwrap();
        let space = end.tunnel.reserve(0, id);
        for (place, position) in space.iter_mut().zip(socket.read..) {
            *place = byte(id, side, position);
        }
        let count = space.len();
        socket.read += count as u64;
        end.tunnel.commit(0, id, count, now);
    }
}

#[test]
fn who_is_killed_after_it_has_taken_all_that_the_far_side_may_send_lets_it_send_on() {
    for (sender, receiver) in [(0, 1), (1, 0)] {
        let now = Instant::now();
        let mut ends = [Side::Odd, Side::Even].map(|side| End::new(side, now));
        let lane_up = |ends: &mut [End; 2]| ends.iter_mut().for_each(|end| end.tunnel.lane_up(0, now));
        lane_up(&mut ends);
        let id = ends[0].tunnel.open(&request());
        ends[0].connect(id, u64::MAX, true);
        carry(&mut ends, 0, now);
        assert!(ends[1].answer(id).is_ok());
        carry(&mut ends, 1, now);
        assert!(ends[receiver].commit(now).is_ok());

        send_all(&mut ends[sender], id, now);
        ends[receiver].keeps_up = true;
        carry(&mut ends, sender, now);
        assert!(ends[receiver].flush(id, usize::MAX).is_ok());
        assert_eq!(
            ends[receiver].sockets[&id].written,
            ends[sender].sockets[&id].read
        );
        ends[receiver].go_on(now);
        lane_up(&mut ends);
        carry(&mut ends, sender, now);
        assert_eq!(ends[sender].tunnel.sendable(id), 0);
        carry(&mut ends, receiver, now);
        assert!(ends[sender].tunnel.sendable(id) > 0, "end {receiver} was killed");
    }
}

/// See fuzz/fuzz_targets/killed.rs.
#[test]
fn a_history_that_a_fuzzer_chooses_is_played_too() {
    let bytes = Vec::from_iter((0..4000_u32).map(|at| (at * 37 % 251) as u8));
    for length in [0, 100, 4000] {
        play(Random::chosen(&bytes[..length]));
    }
}
