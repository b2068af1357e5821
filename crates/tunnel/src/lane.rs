//! One lane, as the core sees it: what it carries, what was acknowledged on it in each direction, and when.

use crate::frame::{HEADER_BYTES, Header, Kind, LaneReader, ProtocolError};
use crate::ring::{Ring, Shelf};
use crate::settings::Settings;
use std::time::{Duration, Instant};

/// How many bytes cause an immediate acknowledgement: 2 ms at 1 Gbit/s, so that the sender frees its memory
/// soon, but is not woken often.
const ACK_BYTES: u64 = 256 * 1024;

/// How long an acknowledgement waits for others. This is well below [`MIN_STALL`], so that it is never
/// mistaken for silence.
const ACK_DELAY: Duration = Duration::from_millis(40);

/// How long a lane may be without progress (but at least four round trips) before its frames are sent again
/// on another. TCP's own first retransmission after a lost tail comes after 200 ms or more.
const MIN_STALL: Duration = Duration::from_millis(300);

/// How long a lane may be silent while an answer is due (but at least four round trips) before it gets a
/// rival. By then TCP has retransmitted three times, and does so ever more rarely: if the network is back
/// after 7 s, a lane whose timeout began at 0.2 s may stand still until 12.6 s, while the first packets of a
/// new connection get through at once. It must not be shorter: a far gateway that gets no processor for a
/// second should not be dialled.
const SILENCE: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(crate) struct Lane {
    pub(crate) ring: Ring,
    pub(crate) reader: LaneReader,
    /// How many bytes have come on the lane, and how many of them have been acknowledged to the far side.
    received: u64,
    acknowledged: u64,
    /// When the first byte arrived that has not been acknowledged.
    owes_since: Option<Instant>,
    /// The end of the last queued frame that wants an acknowledgement.
    asked: u64,
    /// Since when an acknowledgement has been due without progress.
    waits_since: Option<Instant>,
    heard: Instant,
    spoke: Instant,
    /// The end of a frame, and when it was sent.
    probe: Option<(u64, Instant)>,
    round_trip: Duration,
    /// How far the frames were given to other lanes.
    pub(crate) retransmitted: u64,
    /// Whether there was no progress for too long: other lanes are preferred.
    pub(crate) stalled: bool,
    /// Whether the lane is preferred to others.
    pub(crate) favoured: bool,
    /// Whether the lane was reported as silent and has not been heard since.
    pub(crate) silent: bool,
}

impl Lane {
    pub(crate) fn new(now: Instant, shelf: Shelf) -> Lane {
        Lane {
            ring: Ring::new(shelf),
            reader: LaneReader::default(),
            received: 0,
            acknowledged: 0,
            owes_since: None,
            asked: 0,
            waits_since: None,
            heard: now,
            spoke: now,
            probe: None,
            round_trip: Duration::ZERO,
            retransmitted: 0,
            stalled: false,
            favoured: false,
            silent: false,
        }
    }

    /// Handles `count` bytes that came on the lane; `asks` says whether some of them want an acknowledgement.
    pub(crate) fn on_received(&mut self, count: u64, asks: bool, now: Instant) {
        self.received += count;
        self.heard = now;
        self.silent = false;
        if asks && self.owes_since.is_none() {
            self.owes_since = Some(now);
        }
    }

    /// Handles the far side's acknowledgement of what this end has sent up to `position`.
    pub(crate) fn on_ack(&mut self, position: u64, now: Instant) -> Result<(), ProtocolError> {
        let before = self.ring.acked();
        if !self.ring.on_ack(position) {
            return Err(ProtocolError::Ack(position));
        }
        if position <= before {
            return Ok(());
        }
        if let Some((_, left)) = self.probe.take_if(|(end, _)| *end <= position) {
            let sample = now.saturating_duration_since(left);
            // This is a mean over eight samples, like TCP's (RFC 6298); the first one is used as it is.
            self.round_trip = match self.round_trip {
                Duration::ZERO => sample,
                mean => (mean * 7 + sample) / 8,
            };
        }
        self.stalled = false;
        self.waits_since = self.is_waiting().then_some(now);
        Ok(())
    }

