//! How a command on the head node talks to its gateway: one JSON line asked, one answered, on a Unix socket.
//!
//! The socket is the user's own (mode 0600), so the file system says who may ask. A job lives exactly as long
//! as the connection that asked for it: however `causeway run` ends, the gateway sees the end.

use crate::private;
use causeway_wire::grid::{self, GridError};
use causeway_wire::{Cidr, Site};
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Version of the request and reply lines. 2: a status tells more of jobs than their names.
pub const VERSION: u32 = 2;

/// Longest line either side reads: a grid of hundreds of sites with thousands of nodes fits.
pub const MAX_LINE_BYTES: usize = 4 * 1024 * 1024;

/// How long an answer may take. Nothing a gateway answers waits for the WAN.
const ANSWER_DEADLINE: Duration = Duration::from_secs(10);

/// Names the gateway's control socket for commands; without it [`default_socket`] is used.
pub const SOCKET_ENV: &str = "CAUSEWAY_CONTROL";

/// One request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// Start a job. The job ends when this connection closes.
    Job {
        /// What runs, for `causeway status` and logs.
        name: String,
        /// Its share of a busy tunnel beside other jobs', 1 to [`MOST_WEIGHT`].
        #[serde(default = "usual_weight")]
        weight: u32,
        /// What is known of it beforehand. Who says it hears of sites that the job loses: [`Reply::Lost`].
        #[serde(default, skip_serializing_if = "Option::is_none")]
        plan: Option<Plan>,
    },
    /// Start the site's remote shell to a node; raw bytes to and from `causeway node-exec` there follow the answer.
    Spawn {
        /// The job's token in hexadecimal.
        token: String,
        /// Node name or address, in any site.
        node: String,
    },
    /// Start a job for one connection of `causeway connect`, which the far gateway makes without a preface: whoever takes it
    /// is no process of a job. The job ends when this connection closes.
    Connect {
        /// Where to, for `causeway status` and logs.
        name: String,
    },
    /// Start a job as [`Request::Job`] does, whose processes are not under the shim: routers hand their connections to the gateways.
    Transparent {
        /// What runs, for `causeway status` and logs.
        name: String,
        /// Its share of a busy tunnel beside other jobs', 1 to [`MOST_WEIGHT`].
        weight: u32,
        /// See [`Request::Job`].
        #[serde(default)]
        plan: Option<Plan>,
    },
    /// A round trip to the gateway of another site, through the tunnel.
    Ping {
        /// Its name.
        site: String,
    },
    /// What the gateway sees at present.
    Status {},
    /// Go on as another program, with all streams and jobs. This request is the same in every version, since it comes from
    /// a newer one; so is its answer, which the other program gives.
    HandOver {
        /// The version of the state that the program goes on from; see [`crate::STATE_VERSION`].
        state_version: u32,
        /// The program, by its absolute path.
        program: PathBuf,
        /// Its configuration, by its absolute path.
        config: PathBuf,
    },
}

/// At this port of a gateway's LAN address, a connection of a [`Request::Connect`] job reaches `causeway sink`, which reads it to
/// its end and then says how many bytes came: for `causeway probe --measure`. Discard's number (RFC 863); nothing listens.
pub const SINK_PORT: u16 = 9;

/// Most that a job may weigh: with more, others would wait longer than MPIs do.
pub const MOST_WEIGHT: u32 = 100;

fn usual_weight() -> u32 {
    1
}

/// Where a job is to run, for the grid's register of jobs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Its sites; none where they are not chosen, which may be any.
    pub sites: Vec<String>,
    /// Its processes; 0 where nobody has said how many.
    pub ranks: u32,
}

/// Version and request, as they stand on the line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Envelope<T> {
    /// See [`VERSION`].
    pub version: u32,
    /// What is asked or answered.
    pub body: T,
}

