//! Lanes over QUIC, between two real gateways.

use crate::common::{Grid, cross, pattern, wait_for};
use std::io::Read;
use std::net::Shutdown;

const MEGABYTE: usize = 1_000_000;

const QUIC: &str = "transport = \"quic\"";

#[test]
fn lanes_over_quic_carry_both_directions_whole_and_in_order() {
    let grid = Grid::with_settings(QUIC);
    let listener = grid.listen();
    let (near, far) = grid.pair(&listener);
    std::thread::scope(|scope| {
        scope.spawn(|| cross(&near, &far, &pattern(1, 20 * MEGABYTE)));
        scope.spawn(|| cross(&far, &near, &pattern(2, 20 * MEGABYTE)));
    });
    near.shutdown(Shutdown::Write).unwrap();
    assert_eq!((&far).read(&mut [0]).unwrap(), 0);
    assert_eq!(grid.status(1).tunnels[0].lanes[0].carrier, "QUIC");
}

#[test]
fn small_messages_go_back_and_forth_over_quic() {
    let grid = Grid::with_settings(QUIC);
    let listener = grid.listen();
    let (near, far) = grid.pair(&listener);
    for round in 0..1000 {
        cross(&near, &far, &pattern(round, 1 + round % 70));
        cross(&far, &near, &pattern(round + 1, 1 + round % 50));
    }
}

#[test]
fn datagrams_that_are_lost_doubled_and_late_cost_nothing_but_time() {
    let grid = Grid::through_relay(QUIC);
    grid.relay.as_ref().unwrap().misbehave(50, 31, 17);
    let listener = grid.listen();
    let (near, far) = grid.pair(&listener);
    std::thread::scope(|scope| {
        scope.spawn(|| cross(&near, &far, &pattern(3, 5 * MEGABYTE)));
        scope.spawn(|| cross(&far, &near, &pattern(4, 5 * MEGABYTE)));
    });
    let lane = |site| grid.status(site).tunnels[0].lanes[0].clone();
    assert!(
        lane(1).repaired > 0 && lane(2).repaired > 0,
        "{:?} {:?}",
        lane(1),
        lane(2)
    );
}

#[test]
fn a_nat_that_forgets_its_mapping_is_not_noticed() {
    let grid = Grid::through_relay(QUIC);
    let listener = grid.listen();
    let (near, far) = grid.pair(&listener);
    cross(&near, &far, &pattern(1, MEGABYTE));
    grid.relay.as_ref().unwrap().forget();
    // Whoever is behind the NAT sends first: nobody else could.
    cross(&near, &far, &pattern(2, MEGABYTE));
    cross(&far, &near, &pattern(3, MEGABYTE));
    assert_eq!(grid.status(1).tunnels[0].lanes_lost, 0);
}

#[test]
fn a_network_that_stops_for_a_while_loses_nothing() {
    let grid = Grid::through_relay(&format!("{QUIC}\nlane_timeout = \"500ms\""));
    let listener = grid.listen();
    let (near, far) = grid.pair(&listener);
    let relay = grid.relay.as_ref().unwrap();
    cross(&near, &far, &pattern(1, MEGABYTE));
    relay.stop(true);
    std::thread::scope(|scope| {
        scope.spawn(|| cross(&near, &far, &pattern(2, 3 * MEGABYTE)));
        wait_for("the lane's end", || {
            grid.status(1).tunnels[0].down_seconds.is_some()
        });
        relay.stop(false);
    });
    cross(&far, &near, &pattern(3, MEGABYTE));
}

#[test]
fn a_gateway_with_another_key_is_refused_over_quic_too() {
    let grid = Grid::with_keys_and_settings("one key for both sites", "another key for one site", QUIC);
    wait_for("the reason", || grid.trouble().contains("key"));
    assert!(grid.status(1).tunnels.is_empty());
}

#[test]
fn a_gateway_that_stops_says_so_over_quic() {
    let mut grid = Grid::with_settings(QUIC);
    let listener = grid.listen();
    let (near, _far) = grid.pair(&listener);
    grid.stop(2);
    // The gateway's streams end at once, and do not wait for another lane.
    assert!((&near).read(&mut [0]).map_or(true, |count| count == 0));
}

#[test]
fn strangers_datagrams_change_nothing() {
    let grid = Grid::with_settings(QUIC);
    let listener = grid.listen();
    let (near, far) = grid.pair(&listener);
    let stranger = std::net::UdpSocket::bind(("127.0.0.1", 0)).unwrap();
    let gateway = grid.wan(2);
    let initial = {
        // A long header of version 1, followed by arbitrary bytes.
        let mut bytes = vec![0x20, 255, 0, 0, 0, 0, 0, 0, 0xc3, 0, 0, 0, 1, 8];
        bytes.resize(1300, 7);
        bytes
    };
    for datagram in [
        &[][..],
        &[0x21; 3],
        &[0x22, 200, 0, 0, 0, 0, 0, 1, 9, 9],
        &[0x40; 100],
        &initial,
    ] {
        for _ in 0..300 {
            stranger.send_to(datagram, gateway).unwrap();
        }
    }
    cross(&near, &far, &pattern(1, MEGABYTE));
    cross(&far, &near, &pattern(2, MEGABYTE));
}
