//! What a stranger shows a relay, and what a gateway reads of a relay's message.
#![no_main]

use causeway_tunnel::ticket::{Opening, PREFACE_BYTES, Ticket};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    match Ticket::read(bytes) {
        Ok(Opening::Incomplete) => assert!(bytes.len() < PREFACE_BYTES),
        Ok(Opening::Ticket(ticket)) => {
            assert_eq!(ticket.preface(), bytes[..PREFACE_BYTES]);
            assert_eq!(Ticket::from_hex(&ticket.to_hex()), Ok(ticket));
        }
        Err(error) => {
            let longer = [bytes, &[b'a'; 64]].concat();
            assert_eq!(Ticket::read(&longer), Err(error));
        }
    }
    if let Ok(text) = std::str::from_utf8(bytes)
        && let Ok(ticket) = Ticket::from_hex(text)
    {
        assert_eq!(ticket.to_hex(), text.to_ascii_lowercase());
    }
});
