//! The other sites: whether there is a tunnel, what its path is like, and whether the clocks agree.

use super::Subject;
use super::steps::{Group, Step};
use causeway_control::questions;
use causeway_control::{LaneStatus, Pong, SiteStatus, TunnelStatus};
use std::path::Path;
use std::time::Duration;

/// If clocks differ by more than this, logs of two sites are hard to compare, and certificates end early.
const MAX_CLOCK_DIFFERENCE: Duration = Duration::from_secs(5);

/// Training a lane, and probing for a higher rate, lose some tenths of a percent if the bottleneck's queue is
/// short.
const MAX_LOSS: f64 = 0.01;

/// The smallest maximum packet size that IPv6 allows (RFC 8200, section 5): a path that takes less is broken,
/// or is a tunnel in a tunnel.
const MIN_MTU: u32 = 1280;

/// Checks each other site, and makes a group of steps for each.
pub fn look(subject: &Subject) -> Vec<Group> {
    let Some(status) = subject.status() else {
        return Vec::new();
    };
    let others = status.sites.iter().filter(|site| site.name != status.site);
    let groups = others.map(|site| {
        let tunnel = status.tunnels.iter().find(|tunnel| tunnel.site == site.name);
        Group::new(
            format!("site {}", site.name),
            steps(site, tunnel, &subject.socket),
        )
    });
    groups.collect()
}

fn steps(site: &SiteStatus, tunnel: Option<&TunnelStatus>, socket: &Path) -> Vec<Step> {
    let mut steps = vec![reached(site, tunnel)];
    let Some(tunnel) = tunnel.filter(|_| site.unreachable.is_none()) else {
        return steps;
    };
    steps.extend(technique(tunnel));
    steps.extend(tunnel.lanes.iter().map(lane));
    steps.push(loss(tunnel));
    steps.extend(jobs(tunnel));
    steps.extend(mtu(tunnel));
    match questions::ping(socket, &site.name) {
        Ok(pong) => steps.extend(answered(&pong)),
        Err(error) => {
            let remedy =
                "upgrade the gateway there (causeway gateway --config FILE --drain), or look at its log";
            steps.push(Step::warn("answer", error.to_string(), remedy));
        }
    }
    steps
}

fn reached(site: &SiteStatus, tunnel: Option<&TunnelStatus>) -> Step {
    let name = "tunnel";
    match (&site.unreachable, tunnel) {
        (None, Some(tunnel)) => {
            let nodes = site.info.as_ref().map_or(0, |info| info.nodes.len());
            let detail = format!(
                "up, to {}; {} lanes, {nodes} nodes there",
                tunnel.peer,
                tunnel.lanes.len()
            );
            match nodes {
                0 => Step::warn(
                    name,
                    detail,
                    "add [[site.nodes]] to the configuration there: no rank can run at that site",
                ),
                _ => Step::ok(name, detail),
            }
        }
        (Some(why), _) => Step::fail(name, why.clone(), remedy(why)),
        (None, None) => Step::fail(name, "there is none", "look at both gateways' logs"),
    }
}

/// Says so if the far site takes no part in jobs of this one. Some grids want that.
fn jobs(tunnel: &TunnelStatus) -> Option<Step> {
    let why = tunnel.refuses_jobs.as_ref()?;
    Some(Step::warn(
        "jobs",
        format!("this site's jobs start nothing there: {why}"),
        "if jobs of this site should run there, ask whoever runs that site",
    ))
}

/// Says how the two gateways meet, and what keeps them from a better way.
fn technique(tunnel: &TunnelStatus) -> Option<Step> {
    let name = "technique";
    let has = |technique: &str| {
        let mut lanes = tunnel.lanes.iter();
        lanes.any(|lane| lane.technique.starts_with(technique))
    };
    let relayed = tunnel
        .lanes
        .iter()
        .find(|lane| lane.technique.starts_with("relay"));
    let why_no_better_way = tunnel.why_no_better_way.as_str();
    Some(if has("direct") || has("dialled in") {
        let detail = match has("direct") {
            true => "direct: this gateway dials the other",
            false => "direct: the other gateway dials this one",
        };
        match why_no_better_way {
            "" => Step::ok(name, detail),
            why => Step::warn(
                name,
                format!(
                    "{detail}; no lane over QUIC, which would be better because the path loses segments: {why}"
                ),
                "let UDP through both firewalls to the [listen] wan port",
            ),
        }
    } else if has("punched") {
        Step::ok(
            name,
            "punched: neither gateway can be dialled; this lane does not need the broker, a new one does",
        )
    } else {
        let through = &relayed?.technique;
        let why = match why_no_better_way {
            "" => "neither gateway dials the other",
            why => why,
        };
        Step::warn(
            name,
            format!("{through}, which costs a detour and the relay's bandwidth; no better way: {why}"),
            better_way(why),
        )
    })
}

