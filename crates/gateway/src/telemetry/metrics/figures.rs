//! The list of metrics. `docs/checking.md` explains each; what is exported as a counter continues when lanes
//! and pairs end (`totals`).

use super::exposition::{Exposition, Kind};
use crate::driver::Driver;
use crate::telemetry::View;
use crate::tunnels::peers::totals::{LaneCounts, Totals};
use causeway_control::{LaneStatus, Status, TunnelStatus};

/// Name, help, and where the value comes from.
type Metric<T, V> = (&'static str, &'static str, fn(&T) -> V);
type SiteMetric = (&'static str, &'static str, fn(&Site<'_>) -> u64);

/// Gauges of the whole gateway.
const GAUGES: [Metric<Status, u64>; 5] = [
    ("causeway_streams", "Streams open now.", |status| {
        status.streams as u64
    }),
    (
        "causeway_streams_peak",
        "Most streams ever open at once.",
        |status| status.streams_peak as u64,
    ),
    (
        "causeway_jobs",
        "Jobs running now, those of other sites among them.",
        |status| status.jobs.len() as u64,
    ),
    (
        "causeway_resident_bytes",
        "Resident memory of the gateway.",
        |status| status.resident_bytes,
    ),
    (
        "causeway_relayed_connections",
        "Connections of two other sites carried now.",
        |status| status.relayed as u64,
    ),
];

/// Gauges of the tunnel to each other site.
const TUNNEL_GAUGES: [SiteMetric; 4] = [
    (
        "causeway_site_reachable",
        "1 where streams to the site can be opened, else 0.",
        |site| site.reachable.into(),
    ),
    (
        "causeway_tunnel_up",
        "1 where the tunnel has a lane, else 0.",
        |site| {
            site.tunnel
                .is_some_and(|tunnel| tunnel.down_seconds.is_none())
                .into()
        },
    ),
    ("causeway_tunnel_lanes", "Lanes that are up.", |site| {
        site.tunnel.map_or(0, |tunnel| tunnel.lanes.len() as u64)
    }),
    ("causeway_tunnel_streams", "Streams open now.", |site| {
        site.tunnel.map_or(0, |tunnel| tunnel.streams as u64)
    }),
];

const TUNNEL_COUNTERS: [Metric<Totals, u64>; 3] = [
    (
        "causeway_tunnel_sent_bytes_total",
        "Bytes of applications sent.",
        |totals| totals.sent_bytes,
    ),
    (
        "causeway_tunnel_received_bytes_total",
        "Bytes of applications received.",
        |totals| totals.received_bytes,
    ),
    (
        "causeway_tunnel_lanes_lost_total",
        "Lanes that ended while their tunnel went on.",
        |totals| totals.lanes_lost,
    ),
];

const LANE_COUNTERS: [Metric<LaneCounts, u64>; 8] = [
    (
        "causeway_lane_sent_bytes_total",
        "Bytes given to the kernel, frame headers and frames sent again among them.",
        |lane| lane.sent_bytes,
    ),
    (
        "causeway_lane_received_bytes_total",
        "Bytes taken from the kernel.",
        |lane| lane.received_bytes,
    ),
    (
        "causeway_lane_sent_segments_total",
        "TCP segments with data sent, those sent again among them.",
        |lane| lane.segments,
    ),
    (
        "causeway_lane_retransmitted_segments_total",
        "TCP segments sent again.",
        |lane| lane.retransmits,
    ),
    (
        "causeway_lane_timeouts_total",
        "Retransmission timeouts (kernel 6.7 and later).",
        |lane| lane.timeouts,
    ),
    (
        "causeway_lane_out_of_order_segments_total",
        "TCP segments that arrived out of order, each answered with a duplicate acknowledgement.",
        |lane| lane.out_of_order,
    ),
    (
        "causeway_lane_repaired_datagrams_total",
        "Datagrams lost on the way here that parity made up for (QUIC).",
        |lane| lane.repaired,
    ),
    (
        "causeway_lane_idle_restarts_total",
        "Times it sent after a pause that makes TCP start slowly again under any congestion control but BBR.",
        |lane| lane.idle_restarts,
    ),
];

/// Gauges of the lanes that are up.
const LANE_GAUGES: [Metric<LaneStatus, f64>; 4] = [
    (
        "causeway_lane_round_trip_seconds",
        "Smoothed round-trip time.",
        |lane| f64::from(lane.rtt_microseconds) / 1e6,
    ),
    (
        "causeway_lane_least_round_trip_seconds",
        "Least round-trip time seen.",
        |lane| f64::from(lane.least_rtt_microseconds) / 1e6,
    ),
    (
        "causeway_lane_rate_bits_per_second",
        "What the lane was seen to deliver: BBR's estimate, or the last acknowledged flight's.",
        |lane| lane.rate_bits_per_second as f64,
    ),
    (
        "causeway_lane_window_bytes",
        "Congestion window: bytes that may be on their way.",
        |lane| lane.window_bytes as f64,
    ),
];

/// Another site.
struct Site<'a> {
    name: &'a str,
    reachable: bool,
    /// The tunnel to it, if there is one now.
    tunnel: Option<&'a TunnelStatus>,
    /// Everything since the gateway's start, including what is going on now.
    total: Totals,
}

impl View<'_> {
    pub(super) fn exposition(&self, driver: &Driver) -> String {
        let peers = self.tunnels.peers().iter().map(|(_, peer)| peer);
        exposition(
            &self.status(driver),
            peers.map(|peer| (peer.site(), peer.totals())),
        )
    }
}

