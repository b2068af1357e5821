//! The preface of the LAN leg, the same in both directions: PROXY protocol v2 with Causeway's TLVs.
//!
//! A shim sends it to its gateway before the application's first byte; a gateway sends it to the process it
//! delivers to. It is mandatory where it is expected, and never guessed at. Layout: "The PROXY protocol",
//! section 2.2 (HAProxy, 2020); any program that reads that protocol can read ours.

pub use crate::proxy::{FIXED_BYTES, SIGNATURE};
use crate::proxy::{TLV_JOB, TLV_QUESTION, VERSION_2_LOCAL, VERSION_2_PROXY};
use crate::question::Question;
use crate::token::Token;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Longest preface read or written. Ours take 74 bytes with IPv6; the rest is for TLVs of a later version.
pub const MAX_BYTES: usize = 256;

const TCP_OVER_IPV4: u8 = 0x11;
const TCP_OVER_IPV6: u8 = 0x21;
const JOB_VERSION: u8 = 1;
const JOB_BYTES: usize = 2 + Token::BYTES;
const FLAG_WANTS_VERDICT: u8 = 1;
const FLAG_WANTS_URGENT_CODE: u8 = 2;

/// Who connects to whom, in the addresses the application used, and for which job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preface {
    /// The connecting socket's address, as its peer shall see it.
    pub source: SocketAddr,
    /// The address the application asked for; of the same family as `source`.
    pub destination: SocketAddr,
    /// The job both ends belong to.
    pub token: Token,
    /// How the sender learns what became of the connection.
    pub wants: Wants,
}

/// What a process is told of a connection that it asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wants {
    /// Nothing: a connection that does not come about is reset.
    Nothing,
    /// A [`crate::Verdict`] before the first byte, for which it waits.
    Verdict,
    /// The verdict's code as urgent data ([`crate::Verdict::code`]), before the first byte: the stream that
    /// the program reads does not have it, so nobody need wait for it.
    UrgentCode,
}

impl Wants {
    fn flags(self) -> u8 {
        match self {
            Wants::Nothing => 0,
            Wants::Verdict => FLAG_WANTS_VERDICT,
            Wants::UrgentCode => FLAG_WANTS_URGENT_CODE,
        }
    }

    fn from_flags(flags: u8) -> Wants {
        if flags & FLAG_WANTS_VERDICT != 0 {
            Wants::Verdict
        } else if flags & FLAG_WANTS_URGENT_CODE != 0 {
            Wants::UrgentCode
        } else {
            Wants::Nothing
        }
    }
}

/// Why bytes are not a preface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PrefaceError {
    /// The first bytes differ from the signature.
    #[error("not a PROXY v2 header")]
    Signature,
    /// Version or command is not 2, PROXY or LOCAL.
    #[error("PROXY version or command {0:#04x} is not supported")]
    Version(u8),
    /// Only TCP over IPv4 and IPv6 are carried.
    #[error("address family {0:#04x} is not supported")]
    Family(u8),
    /// The claimed length exceeds [`MAX_BYTES`] or is too small for its addresses.
    #[error("claimed length of {0} bytes is out of bounds")]
    Length(usize),
    /// A TLV runs over the end.
    #[error("a TLV runs over the end of the header")]
    Tlv,
    /// No job TLV, or one of another version.
    #[error("no job token of a known version")]
    NoToken,
    /// Source and destination are of different families.
    #[error("source and destination are of different address families")]
    MixedFamilies,
}

/// What [`Preface::decode`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decoded {
    /// At least this many bytes are needed in all before decoding can go on.
    Incomplete {
        /// Bytes from the start, not the number missing.
        needed: usize,
    },
    /// The preface, and how many bytes it took.
    Complete {
        /// What it says.
        preface: Preface,
        /// Length of the preface; the application's bytes begin after it.
        length: usize,
    },
    /// A node's [`crate::question`] in the place of a preface.
    Question {
        /// What was asked, and proof of the job.
        question: Question,
        /// Length of the question.
        length: usize,
    },
}

