//! Two connections joined into one: what arrives at either end leaves at the other, in order. It has no loop
//! and no sockets of its own.
//!
//! What the far end does not accept yet is kept, at most [`KEPT_BYTES`], and nothing is read until that is
//! gone: a slow end slows down the other one, and idle connections keep nothing. When one end finishes, that
//! is passed on to the other, which may go on sending.

use serde::{Deserialize, Serialize};
use std::io::{self, ErrorKind, Read, Write};

/// Most bytes that are read at once, and that are kept in each direction.
pub(crate) const KEPT_BYTES: usize = 64 * 1024;

/// Reads before other connections get their turn.
const ROUNDS: usize = 16;

/// One of the two directions.
#[derive(Debug, Default)]
pub(crate) struct Direction {
    kept: Vec<u8>,
    /// The position in `kept` at which the next write begins.
    at: usize,
    /// Whether nothing more will arrive.
    ended: bool,
    /// Whether the far end has been told so.
    finished: bool,
}

/// The result of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Turn {
    pub(crate) bytes: u64,
    /// Whether there may be more, and the kernel will not report it.
    pub(crate) is_unread: bool,
    /// Whether everything has been written that will ever come: the far end has to be told so, only this
    /// once.
    pub(crate) finishes: bool,
}

impl Direction {
    pub(crate) fn keep(&self) -> KeptWay {
        KeptWay {
            kept: self.kept[self.at..].to_vec(),
            ended: self.ended,
            finished: self.finished,
        }
    }

    pub(crate) fn inherit(kept: KeptWay) -> Direction {
        Direction {
            kept: kept.kept,
            at: 0,
            ended: kept.ended,
            finished: kept.finished,
        }
    }

    /// Whether everything has been carried, and the far end knows it.
    pub(crate) fn is_over(&self) -> bool {
        self.finished
    }

