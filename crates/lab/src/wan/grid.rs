//! The WAN as a fabric: ports are sites, each pair of sites may have a link, and packets are routed by
//! destination address.

use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use super::WanError;
use super::WanTotals;
use super::link::{Direction, Verdict, split_mix};
use super::packet::{Packet, Piece};
use super::pool::Pool;
use super::pump::{Deliver, Fabric, PumpReport};
use super::route::{Routes, destination};
use super::spec::{FRAMING_BYTES, LinkChange, LinkSpec, LinkStats};
use super::stats::link_stats;

/// What may be asked of the running WAN.
pub(crate) enum GridRequest {
    Change {
        between: [String; 2],
        change: LinkChange,
        reply: Sender<Result<LinkSpec, WanError>>,
    },
    Stats {
        reply: Sender<(Vec<LinkStats>, WanTotals)>,
    },
}

struct PairLink {
    sites: [usize; 2],
    spec: LinkSpec,
    /// First to second, second to first.
    directions: [Direction<Segment>; 2],
}

/// What a link carries: one packet of the path's size, which shares the buffer that it was read with.
#[derive(Debug)]
struct Segment {
    packet: Arc<Packet>,
    index: usize,
}

/// Segments of one packet that arrive in one turn, with none missing between them: they are written at once.
struct Run {
    packet: Arc<Packet>,
    segments: Range<usize>,
}

impl Run {
    fn of(segment: Segment) -> Self {
        Run {
            packet: segment.packet,
            segments: segment.index..segment.index + 1,
        }
    }

    fn is_followed_by(&self, segment: &Segment) -> bool {
        self.segments.end == segment.index && Arc::ptr_eq(&self.packet, &segment.packet)
    }
}

/// All links of a grid.
pub(crate) struct Grid {
    sites: Vec<String>,
    routes: Routes,
    links: Vec<PairLink>,
    /// `from * sites + to` -> (link, direction).
    ways: Vec<Option<(usize, usize)>>,
    no_route_packets: u64,
    no_link_packets: u64,
}

impl Grid {
    pub(crate) fn new(sites: Vec<String>, routes: Routes) -> Self {
        let ways = vec![None; sites.len() * sites.len()];
        Grid {
            sites,
            routes,
            links: Vec::new(),
            ways,
            no_route_packets: 0,
            no_link_packets: 0,
        }
    }

    /// Joins two sites.
    pub(crate) fn join(&mut self, between: &[String; 2], spec: LinkSpec) -> Result<(), WanError> {
        let sites = [self.site(&between[0])?, self.site(&between[1])?];
        spec.check().map_err(|source| WanError::Spec {
            a: between[0].clone(),
            b: between[1].clone(),
            source,
        })?;
        if sites[0] == sites[1] || self.ways[self.way(sites[0], sites[1])].is_some() {
            return Err(WanError::LinkTwice {
                a: between[0].clone(),
                b: between[1].clone(),
            });
        }
        let link = self.links.len();
        let (there, back) = (self.way(sites[0], sites[1]), self.way(sites[1], sites[0]));
        self.ways[there] = Some((link, 0));
        self.ways[back] = Some((link, 1));
        let directions = [
            Direction::new(&spec, spec.seed),
            Direction::new(&spec, split_mix(!spec.seed)),
        ];
        self.links.push(PairLink {
            sites,
            spec,
            directions,
        });
        Ok(())
    }

    fn way(&self, from: usize, to: usize) -> usize {
        from * self.sites.len() + to
    }

    fn site(&self, name: &str) -> Result<usize, WanError> {
        self.sites
            .iter()
            .position(|site| site == name)
            .ok_or_else(|| WanError::UnknownSite {
                site: name.into(),
                known: self.sites.join(", "),
            })
    }

