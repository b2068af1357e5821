//! Two ends of a tunnel that are killed between any two of their actions: see `play`.
#![no_main]

use causeway_tunnel_model::{Random, killed};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    killed::play(Random::chosen(bytes));
});
