//! A packet as an adapter with offloads sees it: up to 64 KiB of one TCP or UDP flow under one header, to be
//! cut into packets of the path's size, and a checksum to be completed by whoever needs it. Pure: this cuts
//! packets and rewrites headers, and knows neither links nor devices. The link counts, delays and loses the
//! packets, never the super-segment.
//!
//! ```text
//! read   [offload][IP][TCP][ payload of segments 0 1 2 3 4 5 ]      segment 2 is lost:
//! write  [offload][IP][TCP][ 0 1 ]   [offload][IP][TCP][ 3 4 5 ]    what follows each other is written as one piece
//! ```

use std::ops::Range;

/// Bytes that the kernel puts before a packet of a device opened with IFF_VNET_HDR.
pub(crate) const OFFLOAD_BYTES: usize = 10;

/// The longest headers of a packet that is cut: IPv4 and TCP take 120 bytes with all options, IPv6 with TCP
/// 100.
const MAX_HEADER_BYTES: usize = 128;

/// `flags`: the checksum from `checksum_start` on has yet to be completed.
const NEEDS_CHECKSUM: u8 = 1;
const GSO_TCP_V4: u8 = 1;
const GSO_TCP_V6: u8 = 4;
const GSO_UDP: u8 = 5;

const FIN: u8 = 0x01;
const PUSH: u8 = 0x08;
const CWR: u8 = 0x80;

/// What the kernel says about a packet: `struct virtio_net_hdr` in host byte order (virtio 1.2, section
/// 5.1.6).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Offload {
    flags: u8,
    kind: u8,
    header_bytes: u16,
    segment_bytes: u16,
    checksum_start: u16,
    checksum_offset: u16,
}

impl Offload {
    pub(crate) fn from_bytes(bytes: &[u8; OFFLOAD_BYTES]) -> Self {
        let word = |at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
        Offload {
            flags: bytes[0],
            kind: bytes[1],
            header_bytes: word(2),
            segment_bytes: word(4),
            checksum_start: word(6),
            checksum_offset: word(8),
        }
    }

    fn to_bytes(self) -> [u8; OFFLOAD_BYTES] {
        let mut bytes = [self.flags, self.kind, 0, 0, 0, 0, 0, 0, 0, 0];
        let words = [
            self.header_bytes,
            self.segment_bytes,
            self.checksum_start,
            self.checksum_offset,
        ];
        for (place, word) in bytes[2..].chunks_exact_mut(2).zip(words) {
            place.copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }
}

/// Where and how a super-segment is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cut {
    /// Where the TCP or UDP header begins.
    transport: usize,
    /// Bytes of all headers, which each segment repeats.
    header_bytes: usize,
    /// Payload of each segment except the last, which may have less.
    payload_bytes: usize,
    segments: usize,
}

/// One packet, or the segments that travel under one header.
#[derive(Debug)]
pub(crate) struct Packet {
    bytes: Vec<u8>,
    offload: Offload,
    cut: Option<Cut>,
}

impl Packet {
    /// A packet that is complete as it is.
    pub(crate) fn plain(bytes: Vec<u8>) -> Self {
        Packet {
            bytes,
            offload: Offload::default(),
            cut: None,
        }
    }

    /// A packet with what the kernel says about it. If it cannot be cut by these rules, it stays whole.
    pub(crate) fn new(offload: Offload, bytes: Vec<u8>) -> Self {
        let cut = Cut::of(&offload, &bytes);
        Packet { bytes, offload, cut }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Counts the packets of the path's size that it represents.
    pub(crate) fn segments(&self) -> usize {
        self.cut.map_or(1, |cut| cut.segments)
    }

    /// IP length of segment `index`, headers included.
    pub(crate) fn segment_bytes(&self, index: usize) -> usize {
        match self.cut {
            None => self.bytes.len(),
            Some(cut) => cut.header_bytes + cut.payload(index..index + 1, self.bytes.len()).len(),
        }
    }

    /// The whole packet as one piece.
    pub(crate) fn whole(&self) -> Piece<'_> {
        self.piece(0..self.segments())
    }

    /// Consecutive segments of it.
    pub(crate) fn piece(&self, segments: Range<usize>) -> Piece<'_> {
        debug_assert!(!segments.is_empty() && segments.end <= self.segments());
        Piece {
            packet: self,
            segments,
        }
    }
}

impl Cut {
    fn of(offload: &Offload, bytes: &[u8]) -> Option<Cut> {
        let transport = usize::from(offload.checksum_start);
        let transport_bytes = match offload.kind {
            GSO_TCP_V4 | GSO_TCP_V6 => usize::from(bytes.get(transport + 12)? >> 4) * 4,
            GSO_UDP => 8,
            _ => return None,
        };
        let header_bytes = transport + transport_bytes;
        let payload_bytes = usize::from(offload.segment_bytes);
        let ip_bytes = if is_ipv4(bytes) { 20 } else { 40 };
        // The kernel leaves the checksum open in everything that it hands over uncut.
        let sound = offload.flags & NEEDS_CHECKSUM != 0
            && transport >= ip_bytes
            && transport_bytes >= usize::from(offload.checksum_offset) + 2
            && header_bytes <= MAX_HEADER_BYTES
            && payload_bytes > 0;
        let payload = bytes.len().checked_sub(header_bytes)?;
        let segments = payload.div_ceil(payload_bytes.max(1));
        (sound && segments > 1).then_some(Cut {
            transport,
            header_bytes,
            payload_bytes,
            segments,
        })
    }

    /// Returns where the payload of these segments is in a packet of `total` bytes.
    fn payload(&self, segments: Range<usize>, total: usize) -> Range<usize> {
        let at = |segment: usize| (self.header_bytes + segment * self.payload_bytes).min(total);
        at(segments.start)..at(segments.end)
    }
}

