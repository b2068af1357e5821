//! One direction of a link as pure arithmetic: serialisation, drop-tail queue, propagation, loss, cut.
//!
//! It has no sockets and no clock: packets and `now` (nanoseconds since any fixed start) go in, packets come
//! out when they are due. `pump` does the I/O, `grid` and `switch` own one [`Direction`] per way.
//!
//! ```text
//! offer -> loss? -> [ queue, bounded in bytes ] -> transmitter at `rate` -> propagation rtt/2 -> poll_due
//! ```

use std::collections::VecDeque;
use std::time::Duration;

use super::spec::LinkSpec;

/// Why a packet did not enter a direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dropped {
    /// The queue had no room for it.
    Queue,
    /// The packet was lost by the seeded random numbers.
    Loss,
    /// The link is down.
    Down,
}

/// What happens to an offered packet.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict<P> {
    /// The packet will come out of [`Direction::poll_due`] at this time, unless the link is cut or changed
    /// meanwhile.
    DueAt(u64),
    /// The packet is lost; the caller gets it back, to reuse its buffer.
    Dropped(Dropped, P),
}

/// What one direction has done since it was made. Bytes are those of the packets, without framing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    pub(crate) offered: u64,
    pub(crate) delivered: u64,
    pub(crate) delivered_bytes: u64,
    pub(crate) dropped_by_queue: u64,
    pub(crate) dropped_by_loss: u64,
    pub(crate) dropped_by_down: u64,
    pub(crate) reordered: u64,
    pub(crate) write_failed: u64,
    pub(crate) max_lateness_ns: u64,
}

/// One packet in flight. Always `starts <= departs <= due`.
#[derive(Debug)]
struct Travelling<P> {
    number: u64,
    wire_bytes: u64,
    /// When its first bit enters the wire: until then, it is in the queue.
    starts_ns: u64,
    /// When its last bit has entered the wire.
    departs_ns: u64,
    /// When it arrives.
    due_ns: u64,
    packet: P,
}

/// One direction of a link.
///
/// Invariants:
/// - `travelling` is in order of arrival, and its due times never decrease: nothing overtakes.
/// - the last `waiting` packets of `travelling` are the queue and hold `waiting_bytes` bytes on the wire;
///   the packet being serialised is not in the queue, so that a queue of 0 bytes still carries single
///   packets.
/// - the loss verdict depends only on the seed and on how many packets were offered before.
#[derive(Debug)]
pub(crate) struct Direction<P> {
    delay_ns: u64,
    rate_bits_per_second: u64,
    queue_bytes: u64,
    loss: f64,
    seed: u64,
    up: bool,
    travelling: VecDeque<Travelling<P>>,
    waiting: usize,
    waiting_bytes: u64,
    /// When the transmitter will have sent everything accepted so far.
    free_at_ns: u64,
    last_due_ns: u64,
    last_delivered: u64,
    counters: Counters,
}

impl<P> Direction<P> {
    /// A direction with nothing in flight. `seed` replaces the one in `spec`, because each direction needs
    /// its own.
    pub(crate) fn new(spec: &LinkSpec, seed: u64) -> Self {
        Direction {
            delay_ns: nanos(spec.rtt) / 2,
            rate_bits_per_second: spec.rate_bits_per_second,
            queue_bytes: spec.queue_bytes,
            loss: spec.loss,
            seed,
            up: spec.up,
            travelling: VecDeque::new(),
            waiting: 0,
            waiting_bytes: 0,
            free_at_ns: 0,
            last_due_ns: 0,
            last_delivered: 0,
            counters: Counters::default(),
        }
    }

    /// Hands over a packet that takes `wire_bytes` on the wire, framing included.
    pub(crate) fn offer(&mut self, wire_bytes: u64, packet: P, now_ns: u64) -> Verdict<P> {
        let number = self.counters.offered;
        self.counters.offered += 1;
        self.advance(now_ns);
        if !self.up {
            self.counters.dropped_by_down += 1;
            return Verdict::Dropped(Dropped::Down, packet);
        }
        if strikes(self.seed, number, self.loss) {
            self.counters.dropped_by_loss += 1;
            return Verdict::Dropped(Dropped::Loss, packet);
        }
        let starts_ns = self.free_at_ns.max(now_ns);
        let waits = starts_ns > now_ns;
        if waits && self.waiting_bytes + wire_bytes > self.queue_bytes {
            self.counters.dropped_by_queue += 1;
            return Verdict::Dropped(Dropped::Queue, packet);
        }
        let departs_ns = starts_ns + serialisation_ns(wire_bytes, self.rate_bits_per_second);
        let due_ns = (departs_ns + self.delay_ns).max(self.last_due_ns);
        self.free_at_ns = departs_ns;
        self.last_due_ns = due_ns;
        if waits {
            self.waiting += 1;
            self.waiting_bytes += wire_bytes;
        }
        self.travelling.push_back(Travelling {
            number,
            wire_bytes,
            starts_ns,
            departs_ns,
            due_ns,
            packet,
        });
        Verdict::DueAt(due_ns)
    }

