//! The present state of a gateway, for `causeway status` and for the commands that look before they act.

use crate::site::{Link, SiteInfo};
use serde::{Deserialize, Serialize};

/// A site as the asked gateway sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SiteStatus {
    /// Its name, known even before it ever answered.
    pub name: String,
    /// What it announced; `None` until its tunnel has been up once.
    pub info: Option<SiteInfo>,
    /// `None` when it can be reached now, else why not, in one sentence.
    pub unreachable: Option<String>,
}

/// A gateway's state.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The gateway's own site.
    pub site: String,
    /// Version of its program; empty from one that does not say.
    #[serde(default)]
    pub version: String,
    /// Process id of the gateway, the same as long as it runs.
    pub pid: u32,
    /// Process id of its worker, which does the work; 0 from a gateway without one.
    #[serde(default)]
    pub worker: u32,
    /// How often a worker has ended that was not told to; another one took its place each time.
    #[serde(default)]
    pub worker_ends: u64,
    /// The last of these ends.
    #[serde(default)]
    pub last_worker_end: Option<WorkerEnd>,
    /// How often it was handed over to another program, which had the same process id.
    #[serde(default)]
    pub handed_over: u64,
    /// What crosses to other sites may be in clear text.
    #[serde(default)]
    pub clear_text: bool,
    /// Its place in a grid with a broker, if it has one.
    #[serde(default)]
    pub grid: Option<GridStatus>,
    /// Resident memory of the gateway.
    pub resident_bytes: u64,
    /// Processor time of all its threads, in the kernel and outside; 0 from one that does not say.
    #[serde(default)]
    pub processor_microseconds: u64,
    /// Streams open now.
    pub streams: usize,
    /// Most streams ever open at once.
    pub streams_peak: usize,
    /// Streams opened since the start.
    pub streams_opened: u64,
    /// Connections of two other sites that this gateway carries now.
    #[serde(default)]
    pub relayed: usize,
    /// Bytes carried for other sites since the start, each counted once.
    #[serde(default)]
    pub relayed_bytes: u64,
    /// Connections refused since the start, by reason.
    pub refused: std::collections::BTreeMap<String, u64>,
    /// Jobs running now, in the order of their names.
    pub jobs: Vec<JobStatus>,
    /// What other sites have taken of the nodes of this site's batch system.
    #[serde(default)]
    pub budgets: Vec<BudgetStatus>,
    /// All sites, the own one first.
    pub sites: Vec<SiteStatus>,
    /// Tunnels that are up or wait for a lane.
    pub tunnels: Vec<TunnelStatus>,
}

/// What allocations of one other site have taken here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudgetStatus {
    /// The other site.
    pub site: String,
    /// Core-minutes within the last 24 hours.
    pub minutes_in_a_day: u64,
    /// Core-hours that it may take within 24 hours; `None` if there is no bound.
    pub hours_a_day: Option<u32>,
    /// Core-minutes within the last 30 days.
    pub minutes_in_a_month: u64,
    /// Core-hours that it may take within 30 days; `None` if there is no bound.
    pub hours_a_month: Option<u32>,
}

/// The end of a gateway's worker that was not told to end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerEnd {
    /// When, in seconds since 1970.
    pub at: u64,
    /// How, as in "was killed by signal 9 (SIGKILL)".
    pub how: String,
}

/// One job, as far as this gateway carries it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobStatus {
    /// What runs.
    pub name: String,
    /// Its share of a busy tunnel beside other jobs'.
    pub weight: u32,
    /// Streams open now, those of its launcher's daemons among them.
    pub streams: usize,
    /// Bytes taken from its processes of this site.
    pub sent_bytes: u64,
    /// Bytes that came for its processes of this site.
    pub received_bytes: u64,
}

/// One tunnel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TunnelStatus {
    /// Site at the far end.
    pub site: String,
    /// Address of the gateway at the far end, now or last.
    pub peer: std::net::SocketAddr,
    /// Least round-trip time seen on its lanes, without the waiting in queues; 0 when all are down.
    pub rtt_microseconds: u32,
    /// What its lanes together were seen to deliver; 0 when nothing is known.
    #[serde(default)]
    pub rate_bits_per_second: u64,
    /// Share of the segments that were sent again, over the lanes' lives.
    #[serde(default)]
    pub loss: f64,
    /// Congestion control of the first lane.
    pub congestion_control: String,
    /// Streams open now.
    pub streams: usize,
    /// Application bytes sent.
    pub sent_bytes: u64,
    /// Application bytes received.
    pub received_bytes: u64,
    /// Lanes that are up.
    #[serde(default)]
    pub lanes: Vec<LaneStatus>,
    /// Lanes that ended while the tunnel went on.
    #[serde(default)]
    pub lanes_lost: u64,
    /// How long all lanes have been down, its streams waiting.
    #[serde(default)]
    pub down_seconds: Option<f64>,
    /// Why there is no better way than through a relay, or no lane over QUIC on a path that loses; empty if
    /// no reason is known.
    #[serde(default)]
    #[serde(rename = "hindrance")]
    pub why_no_better_way: String,
    /// Why the far site takes no part in jobs of this one, if it has said so.
    #[serde(default)]
    pub refuses_jobs: Option<String>,
}

