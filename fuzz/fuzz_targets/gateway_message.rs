//! The JSON lines of the control socket. They hold the types that gateways tell each other, too (`SiteInfo`).
#![no_main]

use causeway_control::{Envelope, Reply, Request};
use serde::Serialize;
use serde::de::DeserializeOwned;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    check::<Request>(bytes);
    check::<Reply>(bytes);
});

fn check<T: Serialize + DeserializeOwned + PartialEq>(bytes: &[u8]) {
    let Ok(line) = serde_json::from_slice::<Envelope<T>>(bytes) else {
        return;
    };
    let text = serde_json::to_vec(&line).expect("what was read can be written");
    assert!(!text.contains(&b'\n'), "a line is one line");
    let again = serde_json::from_slice::<Envelope<T>>(&text).expect("what was written can be read");
    // serde_json reads a fraction to its last digit but one: a status, which has fractions, may differ there.
    let has_fractions = text.windows(6).any(|at| at == b"\"loss\"" || at == b"down_s");
    assert!(has_fractions || again == line);
}
