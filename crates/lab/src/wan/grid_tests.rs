//! The grid in virtual time: super-segments experience what the packets that they represent would experience.

use std::net::IpAddr;
use std::time::Duration;

use super::super::packet::tests::{in_buffer, tcp4};
use super::*;

const A: [u8; 4] = [10, 1, 0, 1];
const B: [u8; 4] = [10, 2, 0, 1];
const MSS: usize = 1448;

fn spec() -> LinkSpec {
    LinkSpec {
        rtt: Duration::from_millis(10),
        rate_bits_per_second: 1_000_000_000,
        queue_bytes: 100_000,
        loss: 0.0,
        seed: 5,
        up: true,
    }
}

fn grid(spec: &LinkSpec) -> Grid {
    let sites = ["a", "b"].map(str::to_owned);
    let mut routes = Routes::default();
    for (port, address) in [A, B].into_iter().enumerate() {
        routes.add(IpAddr::from(address), 24, port).unwrap();
    }
    let mut grid = Grid::new(sites.to_vec(), routes);
    grid.join(&sites, spec.clone()).unwrap();
    grid
}

fn arrived(grid: &mut Grid, now_ns: u64) -> Vec<(u64, u64)> {
    let mut pieces = Vec::new();
    grid.deliver_due(now_ns, &mut Pool::default(), &mut |to, piece| {
        assert_eq!(to, 1);
        pieces.push((piece.packets(), piece.packet_bytes()));
        true
    });
    pieces
}

/// Polls the link whenever something is due; returns how many bytes arrive, and when.
fn arrivals(grid: &mut Grid) -> Vec<(u64, Vec<(u64, u64)>)> {
    std::iter::from_fn(|| {
        let due_ns = grid.next_due_ns()?;
        Some((due_ns, arrived(grid, due_ns)))
    })
    .collect()
}

#[test]
fn super_segments_and_single_packets_arrive_at_the_same_times_with_the_same_losses() {
    let spec = LinkSpec { loss: 0.05, ..spec() };
    let (mut together, mut alone) = (grid(&spec), grid(&spec));
    for burst in 0..50u64 {
        let now_ns = burst * 300_000;
        together.on_packet(0, tcp4(A, B, 40 * MSS + 9), now_ns, &mut Pool::default());
        for payload in std::iter::repeat_n(MSS, 40).chain([9]) {
            alone.on_packet(0, tcp4(A, B, payload), now_ns, &mut Pool::default());
        }
    }
    let counters = |grid: &Grid| grid.links[0].directions[0].counters();
    let (counted, expected) = (counters(&together), counters(&alone));
    assert_eq!(counted, expected);
    assert!(
        counted.dropped_by_loss > 0 && counted.dropped_by_queue > 0,
        "{counted:?}"
    );
    assert_eq!(arrivals(&mut together), arrivals(&mut alone));
    assert_eq!(counters(&together), counters(&alone));
}

#[test]
fn what_is_due_together_is_written_together_and_nothing_early() {
    let mut grid = grid(&spec());
    grid.on_packet(0, tcp4(A, B, 20 * MSS), 0, &mut Pool::default());
    // Each segment takes 12.304 us: eight of them have arrived.
    assert_eq!(arrived(&mut grid, 5_000_000 + 100_000), [(8, 8 * 1500)]);
    assert_eq!(grid.next_due_ns(), Some(5_000_000 + 9 * 12_304));
    assert_eq!(arrived(&mut grid, 6_000_000), [(12, 12 * 1500)]);
}

#[test]
fn a_lost_segment_parts_what_is_written() {
    let lossy = LinkSpec { loss: 0.1, ..spec() };
    let mut grid = grid(&lossy);
    grid.on_packet(0, tcp4(A, B, 40 * MSS), 0, &mut Pool::default());
    let pieces = arrived(&mut grid, 100_000_000);
    let counters = grid.links[0].directions[0].counters();
    assert_eq!(counters.dropped_by_loss, 40 - counters.delivered);
    assert_eq!(
        pieces.iter().map(|piece| piece.0).sum::<u64>(),
        counters.delivered
    );
    assert!(
        pieces.len() > 1,
        "seed {} loses none of 40: {pieces:?}",
        lossy.seed
    );
}

#[test]
fn segments_of_different_packets_stay_apart() {
    let mut grid = grid(&spec());
    for _ in 0..3 {
        grid.on_packet(0, tcp4(A, B, 2 * MSS), 0, &mut Pool::default());
    }
    assert_eq!(arrived(&mut grid, 100_000_000), [(2, 3000), (2, 3000), (2, 3000)]);
}

#[test]
fn a_cut_gives_every_buffer_back() {
    let mut grid = grid(&spec());
    let mut pool = Pool::default();
    let packet = in_buffer(&tcp4(A, B, 20 * MSS), |bytes| pool.copy(bytes));
    grid.on_packet(0, packet, 0, &mut pool);
    let down = LinkChange {
        up: Some(false),
        ..LinkChange::default()
    };
    grid.change(&["a".into(), "b".into()], &down, 1, &mut pool)
        .unwrap();
    assert_eq!(arrived(&mut grid, 100_000_000), []);
    assert_eq!(pool.idle_bytes(), 32_768);
}
