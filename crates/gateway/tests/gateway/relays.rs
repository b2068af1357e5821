//! Two sites that cannot dial each other, and gateways of other sites that carry their lanes.

use crate::common::proxy::Proxy;
use crate::common::sites::Sites;
use crate::common::{cross, pattern, wait_for};
use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;

const MEGABYTE: usize = 1_000_000;

#[test]
fn two_sites_meet_at_a_third_and_streams_cross_whole_and_in_order_both_ways() {
    for extra in ["insecure = true", "lanes = 2"] {
        let sites = Sites::start(extra, &[3]);
        let (near, far) = sites.pair();
        std::thread::scope(|scope| {
            scope.spawn(|| cross(&near, &far, &pattern(1, 20 * MEGABYTE)));
            scope.spawn(|| cross(&far, &near, &pattern(2, 20 * MEGABYTE)));
        });
        near.shutdown(Shutdown::Write).unwrap();
        assert_eq!((&far).read(&mut [0]).unwrap(), 0);
        cross(&far, &near, &pattern(3, 1000));
        for site in [1, 2] {
            let techniques = sites.techniques(site);
            assert!(!techniques.is_empty());
            assert!(
                techniques.iter().all(|how| how == "relay through site3"),
                "{techniques:?}"
            );
        }
        let relay = sites.status(3);
        assert!(relay.relayed >= 1);
        assert!(relay.relayed_bytes > 40 * MEGABYTE as u64);
        assert_eq!(relay.streams, 0, "a relay opens no stream for others");
        assert!(
            relay
                .tunnels
                .iter()
                .all(|tunnel| tunnel.lanes[0].technique == "dialled in")
        );
    }
}

#[test]
fn nobody_dials_a_relay_where_it_says_but_only_where_its_peer_or_the_broker_does() {
    let mut sites = Sites::plan("", &[3]);
    for site in [1, 2] {
        sites.dials(3, site);
    }
    sites.run();
    let why = "knows no address of relay site3";
    wait_for("the reason", || {
        sites.try_status(1).is_some() && sites.trouble().contains(why)
    });
}

#[test]
fn a_relay_reads_what_it_carries_only_where_nothing_is_encrypted() {
    for (extra, is_heard) in [("insecure = true", true), ("", false)] {
        let mut sites = Sites::plan(extra, &[3]);
        let proxy = sites.through_proxy(1, 3, 9);
        sites.run();
        sites.meet();
        let (near, far) = sites.pair();
        proxy.listen_for(b"the temperature of the core");
        cross(&near, &far, b"the temperature of the core is 5772 K");
        cross(&far, &near, b"noted");
        assert_eq!(proxy.heard(), is_heard, "{extra}");
    }
}

#[test]
fn a_relay_that_is_killed_under_load_is_replaced_by_another_one_and_streams_go_on() {
    let mut sites = Sites::start("", &[3, 4]);
    let (near, far) = sites.pair();
    cross(&near, &far, &pattern(4, MEGABYTE));
    let first: u8 = if sites.techniques(1) == ["relay through site3"] {
        3
    } else {
        4
    };
    let bytes = pattern(5, 30 * MEGABYTE);
    let mut got = vec![0; bytes.len()];
    std::thread::scope(|scope| {
        scope.spawn(|| (&near).write_all(&bytes).unwrap());
        let (begun, rest) = got.split_at_mut(5 * MEGABYTE);
        (&far).read_exact(begun).unwrap();
        sites.kill_relay(first);
        (&far).read_exact(rest).unwrap();
    });
    assert!(got == bytes);
    cross(&far, &near, &pattern(6, MEGABYTE));
    let other = format!("relay through site{}", 7 - first);
    for site in [1, 2] {
        assert_eq!(sites.techniques(site), [other.as_str()]);
    }
}