    /// Handles bytes that the kernel has accepted.
    pub(crate) fn on_sent(&mut self, count: usize, now: Instant) {
        self.ring.sent(count);
        if self.is_waiting() {
            self.waits_since.get_or_insert(now);
            if !self.silent {
                self.probe.get_or_insert((self.ring.sent_up_to(), now));
            }
        }
    }

    fn is_waiting(&self) -> bool {
        self.ring.acked() < self.asked.min(self.ring.sent_up_to())
    }

    /// Handles a frame in the ring that wants an acknowledgement.
    pub(crate) fn asked(&mut self, now: Instant) {
        self.asked = self.ring.end();
        self.spoke = now;
    }

    /// Whether an acknowledgement may wait no longer.
    pub(crate) fn owes_now(&self, now: Instant) -> bool {
        let Some(since) = self.owes_since else {
            return false;
        };
        self.received - self.acknowledged >= ACK_BYTES || now >= since + ACK_DELAY
    }

    /// Queues an acknowledgement if one is due.
    pub(crate) fn acknowledge(&mut self) {
        if self.owes_since.take().is_some() {
            self.acknowledged = self.received;
            self.ring.put(&frame(Kind::Ack, self.received));
        }
    }

    pub(crate) fn repeat_ack(&mut self) {
        self.owes_since = None;
        self.acknowledged = self.received;
        self.ring.put(&frame(Kind::Ack, self.received));
    }

    /// Pings an idle lane, if it is time.
    pub(crate) fn keep_alive(&mut self, settings: &Settings, now: Instant) {
        if now >= self.spoke + settings.keepalive {
            // A lane on which an answer is due already shows by it whether it is alive.
            if self.is_waiting() || self.ring.unsent_bytes() > 0 {
                self.spoke = now;
            } else {
                self.ring.put(&frame(Kind::Ping, 0));
                self.asked(now);
            }
        }
    }

    pub(crate) fn is_dead(&self, settings: &Settings, now: Instant) -> bool {
        self.dies_at(settings).is_some_and(|at| now >= at)
    }

    fn dies_at(&self, settings: &Settings) -> Option<Instant> {
        Some(self.waits_since?.max(self.heard) + settings.lane_timeout)
    }

    /// Returns when a rival is due, unless one was requested already.
    fn falls_silent_at(&self) -> Option<Instant> {
        let since = self.waits_since?.max(self.heard);
        (!self.silent).then_some(since + SILENCE.max(self.round_trip * 4))
    }

    /// Whether a silence has just begun; true once per silence.
    pub(crate) fn has_fallen_silent(&mut self, now: Instant) -> bool {
        let falls = self.falls_silent_at().is_some_and(|at| now >= at);
        if falls {
            self.silent = true;
            // The probe would measure the silence, not the path.
            self.probe = None;
        }
        falls
    }

    /// Returns when the frames on the lane are given to other lanes.
    pub(crate) fn stalls_at(&self) -> Option<Instant> {
        Some(self.waits_since? + MIN_STALL.max(self.round_trip * 4))
    }

    /// Whether the lane has frames that no other lane was given.
    pub(crate) fn has_more_to_retransmit(&self) -> bool {
        self.retransmitted.max(self.ring.acked()) < self.asked
    }

    /// Returns when this lane must be checked next.
    pub(crate) fn deadline(&self, settings: &Settings) -> Instant {
        let ack = self.owes_since.map(|since| since + ACK_DELAY);
        let keepalive = self.spoke + settings.keepalive;
        [ack, self.dies_at(settings), self.falls_silent_at()]
            .into_iter()
            .flatten()
            .fold(keepalive, Instant::min)
    }
}

fn frame(kind: Kind, position: u64) -> [u8; HEADER_BYTES] {
    Header {
        kind,
        detail: 0,
        length: 0,
        stream: 0,
        position,
    }
    .encode()
}
