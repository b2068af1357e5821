//! What streams notice if lanes delay, stall, overtake each other, die and come back: nothing but time. The
//! tests are seeded, and run in virtual time.

use causeway_tunnel::frame::HEADER_BYTES;
use causeway_tunnel::{Event, Settings, Side, StreamId, Tunnel};
use causeway_tunnel_model::sim::Sim;
use causeway_tunnel_model::{pattern, request, settings};
use causeway_wire::Reason;
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(120);

fn answer(id: u32) -> Vec<u8> {
    pattern(id as usize + 1000, 3000 * id as usize)
}

/// Opens ten streams, half of them from each end, each with a message before it.
fn start(sim: &mut Sim, most: usize) -> Vec<(usize, StreamId, Vec<u8>)> {
    sim.ends.iter_mut().for_each(|end| end.answer = answer);
    let streams = (0..10).map(|index| {
        let payload = pattern(index, sim.random.below(most));
        let end = &mut sim.ends[index % 2];
        end.tunnel.message(&pattern(index, 100_000));
        (index % 2, end.open(payload.clone()), payload)
    });
    streams.collect()
}

fn check(sim: &Sim, streams: &[(usize, StreamId, Vec<u8>)]) {
    for (opener, id, payload) in streams {
        let (near, far) = (&sim.ends[*opener], &sim.ends[1 - *opener]);
        let empty = Vec::new();
        assert!(
            far.arrived.get(id).unwrap_or(&empty) == payload,
            "{id:?} to the far end"
        );
        assert!(
            near.arrived.get(id).unwrap_or(&empty) == &answer(id.0),
            "{id:?} back"
        );
        assert!(near.finished.contains(id) && far.finished.contains(id) && near.opened.contains(id));
        let before = streams
            .iter()
            .filter(|(other, known, _)| other == opener && known < id)
            .count();
        assert!(far.messages_at_open[id] > before, "{id:?} overtook a message");
    }
    for end in &sim.ends {
        assert!(end.resets.is_empty() && end.dead.is_empty() && end.expired == 0);
        assert_eq!(end.tunnel.streams(), 0);
    }
}

#[test]
fn lanes_of_different_delay_put_every_stream_together_again() {
    for seed in 0..10 {
        let mut sim = Sim::new(seed, settings(), &[5, 40, 90]);
        let streams = start(&mut sim, 500_000);
        sim.run_until_quiet(LONG);
        check(&sim, &streams);
    }
}

#[test]
fn lanes_that_die_and_return_lose_repeat_and_reorder_nothing() {
    for seed in 0..20 {
        let mut sim = Sim::new(seed, settings(), &[5, 20, 60]);
        let streams = start(&mut sim, 500_000);
        let mut cuts = 0;
        for _ in 0..600 {
            sim.step();
            if sim.random.below(40) == 0 {
                let (lane, pause) = (sim.random.below(3), sim.random.below(100) as u64);
                cuts += u32::from(sim.is_alive(lane));
                sim.cut(lane, Duration::from_millis(pause));
            }
        }
        assert!(cuts > 3);
        sim.run_until_quiet(LONG);
        check(&sim, &streams);
    }
}

#[test]
fn a_single_lane_reset_every_hundred_milliseconds_still_brings_everything() {
    let mut sim = Sim::new(1, settings(), &[10]);
    let streams = start(&mut sim, 300_000);
    for round in 0..30 {
        (0..100 + round % 7).for_each(|_| sim.step());
        sim.cut(0, Duration::from_millis(10));
    }
    sim.run_until_quiet(LONG);
    check(&sim, &streams);
}

#[test]
fn ends_that_go_on_in_other_processes_lose_repeat_and_reorder_nothing() {
    for seed in 0..20 {
        let lanes = [5, 20, 60];
        let mut sim = Sim::new(seed, settings(), &lanes[..1 + seed as usize % 3]);
        let streams = start(&mut sim, 500_000);
        let mut moves = 0;
        for _ in 0..800 {
            sim.step();
            if sim.random.below(60) == 0 {
                let (end, pause) = (sim.random.below(2), sim.random.below(50) as u64);
                sim.hand_over(end, Duration::from_millis(pause));
                moves += 1;
            }
        }
        assert!(moves > 3);
        sim.run_until_quiet(LONG);
        check(&sim, &streams);
    }
}

#[test]
fn a_blackout_of_every_lane_delays_and_does_nothing_else() {
    let mut sim = Sim::new(2, settings(), &[10, 12]);
    let streams = start(&mut sim, 800_000);
    (0..60).for_each(|_| sim.step());
    for lane in 0..2 {
        sim.cut(lane, Duration::from_secs(60 + lane as u64));
    }
    (0..30_000).for_each(|_| sim.step());
    let late = pattern(77, 50_000);
    let id = sim.ends[0].open(late.clone());
    sim.run_until_quiet(LONG);
    assert!(sim.ends[1].arrived[&id] == late);
    check(&sim, &streams);
}