/// One answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// The job is registered with every site that has a tunnel.
    Job(JobReply),
    /// A line more to who holds a job with a [`Plan`]: a site of it is lost, in one sentence for the user. More may follow.
    Lost(String),
    /// The bytes of the spawned process follow.
    Spawn {},
    /// The far gateway has answered.
    Pong(Pong),
    /// The present state.
    Status(Box<Status>),
    /// The gateway goes on as the program that was asked for.
    HandedOver(HandedOver),
    /// It could not be done; one sentence for the user.
    Error(String),
}

impl Reply {
    /// As it goes out. One that could not be written as JSON, which none is, would be an empty line.
    pub(crate) fn line(&self) -> Vec<u8> {
        let envelope = Envelope {
            version: VERSION,
            body: self,
        };
        let mut line = serde_json::to_vec(&envelope).unwrap_or_default();
        line.truncate(MAX_LINE_BYTES);
        line.push(b'\n');
        line
    }
}

/// A round trip to another gateway.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pong {
    /// The site asked.
    pub site: String,
    /// From giving the question to the tunnel to having read the answer.
    pub round_trip_microseconds: u64,
    /// How far its host's clock is ahead of this one's, give or take half the round trip.
    pub clock_ahead_microseconds: i64,
    /// Version of the program there.
    pub version: String,
}

/// What another program goes on with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandedOver {
    /// The gateway's site.
    pub site: String,
    /// Open streams.
    pub streams: usize,
    /// Running jobs, those of other sites among them.
    pub jobs: usize,
}

/// What `causeway run` needs to know to start an MPI.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobReply {
    /// The job's token in hexadecimal, for the environment of its processes.
    pub token: String,
    /// The grid map in its text form, for the environment of its processes.
    pub grid: String,
    /// The gateway's own site.
    pub site: String,
    /// All sites, the own one first.
    pub sites: Vec<SiteStatus>,
    /// Those of each site whose gateway has told them, by its name. The other end of a link may have measured it otherwise.
    #[serde(default)]
    pub links: std::collections::BTreeMap<String, Vec<Link>>,
}

/// Sites of a grid up to which all links are told: as many as collectives weigh (mpi/src/select/links.c), and few enough for an answer's line and a process's
/// environment.
pub const LINKED_SITES: usize = 64;

/// One link of a site.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// The site at the other end.
    pub to: String,
    /// See [`TunnelStatus::rtt_microseconds`]; never 0.
    pub rtt_microseconds: u32,
    /// See [`TunnelStatus::rate_bits_per_second`].
    pub rate_bits_per_second: u64,
}

/// A site as its gateway announces it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SiteInfo {
    /// Unique in the grid.
    pub name: String,
    /// Address ranges of its nodes as the grid knows them, such as `10.1.0.0/24`.
    pub subnets: Vec<String>,
    /// Where those are virtual, the real ones, in the same order.
    #[serde(default)]
    pub real_subnets: Vec<String>,
    /// Where its gateway takes connections of its own nodes. Real addresses.
    pub gateways: Vec<std::net::SocketAddr>,
    /// Source ports its gateway delivers from, `first-last`.
    pub delivery_ports: String,
    /// Its compute nodes, in the order in which they are to be used.
    pub nodes: Vec<NodeInfo>,
    /// Ports below 1024 to which its gateway carries `causeway connect`; `None` where it knows nothing of that.
    #[serde(default)]
    pub low_ports: Option<Vec<u16>>,
    /// Its gateway carries connections of others.
    #[serde(default)]
    pub relays: bool,
    /// Its gateway takes connections from the site's router, and delivers them from their true sources.
    #[serde(default)]
    pub transparent: bool,
}

