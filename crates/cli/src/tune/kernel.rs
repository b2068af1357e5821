//! Rows of the kernel, of limits and of the network. Pure, except for what a process may choose.
//!
//! Hablot et al. (2007), section IV: buffers of a connection must hold what is in flight, or the path stays
//! empty while its sender waits. Here the same is done for today's kernels, whose buffers grow by themselves
//! up to a bound.

use super::host::Host;
use super::item::{Change, Item};
use super::need::{Carrier, Need};
use causeway_gateway::{UDP_BUFFER_BYTES, lanes, may_begin_anew};

/// Files that a gateway needs for two hundred ranks, half of them at each site, that all talk to all: one for
/// each stream.
const FILES: u64 = 10_000;

/// The kernel keeps half of a buffer for its own records, so a connection can have at most half of it in
/// flight.
const BUFFER_TIMES: u64 = 2;

/// What Hablot et al. (2007) set for all paths of their grid.
const USUAL_BUFFER: u64 = 4 << 20;

/// A larger bound costs memory and gains nothing on any path of today.
const MOST_BUFFER: u64 = 1 << 30;

/// The loss rate from which a congestion control that halves its window at each loss leaves a long path
/// mostly empty.
const LOSSY: f64 = 1e-4;

/// How many segments a window that starts anew has (RFC 6928).
const FIRST_WINDOW: f64 = 10.0;
const SEGMENT: f64 = 1448.0;

/// An item of the kernel that needs no change.
fn item(group: &str, name: &str, current: impl Into<String>) -> Item {
    Item {
        name: name.into(),
        group: group.into(),
        current: current.into(),
        wanted: String::new(),
        is_enough: true,
        why: String::new(),
        gain: String::new(),
        change: Change::Told { what: String::new() },
    }
}

/// A kernel setting beside the value that it should have.
fn setting(host: &Host, name: &'static str, value: &str, is_enough: bool) -> Option<Item> {
    let current = host.setting(name)?;
    Some(Item {
        wanted: value.to_owned(),
        is_enough,
        change: Change::Setting {
            name: name.into(),
            value: value.into(),
        },
        ..item("kernel", &name.replace('/', "."), current)
    })
}

/// All rows, the most important ones first. What a container does not show is left out.
pub fn items(host: &Host, need: &Need) -> Vec<Item> {
    let mut all = Vec::new();
    all.extend(["net/ipv4/tcp_wmem", "net/ipv4/tcp_rmem"].map(|name| tcp_buffer(host, need, name)));
    all.extend(["net/core/wmem_max", "net/core/rmem_max"].map(|name| asked_buffer(host, need, name)));
    all.push(idle(host, need));
    all.push(congestion_control(host, need));
    all.push(queue(host));
    all.extend(
        [
            "net/ipv4/tcp_window_scaling",
            "net/ipv4/tcp_sack",
            "net/ipv4/tcp_timestamps",
        ]
        .map(|name| extension(host, name)),
    );
    all.push(mtu(host, need));
    all.push((need.carrier == Carrier::Gateway).then(|| files(host)));
    all.into_iter().flatten().collect()
}

/// The bound up to which buffers of connections grow.
fn tcp_buffer(host: &Host, need: &Need, name: &'static str) -> Option<Item> {
    let most = host.number(name, 2)?;
    let link = need.link.as_ref()?;
    let on_the_way = need.on_the_way()?;
    let shares = match need.carrier {
        Carrier::Ranks => 1,
        // The gateway opens as many lanes as the path needs, and together they fill it.
        Carrier::Gateway => lanes::most() as u64,
    };
    let least = (BUFFER_TIMES * on_the_way / shares).max(1);
    let wanted = (2 * least).clamp(USUAL_BUFFER, MOST_BUFFER).next_power_of_two();
    let keep = |at| host.number(name, at).unwrap_or_default();
    let value = format!("{} {} {wanted}", keep(0), keep(1));
    let possible = (shares * most / BUFFER_TIMES * 8) as f64 / link.round_trip_us;
    let rate = link.rate_bits_per_second / 1e6;
    let who = match need.carrier {
        Carrier::Ranks => "one connection".to_owned(),
        Carrier::Gateway => format!("{shares} lanes"),
    };
    let is_enough = most >= least;
    let why = format!(
        "a path of {:.1} ms and {rate:.0} Mbit/s holds {} kB; with this bound {who} can carry {possible:.0} Mbit/s",
        link.round_trip_us / 1e3,
        on_the_way >> 10
    );
    let gain = match is_enough {
        true => String::new(),
        false => format!("up to {:.1} times the rate of one long message", rate / possible),
    };
    let item = setting(host, name, &value, is_enough)?;
    Some(Item { why, gain, ..item })
}

