//! What gateways tell each other beside the streams: one JSON message each.

use causeway_broker::records::SignedRecord;
use causeway_control::{Link, NodeInfo, SiteInfo};
use causeway_wire::TextError;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum GatewayToGateway {
    /// Who the sender is and what its site has; the first message of a tunnel.
    Site(SiteInfo),
    /// What the sender's site accepts from the receiver's. It is sent before [`GatewayToGateway::Site`], so
    /// that a site that does not take part never learns a token.
    Accepts(Acceptance),
    /// A job of the sender's site runs, and the receiver's takes part: carry and deliver its connections.
    /// Sent again if more sites take part.
    JobStart {
        token: String,
        name: String,
        /// Its share of a busy tunnel beside other jobs'; 1 from gateways that do not send it.
        #[serde(default = "usual_weight")]
        weight: u32,
        /// Whether its connections are delivered without a preface; see
        /// [`causeway_control::Request::Connect`].
        #[serde(default)]
        bare: bool,
        /// Whether its processes are not under the shim; see [`causeway_control::Request::Transparent`].
        #[serde(default)]
        transparent: bool,
        /// Whether its streams outlive it, until their ends close them.
        #[serde(default)]
        lingers: bool,
        /// The sites that take part, besides the sender's.
        #[serde(default)]
        sites: Vec<String>,
        /// Name of its user, as the sender's site reports it; empty from gateways that do not.
        #[serde(default)]
        user: String,
        /// The allocations of the sites' batch systems in which its processes run.
        #[serde(default)]
        allocations: BTreeMap<String, String>,
    },
    /// Which nodes has this allocation of the receiver's batch system?
    AllocationAsk { number: u64, id: String },
    /// The answer: its nodes, or why there is none.
    AllocationIs {
        number: u64,
        nodes: Vec<NodeInfo>,
        why: Option<AllocationRefusal>,
    },
    /// The receiver of a job start knows the job. It adds its site's links, or none if it is a gateway that
    /// does not send them.
    JobKnown {
        token: String,
        #[serde(default)]
        links: Vec<Link>,
    },
    /// The receiver of a job start takes no part in the job: it starts nothing and delivers nothing for it.
    JobRefused { token: String, why: JobRefusal },
    /// The job has ended: forget its token, and end its streams.
    JobEnd { token: String },
    /// The path loses what the sender sends: dial a lane over QUIC.
    Lossy {},
    /// Answer at once, with this number.
    Ping { number: u64 },
    /// The answer.
    Pong {
        number: u64,
        /// The sender's clock.
        unix_microseconds: u64,
        version: String,
    },
    /// Asks a relay to let the sender meet the gateway of another site there; see `relay`.
    RelayAsk { to: String, id: u64 },
    /// The answer: dial the relay, and show it this ticket. It says how far beyond the relay the far gateway
    /// is.
    RelayGo {
        id: u64,
        ticket: String,
        #[serde(default)]
        beyond_microseconds: u32,
    },
    /// The other answer, or the outcome of the meeting.
    RelayNo { id: u64, why: RelayRefusal },
    /// Says, as a relay, that another site asks for the receiver, which should dial the relay and show it
    /// this ticket.
    RelayCome {
        meeting: u64,
        from: String,
        ticket: String,
        #[serde(default)]
        beyond_microseconds: u32,
    },
    /// Says, as a relay, how much it carries, and how far away the sites are that it has lanes with; see
    /// `relay::selection`.
    RelayOffer {
        carried: u32,
        #[serde(default)]
        beyond_microseconds: BTreeMap<String, u32>,
    },
    /// Tells a relay that the sender cannot come.
    RelayCannot { meeting: u64, why: RelayRefusal },
    /// What the brokers of the grid know together, as far as the sender has heard it.
    Records { records: Vec<SignedRecord> },
    /// Something that this version does not know, and may ignore.
    #[serde(skip)]
    Unknown,
    /// The sender stops: its streams, and the jobs of its site, are over.
    Leaving {},
}

fn usual_weight() -> u32 {
    1
}

/// What a site accepts from another one, and the reasons for what it does not accept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Acceptance {
    /// Why the site does not accept jobs of that site; `None` if it does.
    pub(crate) jobs: Option<JobRefusal>,
    /// Why the site does not accept connections of that site's users; `None` if it does.
    pub(crate) connections: Option<JobRefusal>,
}

