//! A gateway's state for people.

use super::rates::{Rate, TunnelRate};
use causeway_broker::clock::date;
use causeway_control::{GridStatus, JobStatus, LaneStatus, SiteStatus, Status, TunnelStatus};

/// Some lines; with `rates`, tunnels and lanes say what crosses them.
pub fn readable(status: &Status, rates: Option<&[TunnelRate]>) -> String {
    let mut text = format!(
        "gateway of {}  pid {}  memory {:.1} MB  streams {} (peak {}, opened {})\n",
        status.site,
        status.pid,
        status.resident_bytes as f64 / 1e6,
        status.streams,
        status.streams_peak,
        status.streams_opened
    );
    if status.handed_over > 0 {
        text += &format!("handed over {} times\n", status.handed_over);
    }
    if status.relayed > 0 || status.relayed_bytes > 0 {
        text += &format!(
            "carries {} connections of other sites, {:.1} MB so far\n",
            status.relayed,
            status.relayed_bytes as f64 / 1e6
        );
    }
    if let Some(grid) = &status.grid {
        text += &grid_lines(grid);
    }
    for site in &status.sites {
        text += &site_line(site);
    }
    for tunnel in &status.tunnels {
        let rates = rates.and_then(|rates| rates.iter().find(|rates| rates.site == tunnel.site));
        text += &tunnel_lines(tunnel, rates);
    }
    for job in &status.jobs {
        text += &job_line(job);
    }
    for (kind, count) in &status.refused {
        text += &format!("refused {kind} {count}\n");
    }
    text
}

fn grid_lines(grid: &GridStatus) -> String {
    let broker = match (&grid.broker_away, grid.observed) {
        (Some(why), _) => format!("its broker does not serve: {why}"),
        (None, Some(observed)) => format!("its broker sees this gateway at {}", observed.ip()),
        (None, None) => "its broker serves".to_owned(),
    };
    let mut text = format!(
        "member of grid {}  {broker}  certificate until {}\n",
        grid.name,
        date(grid.certificate_ends)
    );
    for (address, why) in &grid.unreached {
        text += &format!("  cannot be dialled at {address}: {why}\n");
    }
    text
}

fn site_line(site: &SiteStatus) -> String {
    let nodes = site.info.as_ref().map_or(0, |info| info.nodes.len());
    let known = site.info.as_ref().filter(|info| !info.real_subnets.is_empty());
    let known = known.map_or_else(String::new, |info| {
        format!(
            "  {} known as {}",
            info.real_subnets.join(", "),
            info.subnets.join(", ")
        )
    });
    match &site.unreachable {
        None => format!("site {}  {nodes} nodes{known}\n", site.name),
        Some(why) => format!("site {}  not reachable: {why}{known}\n", site.name),
    }
}

fn tunnel_lines(tunnel: &TunnelStatus, rates: Option<&TunnelRate>) -> String {
    let mut text = format!(
        "tunnel to {} at {}  rtt {:.1} ms  rate {:.0} Mbit/s  loss {:.2} %  streams {}  sent {:.1} MB  received {:.1} \
         MB{}\n",
        tunnel.site,
        tunnel.peer,
        f64::from(tunnel.rtt_microseconds) / 1e3,
        tunnel.rate_bits_per_second as f64 / 1e6,
        tunnel.loss * 100.0,
        tunnel.streams,
        tunnel.sent_bytes as f64 / 1e6,
        tunnel.received_bytes as f64 / 1e6,
        now(rates.map(|rates| rates.rate))
    );
    if let Some(seconds) = tunnel.down_seconds {
        text += &format!("  no lane for {seconds:.1} s; streams wait\n");
    }
    for lane in &tunnel.lanes {
        let rate = rates.and_then(|rates| rates.lanes.iter().find(|rate| rate.number == lane.number));
        text += &lane_line(lane, rate.map(|lane| lane.rate));
    }
    text
}

fn lane_line(lane: &LaneStatus, rate: Option<Rate>) -> String {
    format!(
        "  lane {} at {}  {}  {}  {}  rtt {:.1} ms (least {:.1})  rate {:.0} Mbit/s  window {:.2} MB  sent {:.1} MB  received {:.1} \
         MB  {}{}\n",
        lane.number,
        lane.peer,
        lane.technique,
        lane.carrier,
        lane.congestion_control,
        f64::from(lane.rtt_microseconds) / 1e3,
        f64::from(lane.least_rtt_microseconds) / 1e3,
        lane.rate_bits_per_second as f64 / 1e6,
        lane.window_bytes as f64 / 1e6,
        lane.sent_bytes as f64 / 1e6,
        lane.received_bytes as f64 / 1e6,
        troubles(lane),
        now(rate)
    )
}

