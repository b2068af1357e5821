//! A node's question to a gateway: which site is this? If two sites have the same private addresses, a
//! process cannot tell from its own addresses where it is; the gateway that answers at the address of its
//! site can.
//!
//! The address of another site's gateway may belong to anybody here, so neither end reveals anything useful
//! to a stranger: both prove that they know the job's token, and never send it.
//!
//! ```text
//! question   PROXY v2, command LOCAL, no addresses; TLV 0xE1: version, 2; nonce, 16 bytes; tag, 8 bytes
//! answer     byte 0: version, 2; byte 1: length of the name; the site's name; tag, 8 bytes.
//!            Nothing if the tag is of no known job
//! tag        SipHash-2-4 under the job's token, big endian: of "Q" and the nonce; of "A", the nonce and the name
//! ```

use crate::grid::is_site_name;
use crate::proof::{TAG_BYTES, Tag, same, tag};
use crate::proxy::{FIXED_BYTES, SIGNATURE, TLV_QUESTION, VERSION_2_LOCAL};
use crate::token::Token;

/// Longest answer: a site's name has 63 bytes at most.
pub const MAX_ANSWER_BYTES: usize = 2 + MAX_NAME_BYTES + TAG_BYTES;

/// Length of the nonce, with which each question is a new one: an old answer does not fit it.
pub const NONCE_BYTES: usize = 16;

const MAX_NAME_BYTES: usize = 63;
const VERSION: u8 = 2;
/// Family and protocol of a connection that the sender makes for itself.
const UNSPECIFIED: u8 = 0;
/// Length of the TLV's value.
const VALUE_BYTES: usize = 1 + NONCE_BYTES + TAG_BYTES;

/// The purpose of a tag, so that a question cannot be sent back as the answer to another.
const OF_QUESTION: &[u8] = b"Q";
const OF_ANSWER: &[u8] = b"A";

/// One question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Question {
    nonce: [u8; NONCE_BYTES],
    tag: Tag,
}

/// What the first bytes of an answer say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer<'a> {
    /// Too little: more must come.
    Incomplete,
    /// The site's name, from somebody who knows the token.
    Site(&'a str),
    /// The bytes do not answer this question.
    Nonsense,
}

impl Question {
    /// A question of a process of this job; the nonce is random.
    pub fn new(token: &Token, nonce: [u8; NONCE_BYTES]) -> Question {
        let tag = tag(token, &[OF_QUESTION, &nonce]);
        Question { nonce, tag }
    }