/// Why two sites do not meet at a relay. These are a fixed set: what a gateway found when another one made it
/// dial must be revealed to nobody, neither in words nor by how long it took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{}", self.text())]
#[serde(rename_all = "snake_case")]
pub(crate) enum RelayRefusal {
    /// The gateway that was asked is no relay.
    NoRelay,
    /// The relay has no tunnel with the other site, or only a relayed one.
    NoTunnel,
    /// The relay carries or awaits as many connections as it may.
    Full,
    /// Something of the relay's own failed.
    Failed,
    /// The other did not come in time.
    NotMet,
    /// The other wants only lanes over QUIC, which are not relayed.
    QuicAlone,
    /// The other does not know the site that asks.
    Unknown,
    /// The other knows no address of the relay.
    NoAddress,
    /// The other was asked too often.
    TooOften,
}

impl RelayRefusal {
    /// The reason, for the log and the status of the site that asked.
    pub(crate) fn text(self) -> &'static str {
        match self {
            RelayRefusal::NoRelay => "it does not carry connections of other sites (relay in [grid])",
            RelayRefusal::NoTunnel => "it has no tunnel to the other site, or only a relayed one",
            RelayRefusal::Full => "it already carries or awaits as many connections of other sites as it may",
            RelayRefusal::Failed => "it failed for a reason of its own; see its log",
            RelayRefusal::NotMet => "the far gateway did not come there in time",
            RelayRefusal::QuicAlone => {
                "the far gateway wants only lanes over QUIC (transport in [grid] there), which cannot be relayed"
            }
            RelayRefusal::Unknown => "this site is not a [[peer]] of the far gateway",
            RelayRefusal::NoAddress => {
                "the far gateway knows no address of that relay: its [[peer]] address, or what the broker tells of it"
            }
            RelayRefusal::TooOften => "the far gateway was asked too often",
        }
    }
}

/// Why a site takes no part in a job. These are a fixed set, because what one site says becomes a line on
/// another site's terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum JobRefusal {
    /// The site's `jobs` in `[accept]` does not name the site where the job started.
    Jobs,
    /// The site's `connect_from` in `[accept]` does not name the site where the connection started.
    ConnectFrom,
    /// The site's gateway has not said what it accepts, because it is of an earlier version.
    Unsaid,
    /// What crosses may be in clear text, and the site's `over_clear_text` in `[accept]` is not set.
    ClearText,
    /// Too many jobs of the site where this one started run there, or this one's name is too long.
    Bounds,
    /// `partners` in `[accept]` of the site where the job started does not name the site. Only the former
    /// gives this reason.
    NoPartner,
    /// The site's gateway has not been asked about the allocation in which the job is to run there, or not
    /// recently.
    NoAllocation,
}

/// Why another site may not use an allocation. These are a fixed set, like [`JobRefusal`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AllocationRefusal {
    /// The gateway uses no batch system.
    NoBatch,
    /// The gateway's `from` in `[batch]` does not name the site that asks.
    From,
    /// Too many ask the gateway at once.
    Busy,
    /// There is no such allocation, or its nodes cannot be used.
    Unusable,
    /// The batch system did not answer in time.
    Late,
}

impl AllocationRefusal {
    /// The reason, for the user at site `own` who asked site `other` about allocation `id`.
    pub(crate) fn for_user(self, own: &str, other: &str, id: &str) -> String {
        match self {
            AllocationRefusal::NoBatch => format!(
                "{other} uses no batch system: whoever runs {other} must add [batch] to its gateway.toml"
            ),
            AllocationRefusal::From => format!(
                "{other} lets {own} use none of its allocations: whoever runs {other} must add \"{own}\" to from in [batch] of its \
                 gateway.toml"
            ),
            AllocationRefusal::Busy => {
                format!("the gateway of {other} is asked for allocations too often; try again")
            }
            AllocationRefusal::Unusable => format!(
                "{other} has no running allocation {id} of its gateway's account, or no address of its nodes is in the site's subnets; \
                 the gateway's log there says which"
            ),
            AllocationRefusal::Late => format!("the batch system of {other} did not answer in time"),
        }
    }
}

