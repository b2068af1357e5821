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

const NONCE: [u8; NONCE_BYTES] = *b"a nonce.";

fn encode(preface: &Preface) -> Vec<u8> {
    preface.encode(Sender::Process, &NONCE).unwrap()
}

#[test]
fn literal_bytes_are_as_the_protocol_says() {
    let mut expected = b"\x0d\x0a\x0d\x0a\x00\x0d\x0a\x51\x55\x49\x54\x0a\x21\x11\x00\x29".to_vec();
    expected.extend([10, 1, 0, 1, 10, 2, 0, 2, 0x9c, 0x40, 0x04, 0x00]);
    expected.extend([0xE0, 0, 26, 2, 1]);
    expected.extend(number(&v4().token));
    expected.extend(NONCE);
    let ends = [10, 1, 0, 1, 10, 2, 0, 2, 0x9c, 0x40, 0x04, 0x00];
    expected.extend(tag(&v4().token, &[b"P", &NONCE, &[1], &ends]));
    assert_eq!(encode(&v4()), expected);
    // No part of the token is in it.
    assert!(
        !expected
            .windows(4)
            .any(|part| b"0123456789abcdef".windows(4).any(|of| of == part))
    );
    assert_eq!(number(&v4().token), 0x2986_5c1f_1b64_5e78_u64.to_be_bytes());
}

fn claim(bytes: &[u8]) -> Claim {
    match Preface::decode(bytes) {
        Ok(Decoded::Complete { claim, .. }) => claim,
        other => panic!("{other:?}"),
    }
}

#[test]
fn both_families_round_trip_and_leave_what_follows() {
    for preface in [v4(), v6()] {
        let mut bytes = encode(&preface);
        let whole = bytes.len();
        bytes.extend(b"application");
        let Ok(Decoded::Complete { claim, length }) = Preface::decode(&bytes) else {
            panic!("{bytes:?}")
        };
        assert_eq!((length, claim.number()), (whole, number(&preface.token)));
        assert_eq!(claim.proven(Sender::Process, &preface.token), Some(preface));
        for by in [Sender::Process, Sender::Gateway] {
            assert_eq!(
                claim.answer(by, &preface.token),
                answer(by, &preface.token, &NONCE)
            );
        }
        // The answer of one is no proof if the other sends it.
        let [process, gateway] =
            [Sender::Process, Sender::Gateway].map(|by| claim.answer(by, &preface.token));
        assert_ne!(process, gateway);
    }
}

#[test]
fn a_proof_is_for_one_job_one_sender_and_these_very_ends() {
    let token = v4().token;
    let original = encode(&v4());
    assert_eq!(claim(&original).proven(Sender::Gateway, &token), None);
    assert_eq!(claim(&original).proven(Sender::Process, &Token([1; 16])), None);
    // Addresses and ports, flags, nonce and tag are covered; the bytes between them belong to the format.
    let tlv = FIXED_BYTES + 12;
    let number = tlv + 5..tlv + 5 + NUMBER_BYTES;
    for at in (FIXED_BYTES..original.len()).filter(|at| !(tlv..tlv + 4).contains(at)) {
        let mut bytes = original.clone();
        bytes[at] ^= 1;
        let proven = claim(&bytes).proven(Sender::Process, &token);
        assert_eq!(proven.is_some(), number.contains(&at), "{at}");
    }
}

#[test]
fn every_prefix_asks_for_more_and_never_for_too_much() {
    let bytes = encode(&v6());
    for cut in 0..bytes.len() {
        let Ok(Decoded::Incomplete { needed }) = Preface::decode(&bytes[..cut]) else {
            panic!("at {cut}")
        };
        assert!(cut < needed && needed <= bytes.len());
    }
}

#[test]
fn a_claimed_length_over_the_bound_is_refused_before_it_arrives() {
    let mut bytes = encode(&v4());
    bytes[14..16].copy_from_slice(&u16::MAX.to_be_bytes());
    assert_eq!(Preface::decode(&bytes[..16]), Err(PrefaceError::Length(65535)));
}

#[test]
fn other_tlvs_are_passed_over() {
    let mut bytes = encode(&v4());
    let tlvs = FIXED_BYTES + 12;
    bytes.splice(tlvs..tlvs, [0x04, 0, 2, 9, 9]);
    bytes[15] += 5;
    assert_eq!(claim(&bytes).proven(Sender::Process, &v4().token), Some(v4()));
}

#[test]
fn mixed_families_are_an_error_of_the_caller() {
    let preface = Preface {
        source: v6().source,
        ..v4()
    };
    let encoded = preface.encode(Sender::Process, &NONCE);
    assert_eq!(encoded, Err(PrefaceError::MixedFamilies));
}

#[test]
fn damaged_bytes_never_panic() {
    for original in [encode(&v4()), encode(&v6())] {
        for at in 0..original.len() {
            for value in 0..=255 {
                let mut bytes = original.clone();
                bytes[at] = value;
                let _ = Preface::decode(&bytes);
            }
        }
    }
}