#[test]
fn a_tunnel_without_lanes_expires_once_at_its_deadline_and_not_before() {
    let brief = Settings {
        resume: Duration::from_secs(20),
        ..settings()
    };
    let mut sim = Sim::new(3, brief, &[10]);
    start(&mut sim, 300_000);
    sim.cut(0, Duration::from_secs(30));
    (0..19_900).for_each(|_| sim.step());
    assert!(sim.ends.iter().all(|end| end.expired == 0));
    (0..300).for_each(|_| sim.step());
    assert!(sim.ends.iter().all(|end| end.expired == 1));
    (0..5000).for_each(|_| sim.step());
    assert!(sim.ends.iter().all(|end| end.expired == 1));
}

#[test]
fn a_lane_that_stalls_is_relieved_by_another_within_its_round_trips() {
    let mut sim = Sim::new(4, settings(), &[10, 10]);
    let streams = start(&mut sim, 300_000);
    (0..25).for_each(|_| sim.step());
    sim.wires[0].stalled_until = sim.now + Duration::from_secs(10);
    let arrived = |sim: &Sim| {
        let whole = |(opener, id, payload): &(usize, StreamId, Vec<u8>)| {
            sim.ends[1 - *opener].arrived.get(id).map_or(0, Vec::len) == payload.len()
        };
        streams.iter().all(whole)
    };
    let began = sim.now;
    while !arrived(&sim) {
        sim.step();
        assert!(
            sim.now < began + Duration::from_secs(3),
            "waits for the stalled lane"
        );
    }
    sim.run_until_quiet(LONG);
    check(&sim, &streams);
}

#[test]
fn a_silent_lane_is_given_up_and_an_idle_one_is_not() {
    let mut sim = Sim::new(5, settings(), &[10, 10]);
    (0..60_000).for_each(|_| sim.step());
    assert!(
        sim.ends
            .iter()
            .all(|end| end.dead.is_empty() && end.silent.is_empty())
    );
    sim.wires[1].stalled_until = sim.now + Duration::from_secs(3600);
    let began = sim.now;
    while sim.ends[0].dead.is_empty() {
        sim.step();
        assert!(
            sim.now < began + Duration::from_secs(22),
            "keepalive and timeout are over"
        );
    }
    assert!(sim.now >= began + settings().lane_timeout);
    assert!(sim.ends[0].dead.iter().all(|lane| *lane == 1));
}

#[test]
fn a_silence_with_an_answer_due_is_told_once_until_the_lane_is_heard_again() {
    let mut sim = Sim::new(9, settings(), &[10]);
    for time in 1..=2 {
        let payload = pattern(time, 100_000);
        let id = sim.ends[0].open(payload.clone());
        sim.wires[0].stalled_until = sim.now + Duration::from_secs(10);
        (0..1900).for_each(|_| sim.step());
        assert_eq!(sim.ends[0].silent.len(), time - 1, "too soon");
        (0..8000).for_each(|_| sim.step());
        assert_eq!(sim.ends[0].silent, vec![0; time]);
        assert!(sim.ends[0].tunnel.is_silent(0));
        sim.run_until_quiet(LONG);
        assert!(sim.ends[1].arrived[&id] == payload && !sim.ends[0].tunnel.is_silent(0));
    }
    assert!(sim.ends.iter().all(|end| end.dead.is_empty()));
}

#[test]
fn with_copies_on_two_lanes_a_stall_costs_a_small_frame_nothing() {
    let twice = Settings {
        duplicate_small: true,
        ..settings()
    };
    let mut sim = Sim::new(6, twice, &[10, 10]);
    let id = sim.ends[0].tunnel.open(&request());
    (0..100).for_each(|_| sim.step());
    for (round, lane) in [0, 1, 0, 1].into_iter().enumerate() {
        sim.wires[lane].stalled_until = sim.now + Duration::from_secs(2);
        sim.ends[0].unsent.insert(id, pattern(round, 1000).into());
        // The simulation would end a stream that has sent everything; sending through the tunnel itself keeps
        // it open.
        let bytes = sim.ends[0].unsent.remove(&id).unwrap();
        let now = sim.now;
        let tunnel = &mut sim.ends[0].tunnel;
        let chosen = tunnel.choose_lane(|_| true).unwrap();
        tunnel.reserve(chosen, id)[..1000].copy_from_slice(&bytes.iter().copied().collect::<Vec<u8>>());
        tunnel.commit(chosen, id, 1000, now);
        (0..15).for_each(|_| sim.step());
        assert_eq!(
            sim.ends[1].arrived[&id].len(),
            1000 * (round + 1),
            "round {round}"
        );
        (0..3000).for_each(|_| sim.step());
    }
}

