//! Lanes under TLS, between two real gateways.

use crate::common::{Grid, cross, pattern, wait_for};
use std::io::Read;
use std::net::Shutdown;

const MEGABYTE: usize = 1_000_000;

#[test]
fn encrypted_lanes_carry_both_directions_whole_and_in_order() {
    let grid = Grid::with_settings("");
    let listener = grid.listen();
    let (near, far) = grid.pair(&listener);
    std::thread::scope(|scope| {
        scope.spawn(|| cross(&near, &far, &pattern(1, 20 * MEGABYTE)));
        scope.spawn(|| cross(&far, &near, &pattern(2, 20 * MEGABYTE)));
    });
    near.shutdown(Shutdown::Write).unwrap();
    assert_eq!((&far).read(&mut [0]).unwrap(), 0);
    assert_eq!(grid.status(1).tunnels[0].lanes[0].carrier, "TLS 1.3");
}

#[test]
fn small_messages_go_back_and_forth_over_an_encrypted_lane() {
    let grid = Grid::with_settings("");
    let listener = grid.listen();
    let (near, far) = grid.pair(&listener);
    for round in 0..1000 {
        cross(&near, &far, &pattern(round, 1 + round % 70));
        cross(&far, &near, &pattern(round + 1, 1 + round % 50));
    }
}

#[test]
fn encrypted_lanes_cut_again_and_again_are_not_noticed() {
    let grid = Grid::through_proxy("lanes = 2");
    let listener = grid.listen();
    let (near, far) = grid.pair(&listener);
    let proxy = grid.proxy.as_ref().unwrap();
    proxy.cut_after(400_000);
    std::thread::scope(|scope| {
        scope.spawn(|| cross(&near, &far, &pattern(3, 3 * MEGABYTE)));
        scope.spawn(|| cross(&far, &near, &pattern(4, 3 * MEGABYTE)));
    });
    assert!(proxy.cuts() > 4, "{} cuts", proxy.cuts());
}

#[test]
fn what_a_process_says_can_be_read_on_the_way_only_where_nothing_is_encrypted() {
    for (settings, is_heard) in [("insecure = true", true), ("", false)] {
        let grid = Grid::through_proxy(settings);
        let listener = grid.listen();
        let (near, far) = grid.pair(&listener);
        let proxy = grid.proxy.as_ref().unwrap();
        proxy.listen_for(b"the temperature of the core");
        cross(&near, &far, b"the temperature of the core is 5772 K");
        cross(&far, &near, b"noted");
        assert_eq!(proxy.heard(), is_heard, "{settings}");
    }
}

#[test]
fn gateways_that_do_not_agree_on_encryption_have_no_tunnel_and_say_what_to_look_at() {
    let grid = Grid::with_settings_here("insecure = true");
    wait_for("the reason", || grid.trouble().contains("insecure"));
    wait_for("the count", || grid.status(2).refused.contains_key("handshake"));
    assert!(grid.status(1).tunnels.is_empty());
}

#[test]
fn a_gateway_with_another_key_is_refused_under_encryption_too() {
    let grid = Grid::with_keys_and_settings("the key of this grid", "the key of another grid", "");
    wait_for("the reason", || grid.trouble().contains("key"));
    wait_for("the count", || grid.status(2).refused.contains_key("handshake"));
}
