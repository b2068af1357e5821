//! One end of a tunnel and a hostile far gateway: see `play`.
#![no_main]

use causeway_tunnel_model::hostile;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hostile::play(bytes));
