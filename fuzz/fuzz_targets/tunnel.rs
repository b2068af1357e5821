//! Two ends of a tunnel driven by a program: see `play`.
#![no_main]

#[path = "../../crates/tunnel/tests/tunnel/common/next.rs"]
mod next;
#[path = "../../crates/tunnel/tests/tunnel/common/program.rs"]
#[allow(dead_code)]
mod program;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| program::play(bytes));
