//! What a lane opens with, before the far gateway has proved anything.
#![no_main]

use causeway_tunnel::Hello;
use causeway_tunnel::hello::MAX_BYTES;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    match Hello::decode(bytes) {
        Ok(None) => assert!(bytes.len() < MAX_BYTES),
        Ok(Some((hello, length))) => {
            assert!(length <= MAX_BYTES);
            assert_eq!(hello.encode(), bytes[..length]);
            assert_eq!(
                hello.transcript(&hello).len(),
                "causeway lane 2".len() + 2 * length
            );
        }
        Err(error) => {
            let longer = [bytes, &[b'a'; 64]].concat();
            assert_eq!(Hello::decode(&longer), Err(error));
        }
    }
});
