//! The present state of a gateway, for `causeway status` and for the commands that check it before they act.

use crate::site::{Link, SiteInfo};
use serde::{Deserialize, Serialize};

/// A site as the gateway sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SiteStatus {
    /// Its name, known even before it has ever answered.
    pub name: String,
    /// What it announced; `None` until its tunnel has been up once.
    pub info: Option<SiteInfo>,
    /// `None` if it can be reached now, else why not, as a sentence.
    pub unreachable: Option<String>,
}

/// A gateway's state.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The gateway's own site.
    pub site: String,
    /// Version of its program; empty from a gateway that does not report it.
    #[serde(default)]
    pub version: String,
    /// Process id of the gateway, the same as long as it runs.
    pub pid: u32,
    /// Process id of its worker, which does the work; 0 from a gateway without one.
    #[serde(default)]
    pub worker: u32,
    /// How often a worker has ended without being told to; each time, another one took its place.
    #[serde(default)]
    pub worker_ends: u64,
    /// The last of these ends.
    #[serde(default)]
    pub last_worker_end: Option<WorkerEnd>,
    /// How often the gateway was handed over to another program, which kept the process id.
    #[serde(default)]
    pub handed_over: u64,
    /// Whether what crosses to other sites may be in clear text.
    #[serde(default)]
    pub clear_text: bool,
    /// Its place in a grid with a broker, if it has one.
    #[serde(default)]
    pub grid: Option<GridStatus>,
    /// Resident memory of the gateway.
    pub resident_bytes: u64,
    /// Processor time of all its threads, in the kernel and outside; 0 from a gateway that does not report
    /// it.
    #[serde(default)]
    pub processor_microseconds: u64,
    /// Streams open now.
    pub streams: usize,
    /// Most streams that were ever open at once.
    pub streams_peak: usize,
    /// Streams opened since the gateway started.
    pub streams_opened: u64,
    /// Connections between other sites that this gateway relays now.
    #[serde(default)]
    pub relayed: usize,
    /// Bytes relayed for other sites since the gateway started, each counted once.
    #[serde(default)]
    pub relayed_bytes: u64,
    /// Connections refused since the gateway started, by reason.
    pub refused: std::collections::BTreeMap<String, u64>,
    /// Jobs running now, in the order of their names.
    pub jobs: Vec<JobStatus>,
    /// What other sites have used of the nodes of this site's batch system.
    #[serde(default)]
    pub budgets: Vec<BudgetStatus>,
    /// All sites, this gateway's own first.
    pub sites: Vec<SiteStatus>,
    /// Tunnels that are up or wait for a lane.
    pub tunnels: Vec<TunnelStatus>,
}

/// What allocations of one other site have used here.
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

/// The end of a gateway's worker that had not been told to end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerEnd {
    /// When it ended, in seconds since 1970.
    pub at: u64,
    /// How it ended, as in "was killed by signal 9 (SIGKILL)".
    pub how: String,
}

/// One job, as far as this gateway carries it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobStatus {
    /// The command, or another name for what runs.
    pub name: String,
    /// Its share of a busy tunnel beside other jobs'.
    pub weight: u32,
    /// Streams open now, including those of its launcher's daemons.
    pub streams: usize,
    /// Bytes received from its processes at this site.
    pub sent_bytes: u64,
    /// Bytes that arrived for its processes at this site.
    pub received_bytes: u64,
}

/// One tunnel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TunnelStatus {
    /// The site at the far end.
    pub site: String,
    /// Address of the gateway at the far end, now or last.
    pub peer: std::net::SocketAddr,
    /// Least round-trip time seen on its lanes, without the time spent in queues; 0 if all lanes are down.
    pub rtt_microseconds: u32,
    /// The rate that its lanes together were seen to deliver; 0 if nothing is known.
    #[serde(default)]
    pub rate_bits_per_second: u64,
    /// Share of the segments that were sent again, over the lanes' lives.
    #[serde(default)]
    pub loss: f64,
    /// Congestion control of the first lane.
    pub congestion_control: String,
    /// How many streams are open now.
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
    /// How long all lanes have been down, while its streams wait.
    #[serde(default)]
    pub down_seconds: Option<f64>,
    /// Why there is no better path than through a relay, or no lane over QUIC on a path that loses packets;
    /// empty if no reason is known.
    #[serde(default)]
    #[serde(rename = "hindrance")]
    pub why_no_better_way: String,
    /// Why the far site takes no part in jobs of this one, if it has said so.
    #[serde(default)]
    pub refuses_jobs: Option<String>,
}

impl TunnelStatus {
    /// The link that it uses; `None` while nothing is known about it.
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
    /// The address at which the broker sees this gateway.
    pub observed: Option<std::net::SocketAddr>,
    /// Own public addresses that the broker could not dial, and why.
    pub unreached: Vec<(std::net::SocketAddr, String)>,
    /// When the certificate begins and ends, in seconds since 1970. It is renewed after two thirds of its
    /// life.
    #[serde(default)]
    pub certificate_begins: u64,
    /// See `certificate_begins`.
    pub certificate_ends: u64,
    /// The address of the broker that answered last.
    #[serde(default)]
    pub broker: Option<std::net::SocketAddr>,
    /// How far this host's clock is ahead of the broker's, as last reported to the gateway.
    #[serde(default)]
    pub clock_ahead_seconds: Option<i64>,
    /// The brokers, if the grid has several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub brokers: Vec<BrokerStatus>,
}

/// One of several brokers, as the gateway sees it.
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
    /// opened a path, over UDP or TCP, or "relay through SITE".
    #[serde(default)]
    pub technique: String,
    /// Bytes given to the kernel, including frame headers and frames sent again. This and all that follows is
    /// of the present connection.
    pub sent_bytes: u64,
    /// Bytes taken from the kernel.
    pub received_bytes: u64,
    /// Least round-trip time seen.
    #[serde(default)]
    pub least_rtt_microseconds: u32,
    /// What the lane was seen to deliver: BBR's estimate, or the last acknowledged flight's.
    #[serde(default)]
    pub rate_bits_per_second: u64,
    /// Whether neither training nor a transfer has found the rate yet: it then says little about the path.
    #[serde(default)]
    pub rate_is_a_guess: bool,
    /// Congestion window: bytes that may be in flight.
    #[serde(default)]
    pub window_bytes: u64,
    /// TCP segments with data sent, including those sent again.
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
    /// Whether the gateway trains the lane, or the lane waits for its turn. Training fills it until its
    /// congestion control knows the path.
    #[serde(default)]
    pub trains: bool,
    /// How often it sent after a pause so long that TCP starts slowly again, under any congestion control
    /// except BBR.
    #[serde(default)]
    pub idle_restarts: u64,
}