    /// The bytes to send.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(FIXED_BYTES + 3 + VALUE_BYTES);
        bytes.extend(SIGNATURE);
        bytes.extend([VERSION_2_LOCAL, UNSPECIFIED]);
        bytes.extend(((3 + VALUE_BYTES) as u16).to_be_bytes());
        bytes.push(TLV_QUESTION);
        bytes.extend((VALUE_BYTES as u16).to_be_bytes());
        bytes.push(VERSION);
        bytes.extend(self.nonce);
        bytes.extend(self.tag);
        bytes
    }

    /// Reads the TLV's value; `None` for another version or length.
    pub(crate) fn from_value(value: &[u8]) -> Option<Question> {
        let [VERSION, rest @ ..] = value else { return None };
        let (nonce, tag) = rest.split_first_chunk()?;
        let tag = tag.try_into().ok()?;
        Some(Question { nonce: *nonce, tag })
    }

    /// Whether a process of this job asks.
    pub fn is_of(&self, token: &Token) -> bool {
        same(&self.tag, &tag(token, &[OF_QUESTION, &self.nonce]))
    }

    /// The bytes with which the gateway of this site answers a process of this job.
    pub fn answer(&self, token: &Token, site: &str) -> Vec<u8> {
        let name = &site.as_bytes()[..site.len().min(MAX_NAME_BYTES)];
        let tag = tag(token, &[OF_ANSWER, &self.nonce, name]);
        [&[VERSION, name.len() as u8], name, &tag].concat()
    }

    /// Reads what has come so far.
    pub fn read_answer<'a>(&self, token: &Token, bytes: &'a [u8]) -> Answer<'a> {
        let [version, length, rest @ ..] = bytes else {
            return if bytes.first().is_none_or(|version| *version == VERSION) {
                Answer::Incomplete
            } else {
                Answer::Nonsense
            };
        };
        let length = usize::from(*length);
        if *version != VERSION || length > MAX_NAME_BYTES {
            return Answer::Nonsense;
        }
        let Some((name, rest)) = rest.split_at_checked(length) else {
            return Answer::Incomplete;
        };
        let Some(heard) = rest.first_chunk() else {
            return Answer::Incomplete;
        };
        let expected = tag(token, &[OF_ANSWER, &self.nonce, name]);
        match std::str::from_utf8(name) {
            Ok(site) if is_site_name(site) && same(heard, &expected) => Answer::Site(site),
            _ => Answer::Nonsense,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Preface;
    use crate::preface::Decoded;

    const TOKEN: Token = Token(*b"0123456789abcdef");
    const STRANGERS: Token = Token(*b"0123456789abcdeg");

    fn question() -> Question {
        Question::new(&TOKEN, [7; NONCE_BYTES])
    }

    #[test]
    fn the_tag_is_siphash_2_4_as_its_paper_has_it() {
        let key = std::array::from_fn(|at| at as u8);
        let message: [u8; 15] = std::array::from_fn(|at| at as u8);
        let expected = 0xa129_ca61_49be_45e5_u64.to_be_bytes();
        assert_eq!(tag(&Token(key), &[&message]), expected, "appendix A");
        assert_eq!(tag(&Token(key), &[&message[..3], &message[3..]]), expected);
    }

    #[test]
    fn a_gateway_reads_the_question_and_a_node_its_answer() {
        let bytes = question().encode();
        assert_eq!(bytes[12..19], [0x20, 0, 0, 28, 0xE1, 0, 25]);
        assert_eq!(bytes[19], 2);
        for cut in 0..bytes.len() {
            assert!(
                matches!(Preface::decode(&bytes[..cut]), Ok(Decoded::Incomplete { .. })),
                "{cut}"
            );
        }
        let (question, length) = (question(), bytes.len());
        assert_eq!(
            Preface::decode(&bytes),
            Ok(Decoded::Question { question, length })
        );
        assert!(question.is_of(&TOKEN));
        let answer = question.answer(&TOKEN, "rennes");
        assert!(answer.starts_with(b"\x02\x06rennes") && answer.len() == 16);
        for cut in 0..answer.len() {
            assert_eq!(question.read_answer(&TOKEN, &answer[..cut]), Answer::Incomplete);
        }
        assert_eq!(question.read_answer(&TOKEN, &answer), Answer::Site("rennes"));
        let longest = question.answer(&TOKEN, &"x".repeat(64));
        assert_eq!(longest.len(), MAX_ANSWER_BYTES);
        assert!(matches!(question.read_answer(&TOKEN, &longest), Answer::Site(name) if name.len() == 63));
    }

    #[test]
    fn neither_shows_the_token_and_who_does_not_know_it_neither_asks_nor_answers() {
        let (question, answer) = (question().encode(), question().answer(&TOKEN, "rennes"));
        for bytes in [&question, &answer] {
            assert!(
                !bytes
                    .windows(4)
                    .any(|part| TOKEN.0.windows(4).any(|known| known == part))
            );
        }
        assert!(!self::question().is_of(&STRANGERS));
        let strangers = self::question().answer(&STRANGERS, "rennes");
        assert_eq!(self::question().read_answer(&TOKEN, &strangers), Answer::Nonsense);
    }

    #[test]
    fn an_answer_is_of_one_question_and_one_site() {
        let other = Question::new(&TOKEN, [8; NONCE_BYTES]);
        let answer = other.answer(&TOKEN, "rennes");
        assert_eq!(question().read_answer(&TOKEN, &answer), Answer::Nonsense);
        let answer = question().answer(&TOKEN, "rennes");
        for at in 2..answer.len() {
            for bit in 0..8 {
                let mut changed = answer.clone();
                changed[at] ^= 1 << bit;
                assert_eq!(question().read_answer(&TOKEN, &changed), Answer::Nonsense, "{at}");
            }
        }
        // The question's own tag is not an answer's tag, not even with an empty name.
        let mirrored = [&[VERSION, 0][..], &question().tag].concat();
        assert_eq!(question().read_answer(&TOKEN, &mirrored), Answer::Nonsense);
        assert_ne!(
            tag(&TOKEN, &[OF_QUESTION, &[7; 16]]),
            tag(&TOKEN, &[OF_ANSWER, &[7; 16]])
        );
    }

    #[test]
    fn nonsense_is_no_answer_whatever_follows() {
        let named = |name: &[u8]| {
            let tag = tag(&TOKEN, &[OF_ANSWER, &[7; 16], name]);
            [&[VERSION, name.len() as u8], name, &tag].concat()
        };
        for nonsense in [
            b"\x01".to_vec(),
            b"\x03".to_vec(),
            b"\x02\x40".to_vec(),
            named(b""),
            named(b"\xff\xff"),
            named(b"a/b"),
        ] {
            let read = question();
            assert_eq!(
                read.read_answer(&TOKEN, &nonsense),
                Answer::Nonsense,
                "{nonsense:?}"
            );
        }
    }

    #[test]
    fn a_question_without_its_mark_or_of_another_length_or_version_is_refused() {
        let bytes = question().encode();
        for (at, value) in [(FIXED_BYTES, 0xEE), (FIXED_BYTES + 2, 24), (FIXED_BYTES + 3, 1)] {
            let mut bytes = bytes.clone();
            bytes[at] = value;
            assert!(Preface::decode(&bytes).is_err(), "{at}");
        }
    }

    #[test]
    fn damaged_questions_never_panic() {
        let original = question().encode();
        for at in 0..original.len() {
            for value in 0..=255 {
                let mut bytes = original.clone();
                bytes[at] = value;
                let _ = Preface::decode(&bytes);
            }
        }
    }
}
