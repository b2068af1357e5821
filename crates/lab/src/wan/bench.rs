//! The figures of the emulator: round trip at rest and on a busy machine, rate and CPU time under one TCP
//! flow.
//!
//! It only measures, and judges nothing. [`bench()`] makes its own two namespaces, [`measure`] uses those of
//! a lab.

use std::io::{self, BufRead, BufReader};
use std::net::Ipv4Addr;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::ping::Pinger;
use super::testbed::{End, Testbed, TestbedError};
use super::{FRAMING_BYTES, LinkSpec, LinkStats, Wan, WanError};

/// How much to measure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Effort {
    /// Echo requests for each round-trip figure.
    pub probes: u16,
    /// Pause before each request, so that the emulator sleeps, and its timer is measured, too.
    pub pause: Duration,
    /// How long iperf3 sends, after two seconds of start that do not count.
    pub transfer: Duration,
    /// Congestion control of the flow, which tcp_allowed_congestion_control must list. The default differs
    /// from machine to machine, and would make figures incomparable.
    pub congestion: String,
}

impl Default for Effort {
    /// Takes about twenty seconds in all.
    fn default() -> Self {
        Effort {
            probes: 200,
            pause: Duration::from_millis(5),
            transfer: Duration::from_secs(8),
            congestion: "cubic".into(),
        }
    }
}

/// Seconds of slow start that iperf3 leaves out of its figure.
const OMITTED: Duration = Duration::from_secs(2);

/// How long an echo reply may take before it counts as lost.
const REPLY_DEADLINE: Duration = Duration::from_secs(2);

/// Bytes of TCP payload in a 1500-byte packet, with the time stamp option that Linux always uses.
const PAYLOAD_BYTES: u64 = 1448;

/// Round trips measured by ICMP echo.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RoundTrips {
    /// Half of them were faster than this.
    pub median: Duration,
    /// The fastest.
    pub min: Duration,
    /// 99 of 100 were faster than this.
    pub p99: Duration,
    /// Requests without a reply.
    pub lost: u64,
}

/// What was measured on one link.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// The values that the link was given.
    pub asked: LinkSpec,
    /// The limit for an echo: the round trip of the link, and twice the serialisation of the echo.
    pub rtt_limit: Duration,
    /// Round trips on an otherwise idle machine.
    pub rtt_idle: RoundTrips,
    /// Round trips while as many threads as there are cores busy-wait, as MPI ranks do.
    pub rtt_busy: RoundTrips,
    /// Payload bits per second of one TCP flow, as the receiver saw it.
    pub tcp_bits_per_second: f64,
    /// How much of the link's rate is left for TCP payload after headers and framing.
    pub tcp_limit_bits_per_second: f64,
    /// Congestion control of that flow.
    pub tcp_congestion: String,
    /// Segments that this flow sent again.
    pub tcp_retransmits: u64,
    /// Wake-ups of the emulator thread per second during the flow.
    pub emulator_wakeups_per_second: f64,
    /// CPU time of the emulator thread per second of wall clock while the flow ran: 0.5 is half a core.
    pub emulator_cores: f64,
    /// The counters of the two directions afterwards.
    pub links: Vec<LinkStats>,
}

/// Measures a link with the values `asked`, between two namespaces made for it.
///
/// # Errors
/// No permission to make namespaces or TUN devices, no iperf3, or an exchange that fails.
pub fn bench(asked: &LinkSpec, effort: &Effort) -> Result<Figures, MeasureError> {
    let testbed = Testbed::start(asked)?;
    let [from, to] = &testbed.ends;
    measure(asked, from, to, &testbed.wan, effort)
}

/// Measures the path between two ends that `wan` joins by a link with the values `asked`, from `from` to
/// `to`. The caller must be allowed to enter both namespaces.
///
/// # Errors
/// No permission to enter a namespace, no iperf3, or an exchange that fails.
pub fn measure(
    asked: &LinkSpec,
    from: &End,
    to: &End,
    wan: &Wan,
    effort: &Effort,
) -> Result<Figures, MeasureError> {
    let echo = |source| MeasureError::Echo {
        target: to.address,
        source,
    };
    let ping = || {
        from.namespace
            .inside(|| round_trips(to.address, effort))
            .map_err(echo)
    };
    let rtt_idle = ping()?;
    let rtt_busy = while_busy(ping)?;
    let before = wan.totals()?;
    let started = Instant::now();
    let transfer = iperf3(from, to, effort)?;
    let seconds = started.elapsed().as_secs_f64();
    let after = wan.totals()?;
    let rate = asked.rate_bits_per_second as f64;
    // 84 bytes of echo packet each way.
    let echo_bits = (2 * (84 + FRAMING_BYTES) * 8) as f64;
    Ok(Figures {
        asked: asked.clone(),
        rtt_limit: asked.rtt + Duration::from_secs_f64(echo_bits / rate),
        rtt_idle,
        rtt_busy,
        tcp_bits_per_second: transfer.bits_per_second,
        tcp_limit_bits_per_second: rate * PAYLOAD_BYTES as f64 / (1500 + FRAMING_BYTES) as f64,
        tcp_congestion: transfer.congestion,
        tcp_retransmits: transfer.retransmits,
        emulator_wakeups_per_second: (after.wakeups - before.wakeups) as f64 / seconds,
        emulator_cores: (after.cpu - before.cpu).as_secs_f64() / seconds,
        links: wan.stats(),
    })
}

