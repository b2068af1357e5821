//! Resumes a tunnel whose process was killed: from what the process had written to the journal, from the
//! memory of the tunnel's lanes, and from what the kernel knows about the sockets of its streams.
//!
//! A socket knows, to the byte, how much was read from it and written to it. So a process records neither
//! beforehand: what a socket has moved beyond the records is in the lanes' memory (if it was read), or
//! arrives again, because it was never acknowledged (if it was written).

use crate::frame::{HEADER_BYTES, Header, Kind, MAX_PAYLOAD};
use crate::ids::Seen;
use crate::kept::kind;
use crate::messages::Messages;
use crate::pre_open::{PreOpen, Waiting};
use crate::records::Core;
use crate::ring::{Backlog, frames};
use crate::segments::Segments;
use crate::snapshot::{Snapshot, SnapshotError};
use crate::stream::{Halves, Stream};
use causeway_memory::{BLOCK_BYTES, Found, Key};
use causeway_wire::Reason;
use serde::de::DeserializeOwned;
use serde_bytes::ByteBuf;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// What a stream's socket has moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moved {
    /// The socket reports how many of the stream's bytes it has moved.
    Bytes {
        /// How many from the socket to the far side.
        read: u64,
        /// How many from the far side to the socket.
        written: u64,
    },
    /// The socket cannot report it: beyond the records, only whole frames are known.
    Unknown,
    /// The socket is gone, and so is what it moved last.
    Lost,
}

/// A tunnel that can continue, and the streams that cannot.
pub struct Recovered {
    /// Its state.
    pub snapshot: Snapshot,
    /// Streams that end here, because it is not known what they moved: their sockets must be reset.
    pub lost: BTreeSet<u32>,
}

type Records = BTreeMap<Key, Vec<u8>>;

/// Reads the tunnel whose records are stored under `owner`. `found` are the blocks of its lanes; they must
/// exist until the next process has committed its journal for the first time. A stream that is not in `moved`
/// has no socket any more.
///
/// # Errors
/// The records are not those of a tunnel, or contradict themselves.
pub fn recover(
    owner: u64,
    records: &Records,
    found: &mut [Found],
    moved: &HashMap<u32, Moved>,
) -> Result<Recovered, SnapshotError> {
    let core: Core = read(
        of(records, owner, kind::CORE)
            .next()
            .map_or(&[], |(_, value)| value),
    )?;
    let mut ahead = ahead(records, owner)?;
    let mut streams = HashMap::new();
    for (key, value) in of(records, owner, kind::STREAM) {
        let id = id_of(key)?;
        let segments = ahead.remove(&id).unwrap_or_default();
        streams.insert(id, Stream::of(read::<Halves>(value)?, segments));
    }
    let mut seen = HashSet::new();
    for (key, _) in of(records, owner, kind::SEEN) {
        seen.insert(id_of(key)?);
    }
    let mut waiting = HashMap::new();
    for (key, value) in of(records, owner, kind::PRE_OPEN) {
        let id = id_of(key)?;
        let read = Waiting::read(value, ahead.remove(&id).unwrap_or_default());
        waiting.insert(id, read.ok_or(SnapshotError::Records)?);
    }
    let mut messages = BTreeMap::new();
    for (key, value) in of(records, owner, kind::MESSAGE) {
        messages.insert(key.id, read(value)?);
    }
    let begun = of(records, owner, kind::BEGUN).next();
    let begun = begun.map_or_else(Vec::new, |(_, bytes)| bytes.clone());
    let mut control = Backlog::default();
    for (_, bytes) in of(records, owner, kind::CONTROL) {
        frames(bytes).for_each(|(_, frame)| control.push(frame, &[]));
    }
    let ends = ends(found);
    let lost = catch_up(&mut streams, &ends, moved, found, &mut control);
    Ok(Recovered {
        snapshot: Snapshot {
            side: core.side,
            next_id: core.next_id,
            streams,
            seen: Seen::of(core.side.other(), core.seen, seen),
            pre_open: PreOpen::of(waiting),
            messages: Messages::of(core.messages, messages, begun),
            control,
            retransmits: retransmits(found),
            dark: core.dark,
        },
        lost,
    })
}

/// The records of a kind that an owner has.
fn of(records: &Records, owner: u64, kind: u8) -> impl Iterator<Item = (&Key, &Vec<u8>)> {
    let from = Key::new(kind, owner, 0);
    let until = Key {
        part: u64::MAX,
        ..Key::new(kind, owner, u64::MAX)
    };
    records.range(from..=until)
}

/// Bytes that have arrived ahead of others, by stream.
fn ahead(records: &Records, owner: u64) -> Result<HashMap<u32, Segments>, SnapshotError> {
    let mut ahead: HashMap<u32, BTreeMap<u64, ByteBuf>> = HashMap::new();
    for (key, bytes) in of(records, owner, kind::AHEAD) {
        let segments = ahead.entry(id_of(key)?).or_default();
        segments.insert(key.part, ByteBuf::from(bytes.clone()));
    }
    let with_segments = |(id, held)| (id, Segments::of(held));
    Ok(ahead.into_iter().map(with_segments).collect())
}

