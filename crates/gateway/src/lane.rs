//! One connection to another gateway, with the tunnel whose only lane it is.
//!
//! Sending: control frames first, then the legs that have something to say, in turn, each read straight into the
//! output buffer behind its frame header. Receiving: pieces are handed to the legs from the input buffer. Payload is
//! copied once in each direction between kernel and process, and nowhere else while readers keep up.

use crate::gateway::{Class, Gateway};
use crate::leg::Leg;
use causeway_tunnel::frame::{HEADER_BYTES, LaneReader};
use causeway_tunnel::{MAX_PAYLOAD, ProtocolError, StreamId, Tunnel};
use causeway_wire::Reason;
use mio::net::TcpStream;
use std::collections::{HashMap, VecDeque};
use std::io::{self, Read, Write};
use std::net::SocketAddr;

/// Room for four of the largest frames: enough to keep the kernel busy between two rounds of the loop.
const OUT_BYTES: usize = 4 * (HEADER_BYTES + MAX_PAYLOAD);

/// What one read takes from the kernel at most. Larger brings nothing measurable and delays other lanes.
const IN_BYTES: usize = 256 * 1024;

/// Bytes that may wait unsent in the kernel; see `socket::set_unsent_low_water`. A millisecond at 1 Gbit/s.
pub(crate) const UNSENT_BYTES: u32 = 128 * 1024;

/// Reads or fillings of one lane before the others get their turn.
const ROUNDS: usize = 8;

pub(crate) struct Lane {
    pub(crate) socket: TcpStream,
    pub(crate) site: String,
    pub(crate) peer: SocketAddr,
    /// This gateway dialled.
    pub(crate) dialled: bool,
    pub(crate) tunnel: Tunnel,
    pub(crate) legs: HashMap<StreamId, usize>,
    /// Legs that may have bytes and credit.
    pub(crate) ready: VecDeque<usize>,
    pub(crate) congestion_control: String,
    pub(crate) sent_bytes: u64,
    pub(crate) received_bytes: u64,
    reader: LaneReader,
    input: Vec<u8>,
    filled: usize,
    output: Box<[u8]>,
    start: usize,
    end: usize,
    writable: bool,
}