fn exposition<'a>(status: &'a Status, peers: impl Iterator<Item = (&'a str, &'a Totals)>) -> String {
    let sites: Vec<Site> = peers.map(|(name, totals)| site(status, name, totals)).collect();
    let mut text = Exposition::default();
    for (name, help, value) in GAUGES {
        text.family(Kind::Gauge, name, help).sample(&[], value(status));
    }
    text.family(
        Kind::Counter,
        "causeway_streams_opened_total",
        "Streams opened since the gateway's start.",
    )
    .sample(&[], status.streams_opened);
    text.family(
        Kind::Counter,
        "causeway_handed_over_total",
        "Times the gateway went on as another program.",
    )
    .sample(&[], status.handed_over);
    text.family(
        Kind::Counter,
        "causeway_worker_ends_total",
        "Times another worker took the place of one that was not told to end.",
    )
    .sample(&[], status.worker_ends);
    text.family(
        Kind::Counter,
        "causeway_processor_seconds_total",
        "Processor time of the gateway's process.",
    )
    .sample(&[], status.processor_microseconds as f64 / 1e6);
    let mut refused = text.family(
        Kind::Counter,
        "causeway_refused_total",
        "Connections refused, by reason.",
    );
    for (reason, count) in &status.refused {
        refused.sample(&[("reason", reason)], count);
    }
    write_sites(&mut text, &sites);
    text.into_text()
}

