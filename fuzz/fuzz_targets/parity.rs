//! What arrives at a gateway's UDP port, before anybody has proved anything: datagrams of any content, and
//! groups of which any one is lost.
#![no_main]

use causeway_tunnel::parity::{Decoder, Encoder, Head};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    strangers(bytes);
    groups(bytes);
});

/// Each datagram is a length, then that many bytes.
fn cut(mut bytes: &[u8]) -> Vec<&[u8]> {
    let mut all = Vec::new();
    while let Some((length, rest)) = bytes.split_first() {
        let (datagram, rest) = rest.split_at(usize::from(*length).min(rest.len()));
        all.push(datagram);
        bytes = rest;
    }
    all
}

fn strangers(bytes: &[u8]) {
    let mut decoder = Decoder::default();
    let mut longest = 0;
    for datagram in cut(bytes) {
        longest = longest.max(datagram.len());
        if let Some((head, body)) = Head::split(datagram)
            && decoder.fits(head)
            && let Some(made) = decoder.take(head, body)
        {
            assert!(made.len() <= longest);
        }
    }
}

fn groups(bytes: &[u8]) {
    let Some(([group, lost], bytes)) = bytes.split_first_chunk::<2>() else {
        return;
    };
    let group = 1 + group % 64;
    let datagrams = cut(bytes);
    let mut encoder = Encoder::new(7);
    let mut decoder = Decoder::default();
    let mut got = Vec::new();
    for datagrams in datagrams.chunks(group.into()) {
        let lost = usize::from(*lost) % (datagrams.len() + 1);
        let mut sent = Vec::new();
        for datagram in datagrams {
            let mut out = Vec::new();
            encoder.wrap(datagram, group, 0, &mut out);
            sent.push(out);
        }
        sent.push(Vec::new());
        encoder.close(0, sent.last_mut().expect("pushed"));
        for (_, bytes) in sent.iter().enumerate().filter(|(at, _)| *at != lost) {
            let (head, body) = Head::split(bytes).expect("ours");
            if head.carries() {
                got.push(body.to_vec());
            }
            assert!(decoder.fits(head));
            got.extend(decoder.take(head, body).map(<[u8]>::to_vec));
        }
    }
    let mut wanted: Vec<Vec<u8>> = datagrams.iter().map(|datagram| datagram.to_vec()).collect();
    got.sort();
    wanted.sort();
    assert_eq!(got, wanted);
}