/// What went wrong, as far as each kind of lane counts it.
fn troubles(lane: &LaneStatus) -> String {
    let (sent, again) = (lane.segments, lane.retransmits);
    if lane.carrier == "QUIC" {
        return format!("packets {sent}  sent again {again}  repaired {}", lane.repaired);
    }
    format!(
        "segments {sent}  sent again {again}  timeouts {}  out of order {}  idle restarts {}",
        lane.timeouts, lane.out_of_order, lane.idle_restarts
    )
}

/// What crosses at present, as the end of a line.
fn now(rate: Option<Rate>) -> String {
    rate.map_or_else(String::new, |rate| {
        format!(
            "  now sending {:.1} Mbit/s, receiving {:.1} Mbit/s",
            rate.sent_bits_per_second / 1e6,
            rate.received_bits_per_second / 1e6
        )
    })
}

fn job_line(job: &JobStatus) -> String {
    format!(
        "job {}  weight {}  streams {}  sent {:.1} MB  received {:.1} MB\n",
        job.name,
        job.weight,
        job.streams,
        job.sent_bytes as f64 / 1e6,
        job.received_bytes as f64 / 1e6
    )
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::status::rates::rates;
    use std::time::Duration;

    /// A gateway with one tunnel of one lane, and one job.
    pub fn status() -> Status {
        let peer = ([198, 51, 100, 5], 7001).into();
        Status {
            site: "rennes".into(),
            pid: 7,
            resident_bytes: 5_000_000,
            relayed: 2,
            relayed_bytes: 7_000_000,
            streams: 2,
            streams_peak: 3,
            streams_opened: 4,
            refused: [("preface-late".to_owned(), 1)].into(),
            jobs: vec![JobStatus {
                name: "mpirun".into(),
                weight: 3,
                streams: 2,
                sent_bytes: 1_500_000,
                received_bytes: 0,
            }],
            tunnels: vec![TunnelStatus {
                site: "nancy".into(),
                peer,
                rtt_microseconds: 11_600,
                rate_bits_per_second: 1_000_000_000,
                loss: 0.0,
                congestion_control: "bbr".into(),
                streams: 2,
                sent_bytes: 1_500_000,
                received_bytes: 0,
                lanes: vec![LaneStatus {
                    number: 0,
                    peer,
                    rtt_microseconds: 12_000,
                    congestion_control: "bbr".into(),
                    carrier: "clear".into(),
                    technique: "relay through lyon".into(),
                    sent_bytes: 1_600_000,
                    received_bytes: 1000,
                    least_rtt_microseconds: 11_600,
                    rate_bits_per_second: 1_000_000_000,
                    window_bytes: 3_000_000,
                    segments: 1100,
                    retransmits: 2,
                    timeouts: 1,
                    out_of_order: 5,
                    repaired: 0,
                    mtu_bytes: 1500,
                    trains: false,
                    idle_restarts: 6,
                }],
                lanes_lost: 0,
                down_seconds: None,
                hindrance: String::new(),
            }],
            ..Status::default()
        }
    }

    #[test]
    fn a_site_is_known_by_its_virtual_addresses_whether_it_is_reached_or_not() {
        let info = causeway_control::SiteInfo {
            name: "nancy".into(),
            subnets: vec!["100.64.1.0/24".into()],
            real_subnets: vec!["192.168.1.0/24".into()],
            gateways: Vec::new(),
            delivery_ports: "20000-32767".into(),
            nodes: Vec::new(),
            relays: false,
            transparent: false,
        };
        let mut site = SiteStatus {
            name: "nancy".into(),
            info: Some(info),
            unreachable: None,
        };
        let known = "192.168.1.0/24 known as 100.64.1.0/24";
        assert_eq!(site_line(&site), format!("site nancy  0 nodes  {known}\n"));
        site.unreachable = Some("refused".into());
        assert_eq!(
            site_line(&site),
            format!("site nancy  not reachable: refused  {known}\n")
        );
    }

    #[test]
    fn jobs_and_lanes_say_what_they_carried_and_rates_stand_only_where_they_are_known() {
        let status = status();
        let once = readable(&status, None);
        assert!(
            once.contains("job mpirun  weight 3  streams 2  sent 1.5 MB  received 0.0 MB\n"),
            "{once}"
        );
        assert!(
            once.contains("sent again 2  timeouts 1  out of order 5  idle restarts 6\n"),
            "{once}"
        );
        assert!(!once.contains("now sending"), "{once}");
        assert!(
            once.contains("carries 2 connections of other sites, 7.0 MB so far\n"),
            "{once}"
        );
        assert!(
            once.contains("lane 0 at 198.51.100.5:7001  relay through lyon  clear  bbr  rtt"),
            "{once}"
        );
        let mut later = status.clone();
        later.tunnels[0].sent_bytes += 1_000_000;
        let rates = rates(&status, &later, Duration::from_secs(1)).unwrap();
        let again = readable(&later, Some(&rates));
        assert!(
            again.contains("now sending 8.0 Mbit/s, receiving 0.0 Mbit/s\n"),
            "{again}"
        );
    }
}
