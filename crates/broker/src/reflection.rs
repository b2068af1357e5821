//! A host's question to the broker: from which address do you see me? Over UDP, question and answer have 36
//! bytes each, so that nobody gains by asking in another's name. Over TCP the bytes are the same; it is asked
//! there, too, because a NAT may map the two differently.
//!
//! ```text
//! byte 0       0x30 question, 0x31 answer. Neither QUIC's own datagrams (RFC 9000, section 17) nor those of a lane begin so, nor TLS
//! byte 1       version, 1
//! byte 2-5     "cwrf"
//! byte 6-17    id of the question: random, echoed in the answer, which is believed for it
//! byte 18-33   the address as IPv6, IPv4 in its form there (RFC 4291, section 2.5.5.2); zeros in a question
//! byte 34-35   the port; zeros in a question
//! ```
//! Address and port are masked with the id (XOR): some NATs replace their own address wherever they see it
//! (RFC 8489, section 14.2).

use std::net::{Ipv6Addr, SocketAddr};

/// Length of a question, and of an answer.
pub const BYTES: usize = 36;

/// First byte of a question.
pub const QUESTION: u8 = 0x30;

/// First byte of an answer.
pub const ANSWER: u8 = 0x31;

const VERSION: u8 = 1;
const MAGIC: &[u8; 4] = b"cwrf";
const ADDRESS_AT: usize = 18;
const PORT_AT: usize = 34;

/// What ties an answer to its question.
pub type Id = [u8; 12];

/// A question.
pub fn question(id: Id) -> [u8; BYTES] {
    begin(QUESTION, id)
}

/// The id of a question; `None` for anything else.
pub fn asked(datagram: &[u8]) -> Option<Id> {
    let datagram: &[u8; BYTES] = datagram.try_into().ok()?;
    split(QUESTION, datagram)
}

/// The answer to a question that came from `seen`.
pub fn answer(id: Id, seen: SocketAddr) -> [u8; BYTES] {
    let address = match seen {
        SocketAddr::V4(seen) => seen.ip().to_ipv6_mapped(),
        SocketAddr::V6(seen) => *seen.ip(),
    };
    let mut datagram = begin(ANSWER, id);
    datagram[ADDRESS_AT..PORT_AT].copy_from_slice(&address.octets());
    datagram[PORT_AT..].copy_from_slice(&seen.port().to_be_bytes());
    hide(&mut datagram, id);
    datagram
}

/// An answer's id and address; `None` for anything else.
pub fn answered(datagram: &[u8]) -> Option<(Id, SocketAddr)> {
    let mut datagram: [u8; BYTES] = datagram.try_into().ok()?;
    let id = split(ANSWER, &datagram)?;
    hide(&mut datagram, id);
    let address: [u8; 16] = datagram[ADDRESS_AT..PORT_AT].try_into().ok()?;
    let port = u16::from_be_bytes(datagram[PORT_AT..].try_into().ok()?);
    Some((id, SocketAddr::new(Ipv6Addr::from(address).to_canonical(), port)))
}

fn begin(kind: u8, id: Id) -> [u8; BYTES] {
    let mut datagram = [0; BYTES];
    datagram[0] = kind;
    datagram[1] = VERSION;
    datagram[2..6].copy_from_slice(MAGIC);
    datagram[6..ADDRESS_AT].copy_from_slice(&id);
    datagram
}

fn split(kind: u8, datagram: &[u8; BYTES]) -> Option<Id> {
    let known = datagram[0] == kind && datagram[1] == VERSION && &datagram[2..6] == MAGIC;
    known.then(|| datagram[6..ADDRESS_AT].try_into().ok()).flatten()
}

fn hide(datagram: &mut [u8; BYTES], id: Id) {
    for (byte, id) in datagram[ADDRESS_AT..].iter_mut().zip(id.iter().cycle()) {
        *byte ^= id;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: Id = *b"0123456789ab";

    #[test]
    fn literal_bytes_are_as_the_other_end_expects() {
        let mut expected = b"\x30\x01cwrf0123456789ab".to_vec();
        expected.resize(BYTES, 0);
        assert_eq!(question(ID).as_slice(), expected);
        let seen = "192.0.2.1:7001".parse().unwrap();
        let plain = b"\0\0\0\0\0\0\0\0\0\0\xff\xff\xc0\0\x02\x01\x1b\x59";
        let hidden: Vec<u8> = plain.iter().zip(ID.iter().cycle()).map(|(a, b)| a ^ b).collect();
        let mut expected = b"\x31\x01cwrf0123456789ab".to_vec();
        expected.extend(hidden);
        assert_eq!(answer(ID, seen).as_slice(), expected);
    }

    #[test]
    fn questions_and_answers_come_back_and_nothing_else_is_taken_for_one() {
        assert_eq!(asked(&question(ID)), Some(ID));
        for seen in ["192.0.2.1:7001", "[2001:db8::1]:1"] {
            let seen = seen.parse().unwrap();
            assert_eq!(answered(&answer(ID, seen)), Some((ID, seen)));
            assert_eq!(asked(&answer(ID, seen)), None);
        }
        assert_eq!(answered(&question(ID)), None);
        for length in (0..100).filter(|length| *length != BYTES) {
            assert_eq!(asked(&vec![QUESTION; length]), None);
            assert_eq!(answered(&vec![ANSWER; length]), None);
        }
        for at in 0..6 {
            let mut damaged = question(ID);
            damaged[at] ^= 0x40;
            assert_eq!(asked(&damaged), None);
        }
    }

    #[test]
    fn an_ipv4_address_in_the_form_of_ipv6_is_told_as_what_it_is() {
        let seen = "[::ffff:192.0.2.1]:5".parse().unwrap();
        let (_, told) = answered(&answer(ID, seen)).unwrap();
        assert_eq!(told, "192.0.2.1:5".parse().unwrap());
    }
}