impl JobRefusal {
    /// The reason, for the log of the site that refuses.
    pub(crate) fn in_log(self) -> &'static str {
        match self {
            JobRefusal::Jobs => "jobs in [accept] does not name the site of its job",
            JobRefusal::ConnectFrom => "connect_from in [accept] does not name the site of its user",
            JobRefusal::Unsaid => "its gateway does not say what it accepts",
            JobRefusal::ClearText => {
                "what crosses may be in clear text (insecure in [grid]), and over_clear_text in [accept] is not set"
            }
            JobRefusal::Bounds => "too many of its site's jobs run",
            JobRefusal::NoPartner => "partners in [accept] of the job's own site does not name the site",
            JobRefusal::NoAllocation => "nobody has asked for the job's allocation here, or too long ago",
        }
    }

    /// The reason, for the user at site `own` whose job site `other` refuses.
    pub(crate) fn for_user(self, own: &str, other: &str) -> String {
        match self {
            JobRefusal::Jobs => format!(
                "it accepts no jobs of {own}: whoever runs {other} must add \"{own}\" to jobs in [accept] of its gateway.toml"
            ),
            JobRefusal::ConnectFrom => format!(
                "it accepts no connections from {own}: whoever runs {other} must add \"{own}:PORT\" to connect_from in [accept] of \
                 its gateway.toml"
            ),
            JobRefusal::Unsaid => format!("the gateway of {other} has an earlier version: upgrade it"),
            JobRefusal::ClearText => format!(
                "it runs nothing for {own} over a tunnel in clear text: remove insecure from [grid] at both sites, or set \
                 over_clear_text = true in [accept] of the gateway.toml of {other}"
            ),
            JobRefusal::Bounds => format!("too many jobs of {own} run there"),
            JobRefusal::NoPartner => format!(
                "jobs of {own} do not run there: add \"{other}\" to partners in [accept] of this site's gateway.toml. Its \
                 processes can then connect to the jobs' processes here"
            ),
            JobRefusal::NoAllocation => {
                "its gateway knows nothing of the job's allocation there; start the job again".to_owned()
            }
        }
    }
}

const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
struct Envelope {
    version: u32,
    message: GatewayToGateway,
}

impl GatewayToGateway {
    pub(crate) fn encode(self) -> Result<Vec<u8>, serde_json::Error> {
        serde_json::to_vec(&Envelope {
            version: VERSION,
            message: self,
        })
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<GatewayToGateway, TextError> {
        let envelope: Result<Envelope, _> = serde_json::from_slice(bytes);
        match envelope.map_err(TextError::of) {
            Ok(envelope) if envelope.version == VERSION => Ok(envelope.message),
            Ok(envelope) => Err(format!("message version {}, expected {VERSION}", envelope.version).into()),
            Err(error) if error.starts_with("unknown variant") => Ok(GatewayToGateway::Unknown),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literal_text_is_as_the_other_end_expects() {
        let message = GatewayToGateway::JobEnd { token: "00".into() };
        let text = br#"{"version":1,"message":{"job_end":{"token":"00"}}}"#;
        assert_eq!(GatewayToGateway::decode(text), Ok(message));
        let text = br#"{"version":1,"message":{"leaving":{}}}"#;
        assert_eq!(GatewayToGateway::decode(text), Ok(GatewayToGateway::Leaving {}));
        assert!(GatewayToGateway::decode(br#"{"version":2,"message":{"job_end":{"token":"00"}}}"#).is_err());
        assert!(GatewayToGateway::decode(b"\xff").is_err());
        let text = br#"{"version":1,"message":{"records":{"records":[{"text":"{}","signature":"AA"}]}}}"#;
        let records = vec![SignedRecord {
            text: "{}".into(),
            signature: "AA".into(),
        }];
        let message = GatewayToGateway::Records { records };
        assert_eq!(GatewayToGateway::decode(text), Ok(message));
        let text = br#"{"version":1,"message":{"ping":{"number":3}}}"#;
        assert_eq!(
            GatewayToGateway::decode(text),
            Ok(GatewayToGateway::Ping { number: 3 })
        );
        let text = br#"{"version":1,"message":{"job_start":{"token":"00","name":"mpirun"}}}"#;
        let earlier = GatewayToGateway::JobStart {
            token: "00".into(),
            name: "mpirun".into(),
            weight: 1,
            bare: false,
            transparent: false,
            lingers: false,
            sites: Vec::new(),
            user: String::new(),
            allocations: BTreeMap::new(),
        };
        assert_eq!(GatewayToGateway::decode(text), Ok(earlier));
        let text = br#"{"version":1,"message":{"job_known":{"token":"00"}}}"#;
        let earlier = GatewayToGateway::JobKnown {
            token: "00".into(),
            links: Vec::new(),
        };
        assert_eq!(GatewayToGateway::decode(text), Ok(earlier));
        let text = br#"{"version":1,"message":{"relay_go":{"id":7,"ticket":"00"}}}"#;
        let message = GatewayToGateway::RelayGo {
            id: 7,
            ticket: "00".into(),
            beyond_microseconds: 0,
        };
        assert_eq!(GatewayToGateway::decode(text), Ok(message));
        let text =
            br#"{"version":1,"message":{"relay_offer":{"carried":3,"beyond_microseconds":{"lyon":9}}}}"#;
        let message = GatewayToGateway::RelayOffer {
            carried: 3,
            beyond_microseconds: [("lyon".to_owned(), 9)].into(),
        };
        assert_eq!(GatewayToGateway::decode(text), Ok(message));
        let later = br#"{"version":1,"message":{"sings":{"song":1}}}"#;
        assert_eq!(GatewayToGateway::decode(later), Ok(GatewayToGateway::Unknown));
    }
}
