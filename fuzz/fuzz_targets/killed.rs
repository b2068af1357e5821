//! Two ends of a tunnel that are killed between any two of their actions: see `play`.
#![no_main]

#[path = "../../crates/tunnel/tests/tunnel/common/mod.rs"]
#[allow(dead_code)]
mod common;
#[path = "../../crates/tunnel/tests/tunnel/killed.rs"]
#[allow(dead_code)]
mod killed;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    killed::play(common::Random::chosen(bytes));
});
