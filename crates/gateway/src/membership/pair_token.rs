//! The name that two sites have for a job: it is derived from the job's token, and each pair has another.
//!
//! ```text
//! byte 0-7     number: the beginning of SHA-256 of "causeway job number" and the token
//! byte 8-15    tag: the beginning of HMAC-SHA-256 under the token of "causeway pair", 0, one site, 0, the other,
//!              in alphabetical order
//! ```
//! The token itself is never sent with a stream: a site to which one is opened by mistake learns nothing that
//! it could use at a third site.

use causeway_wire::Token;
use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256};

/// The key by which a job is found.
pub(crate) type Number = [u8; 8];

/// A job's number.
pub(crate) fn number(token: &Token) -> Number {
    let digest = Sha256::new().chain_update(b"causeway job number");
    first(&digest.chain_update(token.0).finalize())
}

/// The number in the name that a pair of sites shares.
pub(crate) fn number_in(shared: &Token) -> Number {
    first(&shared.0)
}

/// The name that two sites have for a job.
pub(crate) fn token_for_pair(token: &Token, one: &str, other: &str) -> Token {
    let (one, other) = (one.min(other), one.max(other));
    let mut bytes = [0; Token::BYTES];
    let (number_part, tag) = bytes.split_at_mut(Number::default().len());
    number_part.copy_from_slice(&number(token));
    // HMAC takes keys of any length.
    if let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&token.0) {
        for part in ["causeway pair\0", one, "\0", other] {
            mac.update(part.as_bytes());
        }
        tag.copy_from_slice(&first(&mac.finalize().into_bytes()));
    }
    Token(bytes)
}

fn first(digest: &[u8]) -> Number {
    let mut number = Number::default();
    number.copy_from_slice(&digest[..Number::default().len()]);
    number
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pair_of_sites_has_its_own_and_both_ends_the_same() {
        let token = Token([7; 16]);
        let shared = token_for_pair(&token, "nancy", "rennes");
        assert_eq!(shared, token_for_pair(&token, "rennes", "nancy"));
        assert_eq!(shared.to_hex(), "e4fa5c3bafe8e09a5b0dc38636be1b59");
        assert_eq!(number_in(&shared), number(&token));
        for other in [
            token_for_pair(&token, "nancy", "lyon"),
            token_for_pair(&Token([8; 16]), "nancy", "rennes"),
            token,
        ] {
            assert!(!shared.matches(&other));
        }
        // Where one name ends and the other begins matters.
        assert!(!token_for_pair(&token, "ab", "c").matches(&token_for_pair(&token, "a", "bc")));
    }
}
