//! How two ends of a connection prove to each other that they know a job's token, which neither ever sends:
//! anybody may be listening at an address.

use crate::token::Token;
use std::hash::Hasher;

/// Length of a tag.
pub const TAG_BYTES: usize = 8;

/// A proof for one occasion.
pub type Tag = [u8; TAG_BYTES];

/// Computes a proof over these parts, one after the other: their lengths must be fixed, or be among the
/// parts.
///
/// This is SipHash-2-4 (Aumasson and Bernstein 2012), which is designed as a MAC for short messages under a
/// key of 128 bits. Whoever does not know the token guesses a tag once in 2^64 connections.
///
/// It comes from the standard library, as the shim depends only on this crate and libc. Its use for hash
/// tables is what is deprecated there: the algorithm defines what it computes with given keys.
#[expect(deprecated, reason = "the successor does not say which algorithm it is")]
pub fn tag(token: &Token, parts: &[&[u8]]) -> Tag {
    let key = u128::from_le_bytes(token.0);
    let mut hasher = std::hash::SipHasher::new_with_keys(key as u64, (key >> 64) as u64);
    for part in parts {
        hasher.write(part);
    }
    hasher.finish().to_be_bytes()
}

/// Compares without stopping at the first difference, as [`Token::matches`] does.
pub fn same(one: &Tag, other: &Tag) -> bool {
    one.iter().zip(other).fold(0, |diff, (a, b)| diff | (a ^ b)) == 0
}
