//! Cutting in memory: the pieces contain what the whole contained, under the headers that a cutting kernel
//! would write.

use super::*;

const MSS: usize = 1448;
const FIRST_SEQUENCE: u32 = u32::MAX - 2000;

/// A TCP super-segment with time stamps, FIN, PSH and CWR set, from `from` to `to` over IPv4.
pub(crate) fn tcp4(from: [u8; 4], to: [u8; 4], payload: usize) -> Packet {
    let mut bytes = vec![0x45, 0, 0, 0, 0xff, 0xfe, 0x40, 0, 64, 6, 0, 0];
    bytes.extend([from, to].concat());
    put(&mut bytes, 2, (52 + payload) as u16);
    finish(bytes, GSO_TCP_V4, payload)
}

/// The same packet in a buffer that `copy` provides.
pub(crate) fn in_buffer(packet: &Packet, copy: impl FnOnce(&[u8]) -> Vec<u8>) -> Packet {
    Packet::new(packet.offload, copy(packet.bytes()))
}

fn tcp6(payload: usize) -> Packet {
    let mut bytes = vec![0x60, 0, 0, 0, 0, 0, 6, 64];
    bytes.extend((0..32).map(|n| n * 7));
    put(&mut bytes, 4, (32 + payload) as u16);
    finish(bytes, GSO_TCP_V6, payload)
}

fn finish(mut bytes: Vec<u8>, kind: u8, payload: usize) -> Packet {
    let transport = bytes.len();
    bytes.extend([0x1f, 0x90, 0x00, 0x50]);
    bytes.extend(FIRST_SEQUENCE.to_be_bytes());
    bytes.extend([0, 0, 0, 9, 0x80, 0x10 | FIN | PUSH | CWR, 2, 0, 0, 0, 0, 0]);
    bytes.extend([1, 1, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8]);
    let open = fold(pseudo_header_sum(&bytes, 32 + payload, 6));
    put(&mut bytes, transport + 16, open);
    bytes.extend((0..payload).map(|n| (n % 251) as u8));
    let offload = Offload {
        flags: NEEDS_CHECKSUM,
        kind,
        header_bytes: transport as u16 + 32,
        segment_bytes: MSS as u16,
        checksum_start: transport as u16,
        checksum_offset: 16,
    };
    Packet::new(Offload::from_bytes(&offload.to_bytes()), bytes)
}

fn udp4(payload: usize) -> Packet {
    let mut bytes = vec![
        0x45, 0, 0, 0, 0, 7, 0x40, 0, 64, 17, 0, 0, 10, 1, 0, 1, 10, 2, 0, 1,
    ];
    put(&mut bytes, 2, (28 + payload) as u16);
    bytes.extend([0x1f, 0x90, 0x00, 0x50, 0, 0, 0, 0]);
    put(&mut bytes, 24, (8 + payload) as u16);
    bytes.extend((0..payload).map(|n| (n % 251) as u8));
    let offload = Offload {
        flags: NEEDS_CHECKSUM,
        kind: GSO_UDP,
        header_bytes: 28,
        segment_bytes: 1200,
        checksum_start: 20,
        checksum_offset: 6,
    };
    Packet::new(offload, bytes)
}

/// A piece as it is written, and what the kernel is told about it.
fn written(piece: &Piece<'_>) -> (Offload, Vec<u8>) {
    let mut room = HEADER_ROOM;
    let parts = piece.parts(&mut room);
    (
        Offload::from_bytes(&parts.offload),
        [parts.headers, parts.rest].concat(),
    )
}

/// Checks lengths and both checksums of a piece as the receiving kernel does, and returns its packet.
fn sound(piece: &Piece<'_>) -> (Offload, Vec<u8>) {
    let (offload, bytes) = written(piece);
    let ip_bytes = usize::from(offload.checksum_start);
    if is_ipv4(&bytes) {
        assert_eq!(u16::from_be_bytes([bytes[2], bytes[3]]) as usize, bytes.len());
        if piece.packets() < piece.packet.segments() as u64 {
            assert_eq!(fold(sum(&bytes[..ip_bytes])), 0xffff);
        }
    } else {
        assert_eq!(
            u16::from_be_bytes([bytes[4], bytes[5]]) as usize + 40,
            bytes.len()
        );
    }
    let protocol = if offload.checksum_offset == 6 { 17 } else { 6 };
    let open = fold(pseudo_header_sum(&bytes, bytes.len() - ip_bytes, protocol));
    let field = ip_bytes + usize::from(offload.checksum_offset);
    if protocol == 6 || piece.packets() < piece.packet.segments() as u64 {
        assert_eq!(u16::from_be_bytes([bytes[field], bytes[field + 1]]), open);
    }
    (offload, bytes)
}

