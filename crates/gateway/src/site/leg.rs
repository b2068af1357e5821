//! The local end of a stream: a TCP connection with a process of this site, or with one of this host.
//!
//! Bytes from the tunnel that the socket does not take wait in `queue`; the tunnel's window bounds it, so a
//! slow reader slows down only its own stream. Bytes towards the tunnel are never held here: a lane reads the
//! socket when it has room.

use crate::inherited::{InheritError, descriptor};
use crate::keys::{LegKey, PairKey};
use crate::site::socket::Socket;
use causeway_control::spawned::error_frame;
use causeway_memory::{Arena, Queue};
use causeway_tunnel::StreamId;
use causeway_tunnel::turns::{Pace, Turns};
use causeway_wire::preface::ANSWER_BYTES;
use causeway_wire::{Reason, Token, Verdict};
use mio::net::TcpStream;
use serde::{Deserialize, Serialize};
use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::time::Instant;

/// How far a leg has come.
pub(crate) enum Stage {
    /// Delivery: connecting to the destination. A connection without a preface has no opening.
    Connecting { opening: Option<Opening> },
    /// Delivery: the process has yet to prove that it belongs to the job, and receives nothing before it has.
    Greeting(Greeting),
    /// Delivery: the process that the socket is for is being started.
    Starting,
    /// Origin: the shim waits for the verdict before it sends its first byte.
    Awaiting,
    /// Origin: the process may write, and is told the verdict by urgent data.
    Asked,
    /// Origin: an agent waits for the process that it asked for.
    Spawning,
    /// Bytes flow.
    Open,
}

/// What a delivery begins with.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Opening {
    pub(crate) preface: Vec<u8>,
    /// The process's answer to it.
    pub(crate) answer: [u8; ANSWER_BYTES],
}

/// What a process must answer.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Greeting {
    pub(in crate::site) expected: [u8; ANSWER_BYTES],
}

pub(crate) struct Leg {
    pub(crate) socket: Socket,
    /// Key of the pair whose tunnel carries the stream.
    pub(crate) pair: PairKey,
    pub(crate) id: StreamId,
    pub(crate) token: Token,
    /// Its job's share of a busy tunnel.
    pub(crate) weight: u32,
    pub(crate) generation: u64,
    /// When it was made here.
    pub(crate) begun: Instant,
    /// Whether its preface may have arrived after the end of the handshake.
    pub(in crate::site) greets_late: bool,
    pub(crate) stage: Stage,
    /// Whether it goes on when its job has ended.
    pub(crate) lingers: bool,
    /// Whether the socket may have bytes for the tunnel.
    pub(crate) readable: bool,
    /// Whether the kernel has reported the end of the process's half, which it does only once.
    pub(crate) end_known: bool,
    /// Whether urgent data has arrived: a read that stops before it has not emptied the socket.
    pub(crate) has_urgent: bool,
    /// Whether the process has reset the connection: what it sent before is still to be read, then follows
    /// the reset.
    pub(crate) broken: bool,
    /// Whether the leg is in its pair's queue of legs to be read.
    pub(crate) scheduled: bool,
    /// Bytes received from the process, and bytes from the tunnel for it.
    pub(crate) sent_bytes: u64,
    pub(crate) received_bytes: u64,
    /// How it has sent lately: small frames go before bulk.
    pub(crate) pace: Pace,
    /// Whether the process has ended its half.
    pub(crate) read_ended: bool,
    /// Whether the far side has ended its half; this end will do so when the queue is empty.
    pub(crate) peer_finished: bool,
    write_ended: bool,
    /// Whether the far side has reset the stream: what it sent before is delivered to the process, then the
    /// reset follows.
    pub(crate) is_last: bool,
    pub(in crate::site) queue: Queue,
    /// Bytes of its preface that were peeked at and still have to be taken off the socket.
    pub(in crate::site) preface: usize,
    /// Whether it belongs to a process that the job's launcher has asked for.
    pub(in crate::site) of_launcher: bool,
}

impl Leg {
    pub(crate) fn new(
        socket: Socket,
        pair: PairKey,
        id: StreamId,
        (token, weight): (Token, u32),
        generation: u64,
        stage: Stage,
        arena: &Arena,
    ) -> Leg {
        Leg {
            of_launcher: matches!(stage, Stage::Spawning | Stage::Starting),
            socket,
            pair,
            id,
            token,
            weight,
            generation,
            begun: Instant::now(),
            greets_late: false,
            stage,
            lingers: false,
            // A socket may have become readable before it was registered here.
            readable: true,
            end_known: false,
            has_urgent: false,
            broken: false,
            scheduled: false,
            sent_bytes: 0,
            received_bytes: 0,
            pace: Pace::default(),
            read_ended: false,
            peer_finished: false,
            write_ended: false,
            is_last: false,
            queue: Queue::new(arena),
            preface: 0,
        }
    }

