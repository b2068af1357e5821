//! The four bytes that answer a preface.
#![no_main]

use causeway_wire::Verdict;

libfuzzer_sys::fuzz_target!(|bytes: [u8; Verdict::BYTES]| {
    if let Some(verdict) = Verdict::decode(bytes) {
        assert_eq!(verdict.encode(), bytes);
    }
});
