//! Checks the kernel's limits for this user: files, buffers, congestion control.

use super::Subject;
use super::steps::Step;
use causeway_control::TunnelStatus;
use causeway_gateway::{UDP_BUFFER_BYTES, lanes, may_begin_anew};
use nix::sys::resource::{Resource, getrlimit};

/// Files that a gateway needs for two hundred ranks that all talk to all, half of them at each site: one for
/// each stream.
const FILES: u64 = 10_000;

/// A rate this near to what buffers allow may well be bounded by them.
const NEAR: f64 = 0.7;

/// See the module.
pub fn look(subject: &Subject) -> Vec<Step> {
    let wanted = subject
        .config()
        .map_or("bbr", |config| &config.congestion_control);
    let mut steps = vec![
        files(subject.status().map(|status| status.pid)),
        congestion_control(wanted),
    ];
    let tunnels = subject.status().map_or(&[][..], |status| &status.tunnels);
    steps.extend(
        tunnels
            .iter()
            .filter_map(|tunnel| tcp_buffers(tunnel, lanes::connection_holds())),
    );
    steps.extend(["rmem_max", "wmem_max"].map(udp_buffer));
    steps
}

/// Checks the hard limit of files, because the gateway raises its own limit that far. Where the gateway runs,
/// it is the gateway's.
fn files(gateway: Option<u32>) -> Step {
    let running = gateway.and_then(|pid| std::fs::read_to_string(format!("/proc/{pid}/limits")).ok());
    let limit = running
        .as_deref()
        .and_then(hard_limit)
        .or_else(|| Some(getrlimit(Resource::RLIMIT_NOFILE).ok()?.1));
    let name = "open files";
    match limit {
        Some(limit) if limit < FILES => Step::warn(
            name,
            format!("at most {limit}: the gateway carries fewer streams than that at a time"),
            format!(
                "have the hard limit raised: nofile {FILES} in /etc/security/limits.conf, or LimitNOFILE of its unit"
            ),
        ),
        Some(limit) => Step::ok(name, format!("up to {limit}, one for each stream")),
        None => Step::warn(name, "the kernel does not tell", "see 'ulimit -Hn'"),
    }
}

/// The hard limit in the line `Max open files            1024                 524288               files`.
fn hard_limit(limits: &str) -> Option<u64> {
    let line = limits.lines().find(|line| line.starts_with("Max open files"))?;
    match line.split_whitespace().nth(4)? {
        "unlimited" => Some(u64::MAX),
        number => number.parse().ok(),
    }
}

fn congestion_control(wanted: &str) -> Step {
    let name = "congestion control";
    if may_begin_anew(wanted) {
        return Step::ok(name, format!("{wanted} may be chosen"));
    }
    let read = |file: &str| std::fs::read_to_string(format!("/proc/sys/net/ipv4/{file}")).unwrap_or_default();
    let has = read("tcp_available_congestion_control");
    let default = read("tcp_congestion_control");
    let default = default.trim();
    if has.split_whitespace().any(|name| name == wanted) {
        let allowed = read("tcp_allowed_congestion_control");
        let remedy = format!(
            "as root: sysctl -w net.ipv4.tcp_allowed_congestion_control='{} {wanted}'",
            allowed.trim()
        );
        let detail = format!(
            "{wanted} may not be chosen by this user, and lanes use {default}: losses slow them more"
        );
        return Step::warn(name, detail, remedy);
    }
    let detail =
        format!("this kernel has no {wanted} loaded, and lanes use {default}: losses slow them more");
    let remedy = format!("as root: modprobe tcp_{wanted} (on the head node; a container has the host's)");
    Step::warn(name, detail, remedy)
}

/// `connection` is what one connection can have on its way. Of QUIC it bounds nothing.
fn tcp_buffers(tunnel: &TunnelStatus, connection: u64) -> Option<Step> {
    let lanes = tunnel.lanes.iter().filter(|lane| lane.carrier != "QUIC").count() as u64;
    let microseconds = u64::from(tunnel.rtt_microseconds);
    if lanes == 0 || microseconds == 0 {
        return None;
    }
    let name = format!("TCP buffers to {}", tunnel.site);
    // Bytes in a microsecond times eight are megabits in a second.
    let most = (lanes * connection * 8) as f64 / microseconds as f64;
    let seen = tunnel.rate_bits_per_second as f64 / 1e6;
    let rtt = microseconds as f64 / 1e3;
    let detail = format!("{lanes} lanes over {rtt:.1} ms can carry {most:.0} Mbit/s; seen {seen:.0} Mbit/s");
    let over_quic = tunnel.lanes.iter().any(|lane| lane.carrier == "QUIC");
    if over_quic || seen < NEAR * most {
        return Some(Step::ok(name, detail));
    }
    let bytes = 4 * lanes * connection;
    let remedy = format!(
        "where the path has more, let connections have more on their way, at both sites; as root: sysctl -w \
         net.ipv4.tcp_wmem='4096 16384 {bytes}' net.ipv4.tcp_rmem='4096 131072 {bytes}'; or set lanes in [grid]"
    );
    Some(Step::warn(name, detail, remedy))
}

fn udp_buffer(file: &str) -> Step {
    let name = format!("UDP buffers (net.core.{file})");
    let text = std::fs::read_to_string(format!("/proc/sys/net/core/{file}")).ok();
    match text.and_then(|text| text.trim().parse::<usize>().ok()) {
        Some(bytes) if bytes >= UDP_BUFFER_BYTES => Step::ok(name, format!("{bytes} bytes")),
        Some(bytes) => Step::warn(
            name,
            format!(
                "{bytes} bytes of the {UDP_BUFFER_BYTES} that lanes over QUIC ask for: bursts may lose datagrams here"
            ),
            format!("as root: sysctl -w net.core.{file}={UDP_BUFFER_BYTES}"),
        ),
        // A network namespace of a container does not show it.
        None => Step::ok(name, "not shown here (a container's): the host's count"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::steps::Verdict;
    use super::*;
    use crate::status::text::tests::status;

    #[test]
    fn buffers_are_told_of_where_they_may_bound_the_rate() {
        let mut tunnel = status().tunnels.remove(0);
        // 11.6 ms at 1 Gbit/s hold 1.45 MB.
        assert_eq!(tcp_buffers(&tunnel, 4 << 20).unwrap().result, Verdict::Ok);
        let step = tcp_buffers(&tunnel, 1_500_000).unwrap();
        assert_eq!(step.result, Verdict::Warn);
        assert!(step.detail.contains("can carry 1034 Mbit/s; seen 1000"), "{step}");
        tunnel.lanes[0].carrier = "QUIC".into();
        assert_eq!(tcp_buffers(&tunnel, 1), None);
        tunnel.lanes.clear();
        assert_eq!(tcp_buffers(&tunnel, 1), None);
    }

    #[test]
    fn the_hard_limit_of_files_is_read_as_the_kernel_writes_it() {
        let limits = "Limit                     Soft Limit           Hard Limit           Units     \n\
                      Max open files            1024                 524288               files     \n";
        assert_eq!(hard_limit(limits), Some(524_288));
        assert_eq!(
            hard_limit("Max open files            1024                 unlimited            files"),
            Some(u64::MAX)
        );
        assert_eq!(hard_limit(""), None);
    }

    #[test]
    fn a_congestion_control_that_there_is_not_says_what_to_load() {
        let step = congestion_control("no_such_thing");
        assert_eq!(step.result, Verdict::Warn);
        assert!(step.remedy.unwrap().contains("modprobe tcp_no_such_thing"));
        assert_eq!(congestion_control("reno").result, Verdict::Ok);
    }
}
