//! Shows a gateway's state to people. Which fields only `--wide` shows is decided here.

use super::rates::{Rate, TunnelRate};
use causeway_broker::clock::date;
use causeway_control::{
    BudgetStatus, GridStatus, JobStatus, LaneStatus, SiteStatus, Status, TunnelStatus, WorkerEnd,
};
use causeway_host::columns::Width;

/// Writes the status as lines. If there are `rates`, tunnels and lanes say what crosses them.
pub fn readable(status: &Status, rates: Option<&[TunnelRate]>, width: Width) -> String {
    let mut text = head_lines(status, width);
    if let Some(grid) = &status.grid {
        text += &grid_lines(grid, width);
    }
    for site in &status.sites {
        text += &site_line(site, width);
    }
    for tunnel in &status.tunnels {
        let rates = rates.and_then(|rates| rates.iter().find(|rates| rates.site == tunnel.site));
        text += &tunnel_lines(tunnel, rates, width);
    }
    for job in &status.jobs {
        text += &job_line(job, width);
    }
    for budget in &status.budgets {
        text += &budget_line(budget, width);
    }
    for (kind, count) in &status.refused {
        text += &width.lines(0, [&*format!("refused {kind} {count}")]);
    }
    text
}

fn head_lines(status: &Status, width: Width) -> String {
    let (streams, peak, opened) = (status.streams, status.streams_peak, status.streams_opened);
    let fields = [
        &*format!("gateway of {}", status.site),
        &format!("pid {}", status.pid),
        &format!("memory {}", megabytes(status.resident_bytes)),
        &format!("processor {:.1} s", status.processor_microseconds as f64 / 1e6),
        &format!("streams {streams} (peak {peak}, opened {opened})"),
    ];
    let mut text = width.lines(0, fields);
    if status.clear_text {
        text +=
            "NOT ENCRYPTED: anyone on the path can read and change all that crosses (insecure in [grid])\n";
    }
    if status.handed_over > 0 {
        text += &format!("handed over {} times\n", status.handed_over);
    }
    if let Some(end) = &status.last_worker_end {
        text += &worker_line(status.worker_ends, end);
    }
    if status.relayed > 0 || status.relayed_bytes > 0 {
        text += &format!(
            "carries {} connections of other sites, {} so far\n",
            status.relayed,
            megabytes(status.relayed_bytes)
        );
    }
    text
}

fn budget_line(budget: &BudgetStatus, width: Width) -> String {
    let taken = |minutes: u64, most: Option<u32>, time: &str| {
        let hours = minutes as f64 / 60.0;
        match most {
            Some(most) => format!("{hours:.1} of {most} core-hours in {time}"),
            None => format!("{hours:.1} core-hours in {time}"),
        }
    };
    let fields = [
        &*format!("allocations for {}", budget.site),
        &taken(budget.minutes_in_a_day, budget.hours_a_day, "a day"),
        &taken(budget.minutes_in_a_month, budget.hours_a_month, "a month"),
    ];
    width.lines(0, fields)
}

fn worker_line(ends: u64, end: &WorkerEnd) -> String {
    format!(
        "worker replaced {ends} times: the last one {}, {}\n",
        end.how,
        date(end.at)
    )
}

fn grid_lines(grid: &GridStatus, width: Width) -> String {
    let broker = match (&grid.broker_away, grid.observed) {
        (Some(why), _) => format!("its broker does not serve: {why}"),
        (None, Some(observed)) => format!("its broker sees this gateway at {}", observed.ip()),
        (None, None) => "its broker serves".to_owned(),
    };
    let member = format!("member of grid {}", grid.name);
    let certificate = format!("certificate until {}", date(grid.certificate_ends));
    let mut text = width.lines(0, [&*member, &broker, &certificate]);
    for broker in &grid.brokers {
        let addresses = broker.addresses.join(", ");
        let state = match &broker.away {
            None => "answers".to_owned(),
            Some(why) => format!("does not answer: {why}"),
        };
        text += &width.lines(2, [&*format!("broker {} at {addresses} {state}", broker.number)]);
    }
    for (address, why) in &grid.unreached {
        text += &width.lines(2, [&*format!("cannot be dialled at {address}: {why}")]);
    }
    text
}