/// Why a lane ends.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LaneEnd {
    #[error("the far gateway closed the connection")]
    Closed,
    #[error("connection lost: {0}")]
    Io(#[from] io::Error),
    #[error("protocol error: {0}")]
    Protocol(#[from] ProtocolError),
    #[error("{0}")]
    Refused(String),
}

impl Lane {
    pub(crate) fn new(
        socket: TcpStream,
        site: String,
        peer: SocketAddr,
        dialled: bool,
        tunnel: Tunnel,
        rest: &[u8],
    ) -> Lane {
        let mut input = vec![0; IN_BYTES];
        input[..rest.len()].copy_from_slice(rest);
        Lane {
            socket,
            site,
            peer,
            dialled,
            tunnel,
            legs: HashMap::new(),
            ready: VecDeque::new(),
            congestion_control: String::new(),
            sent_bytes: 0,
            received_bytes: 0,
            reader: LaneReader::default(),
            input,
            filled: rest.len(),
            output: vec![0; OUT_BYTES].into_boxed_slice(),
            start: 0,
            end: 0,
            writable: true,
        }
    }

    /// Moves control frames into the output; false when some had no room.
    fn take_control(&mut self) -> bool {
        let control = self.tunnel.control();
        let count = control.len().min(self.output.len() - self.end);
        self.output[self.end..self.end + count].copy_from_slice(&control[..count]);
        control.drain(..count);
        self.end += count;
        control.is_empty()
    }

    fn room(&self) -> usize {
        self.output.len() - self.end
    }

    /// Writes until the output is empty or the kernel has enough.
    fn write_out(&mut self) -> io::Result<()> {
        while self.writable && self.start < self.end {
            match self.socket.write(&self.output[self.start..self.end]) {
                Ok(count) => self.start += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.writable = false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if self.room() < HEADER_BYTES + MAX_PAYLOAD && self.start > 0 {
            self.output.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        Ok(())
    }

    /// Reads one leg into the output. What became of it: see [`Filled`].
    fn fill_from(&mut self, leg: &mut Leg) -> Filled {
        let most = self.tunnel.sendable(leg.id);
        if most == 0 || leg.read_ended || !leg.readable {
            return Filled::Waits;
        }
        let body = self.end + HEADER_BYTES;
        match leg.socket.read(&mut self.output[body..body + most]) {
            Ok(0) => Filled::Ended,
            Ok(count) => {
                self.output[self.end..body].copy_from_slice(&self.tunnel.data_header(leg.id, count));
                self.end = body + count;
                self.sent_bytes += count as u64;
                // A short read of a stream socket has emptied it: the next edge will tell (epoll(7), question 9), unless
                // the edge that told of the end has been and gone.
                leg.readable = count == most || leg.end_known;
                if leg.readable { Filled::More } else { Filled::Waits }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                leg.readable = false;
                Filled::Waits
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Filled::More,
            Err(_) => Filled::Broken,
        }
    }
}

/// What one turn of a leg brought.
enum Filled {
    /// It may have more.
    More,
    /// It has no bytes or no credit now.
    Waits,
    /// The process ended its half.
    Ended,
    /// The connection with the process broke.
    Broken,
}

impl Gateway {
    /// The kernel says that a lane is readable or writable.
    pub(crate) fn on_lane(&mut self, key: usize, readable: bool, writable: bool) {
        let Some(lane) = self.lanes.get_mut(key) else {
            return;
        };
        lane.writable |= writable;
        self.touch(key);
        if readable {
            self.receive(key);
        }
    }

    /// Takes in what has arrived.
    pub(crate) fn receive(&mut self, key: usize) {
        match self.try_receive(key) {
            Ok(true) => self.unread.push(key),
            Ok(false) => {}
            Err(end) => self.close_lane(key, &end),
        }
    }

    /// True when there may be more to read.
    fn try_receive(&mut self, key: usize) -> Result<bool, LaneEnd> {
        for _ in 0..ROUNDS {
            let Some(lane) = self.lanes.get_mut(key) else {
                return Ok(false);
            };
            match lane.socket.read(&mut lane.input[lane.filled..]) {
                Ok(0) => return Err(LaneEnd::Closed),
                Ok(count) => lane.filled += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.into()),
            }
            self.digest(key)?;
        }
        Ok(true)
    }

    /// Acts on the whole frames of a lane's input and keeps the rest.
    pub(crate) fn digest(&mut self, key: usize) -> Result<(), LaneEnd> {
        let Some(lane) = self.lanes.get_mut(key) else {
            return Ok(());
        };
        // Out of the lane while its events are handled: they may touch any part of the gateway.
        let mut input = std::mem::take(&mut lane.input);
        let filled = lane.filled;
        let mut rest = &input[..filled];
        let mut result = Ok(());
        while let Some(lane) = self.lanes.get_mut(key) {
            let event = match lane.reader.next(&mut rest) {
                Ok(None) => break,
                Ok(Some(piece)) => lane.tunnel.on_piece(piece),
                Err(error) => Err(error),
            };
            result = match event {
                Ok(None) => continue,
                Ok(Some(event)) => self.on_tunnel_event(key, event),
                Err(error) => Err(error.into()),
            };
            if result.is_err() {
                break;
            }
        }
        let left = rest.len();
        input.copy_within(filled - left..filled, 0);
        if let Some(lane) = self.lanes.get_mut(key) {
            lane.input = input;
            lane.filled = left;
        }
        result
    }

    /// Fills and writes a lane until it has nothing to send, the kernel has enough, or others must have their turn.
    pub(crate) fn pump(&mut self, key: usize) {
        for _ in 0..ROUNDS {
            let Some(lane) = self.lanes.get_mut(key) else {
                return;
            };
            let all = lane.take_control();
            if all {
                self.fill(key);
            }
            let Some(lane) = self.lanes.get_mut(key) else {
                return;
            };
            if let Err(error) = lane.write_out() {
                return self.close_lane(key, &error.into());
            }
            if !lane.writable
                || (lane.ready.is_empty() && lane.tunnel.control().is_empty() && lane.start == lane.end)
            {
                return;
            }
        }
        self.touch(key);
    }

    fn fill(&mut self, key: usize) {
        loop {
            let Some(lane) = self.lanes.get_mut(key) else {
                return;
            };
            if lane.room() < HEADER_BYTES + MAX_PAYLOAD {
                return;
            }
            let Some(leg_key) = lane.ready.pop_front() else {
                return;
            };
            let Some(leg) = self
                .legs
                .get_mut(leg_key)
                .filter(|leg| leg.lane == key && leg.scheduled)
            else {
                continue;
            };
            leg.scheduled = false;
            let id = leg.id;
            match lane.fill_from(leg) {
                Filled::More => {
                    leg.scheduled = true;
                    lane.ready.push_back(leg_key);
                }
                Filled::Waits => {}
                Filled::Ended => {
                    leg.read_ended = true;
                    lane.tunnel.finish(id);
                    if leg.is_done() {
                        self.drop_leg(leg_key);
                    }
                }
                Filled::Broken => {
                    lane.tunnel.reset(id, Reason::Reset);
                    self.drop_leg(leg_key);
                }
            }
        }
    }

    /// Ends a lane and, with it, the streams of its tunnel.
    pub(crate) fn close_lane(&mut self, key: usize, end: &LaneEnd) {
        let Some(mut lane) = self.lanes.try_remove(key) else {
            return;
        };
        let _ = self.poll.registry().deregister(&mut lane.socket);
        let streams = lane.legs.len();
        self.report.say(format_args!(
            "tunnel to {} at {} is down: {end}; {streams} streams ended",
            lane.site, lane.peer
        ));
        for leg in lane.legs.into_values() {
            self.abort_leg(leg, Reason::NoTunnel);
        }
        if self.tunnels.get(&lane.site) == Some(&key) {
            self.tunnels.remove(&lane.site);
            self.on_site_gone(&lane.site, &end.to_string());
        }
    }

    pub(crate) fn lane_token(key: usize) -> mio::Token {
        Class::Lane.token(key)
    }
}