impl Preface {
    /// The bytes to send, at most [`MAX_BYTES`].
    ///
    /// # Errors
    /// [`PrefaceError::MixedFamilies`]; map IPv4-mapped IPv6 addresses to IPv4 first ([`canonical`]).
    pub fn encode(&self) -> Result<Vec<u8>, PrefaceError> {
        let mut body = Vec::with_capacity(MAX_BYTES);
        let family = match (self.source.ip(), self.destination.ip()) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                body.extend(source.octets());
                body.extend(destination.octets());
                TCP_OVER_IPV4
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                body.extend(source.octets());
                body.extend(destination.octets());
                TCP_OVER_IPV6
            }
            _ => return Err(PrefaceError::MixedFamilies),
        };
        body.extend(self.source.port().to_be_bytes());
        body.extend(self.destination.port().to_be_bytes());
        body.push(TLV_JOB);
        body.extend((JOB_BYTES as u16).to_be_bytes());
        body.push(JOB_VERSION);
        body.push(self.wants.flags());
        body.extend(self.token.0);

        let mut bytes = Vec::with_capacity(FIXED_BYTES + body.len());
        bytes.extend(SIGNATURE);
        bytes.push(VERSION_2_PROXY);
        bytes.push(family);
        bytes.extend((body.len() as u16).to_be_bytes());
        bytes.extend(body);
        debug_assert!(bytes.len() <= MAX_BYTES);
        Ok(bytes)
    }

    /// Reads a preface from the start of `bytes`. A claimed length is checked before anything is kept.
    ///
    /// # Errors
    /// As soon as the bytes cannot become a preface, however many are still to come.
    pub fn decode(bytes: &[u8]) -> Result<Decoded, PrefaceError> {
        let known = bytes.len().min(SIGNATURE.len());
        if bytes[..known] != SIGNATURE[..known] {
            return Err(PrefaceError::Signature);
        }
        let Some(fixed) = bytes.get(..FIXED_BYTES) else {
            return Ok(Decoded::Incomplete { needed: FIXED_BYTES });
        };
        match fixed[12] {
            VERSION_2_PROXY => {}
            VERSION_2_LOCAL => return decode_question(bytes),
            other => return Err(PrefaceError::Version(other)),
        }
        let address_bytes = match fixed[13] {
            TCP_OVER_IPV4 => 4,
            TCP_OVER_IPV6 => 16,
            other => return Err(PrefaceError::Family(other)),
        };
        let body_bytes = usize::from(u16::from_be_bytes([fixed[14], fixed[15]]));
        let length = FIXED_BYTES + body_bytes;
        if length > MAX_BYTES || body_bytes < 2 * address_bytes + 4 {
            return Err(PrefaceError::Length(body_bytes));
        }
        let Some(body) = bytes.get(FIXED_BYTES..length) else {
            return Ok(Decoded::Incomplete { needed: length });
        };
        let (addresses, rest) = body.split_at(2 * address_bytes);
        let (ports, tlvs) = rest.split_at(4);
        let (token, flags) = job_tlv(tlvs)?;
        let preface = Preface {
            source: SocketAddr::new(address(&addresses[..address_bytes])?, port(&ports[..2])),
            destination: SocketAddr::new(address(&addresses[address_bytes..])?, port(&ports[2..])),
            token,
            wants: Wants::from_flags(flags),
        };
        Ok(Decoded::Complete { preface, length })
    }
}

/// Reads what follows the fixed part of a LOCAL header: addresses, if there are any, count for nothing.
fn decode_question(bytes: &[u8]) -> Result<Decoded, PrefaceError> {
    let body_bytes = usize::from(u16::from_be_bytes([bytes[14], bytes[15]]));
    let length = FIXED_BYTES + body_bytes;
    let address_bytes = match bytes[13] {
        0 => 0,
        TCP_OVER_IPV4 => 12,
        TCP_OVER_IPV6 => 36,
        other => return Err(PrefaceError::Family(other)),
    };
    if length > MAX_BYTES || body_bytes < address_bytes {
        return Err(PrefaceError::Length(body_bytes));
    }
    let Some(body) = bytes.get(FIXED_BYTES..length) else {
        return Ok(Decoded::Incomplete { needed: length });
    };
    let tlvs = &body[address_bytes..];
    let question = find_tlv(tlvs, TLV_QUESTION)?.and_then(Question::from_value);
    let question = question.ok_or(PrefaceError::Version(bytes[12]))?;
    Ok(Decoded::Question { question, length })
}

/// An IPv4-mapped IPv6 address as the IPv4 address it stands for; others unchanged.
pub fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

fn address(octets: &[u8]) -> Result<IpAddr, PrefaceError> {
    if let Ok(octets) = <[u8; 4]>::try_from(octets) {
        return Ok(Ipv4Addr::from(octets).into());
    }
    <[u8; 16]>::try_from(octets)
        .map(|octets| Ipv6Addr::from(octets).into())
        .map_err(|_| PrefaceError::Length(octets.len()))
}