fn better_way(why: &str) -> &'static str {
    let known = [
        (
            "over UDP within",
            "let UDP out of this site, and in at the broker's port; or give one of the two gateways a port that others can dial",
        ),
        (
            "by way of the broker",
            "does the gateway there have this version, and lanes over UDP (no transport = \"tcp\")? Or give one of the two a port that others can dial",
        ),
        (
            "transport",
            "remove transport = \"tcp\" from [grid], or give one of the two gateways a port that others can dial",
        ),
        (
            "neither gateway can be dialled",
            "let UDP out at both sites, or give one of the two gateways a port that others can dial ([listen] wan and public)",
        ),
    ];
    let found = known.iter().find(|(part, _)| why.contains(part));
    found.map_or_else(|| remedy(why), |(_, remedy)| remedy)
}

/// Returns the remedy for a reason that the gateway gives. Often the reason itself contains it.
fn remedy(why: &str) -> &'static str {
    let known = [
        (
            "during the handshake",
            "compare key file, insecure and [[peer]] of both configurations; the log of the gateway there says which one differs",
        ),
        (
            "refused",
            "is the gateway there running, and is the [[peer]] address its [listen] wan? 'causeway check' there says",
        ),
        (
            "timed out",
            "have its [listen] wan port let through both firewalls, TCP and UDP, or let that side dial this one",
        ),
        (
            "no answer",
            "have its [listen] wan port let through both firewalls, TCP and UDP, or let that side dial this one",
        ),
        (
            "unreachable",
            "is the [[peer]] address right? 'ip route get ADDRESS' says which way it goes",
        ),
        (
            "key",
            "copy one key file to all head nodes (mode 0600), and restart the gateways",
        ),
        ("insecure", "set insecure in [grid] at all sites or at none"),
        (
            "overlap",
            "set overlap_ok in [site] at both sites (virtual_subnets without a broker), or give one of them other subnets",
        ),
    ];
    let found = known.iter().find(|(part, _)| why.to_lowercase().contains(part));
    found.map_or(
        "run 'causeway check --config FILE' on the head node there",
        |(_, remedy)| remedy,
    )
}

fn lane(lane: &LaneStatus) -> Step {
    let detail = format!(
        "{} {}, rtt {:.1} ms (least {:.1}), rate {:.0} Mbit/s, sent again {} of {}",
        lane.carrier,
        lane.congestion_control,
        f64::from(lane.rtt_microseconds) / 1e3,
        f64::from(lane.least_rtt_microseconds) / 1e3,
        lane.rate_bits_per_second as f64 / 1e6,
        lane.retransmits,
        lane.segments
    );
    Step::ok(format!("lane {}", lane.number), detail)
}

fn loss(tunnel: &TunnelStatus) -> Step {
    let detail = format!("{:.3} % of the segments were sent again", tunnel.loss * 100.0);
    let over_quic = tunnel.lanes.iter().any(|lane| lane.carrier == "QUIC");
    if tunnel.loss <= MAX_LOSS {
        return Step::ok("loss", detail);
    }
    let remedy = match over_quic {
        true => {
            "a lane over QUIC makes up for most of it; ask the network's administrators where it comes from"
        }
        false => {
            "if it grows while little is sent: let UDP through to the [listen] wan port, so that a lane over QUIC can make up for it"
        }
    };
    Step::warn("loss", detail, remedy)
}

fn mtu(tunnel: &TunnelStatus) -> Option<Step> {
    let known = tunnel
        .lanes
        .iter()
        .map(|lane| lane.mtu_bytes)
        .filter(|bytes| *bytes > 0);
    let least = known.min()?;
    let detail = format!("packets of {least} bytes, as far as this host knows");
    Some(match least < MIN_MTU {
        false => Step::ok("MTU", detail),
        true => Step::warn(
            "MTU",
            detail,
            "is the path a tunnel in a tunnel? see 'ip route get ADDRESS' and 'tracepath ADDRESS'",
        ),
    })
}

fn answered(pong: &Pong) -> [Step; 2] {
    let milliseconds = pong.round_trip_microseconds as f64 / 1e3;
    let own = env!("CARGO_PKG_VERSION");
    let detail = format!(
        "after {milliseconds:.1} ms through the tunnel, version {}",
        pong.version
    );
    let answer = match pong.version == own {
        true => Step::ok("answer", detail),
        false => Step::warn(
            "answer",
            format!("{detail}; here {own}"),
            "upgrade the older one: causeway gateway --config FILE --drain",
        ),
    };
    let ahead = pong.clock_ahead_microseconds;
    let detail = format!(
        "{:+.1} ms from here, within {:.1} ms",
        ahead as f64 / 1e3,
        milliseconds / 2.0
    );
    let clock = match u128::from(ahead.unsigned_abs()) <= MAX_CLOCK_DIFFERENCE.as_micros() {
        true => Step::ok("clock", detail),
        false => Step::warn(
            "clock",
            detail,
            "set the clocks of both head nodes by NTP ('timedatectl' shows whether NTP is on)",
        ),
    };
    [answer, clock]
}

