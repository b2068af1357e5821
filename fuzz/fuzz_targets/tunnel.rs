//! Two ends of a tunnel driven by a program: see `play`.
#![no_main]

use causeway_tunnel_model::program;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| program::play(bytes));