fn port(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |port, byte| port << 8 | u16::from(*byte))
}

/// Reads token and flags of the job TLV. It passes over TLVs of other types, as the protocol asks.
fn job_tlv(tlvs: &[u8]) -> Result<(Token, u8), PrefaceError> {
    let Some([JOB_VERSION, flags, token @ ..]) = find_tlv(tlvs, TLV_JOB)? else {
        return Err(PrefaceError::NoToken);
    };
    let token = <[u8; Token::BYTES]>::try_from(token).map_err(|_| PrefaceError::NoToken)?;
    Ok((Token(token), *flags))
}

/// The first TLV of a type; what follows it is not looked at.
fn find_tlv(mut tlvs: &[u8], wanted: u8) -> Result<Option<&[u8]>, PrefaceError> {
    while let [kind, high, low, rest @ ..] = tlvs {
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        let value = rest.get(..length).ok_or(PrefaceError::Tlv)?;
        if *kind == wanted {
            return Ok(Some(value));
        }
        tlvs = &rest[length..];
    }
    if tlvs.is_empty() {
        Ok(None)
    } else {
        Err(PrefaceError::Tlv)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v4() -> Preface {
        Preface {
            source: "10.1.0.1:40000".parse().unwrap(),
            destination: "10.2.0.2:1024".parse().unwrap(),
            token: Token(*b"0123456789abcdef"),
            wants: Wants::Verdict,
        }
    }

    fn v6() -> Preface {
        Preface {
            source: "[fd00:1::1]:40000".parse().unwrap(),
            destination: "[fd00:2::2]:1024".parse().unwrap(),
            wants: Wants::Nothing,
            ..v4()
        }
    }

    #[test]
    fn literal_bytes_are_as_the_protocol_says() {
        let mut expected = b"\x0d\x0a\x0d\x0a\x00\x0d\x0a\x51\x55\x49\x54\x0a\x21\x11\x00\x21".to_vec();
        expected.extend([10, 1, 0, 1, 10, 2, 0, 2, 0x9c, 0x40, 0x04, 0x00]);
        expected.extend([0xE0, 0, 18, 1, 1]);
        expected.extend(b"0123456789abcdef");
        assert_eq!(v4().encode().unwrap(), expected);
    }

    #[test]
    fn both_families_round_trip_and_leave_what_follows() {
        for preface in [v4(), v6()] {
            let mut bytes = preface.encode().unwrap();
            let length = bytes.len();
            bytes.extend(b"application");
            assert_eq!(Preface::decode(&bytes), Ok(Decoded::Complete { preface, length }));
        }
    }

    #[test]
    fn every_prefix_asks_for_more_and_never_for_too_much() {
        let bytes = v6().encode().unwrap();
        for cut in 0..bytes.len() {
            let Ok(Decoded::Incomplete { needed }) = Preface::decode(&bytes[..cut]) else {
                panic!("at {cut}")
            };
            assert!(cut < needed && needed <= bytes.len());
        }
    }

    #[test]
    fn a_claimed_length_over_the_bound_is_refused_before_it_arrives() {
        let mut bytes = v4().encode().unwrap();
        bytes[14..16].copy_from_slice(&u16::MAX.to_be_bytes());
        assert_eq!(Preface::decode(&bytes[..16]), Err(PrefaceError::Length(65535)));
    }

    #[test]
    fn other_tlvs_are_passed_over() {
        let mut bytes = v4().encode().unwrap();
        let tlvs = FIXED_BYTES + 12;
        bytes.splice(tlvs..tlvs, [0x04, 0, 2, 9, 9]);
        bytes[15] += 5;
        assert!(matches!(Preface::decode(&bytes), Ok(Decoded::Complete { preface, .. }) if preface == v4()));
    }

    #[test]
    fn mixed_families_are_an_error_of_the_caller() {
        let preface = Preface {
            source: v6().source,
            ..v4()
        };
        assert_eq!(preface.encode(), Err(PrefaceError::MixedFamilies));
    }

    #[test]
    fn damaged_bytes_never_panic() {
        for original in [v4().encode().unwrap(), v6().encode().unwrap()] {
            for at in 0..original.len() {
                for value in 0..=255 {
                    let mut bytes = original.clone();
                    bytes[at] = value;
                    let _ = Preface::decode(&bytes);
                }
            }
        }
    }
}
