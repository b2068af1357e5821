//! Requests and answers: one JSON line each way.

use crate::site::{Link, NodeInfo};
use crate::status::{SiteStatus, Status};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

/// Version of the request and reply lines. Since 3 a job is requested with the sites that take part in it.
pub const VERSION: u32 = 3;

/// Why a command has no answer although its gateway had begun to look for one. A second request gets one.
pub const NEW_WORKER: &str = "the gateway has a new worker meanwhile; try again";

/// Longest line either side reads: a grid of a thousand sites with hundreds of nodes each fits.
pub const MAX_LINE_BYTES: usize = 32 * 1024 * 1024;

/// One request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// What the gateway knows of the sites, to choose those that a job is for.
    Sites {},
    /// Start a job. The job ends when this connection closes, and is told until then of sites that it loses:
    /// [`Reply::Lost`].
    Job {
        /// What runs, for `causeway status` and logs.
        name: String,
        /// Its share of a busy tunnel beside other jobs', 1 to [`MAX_WEIGHT`].
        #[serde(default = "usual_weight")]
        weight: u32,
        /// Where it runs: no other site learns of it.
        plan: Plan,
    },
    /// Start the site's remote shell to a node; raw bytes to and from `causeway node-exec` there follow the
    /// answer.
    Spawn {
        /// The job's token in hexadecimal.
        token: String,
        /// Node name or address, in any site.
        node: String,
        /// The asker takes a connection that comes with the answer, in place of this one.
        #[serde(default)]
        takes_connection: bool,
    },
    /// Start a job for one connection of `causeway connect`. The far gateway makes it without a preface,
    /// because the program that accepts it belongs to no job. The job ends when this connection closes, and
    /// its stream soon after.
    Connect {
        /// Where to, for `causeway status` and logs.
        name: String,
        /// The site that is to be reached: it alone learns of the job.
        site: String,
        /// The stream goes on after the job, until both its ends have closed it.
        #[serde(default)]
        lingers: bool,
    },
    /// Start a job like [`Request::Job`], but for processes without the shim: routers give their connections
    /// to the gateways.
    Transparent {
        /// What runs, for `causeway status` and logs.
        name: String,
        /// Its share of a busy tunnel beside other jobs', 1 to [`MAX_WEIGHT`].
        weight: u32,
        /// See [`Request::Job`].
        plan: Plan,
    },
    /// A process that the gateway started tells what a node runs for it. The audit writes it down.
    Started {
        /// The number of the process that the gateway started.
        pid: u32,
        /// The process on the node.
        node_pid: u32,
        /// What it runs, cut to a length that is fit for a line.
        command: String,
    },
    /// The nodes of an allocation that a site's batch system has given to the account of its gateway.
    Allocation {
        /// The site.
        site: String,
        /// What its batch system calls the allocation.
        id: String,
    },
    /// A process that the gateway started tells what the batch system says of an allocation.
    Looked {
        /// The number under which the gateway asked.
        number: u64,
        /// The nodes, by their real addresses; empty if `why` says why.
        nodes: Vec<NodeInfo>,
        /// Why there are none, in one sentence.
        why: Option<String>,
    },
    /// A process that the gateway started has got an allocation for a job: its nodes are the site's for that
    /// job.
    Allocated {
        /// What the batch system calls the allocation.
        id: String,
        /// Its nodes, by their real addresses.
        nodes: Vec<NodeInfo>,
    },
    /// Have a process carry each job in this directory that was submitted to this gateway and that none
    /// carries. See `causeway submit`.
    Carry {
        /// The directory of this user's submitted jobs, by its absolute path.
        jobs: PathBuf,
    },
    /// A round trip to the gateway of another site, through the tunnel.
    Ping {
        /// Its name.
        site: String,
    },
    /// What the gateway sees at present.
    Status {},
    /// Continue as another program, with all streams and jobs. A newer version sends this request and gives
    /// its answer, so both are the same in every version.
    HandOver {
        /// The version of the state that the program goes on from; see `STATE_VERSION` of the gateway.
        state_version: u32,
        /// The program, by its absolute path.
        program: PathBuf,
        /// Its configuration, by its absolute path.
        config: PathBuf,
    },
}

/// The port of `causeway sink`. A connection of a [`Request::Connect`] job to this port of a gateway's LAN
/// address reaches that process, which reads it to its end and then says how many bytes came. `causeway probe
/// --measure` uses it. The number is Discard's (RFC 863); nothing listens there.
pub const SINK_PORT: u16 = 9;

/// What precedes a site's name in the node of a [`Request::Spawn`] that is for the holder of an allocation
/// there. No node's name has an at sign.
pub const BATCH_NODE: &str = "batch@";

/// The most that a job may weigh: with more, others would wait longer than MPIs do.
pub const MAX_WEIGHT: u32 = 100;

fn usual_weight() -> u32 {
    1
}

/// Where a job is to run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// The sites of its processes. The gateway's own takes part without being named.
    pub sites: Vec<String>,
    /// Its processes; 0 if nobody has said how many.
    pub ranks: u32,
    /// The allocations in which its processes run, by site: their nodes are the site's nodes for this job.
    #[serde(default)]
    pub allocations: BTreeMap<String, String>,
}

impl Plan {
    /// Returns the plan of a job for one site.
    pub fn at(site: String) -> Plan {
        Plan {
            sites: vec![site],
            ..Plan::default()
        }
    }
}

/// Version and request, as they are on the line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Envelope<T> {
    /// See [`VERSION`].
    pub version: u32,
    /// The request or the answer.
    pub body: T,
}