/// The frames in the memory of lanes, and whether the far side has each of them.
fn all_frames(found: &[Found]) -> impl Iterator<Item = (Header, &[u8], bool)> {
    let all = found.iter().flat_map(|found| {
        let (block, done) = (&found.block, found.block.done());
        let frames = frames(&block.bytes()[..block.filled()]);
        frames.map(move |(at, frame)| (frame, at as usize + frame.len() <= done))
    });
    all.filter_map(|(frame, is_done)| {
        let header = Header::decode(frame.first_chunk()?).ok()?;
        Some((header, frame, is_done))
    })
}

/// Where the data of each stream ends in that memory.
fn ends(found: &[Found]) -> HashMap<u32, u64> {
    let mut ends = HashMap::new();
    let data = all_frames(found).filter(|(header, ..)| header.kind == Kind::Data);
    for (header, ..) in data {
        let end = header.position.saturating_add(header.length.into());
        let known = ends.entry(header.stream).or_default();
        *known = end.max(*known);
    }
    ends
}

fn retransmits(found: &[Found]) -> Backlog {
    let mut retransmits = Backlog::default();
    let belongs_to_a_lane = |header: &Header| matches!(header.kind, Kind::Ack | Kind::Ping);
    let others = all_frames(found).filter(|(header, _, is_done)| !is_done && !belongs_to_a_lane(header));
    others.for_each(|(_, frame, _)| retransmits.push(frame, &[]));
    retransmits
}

/// Makes a frame, in place, of `count` bytes of a stream from `position` on, which were read but are not in a
/// frame yet. Returns false if they are not found.
fn make_frame(found: &mut [Found], stream: u32, position: u64, count: u64) -> bool {
    let is_it = |found: &Found| {
        let reading = found.reading;
        reading.is_some_and(|reading| (reading.stream, reading.position) == (stream, position))
    };
    let Some(found) = found.iter_mut().find(|found| is_it(found)) else {
        return false;
    };
    let (begin, length) = (found.block.filled(), u16::try_from(count));
    let (Ok(length), Some(end)) = (length, begin.checked_add(HEADER_BYTES + count as usize)) else {
        return false;
    };
    if usize::from(length) > MAX_PAYLOAD || end > BLOCK_BYTES {
        return false;
    }
    let header = Header {
        kind: Kind::Data,
        detail: 0,
        length,
        stream,
        position,
    };
    found.block.bytes_mut()[begin..begin + HEADER_BYTES].copy_from_slice(&header.encode());
    // From here on, the next process would find the frame, too.
    found.block.set_filled(end);
    true
}

/// Brings streams up to date with their sockets; returns those that cannot continue.
fn catch_up(
    streams: &mut HashMap<u32, Stream>,
    ends: &HashMap<u32, u64>,
    moved: &HashMap<u32, Moved>,
    found: &mut [Found],
    control: &mut Backlog,
) -> BTreeSet<u32> {
    let mut lost = BTreeSet::new();
    for (id, stream) in streams.iter_mut() {
        let known = ends.get(id).map_or(stream.sent, |end| stream.sent.max(*end));
        let goes_on = match moved.get(id).unwrap_or(&Moved::Unknown) {
            Moved::Bytes { read, written } => {
                let sent = stream.sent.saturating_add(*read);
                let is_sound = on_written(stream, *written) && on_read(*id, stream, (known, sent), found);
                if is_sound && *written > 0 {
                    grant(*id, stream, control);
                }
                is_sound
            }
            Moved::Unknown => {
                stream.sent = known;
                true
            }
            Moved::Lost => {
                stream.sent = known;
                false
            }
        };
        if !goes_on {
            lost.insert(*id);
            put(control, (Kind::Reset, Reason::Reset as u8), *id, stream.sent);
        }
    }
    lost.iter().for_each(|id| drop(streams.remove(id)));
    lost
}

/// Records that `written` bytes were written to the socket which were not known to have arrived.
fn on_written(stream: &mut Stream, written: u64) -> bool {
    let consumed = stream.consumed.saturating_add(written);
    stream.consumed = consumed;
    // Bytes that were written but were not known to have arrived will arrive again.
    stream.received = stream.received.max(consumed);
    stream.received <= stream.receive_limit
}

/// Tells the far side how much more it may send. If everything that it may send was written, nothing more
/// arrives that would cause this.
fn grant(id: u32, stream: &mut Stream, control: &mut Backlog) {
    if let Some(limit) = stream.widen() {
        put(control, (Kind::Credit, 0), id, limit);
    }
}

fn put(control: &mut Backlog, (kind, detail): (Kind, u8), stream: u32, position: u64) {
    let header = Header {
        kind,
        detail,
        length: 0,
        stream,
        position,
    };
    control.push(&header.encode(), &[]);
}

/// Records that the socket was read up to `sent`; frames are known up to `known`.
fn on_read(id: u32, stream: &mut Stream, (known, sent): (u64, u64), found: &mut [Found]) -> bool {
    stream.sent = sent;
    let missing = sent.checked_sub(known);
    let is_here = missing.is_some_and(|count| count == 0 || make_frame(found, id, known, count));
    is_here && sent <= stream.send_limit
}

fn id_of(key: &Key) -> Result<u32, SnapshotError> {
    u32::try_from(key.id).map_err(|_| SnapshotError::Records)
}

fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, SnapshotError> {
    postcard::from_bytes(bytes).map_err(|_| SnapshotError::Records)
}
