//! One end of a tunnel and a hostile far gateway: see `play`.
#![no_main]

#[path = "../../crates/tunnel/tests/tunnel/common/hostile.rs"]
mod hostile;
#[path = "../../crates/tunnel/tests/tunnel/common/next.rs"]
#[allow(dead_code)]
mod next;
#[path = "../../crates/tunnel/tests/tunnel/common/program.rs"]
#[allow(dead_code)]
mod program;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hostile::play(bytes));