impl TunnelStatus {
    /// The link that it goes over; `None` while nothing is known of it.
    pub fn link(&self) -> Option<Link> {
        (self.rtt_microseconds > 0).then(|| Link {
            to: self.site.clone(),
            rtt_microseconds: self.rtt_microseconds,
            rate_bits_per_second: self.rate_bits_per_second,
        })
    }
}

/// A gateway's place in a grid with a broker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GridStatus {
    /// The grid's name.
    pub name: String,
    /// Why the broker does not answer, or refuses; `None` while it serves.
    pub broker_away: Option<String>,
    /// Where the broker sees this gateway.
    pub observed: Option<std::net::SocketAddr>,
    /// Own public addresses that the broker could not dial, and why.
    pub unreached: Vec<(std::net::SocketAddr, String)>,
    /// When the certificate begins and ends, in seconds since 1970. It is renewed after two thirds of its
    /// life.
    #[serde(default)]
    pub certificate_begins: u64,
    /// See `certificate_begins`.
    pub certificate_ends: u64,
    /// The broker's address that answered last.
    #[serde(default)]
    pub broker: Option<std::net::SocketAddr>,
    /// How far this host's clock is ahead of the broker's, as far as the gateway was told.
    #[serde(default)]
    pub clock_ahead_seconds: Option<i64>,
    /// The brokers, if the grid has several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub brokers: Vec<BrokerStatus>,
}

/// One broker of several, as the gateway sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BrokerStatus {
    /// Its number in the grid.
    pub number: u8,
    /// Where it is found, `HOST:PORT`.
    pub addresses: Vec<String>,
    /// Why it does not answer; `None` while it does.
    pub away: Option<String>,
}

/// One lane of a tunnel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LaneStatus {
    /// Its number in the tunnel, from 0.
    pub number: usize,
    /// Address of the gateway at the far end.
    pub peer: std::net::SocketAddr,
    /// Smoothed round-trip time as the kernel measures it.
    pub rtt_microseconds: u32,
    /// Congestion control in force.
    pub congestion_control: String,
    /// "clear", "TLS 1.3" or "QUIC".
    #[serde(default)]
    pub carrier: String,
    /// "direct" if this gateway dialled, "dialled in" if the other did, "punched" or "punched (TCP)" if both
    /// made a way, over UDP or TCP, or "relay through SITE".
    #[serde(default)]
    pub technique: String,
    /// Bytes given to the kernel, frame headers and frames sent again among them. Like all that follows, of
    /// the present connection.
    pub sent_bytes: u64,
    /// Bytes taken from the kernel.
    pub received_bytes: u64,
    /// Least round-trip time seen.
    #[serde(default)]
    pub least_rtt_microseconds: u32,
    /// What the lane was seen to deliver: BBR's estimate, or the last acknowledged flight's.
    #[serde(default)]
    pub rate_bits_per_second: u64,
    /// Whether neither training nor a transfer has found the rate yet: it says little of the path.
    #[serde(default)]
    pub rate_is_a_guess: bool,
    /// Congestion window: bytes that may be in flight.
    #[serde(default)]
    pub window_bytes: u64,
    /// TCP segments with data sent, those sent again among them.
    #[serde(default)]
    pub segments: u32,
    /// TCP segments the kernel sent again.
    pub retransmits: u32,
    /// Retransmission timeouts; 0 on kernels before 6.7, which do not count them.
    #[serde(default)]
    pub timeouts: u16,
    /// Segments that arrived out of order, each answered with a duplicate acknowledgement.
    #[serde(default)]
    pub out_of_order: u32,
    /// Datagrams lost on the way here that parity made up for (QUIC).
    #[serde(default)]
    pub repaired: u64,
    /// Largest packet that the path is known to take; 0 when nothing is known.
    #[serde(default)]
    pub mtu_bytes: u32,
    /// The gateway trains the lane, or the lane waits for its turn: it is filled until its congestion control
    /// knows the path.
    #[serde(default)]
    pub trains: bool,
    /// How often it sent after a pause so long that TCP starts slowly again, under any congestion control but
    /// BBR.
    #[serde(default)]
    pub idle_restarts: u64,
}