#[test]
fn lanes_of_one_pair_are_spread_over_two_relays_and_when_one_dies_the_other_takes_all_of_them() {
    const LANES: usize = 6;
    let mut sites = Sites::start(&format!("lanes = {LANES}"), &[3, 4]);
    let (near, far) = sites.pair();
    let through = |site: u8| format!("relay through site{site}");
    let count = |sites: &Sites, relay: u8| {
        let techniques = sites.techniques(1).into_iter();
        techniques.filter(|how| *how == through(relay)).count()
    };
    wait_for("all lanes", || count(&sites, 3) + count(&sites, 4) == LANES);
    assert!(
        count(&sites, 3) > 0 && count(&sites, 4) > 0,
        "{:?}",
        sites.techniques(1)
    );
    wait_for("both relays to have met as many", || {
        sites.status(3).relayed + sites.status(4).relayed == LANES
    });
    let bytes = pattern(18, 30 * MEGABYTE);
    let mut got = vec![0; bytes.len()];
    std::thread::scope(|scope| {
        scope.spawn(|| (&near).write_all(&bytes).unwrap());
        let (begun, rest) = got.split_at_mut(5 * MEGABYTE);
        (&far).read_exact(begun).unwrap();
        sites.kill_relay(3);
        (&far).read_exact(rest).unwrap();
    });
    assert!(got == bytes);
    wait_for("the other relay to have all", || count(&sites, 4) == LANES);
    cross(&far, &near, &pattern(19, MEGABYTE));
}

#[test]
fn several_pairs_end_up_on_both_of_two_relays_and_when_one_dies_the_other_takes_all_of_them() {
    let mut sites = Sites::plan("", &[3, 4]);
    sites.ends = vec![1, 2, 5, 6];
    const PAIRS: usize = 6;
    sites.run();
    sites.meet();
    let through = |site: u8| format!("relay through site{site}");
    wait_for("all pairs to have met", || sites.all_techniques().len() == PAIRS);
    let techniques = sites.all_techniques();
    for relay in [3, 4] {
        assert!(techniques.contains(&through(relay)), "{techniques:?}");
    }
    let (near, far) = sites.pair();
    sites.kill_relay(4);
    wait_for("the other relay to have all", || {
        sites.all_techniques() == vec![through(3); PAIRS] && sites.status(3).relayed == PAIRS
    });
    cross(&near, &far, &pattern(20, MEGABYTE));
    cross(&far, &near, &pattern(21, MEGABYTE));
}

#[test]
fn the_only_relay_killed_and_started_again_has_streams_go_on() {
    let mut sites = Sites::start("", &[3]);
    let (near, far) = sites.pair();
    cross(&near, &far, &pattern(7, 1000));
    sites.kill_relay(3);
    wait_for("both sites to see that no lane is left", || {
        [1, 2].iter().all(|site| sites.lanes(*site).is_empty())
    });
    sites.start_relay(3);
    cross(&near, &far, &pattern(8, MEGABYTE));
    cross(&far, &near, &pattern(9, MEGABYTE));
}

#[test]
fn a_site_that_dials_in_after_all_takes_over_from_the_relay_under_a_running_stream() {
    let mut sites = Sites::plan("", &[3]);
    let direct = sites.detour(2, 1, 9);
    sites.run();
    sites.meet();
    assert_eq!(sites.techniques(1), ["relay through site3"]);
    let (near, far) = sites.pair();
    cross(&near, &far, &pattern(10, MEGABYTE));
    let proxy = Proxy::start(direct, sites.wan(1));
    std::thread::scope(|scope| {
        scope.spawn(|| cross(&near, &far, &pattern(11, 8 * MEGABYTE)));
        scope.spawn(|| cross(&far, &near, &pattern(12, 8 * MEGABYTE)));
        wait_for("the direct lane to be the only one", || {
            sites.techniques(1) == ["dialled in"] && sites.techniques(2) == ["direct"]
        });
    });
    wait_for("the relay to have nothing to carry", || {
        sites.status(3).relayed == 0
    });
    // And back again, if the direct path is lost.
    proxy.go_dark();
    wait_for("the relay to serve", || {
        sites.techniques(1) == ["relay through site3"] && sites.techniques(2) == ["relay through site3"]
    });
    cross(&near, &far, &pattern(13, MEGABYTE));
}

