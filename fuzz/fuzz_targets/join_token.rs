//! The line with which a site joins: what is read is written the same, and damage is told. As bytes that
//! claim to be a token too, which random text never is: the check over them is made here.
#![no_main]

use causeway_broker::join_token::{JoinToken, MAX_BYTES};

libfuzzer_sys::fuzz_target!(|text: &str| {
    if let Ok(token) = text.parse::<JoinToken>() {
        assert!(text.trim().len() <= MAX_BYTES);
        assert!(!token.brokers.is_empty() && !token.site.is_empty());
        let written = token.to_string();
        assert_eq!(written.parse::<JoinToken>().as_ref(), Ok(&token));
        let mut damaged = written.into_bytes();
        let last = damaged.len() / 2;
        damaged[last] = if damaged[last] == b'A' { b'B' } else { b'A' };
        let damaged = String::from_utf8(damaged).expect("base64url is ASCII");
        assert!(damaged.parse::<JoinToken>().is_err());
    }
    if let Some(token) = JoinToken::from_unchecked(text.as_bytes()) {
        assert_eq!(token.to_string().parse(), Ok(token));
    }
});
