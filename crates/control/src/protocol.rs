//! Requests and answers: one JSON line each way.

use crate::site::{Link, NodeInfo};
use crate::status::{SiteStatus, Status};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

/// Version of the request and reply lines. Since version 3, a request for a job names the sites that take
/// part.
pub const VERSION: u32 = 3;

/// The refusal that a command gets if its worker was replaced while it looked for the answer. A second
/// request is answered.
pub const NEW_WORKER: &str = "the gateway has a new worker meanwhile; try again";

/// Longest line that either side reads: the sites of a grid of a thousand, with hundreds of nodes each, fit
/// into it.
pub const MAX_LINE_BYTES: usize = 32 * 1024 * 1024;

/// One request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// Report what the gateway knows about the sites, so that those for a job can be chosen.
    Sites {},
    /// Start a job. The job ends when this connection closes. Until then, the gateway reports sites that the
    /// job loses: [`Reply::Lost`].
    Job {
        /// The name of what runs, for `causeway status` and logs.
        name: String,
        /// Its share of a busy tunnel beside other jobs', 1 to [`MAX_WEIGHT`].
        #[serde(default = "usual_weight")]
        weight: u32,
        /// Where it runs; sites outside the plan are not told about the job.
        plan: Plan,
    },
    /// Start the site's remote shell to a node. Raw bytes to and from `causeway node-exec` there follow the
    /// answer.
    Spawn {
        /// The job's token in hexadecimal.
        token: String,
        /// Name or address of a node of any site.
        node: String,
        /// Whether the asker can use a connection that comes with the answer, in place of this one.
        #[serde(default)]
        takes_connection: bool,
    },
    /// Start a job for one connection of `causeway connect`. The far gateway opens it without a preface,
    /// because the program that accepts it belongs to no job. The job ends when this connection closes, and
    /// its stream soon after.
    Connect {
        /// The destination, for `causeway status` and logs.
        name: String,
        /// The site that is to be reached; no other site is told about the job.
        site: String,
        /// Whether the stream goes on after the job, until both its ends have closed it.
        #[serde(default)]
        lingers: bool,
    },
    /// Start a job like [`Request::Job`], but for processes without the shim: routers give their connections
    /// to the gateways.
    Transparent {
        /// The name of what runs, for `causeway status` and logs.
        name: String,
        /// Its share of a busy tunnel beside other jobs', 1 to [`MAX_WEIGHT`].
        weight: u32,
        /// See [`Request::Job`].
        plan: Plan,
    },
    /// A process that the gateway started reports what a node runs for it. The audit records it.
    Started {
        /// The number of the process that the gateway started.
        pid: u32,
        /// The process on the node.
        node_pid: u32,
        /// What it runs, cut to a length that fits into a line.
        command: String,
    },
    /// Report the nodes of an allocation that a site's batch system has given to the account of its gateway.
    Allocation {
        /// The site.
        site: String,
        /// The batch system's id of the allocation.
        id: String,
    },
    /// A process that the gateway started reports what the batch system says about an allocation.
    Looked {
        /// The number under which the gateway asked.
        number: u64,
        /// The nodes, by their real addresses; empty if `why` gives a reason.
        nodes: Vec<NodeInfo>,
        /// Why there are no nodes; a sentence.
        why: Option<String>,
    },
    /// A process that the gateway started has obtained an allocation for a job: its nodes are the site's
    /// nodes for that job.
    Allocated {
        /// The batch system's id of the allocation.
        id: String,
        /// Its nodes, by their real addresses.
        nodes: Vec<NodeInfo>,
    },
    /// Make a process carry each job in this directory that was submitted to this gateway and that no process
    /// carries. See `causeway submit`.
    Carry {
        /// The directory of this user's submitted jobs, as an absolute path.
        jobs: PathBuf,
    },
    /// Make a round trip to the gateway of another site, through the tunnel.
    Ping {
        /// The site's name.
        site: String,
    },
    /// Report the gateway's present state.
    Status {},
    /// Continue as another program, with all streams and jobs. A newer version sends this request and also
    /// answers it, so both are the same in every version.
    HandOver {
        /// The version of the state from which the program can go on; see `STATE_VERSION` of the gateway.
        state_version: u32,
        /// The absolute path of the program.
        program: PathBuf,
        /// The absolute path of the gateway's configuration.
        config: PathBuf,
    },
}