/// The bound of buffers whose size a process asks for.
fn asked_buffer(host: &Host, need: &Need, name: &'static str) -> Option<Item> {
    let current = host.number(name, 0)?;
    let (wanted, why) = match need.carrier {
        Carrier::Gateway => (
            UDP_BUFFER_BYTES as u64,
            "lanes over QUIC ask for it: with less, bursts may lose datagrams".to_owned(),
        ),
        Carrier::Ranks => {
            let wanted = (BUFFER_TIMES * need.on_the_way()?).clamp(USUAL_BUFFER, MOST_BUFFER);
            (
                wanted.next_power_of_two(),
                "programs that set their buffers get no more, and such buffers do not grow".to_owned(),
            )
        }
    };
    let is_enough = current >= wanted;
    let gain = match (is_enough, need.carrier) {
        (true, _) => "",
        (false, Carrier::Gateway) => "fewer losses in bursts over QUIC",
        (false, Carrier::Ranks) => "buffers set by hand are not cut",
    };
    let item = setting(host, name, &wanted.to_string(), is_enough)?;
    Some(Item {
        why,
        gain: gain.into(),
        ..item
    })
}

/// Whether a window shrinks in a pause.
fn idle(host: &Host, need: &Need) -> Option<Item> {
    let name = "net/ipv4/tcp_slow_start_after_idle";
    let user = match need.carrier {
        Carrier::Ranks => host.setting("net/ipv4/tcp_congestion_control")?,
        Carrier::Gateway => &need.lanes_use,
    };
    let is_exempt = user.starts_with("bbr");
    let item = setting(host, name, "0", is_exempt || host.setting(name)? == "0")?;
    let why = match is_exempt {
        true => format!("{user} keeps its rate in a pause, whatever this setting is"),
        false => {
            "after a pause of one retransmission timeout (200 ms), a connection starts again with 10 segments"
                .to_owned()
        }
    };
    let gain = match (item.is_enough, need.on_the_way(), need.round_trip_ms()) {
        (false, Some(held), Some(round_trip)) => {
            // The window doubles in each round trip until it holds as much as the path does.
            let doublings = (held as f64 / (FIRST_WINDOW * SEGMENT)).log2().max(0.0);
            format!(
                "up to {:.0} ms for a message of {} kB after a pause",
                doublings.ceil() * round_trip,
                held >> 10
            )
        }
        _ => String::new(),
    };
    Some(Item { why, gain, ..item })
}

fn congestion_control(host: &Host, need: &Need) -> Option<Item> {
    match need.carrier {
        Carrier::Gateway => Some(lane_congestion_control(host, &need.lanes_want)),
        Carrier::Ranks => {
            let name = "net/ipv4/tcp_congestion_control";
            let current = host.setting(name)?;
            let has = host
                .setting("net/ipv4/tcp_available_congestion_control")
                .unwrap_or_default();
            let has_bbr = has.split(' ').any(|name| name == "bbr");
            let is_enough = current.starts_with("bbr") || need.loss < LOSSY || !has_bbr;
            let why = match need.loss < LOSSY {
                true => "the path loses too few segments for it to matter".to_owned(),
                false => format!(
                    "the path loses {:.2} % of the segments, and {current} shrinks its window at each loss",
                    need.loss * 100.0
                ),
            };
            let gain = if is_enough {
                ""
            } else {
                "the rate no longer follows losses"
            };
            let item = setting(host, name, if is_enough { current } else { "bbr" }, is_enough)?;
            Some(Item {
                why,
                gain: gain.into(),
                ..item
            })
        }
    }
}

