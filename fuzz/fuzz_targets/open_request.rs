//! What an open frame asks for.
#![no_main]

use causeway_tunnel::OpenRequest;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Some(request) = OpenRequest::decode(bytes) {
        assert_eq!(request.encode(), bytes);
    }
});