fn round_trips(target: Ipv4Addr, effort: &Effort) -> io::Result<RoundTrips> {
    let pinger = Pinger::new(target)?;
    let mut took = Vec::with_capacity(usize::from(effort.probes));
    for sequence in 0..effort.probes {
        std::thread::sleep(effort.pause);
        let left_at = pinger.send(sequence)?;
        let deadline = Instant::now() + REPLY_DEADLINE;
        while let Some((number, at)) = pinger.receive(deadline.saturating_duration_since(Instant::now()))? {
            // A reply to an earlier request, which counted as lost, arrives too late.
            if number == sequence {
                took.push(at.saturating_sub(left_at));
                break;
            }
        }
    }
    took.sort();
    let at = |fraction: f64| took.get((took.len() as f64 * fraction) as usize).copied();
    match (at(0.5), took.first(), at(0.99)) {
        (Some(median), Some(&min), Some(p99)) => Ok(RoundTrips {
            median,
            min,
            p99,
            lost: u64::from(effort.probes) - took.len() as u64,
        }),
        _ => Err(io::Error::new(
            io::ErrorKind::TimedOut,
            format!("no reply to {} requests", effort.probes),
        )),
    }
}

/// Runs `work` while every core has a thread that busy-waits.
fn while_busy<T>(work: impl FnOnce() -> T) -> T {
    let done = AtomicBool::new(false);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let result = work();
        done.store(true, Ordering::Relaxed);
        result
    })
}

struct Transfer {
    bits_per_second: f64,
    retransmits: u64,
    congestion: String,
}

fn iperf3(from: &End, to: &End, effort: &Effort) -> Result<Transfer, MeasureError> {
    let address = to.address.to_string();
    let mut server = to
        .namespace
        .inside(|| listening_server(&address))
        .map_err(MeasureError::iperf3)?;
    let seconds = effort.transfer.as_secs().max(1).to_string();
    let omitted = OMITTED.as_secs().to_string();
    let arguments = [
        "-c",
        &address,
        "-t",
        &seconds,
        "-O",
        &omitted,
        "-C",
        &effort.congestion,
        "-J",
        "--connect-timeout",
        "5000",
    ];
    let output = from
        .namespace
        .inside(|| Command::new("iperf3").args(arguments).output());
    // One exchange ends the server (-1); after a failed one, it would wait for ever. Either way it is no
    // longer needed.
    let _ = server.kill();
    let _ = server.wait();
    let output = output.map_err(MeasureError::iperf3)?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    transfer(&said).ok_or(MeasureError::Transfer {
        to: to.address,
        status: output.status,
        said,
    })
}

/// Starts a server in the namespace of the calling thread; returns once it listens.
fn listening_server(address: &str) -> io::Result<Child> {
    let arguments = ["-s", "-1", "-B", address, "--forceflush"];
    let mut server = Command::new("iperf3")
        .args(arguments)
        .stdout(Stdio::piped())
        .spawn()?;
    let lines = server.stdout.take().map(|stdout| BufReader::new(stdout).lines());
    for line in lines.into_iter().flatten() {
        if line?.contains("Server listening") {
            return Ok(server);
        }
    }
    let status = server.wait()?;
    Err(io::Error::other(format!(
        "iperf3 {}: {status}, not listening",
        arguments.join(" ")
    )))
}

fn transfer(json: &str) -> Option<Transfer> {
    let report: serde_json::Value = serde_json::from_str(json).ok()?;
    let end = report.get("end")?;
    Some(Transfer {
        bits_per_second: end.get("sum_received")?.get("bits_per_second")?.as_f64()?,
        retransmits: end.get("sum_sent")?.get("retransmits")?.as_u64()?,
        congestion: end.get("sender_tcp_congestion")?.as_str()?.into(),
    })
}

/// Why a measurement could not be made.
#[derive(Debug, Error)]
pub enum MeasureError {
    /// The namespaces could not be set up.
    #[error("set up the testbed")]
    Testbed(#[from] TestbedError),
    /// The WAN has ended.
    #[error("ask the WAN for its counters")]
    Wan(#[from] WanError),
    /// The echo requests failed.
    #[error("measure the round trip to {target} by ICMP echo (needs CAP_NET_RAW in the namespace)")]
    Echo {
        /// The address that was asked.
        target: Ipv4Addr,
        /// The failure.
        source: io::Error,
    },
    /// iperf3 could not be run.
    #[error("run iperf3 (Debian package iperf3)")]
    Iperf3 {
        /// The failure.
        source: io::Error,
    },
    /// iperf3 ran and reported no transfer.
    #[error("iperf3 to {to}: {status}, no figures in its report: {said}")]
    Transfer {
        /// The receiving end.
        to: Ipv4Addr,
        /// How the command ended.
        status: std::process::ExitStatus,
        /// What the command printed.
        said: String,
    },
}

impl MeasureError {
    fn iperf3(source: io::Error) -> Self {
        MeasureError::Iperf3 { source }
    }
}
