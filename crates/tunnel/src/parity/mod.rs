//! Repairs the loss of a datagram without a round trip: a parity datagram follows every few datagrams.
//!
//! It lies below QUIC (`crates/gateway/src/tunnels/quic`), to which a repaired datagram looks like one that
//! came late. Every datagram gets a head of ten bytes:
//!
//! ```text
//! byte 0       0x20 plain, 0x21 one of a group, 0x22 parity of a group. QUIC's own never begin so (RFC 9000, section 17)
//! byte 1       its place in the group; in a parity, the size of the group
//! byte 2       datagrams of a thousand that the speaker missed lately
//! byte 3       epoch: chosen anew whenever the speaker restarts its count
//! byte 4-7     number of the datagram among all that the speaker sent to this address
//! byte 8-9     in a parity, the sum (XOR) of its group's lengths; else zero
//! ```
//! A parity's number follows that of the group's last datagram. Its body is the sum of their bytes; shorter
//! datagrams are padded with zeros. So any single datagram that is missing from a group can be rebuilt.
//! Nothing here is authenticated: a head whose epoch or number does not fit is ignored, unless several in a
//! row agree.

use std::collections::VecDeque;

/// Length of the head before every datagram.
pub const HEAD_BYTES: usize = 10;

/// Longest datagram after its head: it has room for the packets of all usual links.
pub const MAX_BYTES: usize = 1500;

const PLAIN: u8 = 0x20;
const MEMBER: u8 = 0x21;
const PARITY: u8 = 0x22;

/// Most datagrams of a group: the bits of [`Group::has`].
const MOST: u8 = 64;

/// How many groups may wait for a missing datagram: one that comes later than this was lost.
const GROUPS: usize = 32;

/// The number of datagrams over which missing ones are counted.
const COUNTED: u32 = 512;

/// The distance from the previous number at which another belongs to another count; if `AGREE` such numbers
/// in a row fit together, the sender has restarted its count.
const FAR: u32 = 1 << 16;
const AGREE: u32 = 16;

/// The lengths and the bytes of some datagrams, each added up.
#[derive(Debug, Default)]
struct Sum {
    bytes: Vec<u8>,
    lengths: u16,
}

impl Sum {
    fn add(&mut self, length: u16, bytes: &[u8]) {
        self.lengths ^= length;
        if self.bytes.len() < bytes.len() {
            self.bytes.resize(bytes.len(), 0);
        }
        for (sum, byte) in self.bytes.iter_mut().zip(bytes) {
            *sum ^= byte;
        }
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.lengths = 0;
    }
}

/// The sending side.
#[derive(Debug)]
pub struct Encoder {
    epoch: u8,
    next: u32,
    /// How many datagrams the open group has.
    count: u8,
    sum: Sum,
}

impl Encoder {
    /// Counts from 0. `epoch` is random.
    pub fn new(epoch: u8) -> Encoder {
        Encoder {
            epoch,
            next: 0,
            count: 0,
            sum: Sum::default(),
        }
    }

    /// Appends a datagram with its head. `group` is the number of datagrams per parity; 0 means no parity.
    /// Returns whether the group is full.
    pub fn wrap(&mut self, datagram: &[u8], group: u8, missed: u8, out: &mut Vec<u8>) -> bool {
        let kind = if group == 0 { PLAIN } else { MEMBER };
        let place = (kind, self.count);
        head(out, place, missed, (self.epoch, self.next), 0);
        out.extend_from_slice(datagram);
        self.next = self.next.wrapping_add(1);
        if group == 0 {
            return false;
        }
        // The number fits: this is a datagram of UDP.
        self.sum.add(datagram.len() as u16, datagram);
        self.count += 1;
        self.count >= group.min(MOST)
    }

    /// Whether a group is open.
    pub fn is_open(&self) -> bool {
        self.count > 0
    }

    /// Closes the open group and appends its parity.
    pub fn close(&mut self, missed: u8, out: &mut Vec<u8>) {
        let place = (PARITY, self.count);
        head(out, place, missed, (self.epoch, self.next), self.sum.lengths);
        out.extend_from_slice(&self.sum.bytes);
        self.next = self.next.wrapping_add(1);
        self.count = 0;
        self.sum.clear();
    }
}

/// Appends a datagram that belongs to no path, and is not counted.
pub fn stray(datagram: &[u8], out: &mut Vec<u8>) {
    head(out, (PLAIN, u8::MAX), 0, (0, 0), 0);
    out.extend_from_slice(datagram);
}

fn head(out: &mut Vec<u8>, (kind, place): (u8, u8), missed: u8, (epoch, number): (u8, u32), lengths: u16) {
    out.extend_from_slice(&[kind, place, missed, epoch]);
    out.extend_from_slice(&number.to_be_bytes());
    out.extend_from_slice(&lengths.to_be_bytes());
}

/// The head of a datagram that has arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    kind: u8,
    place: u8,
    /// How many of a thousand datagrams the far side has missed lately; 255 means more.
    pub missed: u8,
    epoch: u8,
    number: u32,
    lengths: u16,
}

impl Head {
    /// Splits a datagram into head and body; `None` if it is not one of ours.
    pub fn split(datagram: &[u8]) -> Option<(Head, &[u8])> {
        let ([kind, place, missed, epoch, n0, n1, n2, n3, l0, l1], body) =
            datagram.split_first_chunk::<HEAD_BYTES>()?;
        let head = Head {
            kind: *kind,
            place: *place,
            missed: *missed,
            epoch: *epoch,
            number: u32::from_be_bytes([*n0, *n1, *n2, *n3]),
            lengths: u16::from_be_bytes([*l0, *l1]),
        };
        let known = match head.kind {
            PLAIN => true,
            MEMBER => head.place < MOST,
            PARITY => (1..=MOST).contains(&head.place),
            _ => false,
        };
        (known && body.len() <= MAX_BYTES).then_some((head, body))
    }