/// Whether this user may choose the congestion control that lanes want.
fn lane_congestion_control(host: &Host, wanted: &str) -> Item {
    let default = host
        .setting("net/ipv4/tcp_congestion_control")
        .unwrap_or("another one");
    let has = host
        .setting("net/ipv4/tcp_available_congestion_control")
        .unwrap_or_default();
    let allowed = host
        .setting("net/ipv4/tcp_allowed_congestion_control")
        .unwrap_or_default();
    let name = "congestion control";
    if may_begin_anew(wanted) {
        return Item {
            wanted: wanted.into(),
            why: "lanes choose it, so that losses do not slow them".into(),
            ..item("kernel", name, format!("{wanted} may be chosen"))
        };
    }
    let is_there = has.split(' ').any(|name| name == wanted);
    let why = match is_there {
        true => {
            format!("this user may not choose {wanted}, so lanes use {default}, and losses slow them more")
        }
        false => {
            format!("this kernel has not loaded {wanted}, so lanes use {default}, and losses slow them more")
        }
    };
    let change = match is_there {
        true => Change::Setting {
            name: "net/ipv4/tcp_allowed_congestion_control".into(),
            value: format!("{allowed} {wanted}"),
        },
        false => Change::Told {
            what: format!("modprobe tcp_{wanted} (on the head node; a container uses the host's kernel)"),
        },
    };
    Item {
        wanted: wanted.into(),
        is_enough: false,
        why,
        gain: "the rate no longer follows losses".into(),
        change,
        ..item("kernel", name, default)
    }
}

fn queue(host: &Host) -> Option<Item> {
    let name = "net/core/default_qdisc";
    let is_old = host.kernel.is_some_and(|kernel| kernel < (4, 13));
    let uses_bbr = host
        .setting("net/ipv4/tcp_congestion_control")?
        .starts_with("bbr");
    let item = setting(host, name, "fq", !(is_old && uses_bbr))?;
    let why = match is_old {
        true => "BBR needs fq for pacing on kernels before Linux 4.13",
        false => "any will do: since Linux 4.13, TCP paces by itself",
    };
    let wanted = if item.is_enough {
        item.current.clone()
    } else {
        "fq".into()
    };
    Some(Item {
        why: why.into(),
        wanted,
        ..item
    })
}

/// Extensions of TCP that every kernel has, unless somebody has switched them off.
fn extension(host: &Host, name: &'static str) -> Option<Item> {
    // tcp_timestamps may also be 2: without a random offset.
    let is_on = host.setting(name)? != "0";
    let value = if is_on { host.setting(name)? } else { "1" };
    let item = setting(host, name, value, is_on)?;
    Some(Item {
        why: "without it, a path that holds more than 64 kB, or that has losses, stays partly empty".into(),
        gain: if is_on {
            String::new()
        } else {
            "a window above 64 kB, and fast repair of losses".into()
        },
        ..item
    })
}

fn mtu(host: &Host, need: &Need) -> Option<Item> {
    if need.mtu_bytes == 0 {
        return None;
    }
    let is_usual = need.mtu_bytes >= 1500 || host.setting("net/ipv4/tcp_mtu_probing")? != "0";
    let base = item("network", "MTU", format!("{} bytes", need.mtu_bytes));
    Some(Item {
        wanted: "1500 bytes, or MTU probing".into(),
        is_enough: is_usual,
        why: "a tunnel or VPN on the path takes less; if its ICMP messages are dropped, long packets vanish"
            .into(),
        gain: if is_usual {
            String::new()
        } else {
            "connections do not hang where routers send no ICMP messages".into()
        },
        change: match is_usual {
            true => base.change.clone(),
            false => Change::Setting {
                name: "net/ipv4/tcp_mtu_probing".into(),
                value: "1".into(),
            },
        },
        ..base
    })
}

