//! The emulator with real devices and the kernel's own network stack. They need root, or a user namespace
//! with permission on /dev/net/tun; otherwise they say so and do nothing. There are no thresholds on time:
//! every packet must be accounted for, and in order.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use super::ping::Pinger;
use super::testbed::{End, SITES, Testbed, TestbedError, tap_station};
use super::{LanSpec, LinkChange, LinkSpec, LinkStats, Switch};

/// How long a reply may take before the test reports it missing.
const REPLY_DEADLINE: Duration = Duration::from_secs(10);

/// Echo requests in one burst. Their replies must fit into the socket's default receive buffer of 208 KiB, at
/// 832 bytes each, because a busy machine may not let the test read before all have arrived.
const BURST: u16 = 200;

fn spec() -> LinkSpec {
    LinkSpec {
        rtt: Duration::from_millis(4),
        rate_bits_per_second: 100_000_000,
        queue_bytes: 1_000_000,
        loss: 0.0,
        seed: 11,
        up: true,
    }
}

fn testbed(spec: &LinkSpec) -> Option<Testbed> {
    permitted(Testbed::start(spec))
}

/// Returns what was set up. If this machine does not permit it, returns `None` and prints the reason.
pub(super) fn permitted<T>(set_up: Result<T, TestbedError>) -> Option<T> {
    match set_up {
        Ok(done) => Some(done),
        Err(failure @ (TestbedError::Namespace { .. } | TestbedError::Device { .. })) => {
            let reason = std::error::Error::source(&failure)
                .map(ToString::to_string)
                .unwrap_or_default();
            println!("SKIPPED: {failure}: {reason}");
            None
        }
        Err(failure) => panic!("{failure}"),
    }
}

/// Sends `requests` echo requests from the left end in one burst, and returns the numbers of the replies in
/// the order in which they arrive, once `expected` have arrived.
fn echoes(testbed: &Testbed, requests: u16, expected: usize) -> Vec<u16> {
    echoes_between(&testbed.ends[0], &testbed.ends[1], requests, expected)
}

fn echoes_between(from: &End, to: &End, requests: u16, expected: usize) -> Vec<u16> {
    let target = to.address;
    let exchange = || {
        let pinger = Pinger::new(target)?;
        for sequence in 0..requests {
            pinger.send(sequence)?;
        }
        let mut replies = Vec::new();
        while replies.len() < expected {
            let Some((sequence, _)) = pinger.receive(REPLY_DEADLINE)? else {
                panic!(
                    "{} of {expected} echo replies within {REPLY_DEADLINE:?}; {:?}",
                    replies.len(),
                    replies
                );
            };
            replies.push(sequence);
        }
        // Any more would be one too many; what is due is in flight already.
        assert_eq!(pinger.receive(Duration::from_millis(20))?, None);
        Ok(replies)
    };
    from.namespace.inside(exchange).unwrap()
}

/// Waits for what the emulator has yet to read from its device.
fn until(what: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + REPLY_DEADLINE;
    while !holds() {
        assert!(Instant::now() < deadline, "not within {REPLY_DEADLINE:?}: {what}");
        std::thread::yield_now();
    }
}

fn stats(testbed: &Testbed) -> [LinkStats; 2] {
    let stats: [LinkStats; 2] = testbed.wan.stats().try_into().unwrap();
    assert_eq!([&stats[0].from, &stats[1].from], SITES);
    for way in &stats {
        assert_eq!((way.reordered, way.write_failed), (0, 0), "{way:?}");
    }
    stats
}

#[test]
fn a_burst_crosses_whole_and_in_order() {
    let Some(testbed) = testbed(&spec()) else { return };
    let replies = echoes(&testbed, BURST, usize::from(BURST));
    assert_eq!(replies, (0..BURST).collect::<Vec<_>>());
    for way in stats(&testbed) {
        let packets = u64::from(BURST);
        assert_eq!((way.packets, way.bytes), (packets, packets * 84), "{way:?}");
    }
}