    /// Gathers what the next worker needs to know, except the bytes that wait to be written.
    pub(in crate::site) fn keep(&self) -> KeptLeg {
        KeptLeg {
            descriptor: self.socket.as_fd().as_raw_fd(),
            dialled: self.socket.is_dialled(),
            of_launcher: self.of_launcher,
            pair: self.pair.0,
            stream: self.id.0,
            token: self.token.0,
            weight: self.weight,
            generation: self.generation,
            lingers: self.lingers,
            stage: match &self.stage {
                Stage::Connecting { opening } => KeptStage::Connecting {
                    opening: opening.clone(),
                },
                Stage::Greeting(greeting) => KeptStage::Greeting(greeting.clone()),
                Stage::Awaiting => KeptStage::Awaiting,
                Stage::Asked => KeptStage::Asked,
                Stage::Spawning => KeptStage::Spawning,
                // A hand-over waits until its process runs.
                Stage::Starting | Stage::Open => KeptStage::Open,
            },
            end_known: self.end_known,
            broken: self.broken,
            sent_bytes: self.sent_bytes,
            received_bytes: self.received_bytes,
            read_ended: self.read_ended,
            peer_finished: self.peer_finished,
            write_ended: self.write_ended,
            preface: self.preface,
            queue: Vec::new(),
        }
    }

    /// Makes a leg that is not registered yet. When it is, the kernel reports again what it has already
    /// reported about the socket.
    pub(crate) fn inherit(kept: KeptLeg, arena: &Arena) -> Result<Leg, InheritError> {
        let stream = TcpStream::from_std(descriptor(kept.descriptor)?.into());
        let socket = Socket::inherit(stream, kept.dialled);
        let stage = match kept.stage {
            KeptStage::Connecting { opening } => Stage::Connecting { opening },
            KeptStage::Greeting(greeting) => Stage::Greeting(greeting),
            KeptStage::Awaiting => Stage::Awaiting,
            KeptStage::Asked => Stage::Asked,
            KeptStage::Spawning => Stage::Spawning,
            KeptStage::Open => Stage::Open,
        };
        let (id, job) = (StreamId(kept.stream), (Token(kept.token), kept.weight));
        let mut queue = Queue::new(arena);
        queue.extend(&kept.queue);
        Ok(Leg {
            lingers: kept.lingers,
            end_known: kept.end_known,
            broken: kept.broken,
            sent_bytes: kept.sent_bytes,
            received_bytes: kept.received_bytes,
            read_ended: kept.read_ended,
            peer_finished: kept.peer_finished,
            write_ended: kept.write_ended,
            queue,
            preface: kept.preface,
            of_launcher: kept.of_launcher,
            // Nobody knows when the connection began.
            greets_late: true,
            ..Leg::new(socket, PairKey(kept.pair), id, job, kept.generation, stage, arena)
        })
    }

    /// Queues it among the legs of its pair that are to be read.
    pub(crate) fn take_turn(&mut self, key: LegKey, turns: &mut Turns, now: Instant) {
        self.scheduled = true;
        if self.pace.is_urgent(now) {
            turns.push_urgent(key.0);
        } else {
            turns.push_bulk(key.0, self.token, self.weight);
        }
    }

