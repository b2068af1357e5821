//! A learning Ethernet switch as a fabric: it learns from source addresses who is behind which port;
//! broadcast, multicast and unknown destinations are flooded. There is no spanning tree, and there are no
//! VLANs: a lab's LAN is one switch.

use std::collections::HashMap;
use std::sync::mpsc::Sender;

use super::link::{Direction, Verdict, split_mix};
use super::packet::Packet;
use super::pool::Pool;
use super::pump::{Deliver, Fabric, PumpReport};
use super::spec::{LinkSpec, LinkStats};
use super::stats::link_stats;

type Mac = [u8; 6];

/// What a frame takes on the wire beyond its own length, header included: preamble 8, frame check 4, gap 12.
pub(crate) const FRAME_OVERHEAD_BYTES: u64 = 24;

/// Most addresses that are remembered. A lab has some twenty nodes; beyond the bound, frames are flooded,
/// never lost.
const MAX_STATIONS: usize = 4096;

/// What may be asked of the running switch.
pub(crate) enum SwitchRequest {
    Stats {
        reply: Sender<(Vec<LinkStats>, PumpReport)>,
    },
}

/// The switch: one [`Direction`] towards each port, shared by all that send to it, as on a real switch.
pub(crate) struct Ethernet {
    ports: Vec<String>,
    outputs: Vec<Direction<Packet>>,
    stations: HashMap<Mac, usize>,
}

impl Ethernet {
    pub(crate) fn new(ports: Vec<String>, spec: &LinkSpec) -> Self {
        let outputs = (0..ports.len() as u64)
            .map(|port| Direction::new(spec, split_mix(port)))
            .collect();
        Ethernet {
            ports,
            outputs,
            stations: HashMap::new(),
        }
    }

    fn learn(&mut self, source: Mac, port: usize) {
        if is_group(source) {
            return;
        }
        if self.stations.len() < MAX_STATIONS || self.stations.contains_key(&source) {
            self.stations.insert(source, port);
        }
    }

    fn send(&mut self, to: usize, frame: Packet, now_ns: u64, pool: &mut Pool) {
        let wire_bytes = frame.bytes().len() as u64 + FRAME_OVERHEAD_BYTES;
        if let Verdict::Dropped(_, frame) = self.outputs[to].offer(wire_bytes, frame, now_ns) {
            pool.give(frame);
        }
    }
}

impl Fabric for Ethernet {
    type Request = SwitchRequest;

    fn on_packet(&mut self, from: usize, frame: Packet, now_ns: u64, pool: &mut Pool) {
        let Some((destination, source)) = addresses(frame.bytes()) else {
            return pool.give(frame);
        };
        self.learn(source, from);
        match self.stations.get(&destination) {
            Some(&to) if to == from => pool.give(frame),
            Some(&to) => self.send(to, frame, now_ns, pool),
            None => {
                for to in (0..self.ports.len()).filter(|&to| to != from) {
                    let copy = Packet::plain(pool.copy(frame.bytes()));
                    self.send(to, copy, now_ns, pool);
                }
                pool.give(frame);
            }
        }
    }

    fn next_due_ns(&self) -> Option<u64> {
        self.outputs.iter().filter_map(Direction::next_due_ns).min()
    }

    fn deliver_due(&mut self, now_ns: u64, pool: &mut Pool, deliver: &mut Deliver<'_>) {
        for (to, output) in self.outputs.iter_mut().enumerate() {
            while let Some(frame) = output.poll_due(now_ns) {
                let piece = frame.whole();
                let written = deliver(to, &piece);
                output.on_delivered(1, piece.packet_bytes(), written);
                pool.give(frame);
            }
        }
    }

    fn on_request(&mut self, request: SwitchRequest, _now_ns: u64, report: &PumpReport, _pool: &mut Pool) {
        let SwitchRequest::Stats { reply } = request;
        let stats = self.ports.iter().zip(&self.outputs);
        let stats = stats
            .map(|(port, output)| link_stats("switch", port, &output.counters()))
            .collect();
        // The asker may be gone.
        let _ = reply.send((stats, *report));
    }
}