/// Numbers of the packets that a new direction with this spec loses, found without a testbed.
fn asked_losses(spec: &LinkSpec, packets: u16) -> BTreeSet<u16> {
    let mut link = super::link::Direction::new(spec, spec.seed);
    let lost = |&n: &u16| {
        !matches!(
            link.offer(1, (), u64::from(n) * 1_000_000),
            super::link::Verdict::DueAt(_)
        )
    };
    (0..packets).filter(lost).collect()
}

#[test]
fn exactly_the_packets_the_seed_names_are_lost_and_counted() {
    let Some(testbed) = testbed(&LinkSpec { loss: 0.1, ..spec() }) else {
        return;
    };
    let asked = asked_losses(&LinkSpec { loss: 0.1, ..spec() }, BURST);
    let there: Vec<u16> = (0..BURST).filter(|n| !asked.contains(n)).collect();
    // The second direction loses packets as well, by numbers counted over those that got through the first.
    let back = LinkSpec {
        loss: 0.1,
        seed: super::link::split_mix(!spec().seed),
        ..spec()
    };
    let asked_back = asked_losses(&back, there.len() as u16);
    let whole: Vec<u16> = (0..there.len() as u16)
        .filter(|n| !asked_back.contains(n))
        .map(|n| there[usize::from(n)])
        .collect();
    assert_eq!(echoes(&testbed, BURST, whole.len()), whole);
    let [out, home] = stats(&testbed);
    assert_eq!(
        (out.dropped_by_loss, home.dropped_by_loss),
        (asked.len() as u64, asked_back.len() as u64)
    );
    assert_eq!(out.dropped_by_queue + home.dropped_by_queue, 0);
}

#[test]
fn a_cut_link_carries_nothing_and_a_restored_one_everything() {
    let Some(testbed) = testbed(&spec()) else { return };
    let up = |up| LinkChange {
        up: Some(up),
        ..LinkChange::default()
    };
    let [a, b] = SITES;
    assert!(!testbed.wan.change(a, b, &up(false)).unwrap().up);
    echoes(&testbed, 20, 0);
    until("20 packets dropped by the cut", || {
        stats(&testbed)[0].dropped_by_down == 20
    });
    // The order of the names does not matter.
    assert!(testbed.wan.change(b, a, &up(true)).unwrap().up);
    assert_eq!(echoes(&testbed, 20, 20).len(), 20);
    assert_eq!(stats(&testbed)[0].packets, 20);
}

#[test]
fn packets_to_nowhere_are_counted() {
    let Some(testbed) = testbed(&spec()) else { return };
    let nowhere = std::net::Ipv4Addr::new(198, 19, 9, 9);
    testbed.ends[0]
        .namespace
        .inside(|| Pinger::new(nowhere)?.send(0))
        .unwrap();
    until("a packet counted as without a route", || {
        testbed.wan.totals().unwrap().no_route_packets > 0
    });
    assert_eq!(testbed.wan.totals().unwrap().no_route_packets, 1);
    assert_eq!(stats(&testbed)[0].offered_packets, 0);
}

#[test]
fn a_lan_finds_its_stations_and_carries_their_frames_in_order() {
    let stations = (1..=3).map(tap_station).collect::<Result<Vec<_>, _>>();
    let Some(stations) = permitted(stations) else {
        return;
    };
    let (ends, taps): (Vec<_>, Vec<_>) = stations.into_iter().unzip();
    let ports = ["one", "two", "three"]
        .map(str::to_owned)
        .into_iter()
        .zip(taps)
        .collect();
    let spec = LanSpec {
        rtt: Duration::from_millis(1),
        rate_bits_per_second: 1_000_000_000,
    };
    let switch = Switch::start(ports, spec).unwrap();
    for (from, to) in [(&ends[0], &ends[1]), (&ends[2], &ends[0])] {
        // While packets wait for an answer to ARP, the kernel itself may let a later one overtake them when
        // the answer arrives. So one packet asks first.
        assert_eq!(echoes_between(from, to, 1, 1), [0]);
        assert_eq!(echoes_between(from, to, 100, 100), (0..100).collect::<Vec<_>>());
    }
    for port in switch.stats() {
        let dropped = port.dropped_by_queue + port.dropped_by_loss + port.dropped_by_down;
        assert_eq!(
            (dropped, port.reordered, port.write_failed),
            (0, 0, 0),
            "{port:?}"
        );
    }
}