/// The hard limit on open files, because the gateway raises its own limit to it.
fn files(host: &Host) -> Item {
    let shown = host
        .files
        .map_or_else(|| "not shown".to_owned(), |limit| limit.to_string());
    let is_enough = host.files.is_none_or(|limit| limit >= FILES);
    Item {
        wanted: FILES.to_string(),
        is_enough,
        why: "the gateway carries at most this many streams at a time".into(),
        gain: if is_enough {
            String::new()
        } else {
            "jobs with more ranks".into()
        },
        change: Change::Told {
            what: format!("nofile {FILES} in /etc/security/limits.conf, or LimitNOFILE of its unit"),
        },
        ..item("limits", "open files", shown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_bench::plan::KnownLink;

    fn host() -> Host {
        let mut host = Host::default();
        (host.files, host.kernel) = (Some(524_288), Some((6, 1)));
        host.with("net/core/default_qdisc", "pfifo_fast")
            .with("net/core/rmem_max", "212992")
            .with("net/core/wmem_max", "212992")
            .with("net/ipv4/tcp_available_congestion_control", "reno cubic bbr")
            .with("net/ipv4/tcp_allowed_congestion_control", "reno cubic")
            .with("net/ipv4/tcp_congestion_control", "cubic")
            .with("net/ipv4/tcp_mtu_probing", "0")
            .with("net/ipv4/tcp_rmem", "4096 131072 6291456")
            .with("net/ipv4/tcp_wmem", "4096 16384 4194304")
            .with("net/ipv4/tcp_sack", "1")
            .with("net/ipv4/tcp_timestamps", "1")
            .with("net/ipv4/tcp_window_scaling", "1")
            .with("net/ipv4/tcp_slow_start_after_idle", "1")
    }

    fn need(carrier: Carrier, round_trip_us: f64) -> Need {
        Need {
            carrier,
            link: Some(KnownLink {
                round_trip_us,
                rate_bits_per_second: 1e9,
                source: "given".into(),
            }),
            loss: 0.0,
            mtu_bytes: 1500,
            lanes_use: "bbr".into(),
            lanes_want: "reno".into(),
        }
    }

    fn named(host: &Host, need: &Need, name: &str) -> Item {
        let mut all = items(host, need).into_iter();
        all.find(|item| item.name == name).unwrap()
    }

    #[test]
    fn buffers_must_hold_twice_what_is_on_the_way() {
        let near = named(&host(), &need(Carrier::Ranks, 11_600.0), "net.ipv4.tcp_wmem");
        assert!(near.is_enough, "{near:?}");
        let far = named(&host(), &need(Carrier::Ranks, 90_000.0), "net.ipv4.tcp_wmem");
        assert!(!far.is_enough);
        // 90 ms at 1 Gbit/s hold 11.25 MB: twice that is needed, and twice as much again is asked for.
        assert_eq!(far.wanted, "4096 16384 67108864");
        assert_eq!(
            far.change.command(),
            "sysctl -w net.ipv4.tcp_wmem='4096 16384 67108864'"
        );
        assert!(far.gain.contains("5.4 times"), "{}", far.gain);
        let lanes = named(&host(), &need(Carrier::Gateway, 90_000.0), "net.ipv4.tcp_wmem");
        assert!(lanes.is_enough, "{lanes:?}");
    }

    #[test]
    fn a_pause_matters_to_those_whose_window_shrinks() {
        let ranks = named(
            &host(),
            &need(Carrier::Ranks, 11_600.0),
            "net.ipv4.tcp_slow_start_after_idle",
        );
        // 1.45 MB are 100 times 10 segments: seven doublings.
        assert!(!ranks.is_enough && ranks.gain.contains("81 ms"), "{}", ranks.gain);
        let lanes = named(
            &host(),
            &need(Carrier::Gateway, 11_600.0),
            "net.ipv4.tcp_slow_start_after_idle",
        );
        assert!(lanes.is_enough && lanes.why.contains("bbr"), "{lanes:?}");
    }

    #[test]
    fn losses_ask_for_another_congestion_control_and_a_missing_extension_for_itself() {
        let lossy = Need {
            loss: 0.002,
            ..need(Carrier::Ranks, 11_600.0)
        };
        let found = named(&host(), &lossy, "net.ipv4.tcp_congestion_control");
        assert!(!found.is_enough && found.wanted == "bbr", "{found:?}");
        let clean = named(
            &host(),
            &need(Carrier::Ranks, 11_600.0),
            "net.ipv4.tcp_congestion_control",
        );
        assert!(clean.is_enough && clean.wanted == "cubic");
        let without = host().with("net/ipv4/tcp_sack", "0");
        assert!(!named(&without, &need(Carrier::Ranks, 1.0), "net.ipv4.tcp_sack").is_enough);
    }

    #[test]
    fn a_congestion_control_that_there_is_not_says_what_to_load() {
        let item = lane_congestion_control(&host(), "no_such_thing");
        assert!(!item.is_enough && item.change.command().contains("modprobe tcp_no_such_thing"));
        assert!(lane_congestion_control(&host(), "reno").is_enough);
    }

    #[test]
    fn what_a_container_does_not_show_is_left_out() {
        let all = items(&Host::default(), &need(Carrier::Ranks, 11_600.0));
        assert!(all.iter().all(|item| item.group != "kernel"), "{all:?}");
    }
}