fn sequence(packet: &[u8], transport: usize) -> u32 {
    u32::from_be_bytes(packet[transport + 4..transport + 8].try_into().unwrap())
}

#[test]
fn segments_are_those_a_path_of_1500_bytes_would_carry() {
    let packet = tcp4([10, 1, 0, 1], [10, 2, 0, 1], 4 * MSS + 100);
    assert_eq!(packet.segments(), 5);
    let bytes: Vec<usize> = (0..5).map(|index| packet.segment_bytes(index)).collect();
    assert_eq!(bytes, [1500, 1500, 1500, 1500, 152]);
    assert_eq!(packet.whole().packet_bytes(), 4 * 1500 + 152);
    assert_eq!(packet.piece(3..5).packet_bytes(), 1500 + 152);
}

#[test]
fn a_super_segment_nothing_was_lost_of_goes_out_as_it_came() {
    let packet = tcp4([10, 1, 0, 1], [10, 2, 0, 1], 4 * MSS);
    let (offload, bytes) = written(&packet.whole());
    assert_eq!((offload, &bytes[..]), (packet.offload, packet.bytes()));
}

#[test]
fn pieces_put_together_are_what_was_cut() {
    for packet in [tcp4([10, 1, 0, 1], [10, 2, 0, 1], 9 * MSS + 1), tcp6(9 * MSS + 1)] {
        let transport = usize::from(packet.offload.checksum_start);
        for cuts in [&[0, 10][..], &[0, 1, 10], &[0, 4, 5, 10], &[0, 9, 10]] {
            let mut payload = Vec::new();
            for edges in cuts.windows(2) {
                let (offload, bytes) = sound(&packet.piece(edges[0]..edges[1]));
                let expected = FIRST_SEQUENCE.wrapping_add(payload.len() as u32);
                assert_eq!(sequence(&bytes, transport), expected);
                let flags = bytes[transport + 13];
                assert_eq!(flags & CWR != 0, edges[0] == 0, "CWR on the first alone");
                let last = if edges[1] == 10 { FIN | PUSH } else { 0 };
                assert_eq!(flags & (FIN | PUSH), last, "FIN and PSH on the last alone");
                let alone = edges[1] - edges[0] == 1;
                assert_eq!(
                    (offload.kind, offload.segment_bytes),
                    if alone {
                        (0, 0)
                    } else {
                        (packet.offload.kind, MSS as u16)
                    }
                );
                payload.extend_from_slice(&bytes[transport + 32..]);
            }
            assert_eq!(payload, packet.bytes()[transport + 32..]);
        }
    }
}

#[test]
fn identifiers_count_on_as_if_each_segment_had_been_sent_alone() {
    let packet = tcp4([10, 1, 0, 1], [10, 2, 0, 1], 5 * MSS);
    let identifier = |first: usize| {
        let (_, bytes) = sound(&packet.piece(first..first + 1));
        u16::from_be_bytes([bytes[4], bytes[5]])
    };
    assert_eq!([0, 1, 2, 3].map(identifier), [0xfffe, 0xffff, 0, 1]);
}

#[test]
fn datagrams_of_one_send_are_cut_between_datagrams() {
    let packet = udp4(3 * 1200 + 7);
    assert_eq!(packet.segments(), 4);
    let (_, middle) = sound(&packet.piece(1..3));
    assert_eq!(middle[24..26], 2408u16.to_be_bytes());
    let (offload, last) = sound(&packet.piece(3..4));
    assert_eq!(
        (last.len(), last[24..26].to_vec(), offload.kind),
        (28 + 7, vec![0, 15], 0)
    );
}

#[test]
fn what_cannot_be_cut_stays_in_one() {
    let packet = tcp4([10, 1, 0, 1], [10, 2, 0, 1], 3 * MSS);
    let spoilt: [fn(&mut Offload); 6] = [
        |offload| offload.flags = 0,
        |offload| offload.kind = 0,
        |offload| offload.segment_bytes = 0,
        |offload| offload.checksum_start = 3,
        |offload| offload.checksum_start = 60_000,
        |offload| offload.checksum_offset = 60_000,
    ];
    for spoil in spoilt {
        let mut offload = packet.offload;
        spoil(&mut offload);
        let whole = Packet::new(offload, packet.bytes().to_vec());
        assert_eq!(whole.segments(), 1, "{offload:?}");
        assert_eq!(written(&whole.whole()), (offload, packet.bytes().to_vec()));
    }
    assert_eq!(Packet::new(packet.offload, Vec::new()).segments(), 1);
    assert_eq!(Packet::plain(vec![0; 1500]).segments(), 1);
}