    fn change(
        &mut self,
        between: &[String; 2],
        change: &LinkChange,
        now_ns: u64,
        pool: &mut Pool,
    ) -> Result<LinkSpec, WanError> {
        let [a, b] = between;
        let way = self.way(self.site(a)?, self.site(b)?);
        let Some((link, _)) = self.ways[way] else {
            return Err(WanError::NoLink {
                a: a.clone(),
                b: b.clone(),
            });
        };
        let link = &mut self.links[link];
        let spec = link.spec.with(change);
        spec.check().map_err(|source| WanError::Spec {
            a: a.clone(),
            b: b.clone(),
            source,
        })?;
        for direction in &mut link.directions {
            direction
                .change(&spec, now_ns)
                .into_iter()
                .for_each(|lost| pool.give_share(lost.packet));
        }
        link.spec = spec.clone();
        Ok(spec)
    }

    fn stats(&self, report: &PumpReport) -> (Vec<LinkStats>, WanTotals) {
        let mut stats = Vec::with_capacity(2 * self.links.len());
        for link in &self.links {
            let [a, b] = link.sites.map(|site| self.sites[site].as_str());
            stats.push(link_stats(a, b, &link.directions[0].counters()));
            stats.push(link_stats(b, a, &link.directions[1].counters()));
        }
        let totals = WanTotals {
            cpu: report.cpu,
            wakeups: report.wakeups,
            no_route_packets: self.no_route_packets,
            no_link_packets: self.no_link_packets,
            lost_ports: report.lost_ports,
            priority: report.priority,
        };
        (stats, totals)
    }
}

impl Fabric for Grid {
    type Request = GridRequest;

    fn on_packet(&mut self, from: usize, packet: Packet, now_ns: u64, pool: &mut Pool) {
        let Some(to) = destination(packet.bytes()).and_then(|address| self.routes.port(address)) else {
            self.no_route_packets += 1;
            return pool.give(packet);
        };
        let Some((link, direction)) = self.ways[self.way(from, to)] else {
            self.no_link_packets += 1;
            return pool.give(packet);
        };
        let direction = &mut self.links[link].directions[direction];
        let packet = Arc::new(packet);
        for index in 0..packet.segments() {
            let wire_bytes = packet.segment_bytes(index) as u64 + FRAMING_BYTES;
            let packet = Arc::clone(&packet);
            if let Verdict::Dropped(_, lost) = direction.offer(wire_bytes, Segment { packet, index }, now_ns)
            {
                pool.give_share(lost.packet);
            }
        }
        pool.give_share(packet);
    }

    fn next_due_ns(&self) -> Option<u64> {
        self.links
            .iter()
            .flat_map(|link| &link.directions)
            .filter_map(Direction::next_due_ns)
            .min()
    }

    fn deliver_due(&mut self, now_ns: u64, pool: &mut Pool, deliver: &mut Deliver<'_>) {
        for link in &mut self.links {
            for (direction, to) in link.directions.iter_mut().zip([link.sites[1], link.sites[0]]) {
                deliver_runs(direction, now_ns, pool, &mut |piece| deliver(to, piece));
            }
        }
    }

    fn on_request(&mut self, request: GridRequest, now_ns: u64, report: &PumpReport, pool: &mut Pool) {
        // The asker may be gone; the change stays.
        match request {
            GridRequest::Change {
                between,
                change,
                reply,
            } => {
                let _ = reply.send(self.change(&between, &change, now_ns, pool));
            }
            GridRequest::Stats { reply } => {
                let _ = reply.send(self.stats(report));
            }
        }
    }
}

/// Delivers what has arrived: each segment when it is due or later, never earlier.
fn deliver_runs(
    direction: &mut Direction<Segment>,
    now_ns: u64,
    pool: &mut Pool,
    deliver: &mut dyn FnMut(&Piece<'_>) -> bool,
) {
    let mut next = direction.poll_due(now_ns);
    while let Some(segment) = next.take() {
        let mut run = Run::of(segment);
        while let Some(segment) = direction.poll_due(now_ns) {
            if !run.is_followed_by(&segment) {
                next = Some(segment);
                break;
            }
            run.segments.end += 1;
        }
        let piece = run.packet.piece(run.segments);
        let written = deliver(&piece);
        direction.on_delivered(piece.packets(), piece.packet_bytes(), written);
        pool.give_share(run.packet);
    }
}

#[cfg(test)]
#[path = "grid_tests.rs"]
mod tests;