/// One answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// What the gateway knows of the sites.
    Sites(Sites),
    /// The job is registered with every site that takes part.
    Job(JobReply),
    /// A further line to the command that holds a job: the job has lost a site. It is one sentence for the
    /// user. More may follow.
    Lost(String),
    /// The bytes of the spawned process follow.
    Spawn {},
    /// It is written down, or what was asked for is being started.
    Noted {},
    /// The far gateway has answered.
    Pong(Pong),
    /// The nodes of the allocation, by the addresses that the grid knows.
    Allocation {
        /// Lists at least one.
        nodes: Vec<NodeInfo>,
    },
    /// The present state.
    Status(Box<Status>),
    /// The gateway continues as the program that was asked for.
    HandedOver(HandedOver),
    /// It could not be done; one sentence for the user.
    Error(String),
}

impl Reply {
    /// The line as it goes out. One that is longer than anybody would read becomes an error that says so.
    pub fn line(&self) -> Vec<u8> {
        self.line_within(MAX_LINE_BYTES)
    }

    fn line_within(&self, most: usize) -> Vec<u8> {
        let mut line = Bounded {
            bytes: Vec::new(),
            // The newline counts.
            left: most.saturating_sub(1),
        };
        let envelope = Envelope {
            version: VERSION,
            body: self,
        };
        let mut bytes = match serde_json::to_writer(&mut line, &envelope) {
            Ok(()) => line.bytes,
            Err(_) if matches!(self, Reply::Error(_)) => Vec::new(),
            Err(_) => {
                let text = format!(
                    "the gateway's answer is longer than {most} bytes: the sites of this grid have too many nodes for one answer"
                );
                return Reply::Error(text).line_within(MAX_LINE_BYTES);
            }
        };
        bytes.push(b'\n');
        bytes
    }
}

/// A buffer for what is written, up to a length. It does not keep what goes beyond.
struct Bounded {
    bytes: Vec<u8>,
    left: usize,
}

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.left = self
            .left
            .checked_sub(bytes.len())
            .ok_or(io::ErrorKind::FileTooLarge)?;
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A round trip to another gateway.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pong {
    /// The site asked.
    pub site: String,
    /// Time from giving the question to the tunnel to having read the answer.
    pub round_trip_microseconds: u64,
    /// How far its host's clock is ahead of this one's, give or take half the round trip.
    pub clock_ahead_microseconds: i64,
    /// Version of the program there.
    pub version: String,
}

/// What another program continues with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandedOver {
    /// The gateway's site.
    pub site: String,
    /// Open streams.
    pub streams: usize,
    /// Running jobs, those of other sites among them.
    pub jobs: usize,
}

/// How a site starts MPI programs, as its gateway's configuration says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SiteMpi {
    /// Words for the shell, in front of the program; `{ranks}` becomes their number.
    #[serde(default)]
    pub start: Option<String>,
    /// A command for the shell, before anything that starts a program.
    #[serde(default)]
    pub setup: Option<String>,
}

/// What a command needs to know before it chooses the sites of a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sites {
    /// The gateway's own site.
    pub site: String,
    /// All sites, the own one first. Those that would not take part in a job count as unreachable.
    pub sites: Vec<SiteStatus>,
    /// Links of each site whose gateway has told them, by the site's name. The other end of a link may have
    /// measured it otherwise.
    #[serde(default)]
    pub links: BTreeMap<String, Vec<Link>>,
    /// How the own site starts MPI programs. The others' gateways tell their own nodes.
    #[serde(default)]
    pub mpi: SiteMpi,
    /// The variable by which a process of the own site learns in which allocation of its batch system it
    /// runs; `None` if the site's gateway uses no batch system.
    #[serde(default)]
    pub allocated_by: Option<String>,
    /// How commands of this host ask the batch system of the own site; `None` if its gateway uses none.
    #[serde(default)]
    pub batch: Option<BatchAccess>,
    /// Commands that start the gateways of sites where none runs, by the site's name.
    #[serde(default)]
    pub start: BTreeMap<String, Vec<String>>,
}

/// How a site's batch system is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchAccess {
    /// Its name, as `[batch] system` has it.
    pub system: String,
    /// Its configuration; `None`: where its commands look by themselves.
    #[serde(default)]
    pub conf: Option<PathBuf>,
}

/// A job that has started.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobReply {
    /// Its token in hexadecimal, for the environment of its processes.
    pub token: String,
    /// The map of the sites that take part, in its text form, for the environment of its processes.
    pub grid: String,
    /// Sites that were to take part and do not, each with the reason in a sentence.
    #[serde(default)]
    pub left_out: BTreeMap<String, String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &[u8]) -> Reply {
        let (newline, json) = line.split_last().unwrap();
        assert_eq!(*newline, b'\n');
        serde_json::from_slice::<Envelope<Reply>>(json).unwrap().body
    }

    #[test]
    fn a_reply_that_nobody_would_read_is_an_error_that_says_so_and_never_half_a_reply() {
        let reply = Reply::Lost("x".repeat(1000));
        let whole = reply.line();
        assert_eq!(read(&whole), reply);
        assert_eq!(reply.line_within(whole.len()), whole);
        for most in [0, 1, 100, whole.len() - 1] {
            let Reply::Error(text) = read(&reply.line_within(most)) else {
                panic!("no error at {most}");
            };
            assert!(text.contains(&format!("longer than {most} bytes")), "{text}");
        }
    }
}