impl SiteInfo {
    /// The site as it stands in a grid map.
    ///
    /// # Errors
    /// What of it cannot be, in one sentence.
    pub fn site(&self) -> Result<Site, String> {
        let read = |texts: &[String]| -> Result<Vec<Cidr>, String> {
            let subnets = texts.iter().map(|text| text.parse());
            subnets
                .collect::<Result<_, _>>()
                .map_err(|error: GridError| error.to_string())
        };
        let (subnets, real_subnets) = (read(&self.subnets)?, read(&self.real_subnets)?);
        if subnets.is_empty() || self.gateways.is_empty() {
            return Err("announces no subnet or no gateway".to_owned());
        }
        let mut pairs = subnets.iter().zip(&real_subnets);
        let fits = real_subnets.is_empty() || real_subnets.len() == subnets.len();
        if !fits || !pairs.all(|(subnet, real)| subnet.is_of_size(real)) {
            return Err("announces virtual subnets that are not of its real ones' size".to_owned());
        }
        let mut earlier = subnets.iter().enumerate();
        if !real_subnets.is_empty()
            && earlier.any(|(at, one)| subnets[..at].iter().any(|other| one.overlaps(other)))
        {
            return Err("announces virtual subnets that overlap with each other".to_owned());
        }
        Ok(Site {
            name: self.name.clone(),
            subnets,
            real_subnets,
            gateways: self.gateways.clone(),
            delivery_ports: grid::parse_ports(&self.delivery_ports).map_err(|error| error.to_string())?,
        })
    }
}

/// A compute node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeInfo {
    /// The name its site's remote shell knows.
    pub name: String,
    /// Its address, as the grid knows it; in a configuration, its real one.
    pub address: std::net::IpAddr,
    /// Processes it takes.
    pub slots: u32,
}

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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The gateway's own site.
    pub site: String,
    /// Version of its program; empty from one that does not say.
    #[serde(default)]
    pub version: String,
    /// Process id of the gateway.
    pub pid: u32,
    /// How often it was handed over to another program, which had the same process id.
    #[serde(default)]
    pub handed_over: u64,
    /// Its place in a grid with a broker, where it has one.
    #[serde(default)]
    pub grid: Option<GridStatus>,
    /// Resident memory of the gateway.
    pub resident_bytes: u64,
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
    /// All sites, the own one first.
    pub sites: Vec<SiteStatus>,
    /// Tunnels that are up or wait for a lane.
    pub tunnels: Vec<TunnelStatus>,
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
    /// Why there is no better way than through a relay, or no lane over QUIC where the path loses; empty where nothing is known to be in the way.
    #[serde(default)]
    pub hindrance: String,
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
    /// Why the broker does not answer, or refuses; none while it serves.
    pub broker_away: Option<String>,
    /// Where the broker sees this gateway.
    pub observed: Option<std::net::SocketAddr>,
    /// Own public addresses that the broker could not dial, and why.
    pub unreached: Vec<(std::net::SocketAddr, String)>,
    /// When the certificate begins and ends, in seconds since 1970. It is renewed after two thirds of its life.
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
    /// "direct" where this gateway dialled, "dialled in" where the other did, "punched" or "punched (TCP)" where both made a way, over UDP or TCP, or "relay through SITE".
    #[serde(default)]
    pub technique: String,
    /// Bytes given to the kernel, frame headers and frames sent again among them. Like all that follows, of the present
    /// connection.
    pub sent_bytes: u64,
    /// Bytes taken from the kernel.
    pub received_bytes: u64,
    /// Least round-trip time seen.
    #[serde(default)]
    pub least_rtt_microseconds: u32,
    /// What the lane was seen to deliver: BBR's estimate, or the last acknowledged flight's.
    #[serde(default)]
    pub rate_bits_per_second: u64,
    /// Congestion window: bytes that may be on their way.
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
    /// It is filled, or waits for its turn to be, until its congestion control knows the path.
    #[serde(default)]
    pub trains: bool,
    /// Times it sent after a pause that makes TCP start slowly again under any congestion control but BBR.
    #[serde(default)]
    pub idle_restarts: u64,
}

/// Where a gateway listens for commands when nothing else is said: `$XDG_RUNTIME_DIR/causeway/gateway.sock`, or
/// `/tmp/causeway-UID/gateway.sock` where there is no such directory.
pub fn default_socket() -> PathBuf {
    let base = match std::env::var_os("XDG_RUNTIME_DIR") {
        Some(dir) if !dir.is_empty() => PathBuf::from(dir).join("causeway"),
        _ => PathBuf::from(format!("/tmp/causeway-{}", nix::unistd::getuid())),
    };
    base.join("gateway.sock")
}

