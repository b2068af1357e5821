//! What a shim's or a gateway's LAN leg opens with. TLVs of later versions are passed over, so bytes need not
//! come back the same; what they say must.
#![no_main]

use causeway_wire::{Sender, Token};
use causeway_wire::preface::{Decoded, MAX_BYTES, Preface};

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
            assert_eq!((claim.proven(Sender::Process, &token), length), (Some(preface), again.len()));
        }
        Ok(Decoded::Question { question, length }) => {
            assert!(length <= bytes.len().min(MAX_BYTES));
            let again = question.encode();
            let length = again.len();
            assert_eq!(Preface::decode(&again), Ok(Decoded::Question { question, length }));
            let _ = question.read_answer(&Token([0; Token::BYTES]), bytes);
        }
        Err(error) => {
            // What is refused stays refused, however much follows.
            let longer = [bytes, &[0; 16]].concat();
            assert_eq!(Preface::decode(&longer), Err(error));
        }
    }
});