/// Destination and source of a frame; `None` if it is too short to have both of them and a type.
fn addresses(frame: &[u8]) -> Option<(Mac, Mac)> {
    let header = frame.get(..14)?;
    Some((header[..6].try_into().ok()?, header[6..12].try_into().ok()?))
}

/// Broadcast and multicast addresses have the lowest bit of their first byte set; no station owns one.
fn is_group(address: Mac) -> bool {
    address[0] & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const A: Mac = [2, 0, 0, 0, 0, 1];
    const B: Mac = [2, 0, 0, 0, 0, 2];
    const ALL: Mac = [0xff; 6];

    fn switch() -> Ethernet {
        let spec = LinkSpec {
            rtt: Duration::from_millis(2),
            rate_bits_per_second: 1_000_000_000,
            queue_bytes: 100_000,
            loss: 0.0,
            seed: 0,
            up: true,
        };
        Ethernet::new(vec!["p0".into(), "p1".into(), "p2".into()], &spec)
    }

    fn frame(to: Mac, from: Mac) -> Packet {
        Packet::plain([&to[..], &from[..], &[8, 0], &[0; 46]].concat())
    }

    /// The ports at which a frame comes out, once everything is due.
    fn carried(switch: &mut Ethernet, from: usize, frame: Packet) -> Vec<usize> {
        switch.on_packet(from, frame, 0, &mut Pool::default());
        let mut out = Vec::new();
        switch.deliver_due(u64::MAX, &mut Pool::default(), &mut |to, _| {
            out.push(to);
            true
        });
        out
    }

    #[test]
    fn the_unknown_is_flooded_and_the_known_goes_to_its_port() {
        let mut switch = switch();
        assert_eq!(carried(&mut switch, 0, frame(B, A)), [1, 2]);
        assert_eq!(carried(&mut switch, 1, frame(A, B)), [0]);
        assert_eq!(carried(&mut switch, 0, frame(B, A)), [1]);
        assert_eq!(carried(&mut switch, 0, frame(ALL, A)), [1, 2]);
    }

    #[test]
    fn a_station_that_moves_is_found_at_its_new_port() {
        let mut switch = switch();
        carried(&mut switch, 0, frame(ALL, A));
        carried(&mut switch, 2, frame(ALL, A));
        assert_eq!(carried(&mut switch, 1, frame(A, B)), [2]);
        assert_eq!(carried(&mut switch, 2, frame(A, B)), [] as [usize; 0]);
    }

    #[test]
    fn group_addresses_are_never_learnt_and_stubs_are_dropped() {
        let mut switch = switch();
        carried(&mut switch, 0, frame(B, ALL));
        assert_eq!(carried(&mut switch, 1, frame(ALL, B)), [0, 2]);
        assert_eq!(
            carried(&mut switch, 1, Packet::plain(vec![0; 13])),
            [] as [usize; 0]
        );
    }

    #[test]
    fn two_senders_share_the_rate_of_the_port_they_send_to() {
        let mut switch = switch();
        let mut pool = Pool::default();
        switch.learn(B, 1);
        let mut long = frame(B, A).into_bytes();
        long.resize(1514, 0);
        for from in [0, 2] {
            switch.on_packet(from, Packet::plain(long.clone()), 0, &mut pool);
        }
        let one = 1538 * 8 + 1_000_000;
        assert_eq!(switch.next_due_ns(), Some(one));
        let mut arrived = 0;
        switch.deliver_due(one + 1538 * 8 - 1, &mut pool, &mut |_, _| {
            arrived += 1;
            true
        });
        assert_eq!((arrived, switch.next_due_ns()), (1, Some(one + 1538 * 8)));
    }
}
