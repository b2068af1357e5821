//! Models of a tunnel in virtual time, for its tests and for fuzz targets: seeded random numbers and
//! payloads, two ends that any bytes drive (`program`), one beside a hostile far end (`hostile`), ends that
//! are killed (`killed`, `killable`), and two ends with links between them (`sim`). A model panics if the
//! tunnel breaks a promise.
#![allow(
    missing_docs,
    clippy::panic,
    clippy::should_implement_trait,
    clippy::unwrap_used
)]

pub mod hostile;
pub mod killable;
pub mod killed;
pub mod next;
pub mod program;
pub mod sim;

use causeway_tunnel::{Limits, OpenRequest, Settings, Target};
use causeway_wire::Token;

/// A random generator. A small one is enough here, and its sequence never changes with a dependency (Steele
/// et al., SplitMix64). Numbers that a fuzzer has chosen come first.
pub struct Random {
    state: u64,
    chosen: std::vec::IntoIter<u8>,
}

impl Random {
    pub fn of(seed: u64) -> Random {
        Random {
            state: seed,
            chosen: Vec::new().into_iter(),
        }
    }

    pub fn chosen(bytes: &[u8]) -> Random {
        Random {
            state: 0,
            chosen: Vec::from(bytes).into_iter(),
        }
    }

    pub fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        // It uses as many bytes as the bound needs.
        let bytes = 1 + (bound.max(2) - 1).ilog2() as usize / 8;
        if self.chosen.len() >= bytes {
            let chosen =
                { self.chosen.by_ref().take(bytes) }.fold(0, |sum, byte| sum << 8 | usize::from(byte));
            return chosen % bound;
        }
        (self.next() % bound as u64) as usize
    }
}

/// Settings with windows and lanes that are small enough to be filled.
pub fn settings() -> Settings {
    Settings {
        limits: Limits {
            most: 400_000,
            initial: 150_000,
            budget: 1_000_000,
            ..Limits::default()
        },
        lane_bytes: 200_000,
        ..Settings::default()
    }
}

pub fn request() -> OpenRequest {
    let source = "10.1.0.1:40000".parse().unwrap();
    let destination = "10.2.0.1:1024".parse().unwrap();
    OpenRequest {
        token: Token([9; 16]),
        target: Target::Connection { source, destination },
    }
}

pub fn pattern(seed: usize, length: usize) -> Vec<u8> {
    (0..length)
        .map(|at| (at * 31 + seed * 7 + at / 251) as u8)
        .collect()
}