#[test]
fn copies_fill_no_lane_beyond_what_it_may_keep() {
    let twice = Settings {
        duplicate_small: true,
        ..settings()
    };
    let now = Instant::now();
    let [mut near, mut far] = [Side::Odd, Side::Even].map(|side| Tunnel::new(side, twice, now));
    for lane in 0..2 {
        near.lane_up(lane, now);
        far.lane_up(lane, now);
    }
    let id = near.open(&request());
    let mut sent = 0;
    // The far end's acknowledgements of lane 0 arrive; those of lane 1 are in flight for long.
    for _ in 0..2000 {
        near.prepare(0, 1 << 20, now);
        if near.sendable(id) >= 100 && !near.reserve(0, id).is_empty() {
            near.commit(0, id, 100, now);
            sent += 100;
        }
        for lane in 0..2 {
            let bytes = near.unsent(lane).to_vec();
            near.sent(lane, bytes.len(), now);
            let mut input = &bytes[..];
            while let Some(event) = far.on_input(lane, &mut input, now).unwrap() {
                match event {
                    Event::Open(id, _) => far.opened(id),
                    Event::Data(id, data) => far.consumed(id, data.len()),
                    _ => {}
                }
            }
        }
        far.prepare(0, 1 << 20, now);
        far.put_ack(0, now + Duration::from_millis(100));
        let bytes = far.unsent(0).to_vec();
        far.sent(0, bytes.len(), now);
        let mut input = &bytes[..];
        while near.on_input(0, &mut input, now).unwrap().is_some() {}
        assert!(
            near.kept_bytes() <= twice.lane_bytes + 10_000,
            "{} kept",
            near.kept_bytes()
        );
    }
    assert_eq!(sent, 200_000);
}

/// While lanes are cut, a stream whose reader has stopped stands still, and another one does not.
#[test]
fn a_reader_that_stops_stops_its_own_stream_only_whatever_the_lanes_do() {
    let mut sim = Sim::new(7, settings(), &[5, 30]);
    let stuck = sim.ends[0].open(pattern(1, 2_000_000));
    let free = sim.ends[0].open(pattern(2, 2_000_000));
    sim.ends[1].stuck.insert(stuck);
    for _ in 0..3000 {
        sim.step();
        if sim.random.below(100) == 0 {
            let lane = sim.random.below(2);
            sim.cut(lane, Duration::from_millis(20));
        }
    }
    assert!(sim.ends[1].arrived[&free] == pattern(2, 2_000_000));
    assert!(sim.ends[1].arrived[&stuck].len() as u64 <= settings().limits.initial);
    sim.ends[1].stuck.clear();
    sim.run_until_quiet(LONG);
    assert!(sim.ends[1].arrived[&stuck] == pattern(1, 2_000_000));
}

#[test]
fn a_reset_comes_after_the_bytes_before_it_though_it_overtook_them() {
    for seed in 0..20 {
        let mut sim = Sim::new(seed, settings(), &[3, 50]);
        let ids: Vec<StreamId> = (0..6)
            .map(|index| sim.ends[0].open(pattern(index, 60_000)))
            .collect();
        let mut left = Vec::new();
        for _ in 0..(5 + seed) {
            sim.step();
        }
        for id in &ids {
            let end = &mut sim.ends[0];
            left.push(end.unsent.remove(id).map_or(0, |unsent| unsent.len()));
            end.tunnel.reset(*id, Reason::Reset);
        }
        sim.run_until_quiet(LONG);
        for (index, id) in ids.iter().enumerate() {
            let far = &sim.ends[1];
            let sent = &pattern(index, 60_000)[..60_000 - left[index]];
            assert!(
                far.arrived
                    .get(id)
                    .map_or(sent.is_empty(), |arrived| arrived == sent),
                "{id:?}"
            );
            assert!(far.resets.get(id) == Some(&Reason::Reset) || far.finished.contains(id));
        }
        assert!(sim.ends.iter().all(|end| end.tunnel.streams() == 0));
    }
}

#[test]
fn what_waits_for_lanes_stays_within_the_stated_bound() {
    let mut sim = Sim::new(8, settings(), &[20, 20]);
    for index in 0..20 {
        sim.ends[0].open(pattern(index, 400_000));
    }
    // Two lanes, the same again for what was taken from them, a frame each, and the control frames of twenty
    // streams.
    let bound = 2 * 2 * (settings().lane_bytes + 62_000) + 20 * 200;
    for _ in 0..4000 {
        sim.step();
        if sim.random.below(60) == 0 {
            let (lane, pause) = (sim.random.below(2), sim.random.below(300) as u64);
            sim.cut(lane, Duration::from_millis(pause));
        }
        assert!(
            sim.ends[0].tunnel.kept_bytes() <= bound,
            "{}",
            sim.ends[0].tunnel.kept_bytes()
        );
    }
    sim.run_until_quiet(LONG);
}

#[test]
fn an_acknowledgement_said_again_is_one_small_frame_that_asks_for_nothing() {
    let now = Instant::now();
    let [mut near, mut far] = [Side::Odd, Side::Even].map(|side| Tunnel::new(side, settings(), now));
    near.lane_up(0, now);
    far.lane_up(0, now);
    for _ in 0..3 {
        near.repeat_ack(0);
        let bytes = near.unsent(0).to_vec();
        assert_eq!(bytes.len(), HEADER_BYTES);
        near.sent(0, bytes.len(), now);
        assert_eq!(far.on_input(0, &mut bytes.as_slice(), now), Ok(None));
        far.put_ack(0, now + LONG);
        assert_eq!(far.unsent_bytes(0), 0);
    }
}