fn write_sites(text: &mut Exposition, sites: &[Site<'_>]) {
    for (name, help, value) in TUNNEL_GAUGES {
        let mut family = text.family(Kind::Gauge, name, help);
        for site in sites {
            family.sample(&[("site", site.name)], value(site));
        }
    }
    for (name, help, value) in TUNNEL_COUNTERS {
        let mut family = text.family(Kind::Counter, name, help);
        for site in sites {
            family.sample(&[("site", site.name)], value(&site.total));
        }
    }
    for (name, help, value) in LANE_COUNTERS {
        let mut family = text.family(Kind::Counter, name, help);
        for site in sites {
            for (number, counts) in site.total.lanes.iter() {
                family.sample(
                    &[("site", site.name), ("lane", &number.to_string())],
                    value(counts),
                );
            }
        }
    }
    for (name, help, value) in LANE_GAUGES {
        let mut family = text.family(Kind::Gauge, name, help);
        for site in sites {
            for lane in site.tunnel.iter().flat_map(|tunnel| &tunnel.lanes) {
                family.sample(
                    &[("site", site.name), ("lane", &lane.number.to_string())],
                    value(lane),
                );
            }
        }
    }
}

fn site<'a>(status: &'a Status, name: &'a str, over: &Totals) -> Site<'a> {
    let reachable = status.sites.iter().find(|site| site.name == name);
    let tunnel = status.tunnels.iter().find(|tunnel| tunnel.site == name);
    let mut total = over.clone();
    if let Some(tunnel) = tunnel {
        total.sent_bytes += tunnel.sent_bytes;
        total.received_bytes += tunnel.received_bytes;
        total.lanes_lost += tunnel.lanes_lost;
        for lane in tunnel.lanes.iter() {
            total.add_lane(lane);
        }
    }
    Site {
        name,
        reachable: reachable.is_some_and(|site| site.unreachable.is_none()),
        tunnel,
        total,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lane(number: usize) -> LaneStatus {
        LaneStatus {
            number,
            peer: ([198, 51, 100, 5], 7001).into(),
            rtt_microseconds: 11_600,
            congestion_control: "bbr".into(),
            carrier: "clear".into(),
            technique: "direct".into(),
            sent_bytes: 1000,
            received_bytes: 2000,
            least_rtt_microseconds: 11_500,
            rate_bits_per_second: 1_000_000_000,
            rate_is_a_guess: false,
            window_bytes: 3_000_000,
            segments: 100,
            retransmits: 7,
            timeouts: 2,
            out_of_order: 5,
            repaired: 0,
            mtu_bytes: 1500,
            trains: false,
            idle_restarts: 4,
        }
    }

    fn status() -> Status {
        Status {
            site: "rennes".into(),
            pid: 1,
            resident_bytes: 5_000_000,
            relayed: 2,
            relayed_bytes: 7_000_000,
            streams: 12,
            streams_peak: 20,
            streams_opened: 300,
            refused: [("unknown-token".to_owned(), 6)].into(),
            tunnels: vec![TunnelStatus {
                site: "nancy".into(),
                peer: ([198, 51, 100, 5], 7001).into(),
                rtt_microseconds: 11_500,
                rate_bits_per_second: 1_000_000_000,
                loss: 0.07,
                congestion_control: "bbr".into(),
                streams: 12,
                sent_bytes: 700,
                received_bytes: 900,
                lanes: vec![lane(0), lane(3)],
                lanes_lost: 1,
                down_seconds: None,
                why_no_better_way: String::new(),
                refuses_jobs: None,
            }],
            ..Status::default()
        }
    }

    fn has(text: &str, line: &str) {
        assert!(text.lines().any(|one| one == line), "{line}\nnot in\n{text}");
    }

    #[test]
    fn counters_go_on_where_ended_lanes_and_pairs_left_them() {
        let mut over = Totals {
            sent_bytes: 10_000,
            received_bytes: 0,
            lanes_lost: 2,
            ..Totals::default()
        };
        over.add_lane(&lane(0));
        over.add_lane(&lane(0));
        over.add_lane(&lane(1));
        let nowhere = Totals::default();
        let text = exposition(&status(), [("nancy", &over), ("bordeaux", &nowhere)].into_iter());
        has(&text, "causeway_tunnel_sent_bytes_total{site=\"nancy\"} 10700");
        has(&text, "causeway_tunnel_lanes_lost_total{site=\"nancy\"} 3");
        let retransmitted = |lane, count| {
            let name = "causeway_lane_retransmitted_segments_total";
            format!("{name}{{site=\"nancy\",lane=\"{lane}\"}} {count}")
        };
        has(&text, &retransmitted(0, 21));
        has(&text, &retransmitted(1, 7));
        has(&text, &retransmitted(3, 7));
        has(
            &text,
            "causeway_lane_round_trip_seconds{site=\"nancy\",lane=\"3\"} 0.0116",
        );
        has(
            &text,
            "causeway_lane_rate_bits_per_second{site=\"nancy\",lane=\"0\"} 1000000000",
        );
        has(&text, "causeway_tunnel_up{site=\"nancy\"} 1");
        has(&text, "causeway_tunnel_up{site=\"bordeaux\"} 0");
        has(&text, "causeway_tunnel_sent_bytes_total{site=\"bordeaux\"} 0");
        has(&text, "causeway_refused_total{reason=\"unknown-token\"} 6");
        has(&text, "causeway_resident_bytes 5000000");
        has(&text, "causeway_relayed_connections 2");
    }

    #[test]
    fn every_metric_stands_once_and_in_the_documentation() {
        let text = exposition(&status(), [("nancy", &Totals::default())].into_iter());
        let names: Vec<&str> = text
            .lines()
            .filter_map(|line| line.strip_prefix("# TYPE "))
            .collect();
        let names: Vec<&str> = names.iter().filter_map(|line| line.split(' ').next()).collect();
        let documentation = include_str!("../../../../../docs/checking.md");
        for (index, name) in names.iter().enumerate() {
            assert!(!names[..index].contains(name), "{name} twice");
            assert!(
                documentation.contains(&format!("`{name}")),
                "{name} is not in docs/checking.md"
            );
        }
    }
}
