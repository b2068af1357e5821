//! The token that an administrator hands to a new site: one line, valid once, for a limited time.
//!
//! ```text
//! cw1.BASE64URL( version 1 | expiry 8 | CA fingerprint 32 | secret 32
//!                | site: length 1, bytes | brokers: count 1, each length 1, bytes | check 4 )
//! ```
//! Numbers are big-endian. The check is the first part of the SHA-256 of everything before it: it
//! distinguishes a line that was not copied completely from a forged one.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use causeway_wire::grid;
use sha2::{Digest, Sha256};
use std::fmt;
use std::str::FromStr;

pub use crate::text::is_host_and_port;

/// The beginning of every token, which says the version of the format.
pub const TOKEN_PREFIX: &str = "cw1.";
const VERSION: u8 = 1;

/// Longest token that is read, and what it may contain: a handful of addresses with long names.
pub const MAX_BYTES: usize = 2048;
const MAX_BROKERS: usize = 4;
const CHECK_BYTES: usize = 4;

/// SHA-256 of a certificate.
pub type Fingerprint = [u8; 32];

/// A site's way into the grid.
#[derive(Clone, PartialEq, Eq)]
pub struct JoinToken {
    /// Where the broker can be found, `HOST:PORT`.
    pub brokers: Vec<String>,
    /// The fingerprint of the certificate of the grid's authority.
    pub authority: Fingerprint,
    /// The site that may join with it.
    pub site: String,
    /// Proves that the broker gave the token.
    pub secret: [u8; 32],
    /// Seconds since 1970 after which it is void.
    pub expires: u64,
}

/// Why a text is no token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// Another kind of text, or a format of another version.
    #[error("a token of this version begins with {TOKEN_PREFIX}")]
    Prefix,
    /// The token is damaged.
    #[error(
        "the token is not whole; copy the line that 'causeway grid token' printed from its beginning to its end"
    )]
    Damaged,
}

impl JoinToken {
    /// Returns the hash of a secret, which is all that the broker keeps.
    pub fn hash(secret: &[u8; 32]) -> String {
        crate::text::hexadecimal(&Sha256::digest(secret))
    }

    fn decode(bytes: &[u8]) -> Option<JoinToken> {
        let (bytes, check) = bytes.split_at_checked(bytes.len().checked_sub(CHECK_BYTES)?)?;
        if Sha256::digest(bytes)[..CHECK_BYTES] != *check {
            return None;
        }
        JoinToken::from_unchecked(bytes)
    }

    /// Reads the part of a token that its check covers. It is public for the fuzz target, which cannot guess
    /// checks.
    #[doc(hidden)]
    pub fn from_unchecked(bytes: &[u8]) -> Option<JoinToken> {
        let mut rest = bytes;
        if take(&mut rest, 1)? != [VERSION] {
            return None;
        }
        let expires = u64::from_be_bytes(take(&mut rest, 8)?.try_into().ok()?);
        let authority = take(&mut rest, 32)?.try_into().ok()?;
        let secret = take(&mut rest, 32)?.try_into().ok()?;
        let site = word(&mut rest)?;
        let count = usize::from(take(&mut rest, 1)?[0]);
        if !(1..=MAX_BROKERS).contains(&count) || !grid::is_site_name(&site) {
            return None;
        }
        let brokers = (0..count).map(|_| word(&mut rest).filter(|broker| is_host_and_port(broker)));
        let brokers = brokers.collect::<Option<Vec<String>>>()?;
        rest.is_empty().then_some(JoinToken {
            brokers,
            authority,
            site,
            secret,
            expires,
        })
    }
}

fn take<'a>(rest: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, left) = rest.split_at_checked(count)?;
    *rest = left;
    Some(taken)
}

fn word(rest: &mut &[u8]) -> Option<String> {
    let length = usize::from(take(rest, 1)?[0]);
    String::from_utf8(take(rest, length)?.to_vec()).ok()
}

impl fmt::Display for JoinToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = vec![VERSION];
        bytes.extend(self.expires.to_be_bytes());
        bytes.extend(self.authority);
        bytes.extend(self.secret);
        // They fit: a site's name has 63 letters at most, an address 206.
        bytes.push(self.site.len() as u8);
        bytes.extend(self.site.bytes());
        bytes.push(self.brokers.len() as u8);
        for broker in &self.brokers {
            bytes.push(broker.len() as u8);
            bytes.extend(broker.bytes());
        }
        let check = Sha256::digest(&bytes);
        bytes.extend(&check[..CHECK_BYTES]);
        write!(f, "{TOKEN_PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes))
    }
}

impl FromStr for JoinToken {
    type Err = TokenError;

    fn from_str(text: &str) -> Result<JoinToken, TokenError> {
        let text = text.trim();
        if text.len() > MAX_BYTES {
            return Err(TokenError::Damaged);
        }
        let text = text.strip_prefix(TOKEN_PREFIX).ok_or(TokenError::Prefix)?;
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| TokenError::Damaged)?;
        JoinToken::decode(&bytes).ok_or(TokenError::Damaged)
    }
}

/// Leaves the secret out, so that a log line cannot leak it.
impl fmt::Debug for JoinToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JoinToken({} at {})", self.site, self.brokers.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token() -> JoinToken {
        JoinToken {
            brokers: vec!["broker.example:7443".into(), "[2001:db8::1]:7443".into()],
            authority: [7; 32],
            site: "rennes".into(),
            secret: [9; 32],
            expires: 1_795_327_857,
        }
    }

    #[test]
    fn a_token_is_one_word_of_a_url() {
        let text = token().to_string();
        assert!(
            text.chars()
                .all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c)),
            "{text}"
        );
        assert_eq!(format!(" {text}\n").parse(), Ok(token()));
    }

    #[test]
    fn a_token_that_was_not_copied_whole_says_so() {
        let text = token().to_string();
        assert_eq!("".parse::<JoinToken>(), Err(TokenError::Prefix));
        assert_eq!("cw2.AQ".parse::<JoinToken>(), Err(TokenError::Prefix));
        for end in TOKEN_PREFIX.len()..text.len() {
            assert_eq!(
                text[..end].parse::<JoinToken>(),
                Err(TokenError::Damaged),
                "{end}"
            );
        }
        let mut bytes = URL_SAFE_NO_PAD.decode(&text[TOKEN_PREFIX.len()..]).unwrap();
        for at in 0..bytes.len() {
            bytes[at] ^= 1;
            assert_eq!(JoinToken::decode(&bytes), None, "{at}");
            bytes[at] ^= 1;
        }
        assert!("cw1.".to_owned().parse::<JoinToken>().is_err());
        let long = format!("cw1.{}", "A".repeat(10_000));
        assert_eq!(long.parse::<JoinToken>(), Err(TokenError::Damaged));
    }

    #[test]
    fn debug_does_not_show_the_secret() {
        assert_eq!(
            format!("{:?}", token()),
            "JoinToken(rennes at broker.example:7443, [2001:db8::1]:7443)"
        );
    }

    #[test]
    fn places_of_brokers_are_a_host_and_a_port() {
        for good in ["a:1", "10.0.0.1:7443", "[::1]:7443", "broker.example.org:65535"] {
            assert!(is_host_and_port(good), "{good}");
        }
        for bad in [
            "", ":1", "a", "a:0", "a:65536", "a b:1", "::1:7443", "[::1:1", "a/b:1", "a\n:1",
        ] {
            assert!(!is_host_and_port(bad), "{bad}");
        }
    }
}
