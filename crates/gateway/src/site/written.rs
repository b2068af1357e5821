//! What the next worker needs to know about a site's connections if this one is killed, and what the kernel
//! adds to that.

use crate::book::{Book, Records, kind};
use crate::inherited::StateError;
use crate::site::SiteSide;
use crate::site::leg::{Greeting, KeptLeg, KeptStage, Leg};
use crate::sys::socket::{Counts, counts, inode};
use causeway_memory::{Found, Key, Places};
use causeway_tunnel::Moved;
use causeway_wire::Verdict;
use causeway_wire::preface::ANSWER_BYTES;
use nix::sys::socket::{getsockopt, sockopt};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::os::fd::BorrowedFd;

/// Counts of a site's connections.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct SiteCounts {
    pub(crate) streams_opened: u64,
    pub(crate) streams_peak: usize,
    pub(crate) next_delivery_port: u16,
}

/// A connection in the form in which it is written down.
#[derive(Serialize, Deserialize)]
struct WrittenLeg {
    /// The leg. Its queue is where `queue` says.
    leg: KeptLeg,
    /// The inode, which distinguishes the socket from another one with the same descriptor.
    inode: u64,
    /// Bytes read from the socket, and written to it.
    read: u64,
    written: u64,
    queue: Places,
}

impl SiteSide {
    /// Writes down what has changed.
    pub(crate) fn write_down(&mut self, book: &mut Book) {
        let counts = SiteCounts {
            streams_opened: self.legs.opened(),
            streams_peak: self.legs.peak(),
            next_delivery_port: self.ports.next(),
        };
        book.put(kind::SITE, 0, &counts);
        for key in self.legs.take_touched() {
            match self.legs.get(key).filter(|leg| !leg.is_last) {
                Some(leg) => book.put(kind::LEG, key.0, &write(leg)),
                None => book.remove(kind::LEG, key.0),
            }
        }
    }

    /// Notes everything present as changed, and every change from now on.
    pub(crate) fn note_changes(&mut self) {
        self.legs.note_changes();
    }
}

fn write(leg: &Leg) -> WrittenLeg {
    let (read, written) = leg.socket.moved();
    WrittenLeg {
        leg: leg.keep(),
        inode: leg.socket.inode(),
        read,
        written,
        queue: leg.queue.places(),
    }
}

/// Reads the counts that were written down.
///
/// # Errors
/// The record cannot be read.
pub(crate) fn follow_counts(records: &Records) -> Result<SiteCounts, StateError> {
    let counts = records.get(&Key::new(kind::SITE, 0, 0));
    Ok(counts.map_or(Ok(SiteCounts::default()), |counts| postcard::from_bytes(counts))?)
}

/// A connection that goes on, or does not, and how much its socket has moved since it was written down.
pub(crate) struct Followed {
    pub(crate) key: usize,
    pub(crate) leg: KeptLeg,
    pub(crate) moved: Moved,
}

/// Reads the connections that were written down, and updates them from the kernel. `was_killed`: the worker
/// may have done something since it wrote.
///
/// # Errors
/// A record cannot be read.
pub(crate) fn follow(
    records: &Records,
    found: &HashMap<u32, &Found>,
    was_killed: bool,
) -> Result<Vec<Followed>, StateError> {
    let (from, until) = (Key::new(kind::LEG, 0, 0), Key::new(kind::LEG, 0, u64::MAX));
    let mut legs = Vec::new();
    for (key, value) in records.range(from..=until) {
        let written: WrittenLeg = postcard::from_bytes(value)?;
        let queue = written.queue.read(found);
        let missing = StateError::Contradiction("a queue is not where it was");
        let mut leg = KeptLeg {
            queue: queue.ok_or(missing)?,
            ..written.leg
        };
        let socket = socket_of(leg.descriptor, written.inode);
        let moved = socket.and_then(|socket| match counts(&socket, leg.dialled) {
            Ok(counts) => {
                let error = getsockopt(&socket, sockopt::SocketError);
                leg.broken |= counts.is_closed && error != Ok(0);
                bring_up(&mut leg, counts, (written.read, written.written))
            }
            // The kernel does not count, but nothing was done since then.
            Err(_) if !was_killed => Some(Moved::Bytes { read: 0, written: 0 }),
            Err(_) => None,
        });
        legs.push(Followed {
            // It fits: it was a usize.
            key: key.id as usize,
            leg,
            moved: moved.unwrap_or(Moved::Lost),
        });
    }
    Ok(legs)
}

/// The socket with this descriptor, if it is still the one with this inode.
fn socket_of(descriptor: i32, expected: u64) -> Option<BorrowedFd<'static>> {
    let socket = crate::sys::process::borrow(descriptor)?;
    (inode(&socket) == Some(expected)).then_some(socket)
}

/// Updates a connection by what its socket has read and written in all; returns how much it has moved since
/// it was written down, `None` if that is impossible.
fn bring_up(leg: &mut KeptLeg, counts: Counts, (read, written): (u64, u64)) -> Option<Moved> {
    let mut read = counts.read.checked_sub(read)?;
    let mut written = counts.written.checked_sub(written)?;
    if leg.preface > 0 && read > 0 {
        read = read.checked_sub(leg.preface as u64)?;
        leg.preface = 0;
    }
    if let KeptStage::Connecting {
        opening: Some(opening),
    } = &leg.stage
        && written > 0
    {
        written = written.checked_sub(opening.preface.len() as u64)?;
        leg.stage = KeptStage::Greeting(Greeting {
            expected: opening.answer,
        });
    }
    let first = match leg.stage {
        KeptStage::Greeting(_) if read > 0 => {
            read = read.checked_sub(ANSWER_BYTES as u64)?;
            Some(0)
        }
        KeptStage::Awaiting if written > 0 => Some(Verdict::BYTES as u64),
        KeptStage::Asked if written > 0 => Some(1),
        KeptStage::Spawning if written > 0 => Some(0),
        _ => None,
    };
    if let Some(first) = first {
        written = written.checked_sub(first)?;
        leg.stage = KeptStage::Open;
    }
    let waited = leg.queue.len().min(usize::try_from(written).ok()?);
    leg.queue.drain(..waited);
    leg.sent_bytes += read;
    leg.received_bytes += written - waited as u64;
    leg.write_ended |= counts.has_ended && !leg.broken;
    Some(Moved::Bytes { read, written })
}

/// A record of a connection and of counts, for tests of the layout.
#[cfg(test)]
pub(crate) fn put_samples(book: &mut Book) {
    use crate::site::leg::Opening;
    let leg = WrittenLeg {
        leg: KeptLeg {
            descriptor: -1,
            dialled: true,
            of_launcher: false,
            pair: 0,
            stream: 1,
            token: [7; 16],
            weight: 1,
            generation: 8,
            lingers: false,
            stage: KeptStage::Connecting {
                opening: Some(Opening {
                    preface: vec![1, 2],
                    answer: [3; ANSWER_BYTES],
                }),
            },
            end_known: false,
            broken: false,
            sent_bytes: 0,
            received_bytes: 5,
            read_ended: false,
            peer_finished: false,
            write_ended: false,
            preface: 0,
            queue: Vec::new(),
        },
        inode: 4,
        read: 5,
        written: 6,
        queue: Places::default(),
    };
    book.put(kind::LEG, 1, &leg);
    book.put(kind::SITE, 0, &SiteCounts::default());
}