    /// Returns the time at which the next packet arrives, if any is in flight.
    pub(crate) fn next_due_ns(&self) -> Option<u64> {
        self.travelling.front().map(|first| first.due_ns)
    }

    /// The next packet that has arrived by `now`, in the order in which they were offered.
    pub(crate) fn poll_due(&mut self, now_ns: u64) -> Option<P> {
        if self.travelling.front()?.due_ns > now_ns {
            return None;
        }
        self.advance(now_ns);
        let arrived = self.travelling.pop_front()?;
        debug_assert!(self.waiting <= self.travelling.len());
        let lateness_ns = now_ns - arrived.due_ns;
        self.counters.max_lateness_ns = self.counters.max_lateness_ns.max(lateness_ns);
        // Impossible by construction, but counted, because "0 reordered" is reported as a finding.
        if self.counters.delivered > 0 && arrived.number < self.last_delivered {
            self.counters.reordered += 1;
        }
        self.last_delivered = arrived.number;
        Some(arrived.packet)
    }

    /// Notes whether the last `packets` that were polled, of `bytes` in all, reached their port.
    pub(crate) fn on_delivered(&mut self, packets: u64, bytes: u64, written: bool) {
        if written {
            self.counters.delivered += packets;
            self.counters.delivered_bytes += bytes;
        } else {
            self.counters.write_failed += packets;
        }
    }

    /// Uses the values of `spec` from `now` on, and returns the packets that a cut destroys.
    ///
    /// What is on the wire keeps its arrival time; what still waits for the transmitter leaves at the new
    /// rate. A shorter rtt lets later packets catch up with earlier ones, never overtake them. Going down
    /// loses everything in flight, as cutting a cable does. A smaller queue drops nothing that was already
    /// accepted.
    pub(crate) fn change(&mut self, spec: &LinkSpec, now_ns: u64) -> Vec<P> {
        self.advance(now_ns);
        let old_rate = std::mem::replace(&mut self.rate_bits_per_second, spec.rate_bits_per_second);
        self.delay_ns = nanos(spec.rtt) / 2;
        self.queue_bytes = spec.queue_bytes;
        self.loss = spec.loss;
        let cut = self.up && !spec.up;
        self.up = spec.up;
        if cut {
            return self.cut(now_ns);
        }
        self.reschedule(old_rate, now_ns);
        Vec::new()
    }

    /// Returns the counters of this direction.
    pub(crate) fn counters(&self) -> Counters {
        self.counters
    }

    /// Moves packets whose serialisation has begun out of the queue.
    fn advance(&mut self, now_ns: u64) {
        while self.waiting > 0 {
            let first = &self.travelling[self.travelling.len() - self.waiting];
            if first.starts_ns > now_ns {
                return;
            }
            self.waiting_bytes -= first.wire_bytes;
            self.waiting -= 1;
        }
    }

    fn cut(&mut self, now_ns: u64) -> Vec<P> {
        self.counters.dropped_by_down += self.travelling.len() as u64;
        self.waiting = 0;
        self.waiting_bytes = 0;
        self.free_at_ns = now_ns;
        self.last_due_ns = now_ns;
        self.travelling.drain(..).map(|lost| lost.packet).collect()
    }

    fn reschedule(&mut self, old_rate: u64, now_ns: u64) {
        let mut free_at_ns = self.free_at_ns.min(now_ns);
        let mut last_due_ns = 0;
        for moving in &mut self.travelling {
            if moving.departs_ns > now_ns {
                if moving.starts_ns <= now_ns {
                    let left = u128::from(moving.departs_ns - now_ns) * u128::from(old_rate);
                    moving.departs_ns = now_ns + (left / u128::from(self.rate_bits_per_second)) as u64;
                } else {
                    moving.starts_ns = free_at_ns;
                    moving.departs_ns =
                        free_at_ns + serialisation_ns(moving.wire_bytes, self.rate_bits_per_second);
                }
                moving.due_ns = (moving.departs_ns + self.delay_ns).max(last_due_ns);
                free_at_ns = moving.departs_ns;
            }
            last_due_ns = moving.due_ns;
        }
        self.free_at_ns = free_at_ns;
        self.last_due_ns = last_due_ns;
    }
}

/// Computes how long `wire_bytes` occupy a wire of `rate_bits_per_second`.
fn serialisation_ns(wire_bytes: u64, rate_bits_per_second: u64) -> u64 {
    // The largest packet (64 KiB) times 8e9 stays far below 2^64.
    wire_bytes * 8_000_000_000 / rate_bits_per_second
}

/// Whether packet `number` is lost: output `number` of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014) seeded
/// with `seed`, read as a fraction of one. Its state is a counter, so the verdict needs no history.
fn strikes(seed: u64, number: u64, loss: f64) -> bool {
    let bits = split_mix(seed.wrapping_add(number.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15)));
    // A double holds exactly 53 bits.
    ((bits >> 11) as f64) * (1.0 / (1u64 << 53) as f64) < loss
}

/// The output function of SplitMix64; it also derives the seed of the second direction from that of the
/// first.
pub(crate) fn split_mix(state: u64) -> u64 {
    let z = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX / 4)
}

#[cfg(test)]
#[path = "link_tests.rs"]
mod tests;