fn site_line(site: &SiteStatus, width: Width) -> String {
    let nodes = site.info.as_ref().map_or(0, |info| info.nodes.len());
    let known = site.info.as_ref().filter(|info| !info.real_subnets.is_empty());
    let known = known.map_or_else(String::new, |info| {
        format!(
            "{} known as {}",
            info.real_subnets.join(", "),
            info.subnets.join(", ")
        )
    });
    let reached = match &site.unreachable {
        None if nodes == 1 => "1 node".to_owned(),
        None => format!("{nodes} nodes"),
        Some(why) => format!("not reachable: {why}"),
    };
    width.lines(0, [&*format!("site {}", site.name), &reached, &known])
}

fn tunnel_lines(tunnel: &TunnelStatus, rates: Option<&TunnelRate>, width: Width) -> String {
    let is_a_guess = !tunnel.lanes.is_empty() && tunnel.lanes.iter().all(|lane| lane.rate_is_a_guess);
    let fields = [
        &*format!(
            "tunnel to {}{}",
            tunnel.site,
            wide(width, format!(" at {}", tunnel.peer))
        ),
        &format!("rtt {}", milliseconds(tunnel.rtt_microseconds)),
        &rate(tunnel.rate_bits_per_second, is_a_guess),
        &format!("loss {:.2} %", tunnel.loss * 100.0),
        &format!("streams {}", tunnel.streams),
        &format!("sent {}", megabytes(tunnel.sent_bytes)),
        &format!("received {}", megabytes(tunnel.received_bytes)),
        &now(rates.map(|rates| rates.rate)),
    ];
    let mut text = width.lines(0, fields);
    if let Some(seconds) = tunnel.down_seconds {
        text += &format!("  no lane for {seconds:.1} s; streams wait\n");
    }
    for lane in &tunnel.lanes {
        let now = rates.and_then(|rates| rates.lanes.iter().find(|rate| rate.number == lane.number));
        text += &lane_line(lane, now.map(|lane| lane.rate), width);
    }
    text
}

fn lane_line(lane: &LaneStatus, present: Option<Rate>, width: Width) -> String {
    let least = f64::from(lane.least_rtt_microseconds) / 1e3;
    let round_trip = milliseconds(lane.rtt_microseconds);
    let troubles = troubles(lane);
    let mut fields = vec![
        format!(
            "lane {}{}",
            lane.number,
            wide(width, format!(" at {}", lane.peer))
        ),
        lane.technique.clone(),
        lane.carrier.clone(),
        wide(width, lane.congestion_control.clone()),
        format!("rtt {round_trip}{}", wide(width, format!(" (least {least:.1})"))),
        rate(lane.rate_bits_per_second, lane.rate_is_a_guess),
        wide(width, format!("window {:.2} MB", lane.window_bytes as f64 / 1e6)),
        format!("sent {}", megabytes(lane.sent_bytes)),
        format!("received {}", megabytes(lane.received_bytes)),
    ];
    fields.extend(troubles.into_iter().map(|trouble| wide(width, trouble)));
    fields.push(now(present));
    width.lines(2, fields.iter().map(String::as_str))
}

/// Lists what went wrong, as far as each kind of lane counts it.
fn troubles(lane: &LaneStatus) -> Vec<String> {
    let again = format!("sent again {}", lane.retransmits);
    if lane.carrier == "QUIC" {
        let packets = format!("packets {}", lane.segments);
        return vec![packets, again, format!("repaired {}", lane.repaired)];
    }
    vec![
        format!("segments {}", lane.segments),
        again,
        format!("timeouts {}", lane.timeouts),
        format!("out of order {}", lane.out_of_order),
        format!("idle restarts {}", lane.idle_restarts),
    ]
}

/// Writes the present rates, as the end of a line.
fn now(rate: Option<Rate>) -> String {
    rate.map_or_else(String::new, |rate| {
        format!(
            "now sending {:.1} Mbit/s, receiving {:.1} Mbit/s",
            rate.sent_bits_per_second / 1e6,
            rate.received_bits_per_second / 1e6
        )
    })
}

fn job_line(job: &JobStatus, width: Width) -> String {
    let fields = [
        &*format!("job {}", job.name),
        &format!("weight {}", job.weight),
        &format!("streams {}", job.streams),
        &format!("sent {}", megabytes(job.sent_bytes)),
        &format!("received {}", megabytes(job.received_bytes)),
    ];
    width.lines(0, fields)
}

