//! Random programs on two ends of a tunnel, and on one end with a hostile far gateway: the same interpreters
//! as the fuzz targets `tunnel` and `tunnel_input`, seeded, in virtual time. A failure prints the seed.
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use common::{Random, hostile, program};

fn bytes(seed: u64) -> Vec<u8> {
    let random = &mut Random(seed);
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