#[cfg(test)]
mod tests {
    use super::super::steps::Verdict;
    use super::*;
    use crate::status::text::tests::status;

    #[test]
    fn what_a_tunnel_is_like_becomes_steps() {
        let mut tunnel = status().tunnels.remove(0);
        assert_eq!(loss(&tunnel).result, Verdict::Ok);
        tunnel.loss = 0.02;
        assert!(loss(&tunnel).remedy.unwrap().contains("UDP"));
        assert_eq!(mtu(&tunnel).unwrap().result, Verdict::Ok);
        tunnel.lanes[0].mtu_bytes = 900;
        assert_eq!(mtu(&tunnel).unwrap().result, Verdict::Warn);
        tunnel.lanes[0].mtu_bytes = 0;
        assert_eq!(mtu(&tunnel), None);
    }

    #[test]
    fn a_site_that_takes_no_part_in_this_ones_jobs_is_told_with_what_it_says() {
        let mut tunnel = status().tunnels.remove(0);
        assert_eq!(jobs(&tunnel), None);
        tunnel.refuses_jobs = Some("it accepts no jobs of rennes".into());
        let step = jobs(&tunnel).unwrap();
        assert!(
            step.result == Verdict::Warn && step.detail.contains("no jobs of rennes"),
            "{step}"
        );
    }

    #[test]
    fn the_way_to_a_site_is_told_with_what_keeps_from_a_better_one() {
        let mut tunnel = status().tunnels.remove(0);
        tunnel.why_no_better_way =
            "neither gateway can be dialled; punching a way over UDP failed: no datagram came through".into();
        let step = technique(&tunnel).unwrap();
        assert_eq!(step.result, Verdict::Warn);
        assert!(
            step.detail.contains("relay through lyon") && step.detail.contains("no datagram"),
            "{step}"
        );
        assert!(step.remedy.unwrap().contains("UDP out at both sites"));
        tunnel.why_no_better_way.clear();
        for (technique_seen, says) in [
            ("punched", "punched"),
            ("direct", "dials the other"),
            ("dialled in", "dials this"),
        ] {
            tunnel.lanes[0].technique = technique_seen.into();
            let step = technique(&tunnel).unwrap();
            assert!(step.result == Verdict::Ok && step.detail.contains(says), "{step}");
        }
        tunnel.why_no_better_way = "connect to 198.51.100.5:7001: timed out".into();
        assert_eq!(technique(&tunnel).unwrap().result, Verdict::Warn);
        tunnel.lanes.clear();
        assert_eq!(technique(&tunnel), None);
    }

    #[test]
    fn clocks_that_differ_and_other_versions_are_told() {
        let mut pong = Pong {
            site: "nancy".into(),
            round_trip_microseconds: 12_000,
            clock_ahead_microseconds: -4_000_000,
            version: env!("CARGO_PKG_VERSION").into(),
        };
        assert!(answered(&pong).iter().all(|step| step.result == Verdict::Ok));
        pong.clock_ahead_microseconds = -3_600_000_000;
        pong.version = "9".into();
        let [answer, clock] = answered(&pong);
        assert!(answer.detail.contains("version 9"), "{answer}");
        assert!(
            clock.result == Verdict::Warn && clock.detail.contains("-3600000.0 ms"),
            "{clock}"
        );
    }

    #[test]
    fn sites_with_the_same_addresses_are_told_of_virtual_ones_for_both() {
        let why = "subnet 192.168.1.0/24 is also at nancy; sites with the same addresses need virtual ones, both of them: \
                   overlap_ok or virtual_subnets in [site]";
        let said = remedy(why);
        assert!(
            said.contains("overlap_ok") && said.contains("both sites"),
            "{said}"
        );
        assert!(said.contains("virtual_subnets without a broker"), "{said}");
    }

    #[test]
    fn a_site_that_is_not_reached_fails_with_the_gateways_reason() {
        let site = SiteStatus {
            name: "nancy".into(),
            info: None,
            unreachable: Some("Connection refused".into()),
        };
        let step = reached(&site, None);
        assert_eq!(
            (step.result, step.detail.as_str()),
            (Verdict::Fail, "Connection refused")
        );
        assert!(step.remedy.unwrap().contains("running"));
    }
}