/// Writes the columns that only wide lines have.
fn wide(width: Width, text: String) -> String {
    match width {
        Width::Narrow => String::new(),
        Width::Wide => text,
    }
}

fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

/// Writes the rate of a path. What congestion control assumes before anything was measured would only
/// mislead, and is left out.
fn rate(bits_per_second: u64, is_a_guess: bool) -> String {
    match is_a_guess {
        true => "rate not measured".to_owned(),
        false => format!("rate {:.0} Mbit/s", bits_per_second as f64 / 1e6),
    }
}

fn milliseconds(microseconds: u32) -> String {
    format!("{:.1} ms", f64::from(microseconds) / 1e3)
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
            processor_microseconds: 1_240_000,
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
                    rate_is_a_guess: false,
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
                why_no_better_way: String::new(),
                refuses_jobs: None,
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
            local: vec![],
        };
        let mut site = SiteStatus {
            name: "nancy".into(),
            info: Some(info),
            unreachable: None,
        };
        let known = "192.168.1.0/24 known as 100.64.1.0/24";
        let line = |site: &SiteStatus| site_line(site, Width::Narrow);
        assert_eq!(line(&site), format!("site nancy  0 nodes  {known}\n"));
        site.unreachable = Some("refused".into());
        assert_eq!(
            line(&site),
            format!("site nancy  not reachable: refused  {known}\n")
        );
    }

    #[test]
    fn jobs_and_lanes_say_what_they_carried_and_rates_stand_only_where_they_are_known() {
        let status = status();
        let once = readable(&status, None, Width::Wide);
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
        let mut new = status.clone();
        new.tunnels[0].lanes[0].rate_is_a_guess = true;
        let new = readable(&new, None, Width::Wide);
        assert_eq!(new.matches("rate not measured").count(), 2, "{new}");
        assert_eq!(once.matches("rate 1000 Mbit/s").count(), 2, "{once}");
        let mut without_lanes = status.clone();
        without_lanes.tunnels[0].lanes.clear();
        assert!(readable(&without_lanes, None, Width::Wide).contains("rate 1000 Mbit/s"));
        let rates = rates(&status, &later, Duration::from_secs(1)).unwrap();
        let again = readable(&later, Some(&rates), Width::Wide);
        assert!(
            again.contains("now sending 8.0 Mbit/s, receiving 0.0 Mbit/s\n"),
            "{again}"
        );
    }

    /// A status with names as long as a configuration allows, and figures of a gateway that has run for a
    /// year.
    fn full() -> Status {
        let mut status = status();
        let long = "a-site-whose-name-nobody-types".to_owned();
        status.site.clone_from(&long);
        status.jobs[0].name = format!("mpirun -n 4096 {}", "/scratch/projects/app --input x ".repeat(6));
        status.sites.push(SiteStatus {
            name: long.clone(),
            info: None,
            unreachable: Some("connect to 198.51.100.5:7001: refused by peer ".repeat(4)),
        });
        let tunnel = &mut status.tunnels[0];
        tunnel.site = long;
        tunnel.peer = ([0x2001, 0xdb8, 1, 2, 3, 4, 5, 0xffff], 65000).into();
        (tunnel.sent_bytes, tunnel.received_bytes) = (9_000_000_000_000, 9_000_000_000_000);
        let lane = &mut tunnel.lanes[0];
        lane.peer = tunnel.peer;
        (lane.sent_bytes, lane.received_bytes) = (9_000_000_000_000, 9_000_000_000_000);
        status
    }

    #[test]
    fn no_line_has_more_than_100_columns_unless_asked_for() {
        for status in [status(), full()] {
            let rates = rates(&status, &status, Duration::from_secs(1)).unwrap();
            for rates in [None, Some(&rates[..])] {
                let text = readable(&status, rates, Width::Narrow);
                let widest = text.lines().map(|line| line.chars().count()).max();
                assert!(widest <= Some(100), "{widest:?}:\n{text}");
            }
        }
        let usual = readable(&status(), None, Width::Narrow);
        assert!(
            !usual.lines().any(|line| line.starts_with("     ")),
            "broken:\n{usual}"
        );
        assert!(readable(&full(), None, Width::Wide).contains("idle restarts 6\n"));
    }
}