    /// Takes bytes from the tunnel; returns how many have been passed on to the process.
    pub(crate) fn deliver(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.received_bytes += bytes.len() as u64;
        if self.broken {
            return Ok(bytes.len());
        }
        let mut written = 0;
        if self.queue.is_empty() && matches!(self.stage, Stage::Open) {
            while written < bytes.len() {
                match self.socket.write(&bytes[written..]) {
                    Ok(count) => written += count,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
        }
        self.queue.extend(&bytes[written..]);
        Ok(written)
    }

    /// Writes the bytes that wait, and ends this direction if the far side has ended; returns how many bytes
    /// were passed on.
    pub(crate) fn flush(&mut self) -> io::Result<usize> {
        if !matches!(self.stage, Stage::Open) || self.broken {
            return Ok(0);
        }
        let mut written = 0;
        while !self.queue.is_empty() {
            match self.socket.write(self.queue.first()) {
                Ok(count) => {
                    self.queue.take(count);
                    written += count;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if self.queue.is_empty() && self.peer_finished && !self.write_ended {
            self.write_ended = true;
            self.socket.shutdown_write()?;
        }
        Ok(written)
    }

    /// Notes that the destination has accepted, or runs. The preface is sent first; if there is none, bytes
    /// may flow.
    pub(crate) fn connected(&mut self) -> io::Result<()> {
        if let Stage::Connecting {
            opening: Some(Opening { preface, answer }),
        } = std::mem::replace(&mut self.stage, Stage::Open)
        {
            self.stage = Stage::Greeting(Greeting { expected: answer });
            self.write_first(&preface)?;
            // The handshake is over. The process's first bytes, its answer, must not wait for a timer,
            // because its next bytes may wait for the answer's acknowledgement (Nagle's rule).
            socket2::SockRef::from(self.socket.stream()).set_tcp_quickack(true)?;
        }
        Ok(())
    }

    /// Reads the process's answer; returns whether it has proved that the process belongs to the job, and
    /// bytes may flow. The answer stays in the socket until it is complete and right: once it was taken off,
    /// that is known.
    pub(crate) fn hear_answer(&mut self) -> io::Result<bool> {
        let Stage::Greeting(greeting) = &self.stage else {
            return Ok(false);
        };
        let mut heard = [0; ANSWER_BYTES];
        match self.socket.peek(&mut heard) {
            Ok(ANSWER_BYTES) => {}
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) if self.end_known => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error),
        }
        // A guess is right once in 2^64 connections; how long the comparison takes reveals nothing useful
        // about a tag that is used once.
        if heard != greeting.expected {
            return Err(io::ErrorKind::InvalidData.into());
        }
        self.socket.take_off(ANSWER_BYTES)?;
        self.stage = Stage::Open;
        Ok(true)
    }

    /// Takes the preface that was peeked at off the socket.
    pub(in crate::site) fn take_preface_off(&mut self) -> io::Result<()> {
        let count = std::mem::take(&mut self.preface);
        self.socket.take_off(count)
    }

    /// Tells a waiting shim what happened to its connection, and an agent why site `far` started no process.
    /// A failure that is told beside the stream is handled by `refused`.
    pub(crate) fn verdict(&mut self, verdict: Verdict, far: &str) -> io::Result<()> {
        self.take_preface_off()?;
        match (std::mem::replace(&mut self.stage, Stage::Open), verdict) {
            (Stage::Awaiting, verdict) => self.write_first(&verdict.encode()),
            (Stage::Asked, verdict) => self.socket.send_urgent(verdict.code()),
            (Stage::Spawning, Verdict::Failed(reason)) => {
                self.write_first(&error_frame(&format!("at {far}, {}", why_no_process(reason))))
            }
            (Stage::Spawning | Stage::Open, _) => Ok(()),
            (begun @ (Stage::Connecting { .. } | Stage::Greeting(_) | Stage::Starting), _) => {
                self.stage = begun;
                Ok(())
            }
        }
    }

    /// Writes a few bytes to a socket to which nothing was written yet: they fit into its buffer, or the
    /// socket is broken.
    pub(crate) fn write_first(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self.socket.write(bytes) {
            Ok(count) if count == bytes.len() => Ok(()),
            Ok(_) => Err(io::ErrorKind::WriteZero.into()),
            Err(error) => Err(error),
        }
    }

    /// Whether the destination has yet to answer.
    pub(crate) fn is_connecting(&self) -> bool {
        matches!(self.stage, Stage::Connecting { .. })
    }

    /// Whether the process has yet to prove that it belongs to the job.
    pub(crate) fn is_greeting(&self) -> bool {
        matches!(self.stage, Stage::Greeting(_))
    }

    /// Whether bytes wait for a process that has yet to prove itself.
    pub(crate) fn owes(&self) -> bool {
        self.is_greeting() && !self.queue.is_empty()
    }

    /// Whether nobody reads or writes at the other end of the socket yet.
    pub(crate) fn is_to_come(&self) -> bool {
        self.is_connecting() || self.is_greeting() || matches!(self.stage, Stage::Starting)
    }

    /// Whether both directions have ended.
    pub(crate) fn is_done(&self) -> bool {
        self.read_ended && self.write_ended
    }
}

/// What the user of a job is told if the gateway of a node's site started nothing there.
fn why_no_process(reason: Reason) -> &'static str {
    match reason {
        Reason::Denied => {
            "the gateway of its site refused: it starts processes only on its listed nodes and those of the job's allocation, only for \
             jobs of sites named by jobs in [accept] there, and gets allocations only for sites named by from in [batch]"
        }
        Reason::Exhausted => {
            "the gateway of its site starts no more processes for this job, because of max_processes in [accept] there, the slots \
             of its listed nodes, max_allocations in [batch], or its host's limits"
        }
        other => other.text(),
    }
}

#[derive(Serialize, Deserialize)]
pub(crate) struct KeptLeg {
    pub(crate) descriptor: RawFd,
    /// Whether this gateway has made the connection.
    pub(crate) dialled: bool,
    pub(crate) of_launcher: bool,
    pub(crate) pair: usize,
    pub(crate) stream: u32,
    pub(crate) token: [u8; 16],
    pub(crate) weight: u32,
    pub(crate) generation: u64,
    pub(crate) lingers: bool,
    pub(crate) stage: KeptStage,
    pub(crate) end_known: bool,
    pub(crate) broken: bool,
    pub(crate) sent_bytes: u64,
    pub(crate) received_bytes: u64,
    pub(crate) read_ended: bool,
    pub(crate) peer_finished: bool,
    pub(crate) write_ended: bool,
    pub(crate) preface: usize,
    /// Bytes that wait; for a next worker, what is written down is only where they are.
    #[serde(skip)]
    pub(crate) queue: Vec<u8>,
}

#[derive(Serialize, Deserialize)]
pub(crate) enum KeptStage {
    Connecting { opening: Option<Opening> },
    Greeting(Greeting),
    Awaiting,
    Spawning,
    Open,
    Asked,
}
