//! What a shim's or a gateway's LAN leg opens with. TLVs of later versions are passed over, so bytes need not
//! come back the same; what they say must.
#![no_main]

use causeway_wire::preface::{Decoded, MAX_BYTES, Preface, answer, number};
use causeway_wire::question::Answer;
use causeway_wire::{Sender, Token};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    match Preface::decode(bytes) {
        Ok(Decoded::Incomplete { needed }) => assert!(needed > bytes.len() && needed <= MAX_BYTES),
        Ok(Decoded::Complete { claim, length }) => {
            assert!(length <= bytes.len().min(MAX_BYTES));
            let token = Token([0; Token::BYTES]);
            let preface = Preface {
                source: claim.source,
                destination: claim.destination,
                token,
                wants: claim.wants,
            };
            let again = preface.encode(Sender::Process, &[7; 8]);
            let again = again.expect("both addresses are of one family");
            let Ok(Decoded::Complete { claim, length }) = Preface::decode(&again) else {
                panic!("what was encoded is read again");
            };
            assert_eq!(
                (claim.proven(Sender::Process, &token), length),
                (Some(preface), again.len())
            );
            assert_eq!(claim.number(), number(&token));
            let by = [Sender::Process, Sender::Gateway];
            let answers = by.map(|by| claim.answer(by, &token));
            assert_eq!(answers, by.map(|by| answer(by, &token, &[7; 8])));
            assert_ne!(answers[0], answers[1]);
            assert_eq!(claim.proven(Sender::Gateway, &token), None);
            assert_eq!(claim.proven(Sender::Process, &Token([1; Token::BYTES])), None);
            damage(bytes, &again, &preface);
        }
        Ok(Decoded::Question { question, length }) => {
            assert!(length <= bytes.len().min(MAX_BYTES));
            let again = question.encode();
            let length = again.len();
            assert_eq!(
                Preface::decode(&again),
                Ok(Decoded::Question { question, length })
            );
            let token = Token([0; Token::BYTES]);
            let _ = question.read_answer(&token, bytes);
            let answer = question.answer(&token, "rennes");
            assert_eq!(question.read_answer(&token, &answer), Answer::Site("rennes"));
            assert_eq!(
                question.read_answer(&token, &answer[..answer.len() - 1]),
                Answer::Incomplete
            );
        }
        Err(error) => {
            // What is refused stays refused, however much follows.
            let longer = [bytes, &[0; 16]].concat();
            assert_eq!(Preface::decode(&longer), Err(error));
        }
    }
});

/// Changes a byte of a preface, which the input's last bytes choose: nobody has proved what it says then.
fn damage(input: &[u8], sound: &[u8], preface: &Preface) {
    let [.., at, by] = input else { return };
    let mut bytes = sound.to_vec();
    bytes[usize::from(*at) % sound.len()] ^= by;
    if let Ok(Decoded::Complete { claim, .. }) = Preface::decode(&bytes) {
        let proven = claim.proven(Sender::Process, &preface.token);
        // The job's number only says whose token to look at; of the flags, some say nothing.
        assert!(proven.is_none_or(|proven| proven == *preface));
    }
}
