//! The preface of the LAN leg, in both directions: PROXY protocol v2 with Causeway's TLVs.
//!
//! A shim sends it to its gateway before the application's first byte; a gateway sends it to the process to
//! which it delivers. Where it is expected, it is mandatory, and is never guessed. For its layout, see "The
//! PROXY protocol", section 2.2 (HAProxy, 2020); any program that reads that protocol can read ours.
//!
//! The process that listens at either address may be another user's: so the preface proves that its sender
//! knows the job's token, without showing it. The receiver, a process or a gateway that knows the job, first
//! answers with a proof of its own, before it gets any bytes of the stream.
//!
//! ```text
//! TLV 0xE0   version, 2; flags; the job's number, 8 bytes; nonce, 8 bytes; tag, 8 bytes
//! number     of "N"
//! tag        of "P" (from a process) or "G" (from a gateway), the nonce, the flags, addresses and ports
//! answer     of "R" (from a process) or "V" (from a gateway) and the nonce, 8 bytes
//!            each by SipHash-2-4 under the token, big endian
//! ```

use crate::proof::{TAG_BYTES, Tag, same, tag};
pub use crate::proxy::{FIXED_BYTES, SIGNATURE};
use crate::proxy::{TLV_JOB, TLV_QUESTION, VERSION_2_LOCAL, VERSION_2_PROXY};
use crate::question::Question;
use crate::token::Token;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Longest preface that is read or written. Ours have 81 bytes with IPv6; the rest is for TLVs of a later
/// version.
pub const MAX_BYTES: usize = 256;

const TCP_OVER_IPV4: u8 = 0x11;
const TCP_OVER_IPV6: u8 = 0x21;
const JOB_VERSION: u8 = 2;
const JOB_BYTES: usize = 2 + NUMBER_BYTES + NONCE_BYTES + TAG_BYTES;
/// Length of a job's number.
pub const NUMBER_BYTES: usize = TAG_BYTES;
/// Length of the nonce, with which the proof of each connection is a new one.
pub const NONCE_BYTES: usize = 8;
/// Length of an answer.
pub const ANSWER_BYTES: usize = TAG_BYTES;
const FLAG_WANTS_VERDICT: u8 = 1;
const FLAG_WANTS_URGENT_CODE: u8 = 2;

/// Who connects to whom, in the addresses that the application used, and for which job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preface {
    /// The address of the connecting socket, in the form that its peer must see.
    pub source: SocketAddr,
    /// The address for which the application asked; it has the same family as `source`.
    pub destination: SocketAddr,
    /// The job to which both ends belong.
    pub token: Token,
    /// How the sender learns whether the connection was established.
    pub wants: Wants,
}

/// Who sends a preface. The proof of one is no proof if the other sends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sender {
    /// A process sends it to its gateway.
    Process,
    /// A gateway sends it to the process to which it delivers.
    Gateway,
}

impl Sender {
    fn purpose(self) -> &'static [u8] {
        match self {
            Sender::Process => b"P",
            Sender::Gateway => b"G",
        }
    }
}

/// A preface as it came: only somebody who knows its job's token can tell for which job it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim {
    /// See [`Preface::source`].
    pub source: SocketAddr,
    /// See [`Preface::destination`].
    pub destination: SocketAddr,
    /// See [`Preface::wants`].
    pub wants: Wants,
    number: Tag,
    nonce: [u8; NONCE_BYTES],
    tag: Tag,
}

impl Claim {
    /// The number by which the sender identifies the job; see [`number`].
    pub fn number(&self) -> [u8; NUMBER_BYTES] {
        self.number
    }

    /// The preface, if such a sender has made it for this job.
    pub fn proven(&self, sender: Sender, token: &Token) -> Option<Preface> {
        let Claim {
            source,
            destination,
            wants,
            ..
        } = *self;
        let expected = proof(token, sender, &self.nonce, wants, &(source, destination))?;
        same(&self.tag, &expected).then_some(Preface {
            source,
            destination,
            token: *token,
            wants,
        })
    }

    /// The bytes with which a process of this job answers a delivery, or a gateway that knows the job answers
    /// a process.
    pub fn answer(&self, by: Sender, token: &Token) -> [u8; ANSWER_BYTES] {
        answer(by, token, &self.nonce)
    }
}

/// The number that identifies a job where its token must not be shown.
pub fn number(token: &Token) -> [u8; NUMBER_BYTES] {
    tag(token, &[b"N"])
}

/// The answer to a preface with this nonce, from a process of this job or a gateway that knows it.
pub fn answer(by: Sender, token: &Token, nonce: &[u8; NONCE_BYTES]) -> [u8; ANSWER_BYTES] {
    let name = match by {
        Sender::Process => b"R",
        Sender::Gateway => b"V",
    };
    tag(token, &[name, nonce])
}

fn proof(
    token: &Token,
    sender: Sender,
    nonce: &[u8; NONCE_BYTES],
    wants: Wants,
    ends: &(SocketAddr, SocketAddr),
) -> Option<Tag> {
    let (_, addresses) = addresses(ends)?;
    Some(tag(
        token,
        &[sender.purpose(), nonce, &[wants.flags()], &addresses],
    ))
}