    /// Whether the body is a datagram of QUIC.
    pub fn carries(&self) -> bool {
        self.kind != PARITY
    }

    fn is_stray(&self) -> bool {
        self.kind == PLAIN && self.place == u8::MAX
    }
}

#[derive(Debug, Default)]
struct Group {
    start: u32,
    /// The sum of all members that have arrived, and of the parity.
    sum: Sum,
    /// Which members have arrived.
    has: u64,
    /// How many members the group has, once the parity has arrived.
    count: Option<u8>,
}

/// The receiving side.
#[derive(Debug, Default)]
pub struct Decoder {
    groups: VecDeque<Group>,
    missed: Missed,
    /// How many heads in a row did not fit, and the epoch that they name.
    misfits: (u32, u8),
    epoch: Option<u8>,
    /// How many datagrams were repaired.
    pub repaired: u64,
}

impl Decoder {
    /// Returns how many of a thousand datagrams were missed lately.
    pub fn missed(&self) -> u8 {
        self.missed.permille
    }

    /// Whether the head continues the count of those before it; others are not trusted.
    pub fn fits(&mut self, head: Head) -> bool {
        if head.is_stray() {
            return false;
        }
        let near = |last: u32| head.number.wrapping_sub(last).min(last.wrapping_sub(head.number)) < FAR;
        let fits = self.epoch.is_none_or(|epoch| epoch == head.epoch) && self.missed.last.is_none_or(near);
        if fits {
            self.epoch = Some(head.epoch);
            self.misfits = (0, 0);
            return true;
        }
        let (count, epoch) = self.misfits;
        let count = if epoch == head.epoch { count + 1 } else { 1 };
        self.misfits = (count, head.epoch);
        if count < AGREE {
            return false;
        }
        *self = Decoder {
            epoch: Some(head.epoch),
            repaired: self.repaired,
            missed: Missed {
                permille: self.missed.permille,
                ..Missed::default()
            },
            ..Decoder::default()
        };
        true
    }

    /// Receives a datagram whose head [`Decoder::fits`]; returns the datagram that it repairs, if any.
    pub fn take(&mut self, head: Head, body: &[u8]) -> Option<&[u8]> {
        self.missed.count(head.number);
        let start = head.number.wrapping_sub(head.place.into());
        let (group, length, bytes) = match head.kind {
            MEMBER => {
                let group = self.group(start);
                let bit = 1 << head.place;
                if group.has & bit != 0 {
                    return None;
                }
                group.has |= bit;
                // The number fits: this is a datagram of UDP.
                (group, body.len() as u16, body)
            }
            PARITY => {
                let group = self.group(start);
                if group.count.replace(head.place).is_some() {
                    return None;
                }
                (group, head.lengths, body)
            }
            _ => return None,
        };
        group.sum.add(length, bytes);
        let at = group.missing_one()?;
        group.has |= 1 << at;
        let length = usize::from(group.sum.lengths);
        let at = self.groups.iter().position(|group| group.start == start)?;
        // If the sum is shorter, the bytes that were added up did not come from one group.
        let made = self.groups[at].sum.bytes.get(..length)?;
        self.repaired += 1;
        Some(made)
    }

    fn group(&mut self, start: u32) -> &mut Group {
        let known = self.groups.iter().rposition(|group| group.start == start);
        let at = known.unwrap_or_else(|| {
            let mut group = match self.groups.len() {
                GROUPS.. => self.groups.pop_front().unwrap_or_default(),
                _ => Group::default(),
            };
            (group.start, group.has, group.count) = (start, 0, None);
            group.sum.clear();
            self.groups.push_back(group);
            self.groups.len() - 1
        });
        &mut self.groups[at]
    }
}

impl Group {
    /// The only missing member, if the parity has arrived.
    fn missing_one(&self) -> Option<u32> {
        let count = u32::from(self.count?);
        let all = u64::MAX >> (u64::BITS - count);
        let missing = all & !self.has;
        (missing.count_ones() == 1).then(|| missing.trailing_zeros())
    }
}

/// Counts how many of the datagrams that were sent arrive.
#[derive(Debug, Default)]
struct Missed {
    /// The highest number that has arrived, which of the numbers before it have, and the number at which
    /// counting began.
    last: Option<u32>,
    recent: u128,
    first: u32,
    arrived: u32,
    permille: u8,
}

impl Missed {
    fn count(&mut self, number: u32) {
        let last = *self.last.get_or_insert_with(|| {
            self.first = number;
            number
        });
        // Numbers wrap; a number that is behind came late, or twice.
        let ahead = number.wrapping_sub(last) as i32;
        if ahead > 0 {
            self.last = Some(number);
            self.recent = self.recent.checked_shl(ahead.unsigned_abs()).unwrap_or(0);
        }
        let bit = 1u128.checked_shl(ahead.min(0).unsigned_abs()).unwrap_or(0);
        if self.recent & bit != 0 {
            return;
        }
        self.recent |= bit;
        self.arrived = self.arrived.saturating_add(1);
        let sent = number.wrapping_sub(self.first).wrapping_add(1);
        if !(COUNTED..=u32::MAX / 2).contains(&sent) {
            return;
        }
        let missed = sent.saturating_sub(self.arrived);
        let permille = (u64::from(missed) * 1000).div_ceil(sent.into());
        self.permille = u8::try_from(permille).unwrap_or(u8::MAX);
        (self.first, self.arrived) = (number.wrapping_add(1), 0);
    }
}

#[cfg(test)]
mod tests;