/// The socket commands use: the one [`SOCKET_ENV`] names, else the default.
pub fn socket() -> PathBuf {
    std::env::var_os(SOCKET_ENV).map_or_else(default_socket, PathBuf::from)
}

/// Why a gateway could not be asked.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// Nothing listens at the socket.
    #[error(
        "no gateway runs here ({}): {source}; start one with 'causeway gateway --config FILE' or name its socket in \
         CAUSEWAY_CONTROL", path.display()
    )]
    NoGateway {
        /// The socket tried.
        path: PathBuf,
        /// What connecting said.
        source: io::Error,
    },
    /// The socket lies where another user could have put it, the connection broke, or the deadline passed.
    #[error("ask the gateway at {}: {source}", path.display())]
    Io {
        /// The socket used.
        path: PathBuf,
        /// What failed.
        source: io::Error,
    },
    /// The answer is not one of ours.
    #[error("the gateway's answer is not understood: {0}")]
    Answer(String),
    /// The gateway said no.
    #[error("{0}")]
    Refused(String),
}

/// Asks the gateway at `path`. Returns its answer and the connection, positioned after the answer's line.
///
/// # Errors
/// See [`ControlError`]; an answer takes at most ten seconds.
pub fn ask(path: &Path, request: &Request) -> Result<(Reply, UnixStream), ControlError> {
    let io = |source| ControlError::Io {
        path: path.to_owned(),
        source,
    };
    private::check_directory_of(path).map_err(io)?;
    let mut stream = UnixStream::connect(path).map_err(|source| ControlError::NoGateway {
        path: path.to_owned(),
        source,
    })?;
    stream.set_read_timeout(Some(ANSWER_DEADLINE)).map_err(io)?;
    let envelope = Envelope {
        version: VERSION,
        body: request,
    };
    let mut line = serde_json::to_vec(&envelope).map_err(|error| ControlError::Answer(error.to_string()))?;
    line.push(b'\n');
    stream.write_all(&line).map_err(io)?;
    let reply = read_line(&stream).map_err(io)?;
    stream.set_read_timeout(None).map_err(io)?;
    let reply: Envelope<Reply> =
        serde_json::from_slice(&reply).map_err(|error| ControlError::Answer(error.to_string()))?;
    match reply {
        // First of all: a gateway of another version says so.
        Envelope {
            body: Reply::Error(reason),
            ..
        } => Err(ControlError::Refused(reason)),
        Envelope { version, .. } if version != VERSION => Err(ControlError::Answer(format!(
            "version {version}, expected {VERSION}"
        ))),
        Envelope { body, .. } => Ok((body, stream)),
    }
}

/// What a line after the first answer says, without its newline.
///
/// # Errors
/// The line, where it is none of this version.
pub fn later_reply(line: &[u8]) -> Result<Reply, ControlError> {
    match serde_json::from_slice::<Envelope<Reply>>(line) {
        Ok(Envelope {
            version: VERSION,
            body,
        }) => Ok(body),
        Ok(Envelope { version, .. }) => Err(ControlError::Answer(format!(
            "version {version}, expected {VERSION}"
        ))),
        Err(error) => Err(ControlError::Answer(error.to_string())),
    }
}

/// Reads up to the newline and not a byte further: what follows belongs to the caller.
fn read_line(stream: &UnixStream) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    // One byte at a time: a buffered reader would swallow the spawned process's first bytes.
    let mut reader = BufReader::with_capacity(1, stream).take(MAX_LINE_BYTES as u64);
    reader.read_until(b'\n', &mut line)?;
    if line.pop() == Some(b'\n') {
        Ok(line)
    } else {
        Err(io::Error::new(
            io::ErrorKind::UnexpectedEof,
            "the gateway closed before it answered",
        ))
    }
}