/// The family, and the bytes of both addresses and ports; `None` if their families differ.
fn addresses((source, destination): &(SocketAddr, SocketAddr)) -> Option<(u8, Vec<u8>)> {
    let (family, mut bytes) = match (source.ip(), destination.ip()) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            (TCP_OVER_IPV4, [source.octets(), destination.octets()].concat())
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            (TCP_OVER_IPV6, [source.octets(), destination.octets()].concat())
        }
        _ => return None,
    };
    bytes.extend(source.port().to_be_bytes());
    bytes.extend(destination.port().to_be_bytes());
    Some((family, bytes))
}

/// What a process is told about a connection for which it has asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wants {
    /// Nothing: a connection that cannot be established is reset.
    Nothing,
    /// A [`crate::Verdict`] before the first byte, for which the process waits.
    Verdict,
    /// The verdict's code as urgent data ([`crate::Verdict::code`]), before the first byte: it is not in the
    /// stream that the program reads, so nobody must wait for it.
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
    /// The version is not 2, or the command is neither PROXY nor LOCAL.
    #[error("PROXY version or command {0:#04x} is not supported")]
    Version(u8),
    /// The family is neither TCP over IPv4 nor TCP over IPv6.
    #[error("address family {0:#04x} is not supported")]
    Family(u8),
    /// The claimed length exceeds [`MAX_BYTES`] or is too small for the addresses.
    #[error("claimed length of {0} bytes is out of bounds")]
    Length(usize),
    /// A TLV runs beyond the end.
    #[error("a TLV runs over the end of the header")]
    Tlv,
    /// There is no job TLV, or it has another version.
    #[error("no job of a known version")]
    NoJob,
    /// Source and destination have different families.
    #[error("source and destination are of different address families")]
    MixedFamilies,
}

/// What [`Preface::decode`] has found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decoded {
    /// At least this many bytes are needed in all before decoding can continue.
    Incomplete {
        /// The number of bytes from the start, not of those that are missing.
        needed: usize,
    },
    /// A preface, and how many bytes it has.
    Complete {
        /// What the preface says.
        claim: Claim,
        /// The length of the preface; the application's bytes follow it.
        length: usize,
    },
    /// A node's [`crate::question`] instead of a preface.
    Question {
        /// The question, with a proof of the job.
        question: Question,
        /// The length of the question.
        length: usize,
    },
}

impl Preface {
    /// Returns the bytes to send, at most [`MAX_BYTES`]. The nonce must never have been used before.
    ///
    /// # Errors
    /// [`PrefaceError::MixedFamilies`]; IPv4-mapped IPv6 addresses must be mapped to IPv4 first
    /// ([`canonical`]).
    pub fn encode(&self, sender: Sender, nonce: &[u8; NONCE_BYTES]) -> Result<Vec<u8>, PrefaceError> {
        let ends = (self.source, self.destination);
        let mixed = PrefaceError::MixedFamilies;
        let (family, mut body) = addresses(&ends).ok_or(mixed)?;
        let tag = proof(&self.token, sender, nonce, self.wants, &ends).ok_or(mixed)?;
        body.push(TLV_JOB);
        body.extend((JOB_BYTES as u16).to_be_bytes());
        body.push(JOB_VERSION);
        body.push(self.wants.flags());
        body.extend(number(&self.token));
        body.extend(nonce);
        body.extend(tag);

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
    /// The bytes can no longer become a preface, however many more may come.
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
        let (flags, number, nonce, tag) = job_tlv(tlvs)?;
        let claim = Claim {
            source: SocketAddr::new(address(&addresses[..address_bytes])?, port(&ports[..2])),
            destination: SocketAddr::new(address(&addresses[address_bytes..])?, port(&ports[2..])),
            wants: Wants::from_flags(flags),
            number,
            nonce,
            tag,
        };
        Ok(Decoded::Complete { claim, length })
    }
}

/// Reads what follows the fixed part of a LOCAL header: addresses, if there are any, are ignored.
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

/// An IPv4-mapped IPv6 address as the IPv4 address that it maps; others unchanged.
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

/// Reads flags, number, nonce and tag of the job TLV. Skips TLVs of other types, as the protocol demands.
fn job_tlv(tlvs: &[u8]) -> Result<(u8, Tag, [u8; NONCE_BYTES], Tag), PrefaceError> {
    let Some([JOB_VERSION, flags, rest @ ..]) = find_tlv(tlvs, TLV_JOB)? else {
        return Err(PrefaceError::NoJob);
    };
    let read = || {
        let (number, rest) = rest.split_first_chunk()?;
        let (nonce, rest) = rest.split_first_chunk()?;
        Some((*flags, *number, *nonce, rest.try_into().ok()?))
    };
    read().ok_or(PrefaceError::NoJob)
}

/// The first TLV of a type; what follows it is not read.
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
mod tests;