/// Consecutive segments of a packet, to be written as one.
#[derive(Debug)]
pub(crate) struct Piece<'a> {
    packet: &'a Packet,
    segments: Range<usize>,
}

/// The parts of a piece, in the order in which they are written.
#[derive(Debug)]
pub(crate) struct Parts<'a> {
    /// The header for devices that expect one.
    pub(crate) offload: [u8; OFFLOAD_BYTES],
    /// Rewritten headers; empty if the packet is written as it was read.
    pub(crate) headers: &'a [u8],
    pub(crate) rest: &'a [u8],
}

/// Space for the headers of one piece.
pub(crate) type HeaderRoom = [u8; MAX_HEADER_BYTES];

/// An empty [`HeaderRoom`].
pub(crate) const HEADER_ROOM: HeaderRoom = [0; MAX_HEADER_BYTES];

impl Piece<'_> {
    /// Number of packets of the path's size that it represents.
    pub(crate) fn packets(&self) -> u64 {
        self.segments.len() as u64
    }

    /// Sum of the IP lengths of these packets.
    pub(crate) fn packet_bytes(&self) -> u64 {
        match self.packet.cut {
            None => self.packet.bytes.len() as u64,
            Some(cut) => {
                let payload = cut.payload(self.segments.clone(), self.packet.bytes.len());
                (self.segments.len() * cut.header_bytes + payload.len()) as u64
            }
        }
    }

    /// Returns the parts to write. Headers that differ from those that were read are built in `room`.
    pub(crate) fn parts<'a>(&'a self, room: &'a mut HeaderRoom) -> Parts<'a> {
        let packet = self.packet;
        match packet.cut {
            Some(cut) if self.segments.len() < cut.segments => {
                let payload = cut.payload(self.segments.clone(), packet.bytes.len());
                let headers = &mut room[..cut.header_bytes];
                headers.copy_from_slice(&packet.bytes[..cut.header_bytes]);
                self.rewrite(headers, &cut, payload.len());
                Parts {
                    offload: self.offload(&cut).to_bytes(),
                    headers,
                    rest: &packet.bytes[payload],
                }
            }
            _ => Parts {
                offload: packet.offload.to_bytes(),
                headers: &[],
                rest: &packet.bytes,
            },
        }
    }

    fn offload(&self, cut: &Cut) -> Offload {
        let alone = self.segments.len() == 1;
        Offload {
            kind: if alone { 0 } else { self.packet.offload.kind },
            segment_bytes: if alone {
                0
            } else {
                self.packet.offload.segment_bytes
            },
            header_bytes: cut.header_bytes as u16,
            ..self.packet.offload
        }
    }

    /// Turns the headers of the whole packet into those of this piece, as the kernel's tcp_gso_segment,
    /// udp_gso_segment and inet_gso_segment would.
    fn rewrite(&self, headers: &mut [u8], cut: &Cut, payload_bytes: usize) {
        let (ip, transport) = headers.split_at_mut(cut.transport);
        let transport_bytes = transport.len() + payload_bytes;
        if is_ipv4(ip) {
            put(ip, 2, (ip.len() + transport_bytes) as u16);
            let identifier = u16::from_be_bytes([ip[4], ip[5]]);
            put(ip, 4, identifier.wrapping_add(self.segments.start as u16));
            put(ip, 10, 0);
            let checksum = !fold(sum(ip));
            put(ip, 10, checksum);
        } else {
            put(ip, 4, (ip.len() - 40 + transport_bytes) as u16);
        }
        let protocol = if self.packet.offload.kind == GSO_UDP {
            put(transport, 4, transport_bytes as u16);
            17
        } else {
            self.rewrite_tcp(transport, cut);
            6
        };
        let open = pseudo_header_sum(ip, transport_bytes, protocol);
        put(
            transport,
            usize::from(self.packet.offload.checksum_offset),
            fold(open),
        );
    }

    fn rewrite_tcp(&self, tcp: &mut [u8], cut: &Cut) {
        let sequence = u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]]);
        let skipped = (self.segments.start * cut.payload_bytes) as u32;
        tcp[4..8].copy_from_slice(&sequence.wrapping_add(skipped).to_be_bytes());
        if self.segments.end < cut.segments {
            tcp[13] &= !(FIN | PUSH);
        }
        if self.segments.start > 0 {
            tcp[13] &= !CWR;
        }
    }
}

fn is_ipv4(packet: &[u8]) -> bool {
    packet.first().is_some_and(|first| first >> 4 == 4)
}

fn put(header: &mut [u8], at: usize, value: u16) {
    header[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

/// Computes the content of an open checksum field: the sum over addresses, length and protocol (RFC 9293
/// section 3.1, RFC 8200 section 8.1; a lab has no routing headers, whose last address would count).
fn pseudo_header_sum(ip: &[u8], transport_bytes: usize, protocol: u32) -> u32 {
    let addresses = if is_ipv4(ip) { &ip[12..20] } else { &ip[8..40] };
    sum(addresses) + transport_bytes as u32 + protocol
}

/// Sum by RFC 1071, before folding; an odd last byte is padded with zero.
fn sum(bytes: &[u8]) -> u32 {
    let pairs = bytes.chunks(2);
    pairs
        .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)])))
        .sum()
}

fn fold(sum: u32) -> u16 {
    let folded = (sum & 0xffff) + (sum >> 16);
    ((folded & 0xffff) + (folded >> 16)) as u16
}

#[cfg(test)]
#[path = "packet_tests.rs"]
pub(crate) mod tests;
