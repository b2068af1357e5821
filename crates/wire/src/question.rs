//! A node's question to a gateway: whose are you? Where two sites have the same private addresses, a process cannot
//! tell from its own ones where it is; the gateway that answers at its site's address can.
//!
//! ```text
//! question   PROXY v2, command LOCAL, no addresses; TLVs: job token, and 0xE1 = version 1
//! answer     byte 0: version, 1; byte 1: length of the name; the site's name. Nothing where the token is not known
//! ```

use crate::grid::is_site_name;
use crate::preface::{FIXED_BYTES, JOB_BYTES, SIGNATURE, TLV_QUESTION, VERSION_2_LOCAL, push_job};
use crate::token::Token;

/// Longest answer: a site's name has 63 bytes at most.
pub const MAX_ANSWER_BYTES: usize = 2 + 63;

const VERSION: u8 = 1;
/// Family and protocol of a connection that is nobody else's.
const UNSPECIFIED: u8 = 0;

/// The bytes to send.
pub fn encode(token: Token) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(FIXED_BYTES + 3 + JOB_BYTES + 4);
    bytes.extend(SIGNATURE);
    bytes.extend([VERSION_2_LOCAL, UNSPECIFIED]);
    bytes.extend(((3 + JOB_BYTES + 4) as u16).to_be_bytes());
    push_job(&mut bytes, token, 0);
    bytes.extend([TLV_QUESTION, 0, 1, VERSION]);
    bytes
}

/// What an answer's first bytes say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer<'a> {
    /// More is to come.
    Incomplete,
    /// The site's name.
    Site(&'a str),
    /// No answer to this question.
    Nonsense,
}

impl Answer<'_> {
    /// The bytes that name a site.
    pub fn encode(site: &str) -> Vec<u8> {
        let name = &site.as_bytes()[..site.len().min(63)];
        [&[VERSION, name.len() as u8], name].concat()
    }

    /// Reads what has come so far.
    pub fn decode(bytes: &[u8]) -> Answer<'_> {
        let [version, length, name @ ..] = bytes else {
            return if bytes.first().is_none_or(|version| *version == VERSION) {
                Answer::Incomplete
            } else {
                Answer::Nonsense
            };
        };
        let length = usize::from(*length);
        if *version != VERSION || length > MAX_ANSWER_BYTES - 2 {
            return Answer::Nonsense;
        }
        let Some(name) = name.get(..length) else {
            return Answer::Incomplete;
        };
        match std::str::from_utf8(name) {
            Ok(name) if is_site_name(name) => Answer::Site(name),
            _ => Answer::Nonsense,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Preface;
    use crate::preface::Decoded;

    #[test]
    fn a_gateway_reads_the_question_and_a_node_its_answer() {
        let token = Token([7; Token::BYTES]);
        let bytes = encode(token);
        for cut in 0..bytes.len() {
            assert!(
                matches!(Preface::decode(&bytes[..cut]), Ok(Decoded::Incomplete { .. })),
                "{cut}"
            );
        }
        let length = bytes.len();
        assert_eq!(Preface::decode(&bytes), Ok(Decoded::Question { token, length }));
        let answer = Answer::encode("rennes");
        assert_eq!(answer, b"\x01\x06rennes");
        for cut in 0..answer.len() {
            assert_eq!(Answer::decode(&answer[..cut]), Answer::Incomplete);
        }
        assert_eq!(Answer::decode(&answer), Answer::Site("rennes"));
    }

    #[test]
    fn nonsense_is_no_answer_whatever_follows() {
        for nonsense in [
            &b"\x02"[..],
            b"\x01\x40",
            b"\x01\x00",
            b"\x01\x02\xff\xff",
            b"\x01\x03a/b",
        ] {
            assert_eq!(Answer::decode(nonsense), Answer::Nonsense, "{nonsense:?}");
        }
    }

    #[test]
    fn a_question_without_its_mark_is_refused() {
        let mut bytes = encode(Token([7; Token::BYTES]));
        let mark = bytes.len() - 4;
        bytes[mark] = 0xEE;
        assert!(Preface::decode(&bytes).is_err());
    }
}
