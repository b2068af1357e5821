//! What a shim's or a gateway's LAN leg opens with. TLVs of later versions are passed over, so bytes need not
//! come back the same; what they say must.
#![no_main]

use causeway_wire::Token;
use causeway_wire::preface::{Decoded, MAX_BYTES, Preface};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    match Preface::decode(bytes) {
        Ok(Decoded::Incomplete { needed }) => assert!(needed > bytes.len() && needed <= MAX_BYTES),
        Ok(Decoded::Complete { preface, length }) => {
            assert!(length <= bytes.len().min(MAX_BYTES));
            let again = preface.encode().expect("both addresses are of one family");
            let length = again.len();
            assert_eq!(Preface::decode(&again), Ok(Decoded::Complete { preface, length }));
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