    /// Moves what there is, through `space`, until either side would wait.
    pub(crate) fn carry(
        &mut self,
        mut from: impl Read,
        mut to: impl Write,
        space: &mut [u8],
    ) -> io::Result<Turn> {
        let mut turn = Turn {
            bytes: 0,
            is_unread: false,
            finishes: false,
        };
        for _ in 0..ROUNDS {
            self.at += write(&mut to, &self.kept[self.at..])?;
            if self.at < self.kept.len() {
                return Ok(turn);
            }
            // Frees its memory, too: thousands of connections may once have been slow.
            (self.kept, self.at) = (Vec::new(), 0);
            if self.ended {
                turn.finishes = !std::mem::replace(&mut self.finished, true);
                return Ok(turn);
            }
            match from.read(space) {
                Ok(0) => self.ended = true,
                Ok(count) => {
                    turn.bytes += count as u64;
                    let written = write(&mut to, &space[..count])?;
                    self.kept.extend_from_slice(&space[written..count]);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(turn),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        turn.is_unread = true;
        Ok(turn)
    }
}

/// Writes as much as the other side accepts.
fn write(to: &mut impl Write, bytes: &[u8]) -> io::Result<usize> {
    let mut written = 0;
    while written < bytes.len() {
        match to.write(&bytes[written..]) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(count) => written += count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(written)
}

#[derive(Serialize, Deserialize)]
pub(crate) struct KeptWay {
    /// The bytes that were read from the one end, and not yet written to the other.
    #[serde(with = "serde_bytes")]
    pub(crate) kept: Vec<u8>,
    pub(crate) ended: bool,
    pub(crate) finished: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    /// A source whose bytes arrive in pieces, with a pause after each, and then its end or nothing.
    struct Source {
        pieces: VecDeque<Vec<u8>>,
        pauses: bool,
        ends: bool,
    }

    impl Read for Source {
        fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
            if std::mem::replace(&mut self.pauses, false) {
                return Err(ErrorKind::WouldBlock.into());
            }
            let Some(mut piece) = self.pieces.pop_front() else {
                return if self.ends {
                    Ok(0)
                } else {
                    Err(ErrorKind::WouldBlock.into())
                };
            };
            let count = piece.len().min(space.len());
            space[..count].copy_from_slice(&piece[..count]);
            let rest = piece.split_off(count);
            match rest.is_empty() {
                true => self.pauses = true,
                false => self.pieces.push_front(rest),
            }
            Ok(count)
        }
    }

    /// Accepts `room` bytes.
    #[derive(Default)]
    struct Sink {
        taken: Vec<u8>,
        room: usize,
    }

    impl Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let count = bytes.len().min(self.room);
            if count == 0 {
                return Err(ErrorKind::WouldBlock.into());
            }
            self.room -= count;
            self.taken.extend_from_slice(&bytes[..count]);
            Ok(count)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn source(length: usize) -> (Source, Vec<u8>) {
        let bytes: Vec<u8> = (0..length).map(|at| (at * 31 + at / 251) as u8).collect();
        let pieces = bytes.chunks(7777).map(<[u8]>::to_vec).collect();
        let source = Source {
            pieces,
            pauses: false,
            ends: true,
        };
        (source, bytes)
    }

    #[test]
    fn bytes_pass_whole_and_in_order_to_an_end_that_takes_few_at_a_time_and_are_then_finished_once() {
        let (mut source, bytes) = source(300_000);
        let (mut direction, mut sink) = (Direction::default(), Sink::default());
        let (mut finishes, mut carried) = (0, 0);
        for room in (0..).map(|round: usize| round * 37 % 1009) {
            sink.room = room;
            let turn = direction.carry(&mut source, &mut sink, &mut [0; 5000]).unwrap();
            finishes += u32::from(turn.finishes);
            carried += turn.bytes;
            if direction.is_over() {
                break;
            }
        }
        let turn = direction.carry(&mut source, &mut sink, &mut [0; 5000]).unwrap();
        assert!(!turn.finishes);
        assert_eq!((finishes, carried), (1, bytes.len() as u64));
        assert!(sink.taken == bytes);
    }

    #[test]
    fn nothing_more_is_read_than_one_space_while_the_far_end_takes_nothing() {
        let (mut source, bytes) = source(100_000);
        let (mut direction, mut sink) = (Direction::default(), Sink::default());
        for _ in 0..50 {
            let turn = direction.carry(&mut source, &mut sink, &mut [0; 1000]).unwrap();
            assert!(!turn.is_unread);
        }
        assert_eq!(direction.kept.len(), 1000);
        sink.room = bytes.len();
        while !direction.is_over() {
            direction.carry(&mut source, &mut sink, &mut [0; 1000]).unwrap();
        }
        assert!(sink.taken == bytes);
        assert_eq!(direction.kept.capacity(), 0);
    }

    #[test]
    fn a_direction_that_another_program_goes_on_with_loses_and_repeats_nothing() {
        let (mut source, bytes) = source(300_000);
        let (mut direction, mut sink) = (Direction::default(), Sink::default());
        let mut finishes = 0;
        for room in (0..).map(|round: usize| round * 37 % 1009) {
            sink.room = room;
            let turn = direction.carry(&mut source, &mut sink, &mut [0; 5000]).unwrap();
            finishes += u32::from(turn.finishes);
            direction = Direction::inherit(direction.keep());
            if direction.is_over() {
                break;
            }
        }
        assert!(sink.taken == bytes);
        assert_eq!(finishes, 1);
    }

    #[test]
    fn an_endless_source_leaves_others_their_turn_and_says_that_there_is_more() {
        let (mut direction, mut sink) = (Direction::default(), Sink::default());
        sink.room = usize::MAX;
        let turn = direction.carry(io::repeat(7), &mut sink, &mut [0; 10]).unwrap();
        assert!(turn.is_unread);
        assert_eq!(turn.bytes, 10 * ROUNDS as u64);
    }
}