/// The port of `causeway sink`. A connection of a [`Request::Connect`] job to this port of a gateway's LAN
/// address reaches that process, which reads it to its end and then reports how many bytes arrived. `causeway
/// probe --measure` uses it. The number is Discard's (RFC 863); nothing listens there.
pub const SINK_PORT: u16 = 9;

/// The prefix of a site's name in the node of a [`Request::Spawn`] that is for the holder of an allocation
/// there. No node's name contains an at sign.
pub const BATCH_NODE: &str = "batch@";

/// The largest weight of a job: with more, others would wait longer than MPIs are prepared to.
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
    /// Its processes; 0 if the number is not known.
    pub ranks: u32,
    /// The allocations in which its processes run, by site: the nodes of each are the site's nodes for this
    /// job.
    #[serde(default)]
    pub allocations: BTreeMap<String, String>,
}

impl Plan {
    /// Returns the plan for a job at a single site.
    pub fn at(site: String) -> Plan {
        Plan {
            sites: vec![site],
            ..Plan::default()
        }
    }
}

/// Version and request, as they are in the line.
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
    /// A further line to the command that holds a job: the job has lost a site. It is a sentence for the
    /// user. More lines may follow.
    Lost(String),
    /// The bytes of the spawned process follow.
    Spawn {},
    /// The report was recorded, or what was asked for is being started.
    Noted {},
    /// The far gateway has answered.
    Pong(Pong),
    /// The nodes of the allocation, by the addresses that the grid knows.
    Allocation {
        /// The nodes, at least one.
        nodes: Vec<NodeInfo>,
    },
    /// The present state.
    Status(Box<Status>),
    /// The gateway continues as the program that was asked for.
    HandedOver(HandedOver),
    /// The request could not be carried out; a sentence for the user.
    Error(String),
}

impl Reply {
    /// The line as it is sent. If it is longer than anybody would read, it becomes an error that says so.
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

/// A buffer of bounded length for what is written. It does not keep what exceeds the bound.
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
    /// The site that was asked.
    pub site: String,
    /// The time from handing the question to the tunnel to having read the answer.
    pub round_trip_microseconds: u64,
    /// How far the clock of its host is ahead of this host's, give or take half the round trip.
    pub clock_ahead_microseconds: i64,
    /// The version of the program there.
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
    /// Words for the shell, before the program; `{ranks}` is replaced by the number of ranks.
    #[serde(default)]
    pub start: Option<String>,
    /// A command for the shell that comes before everything that starts a program.
    #[serde(default)]
    pub setup: Option<String>,
}

/// What a command needs to know before it chooses the sites of a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sites {
    /// The gateway's own site.
    pub site: String,
    /// All sites, the gateway's own first. Those that would not take part in a job count as unreachable.
    pub sites: Vec<SiteStatus>,
    /// Links of each site whose gateway has told them, by the site's name. The other end of a link may have
    /// measured something else.
    #[serde(default)]
    pub links: BTreeMap<String, Vec<Link>>,
    /// How the gateway's own site starts MPI programs. The other sites' gateways tell their own nodes.
    #[serde(default)]
    pub mpi: SiteMpi,
    /// The variable that tells a process of this site in which allocation of its batch system it runs; `None`
    /// if the site's gateway uses no batch system.
    #[serde(default)]
    pub allocated_by: Option<String>,
    /// How commands of this host ask this site's batch system; `None` if its gateway uses none.
    #[serde(default)]
    pub batch: Option<BatchAccess>,
    /// Commands that start the gateways of sites at which none runs, by the site's name.
    #[serde(default)]
    pub start: BTreeMap<String, Vec<String>>,
}

/// How a site's batch system is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchAccess {
    /// Its name, as `[batch] system` has it.
    pub system: String,
    /// Its configuration; `None`: the one that its commands find by themselves.
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
    /// Sites that were meant to take part and do not, each with the reason as a sentence.
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
