use super::*;

fn datagrams(lengths: &[usize]) -> Vec<Vec<u8>> {
    let filled =
        |(number, length): (usize, &usize)| (0..*length).map(|at| (number * 31 + at * 7) as u8).collect();
    lengths.iter().enumerate().map(filled).collect()
}

/// Returns all that is sent for these datagrams: the datagrams themselves, and a parity after every `group`
/// of them and after the last one.
fn sent(datagrams: &[Vec<u8>], group: u8) -> Vec<Vec<u8>> {
    let mut encoder = Encoder::new(5);
    let mut all = Vec::new();
    for datagram in datagrams {
        let mut out = Vec::new();
        let full = encoder.wrap(datagram, group, 0, &mut out);
        all.push(out);
        if full {
            all.push(Vec::new());
            encoder.close(0, all.last_mut().unwrap());
        }
    }
    if encoder.is_open() {
        all.push(Vec::new());
        encoder.close(0, all.last_mut().unwrap());
    }
    all
}

fn received<'a>(decoder: &mut Decoder, arrived: impl IntoIterator<Item = &'a Vec<u8>>) -> Vec<Vec<u8>> {
    let mut got = Vec::new();
    for bytes in arrived {
        let (head, body) = Head::split(bytes).unwrap();
        if head.carries() {
            got.push(body.to_vec());
        }
        if decoder.fits(head) {
            got.extend(decoder.take(head, body).map(<[u8]>::to_vec));
        }
    }
    got
}

#[test]
fn literal_bytes_are_as_documented() {
    let mut encoder = Encoder::new(0xe0);
    let mut out = Vec::new();
    assert!(!encoder.wrap(&[1, 2, 3], 4, 9, &mut out));
    assert_eq!(out, [0x21, 0, 9, 0xe0, 0, 0, 0, 0, 0, 0, 1, 2, 3]);
    out.clear();
    assert!(!encoder.wrap(&[5], 4, 0, &mut out));
    assert_eq!(out, [0x21, 1, 0, 0xe0, 0, 0, 0, 1, 0, 0, 5]);
    out.clear();
    encoder.close(0, &mut out);
    assert_eq!(out, [0x22, 2, 0, 0xe0, 0, 0, 0, 2, 0, 2, 4, 2, 3]);
    out.clear();
    assert!(!encoder.wrap(&[7], 0, 0, &mut out));
    assert_eq!(out, [0x20, 0, 0, 0xe0, 0, 0, 0, 3, 0, 0, 7]);
}

#[test]
fn any_one_of_a_group_is_made_up_for_whatever_its_length() {
    let wanted = datagrams(&[1200, 1462, 40, 1462, 0, 1, 999]);
    let all = sent(&wanted, 3);
    assert_eq!(all.len(), 7 + 3);
    for lost in 0..all.len() {
        let mut decoder = Decoder::default();
        let arrived = all.iter().enumerate().filter(|(at, _)| *at != lost);
        let mut got = received(&mut decoder, arrived.map(|(_, bytes)| bytes));
        got.sort();
        let mut wanted = wanted.clone();
        wanted.sort();
        assert!(got == wanted, "lost {lost}");
    }
}

#[test]
fn members_may_come_after_their_parity_and_twice() {
    let wanted = datagrams(&[100, 200, 300]);
    let all = sent(&wanted, 3);
    let mut decoder = Decoder::default();
    let got = received(&mut decoder, [&all[3], &all[2], &all[2], &all[0], &all[0]]);
    assert_eq!(got[got.len() - 2], wanted[1]);
    assert_eq!(decoder.repaired, 1);
    // The datagram arrives after all.
    received(&mut decoder, [&all[1], &all[3]]);
    assert_eq!(decoder.repaired, 1);
}

#[test]
fn two_lost_of_one_group_are_left_to_quic() {
    let all = sent(&datagrams(&[100, 200, 300]), 3);
    let mut decoder = Decoder::default();
    received(&mut decoder, [&all[1], &all[3]]);
    assert_eq!(decoder.repaired, 0);
}

#[test]
fn memory_does_not_grow_with_groups_that_are_never_whole() {
    let all = sent(&datagrams(&[1000; 1000]), 2);
    let mut decoder = Decoder::default();
    received(&mut decoder, all.iter().step_by(3));
    assert_eq!(decoder.groups.len(), GROUPS);
}

#[test]
fn what_is_missed_is_told_in_thousandths() {
    let all = sent(&datagrams(&[10; 5000]), 64);
    let mut decoder = Decoder::default();
    let some = all.iter().enumerate().filter(|(at, _)| at % 100 != 50);
    received(&mut decoder, some.map(|(_, bytes)| bytes));
    assert!((9..=12).contains(&decoder.missed()), "{}", decoder.missed());
    let mut decoder = Decoder::default();
    received(&mut decoder, &all);
    assert_eq!(decoder.missed(), 0);
    // A duplicate repairs nothing.
    let mut decoder = Decoder::default();
    let some = all.iter().enumerate().filter(|(at, _)| at % 100 != 50);
    let twice = some.flat_map(|(at, bytes)| std::iter::repeat_n(bytes, 1 + at % 2));
    received(&mut decoder, twice);
    assert!((9..=12).contains(&decoder.missed()), "{}", decoder.missed());
}

#[test]
fn numbers_go_round() {
    let mut missed = Missed::default();
    for step in 0..2000u32 {
        missed.count((u32::MAX - 1000).wrapping_add(step));
    }
    assert_eq!(missed.permille, 0);
}

#[test]
fn what_is_not_ours_is_refused() {
    for wrong in [
        &[][..],
        &[0x21; 9],
        &[0x40, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
        &[0x21, 64, 0, 0, 0, 0, 0, 0, 0, 0, 1],
        &[0x22, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
        &[0x22, 65, 0, 0, 0, 0, 0, 0, 0, 0, 1],
        &[0x20; HEAD_BYTES + MAX_BYTES + 1],
    ] {
        assert_eq!(Head::split(wrong), None, "{wrong:?}");
    }
}

#[test]
fn sums_that_contradict_themselves_make_nothing() {
    let mut decoder = Decoder::default();
    // A parity for two members that claims more bytes than it has.
    let parity = [0x22, 2, 0, 0, 0, 0, 0, 2, 0xff, 0xff, 1];
    let member = [0x21, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
    for bytes in [&parity[..], &member] {
        let (head, body) = Head::split(bytes).unwrap();
        assert_eq!(decoder.take(head, body), None);
    }
}

#[test]
fn a_speaker_that_counts_anew_is_followed_and_strangers_are_not() {
    let head = |epoch: u8, number: u32| {
        let mut out = Vec::new();
        super::head(&mut out, (PLAIN, 0), 200, (epoch, number), 0);
        Head::split(&out).unwrap().0
    };
    let mut decoder = Decoder::default();
    let mut hears = |head: Head| {
        let fits = decoder.fits(head);
        if fits {
            decoder.take(head, &[]);
        }
        fits
    };
    assert!((0..1000).all(|number| hears(head(5, number))));
    for stranger in 0..100u32 {
        assert!(
            !hears(head(6, stranger)) && !hears(head(5, 1 << 30)),
            "{stranger}"
        );
        assert!(hears(head(5, 1000 + stranger)));
    }
    let heard = (0..100).filter(|number| hears(head(9, *number))).count();
    assert_eq!(heard, 100 - AGREE as usize + 1);
    assert!(!hears(head(5, 1101)));
}