#[test]
fn tickets_that_were_used_or_never_given_let_nobody_in_and_are_counted() {
    let mut sites = Sites::plan("", &[3]);
    let proxy = sites.through_proxy(1, 3, 9);
    sites.run();
    sites.meet();
    let (near, far) = sites.pair();
    let used = proxy
        .beginnings()
        .into_iter()
        .find(|bytes| bytes.starts_with(b"CWRL"));
    let used = used.unwrap();
    assert_eq!(used.len(), 37);
    let mut forged = used.clone();
    forged[36] ^= 1;
    for (count, preface) in [(1, used), (2, forged)] {
        let mut stranger = sites.stranger(20, 3);
        stranger.write_all(&preface).unwrap();
        assert!(matches!(stranger.read(&mut [0]), Ok(0) | Err(_)));
        assert_eq!(sites.refused(3, "relay-ticket"), count);
    }
    // A ticket of another version.
    let mut stranger = sites.stranger(20, 3);
    stranger.write_all(b"CWRL\x09").unwrap();
    assert!(matches!(stranger.read(&mut [0]), Ok(0) | Err(_)));
    cross(&near, &far, &pattern(14, 1000));
    assert_eq!(sites.status(3).relayed, 1);
}

#[test]
fn a_ticket_that_comes_late_is_good_no_more_and_the_next_attempt_succeeds() {
    let mut sites = Sites::plan("", &[3]);
    let proxy = sites.through_proxy(2, 3, 9);
    // The first connection is the lane to the relay's own site, the second shows the ticket.
    proxy.stall(1);
    sites.run();
    wait_for("both tunnels with the relay", || {
        let status = sites.try_status(3);
        status.is_some_and(|status| status.tunnels.len() == 2)
    });
    wait_for("the meeting to be given up", || {
        sites.refused(3, "relay-meeting") == 1
    });
    let mut beginnings = proxy.beginnings().into_iter();
    let late = beginnings.find(|bytes| bytes.starts_with(b"CWRL")).unwrap();
    let mut stranger = sites.stranger(20, 3);
    stranger.write_all(&late).unwrap();
    assert!(matches!(stranger.read(&mut [0]), Ok(0) | Err(_)));
    assert_eq!(sites.refused(3, "relay-ticket"), 1);
    sites.meet();
    let (near, far) = sites.pair();
    cross(&near, &far, &pattern(15, 1000));
}

#[test]
fn strangers_that_show_half_a_ticket_make_room_for_those_who_come_later() {
    let sites = Sites::start("", &[3]);
    let mut strangers: Vec<_> = (0..300)
        .map(|_| {
            let mut stranger = sites.stranger(20, 3);
            stranger.write_all(b"CWRL\x02half of a ticket").unwrap();
            stranger
        })
        .collect();
    assert!(matches!(strangers[0].read(&mut [0]), Ok(0) | Err(_)));
    let last = strangers.pop().unwrap();
    last.set_nonblocking(true).unwrap();
    assert_eq!((&last).read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
    assert!(sites.refused(3, "handshakes") > 0);
    let (near, far) = sites.pair();
    cross(&near, &far, &pattern(16, 1000));
}

#[test]
fn a_site_that_was_not_told_to_relay_does_not_and_those_who_need_it_are_told_what_to_look_for() {
    let mut sites = Sites::plan("", &[3]);
    sites.middle = String::new();
    sites.run();
    wait_for("the reason", || {
        sites.try_status(1).is_some() && sites.trouble().contains("relay in [grid]")
    });
    let mut stranger = sites.stranger(20, 3);
    stranger.write_all(b"CWRL\x02").unwrap();
    assert!(matches!(stranger.read(&mut [0]), Ok(0) | Err(_)));
    assert!(sites.refused(3, "handshake") > 0);
}

#[test]
fn a_site_that_cannot_come_says_why_through_the_relay() {
    let mut sites = Sites::plan("", &[3]);
    sites.forgets = true;
    sites.run();
    wait_for("the reason", || {
        let why = "relay site3: this site is not a [[peer]] of the far gateway";
        sites.try_status(1).is_some() && sites.trouble().contains(why)
    });
}
