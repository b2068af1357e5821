//! The requests to the broker and its answers, version 1: JSON over HTTPS, under `/v1`.
//!
//! Every body states its limits here: [`MAX_BODY`] or [`MAX_LIST_BODY`] bytes before it is read,
//! [`Checked::check`] once it is. Unknown fields are refused in requests, so that a misspelt one is not
//! silently ignored; answers may get more fields.

mod checks;

use crate::identity::hexadecimal;
use crate::records::SignedRecord;
use crate::revocation::SignedRevocations;
pub use crate::subnet::Subnet;
use causeway_wire::TextError;
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, SocketAddr};

/// Longest body of a request that contains a list ([`SYNC`]: nodes, [`REVOCATIONS`] and [`RECORDS`]: sites),
/// and of any other request.
pub const MAX_LIST_BODY: usize = 1024 * 1024;
/// See [`MAX_LIST_BODY`].
pub const MAX_BODY: usize = 64 * 1024;

/// The longest time for which an idle [`SYNC`] waits for something to report.
pub const MAX_WAIT_SECONDS: u64 = 30;

/// Longest message between gateways, and its kind.
pub const MAX_MESSAGE: usize = 4096;
/// See [`MAX_MESSAGE`].
pub const MAX_KIND: usize = 32;

/// Longest name of a job, in bytes.
pub const MAX_JOB_NAME: usize = 128;
/// Most sites that a job names.
pub const MAX_JOB_SITES: usize = 1000;
/// Most records in one [`RECORDS`] request, and in its answer.
pub const MAX_RECORDS: usize = 1000;
/// Most addresses that one [`REACH`] tries.
pub const MAX_REACH: usize = 4;

/// Paths of the requests.
pub const TIME: &str = "/v1/time";
/// See [`EnrolRequest`].
pub const ENROL: &str = "/v1/enrol";
/// See [`RenewRequest`].
pub const RENEW: &str = "/v1/renew";
/// See [`SyncRequest`].
pub const SYNC: &str = "/v1/sync";
/// A [`SignedRevocations`] that the last answer asked for; the answer is [`Done`].
pub const REVOCATIONS: &str = "/v1/revocations";
/// See [`RecordsRequest`].
pub const RECORDS: &str = "/v1/records";
/// See [`SendRequest`].
pub const SEND: &str = "/v1/send";
/// See [`ReachRequest`].
pub const REACH: &str = "/v1/reach";
/// See [`JobsRequest`].
pub const JOBS: &str = "/v1/jobs";
/// See [`RelaysAnswer`].
pub const RELAYS: &str = "/v1/relays";

/// A body that was read, and may still be invalid.
pub trait Checked {
    /// Longest body, in bytes.
    const MAX_BYTES: usize = MAX_BODY;

    /// Looks for a mistake, and describes it in one sentence.
    ///
    /// # Errors
    /// The mistake, as that sentence.
    fn check(&self) -> Result<(), TextError>;
}

/// What every refusal looks like.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorAnswer {
    /// One word for programs.
    pub kind: ErrorKind,
    /// One sentence for people.
    pub message: String,
    /// The broker's clock, in seconds since 1970.
    pub time: u64,
}

/// Why something was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// The body or the path is not of this API.
    BadRequest,
    /// A body or an answer is longer than it may be.
    TooLarge,
    /// A body did not arrive in time.
    TooSlow,
    /// There are too many of something; a later try may succeed.
    Busy,
    /// The token was valid until recently.
    TokenExpired,
    /// Somebody has already joined with this token.
    TokenUsed,
    /// No such token was ever given.
    TokenForged,
    /// The token is of another grid.
    TokenOtherGrid,
    /// No certificate was shown.
    NoCertificate,
    /// The certificate is not valid yet, by the broker's clock.
    NotYetValid,
    /// The certificate is no longer valid, by the broker's clock.
    Expired,
    /// The certificate is void.
    Revoked,
    /// The caller has no right to what it asks for.
    NotYours,
    /// Another site has these addresses or nodes.
    Overlap,
    /// Another gateway of the same site has taken over.
    Superseded,
    /// No such site.
    NoSuchSite,
    /// The broker failed.
    Internal,
}

/// `GET /v1/time`: for hosts whose clock is so wrong that no certificate seems valid.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeAnswer {
    /// The broker's clock, in seconds since 1970.
    pub time: u64,
    /// The version of the broker's program.
    pub version: String,
}

/// `POST /v1/enrol`, without a certificate: join with a token.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnrolRequest {
    /// The token's fingerprint of the authority, in hexadecimal.
    pub authority: String,
    /// The token's site.
    pub site: String,
    /// The token's secret, in hexadecimal.
    pub secret: String,
    /// The certificate request, as PEM.
    pub request: String,
}

/// Prints no secret.
impl std::fmt::Debug for EnrolRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "EnrolRequest({})", self.site)
    }
}

/// `POST /v1/renew`: a new certificate for a site that has one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RenewRequest {
    /// The certificate request, as PEM.
    pub request: String,
}

/// A new certificate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CertificateAnswer {
    /// The certificate, as PEM.
    pub certificate: String,
    /// The certificate of the authority, as PEM.
    pub authority: String,
    /// The broker's clock, in seconds since 1970.
    pub time: u64,
    /// The brokers of a grid that has several, and how the site joined.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub records: Vec<SignedRecord>,
}

/// `POST /v1/sync`: what a gateway is, and what has changed since it last asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SyncRequest {
    /// The gateway's own record, whenever it differs from what this broker was told last; always in the first
    /// request.
    pub record: Option<Record>,
    /// Random, chosen anew at each start of the gateway, 32 hexadecimal digits; the record contains the same.
    pub instance: String,
    /// What the gateway knows; `None` at first.
    pub since: Option<Since>,
    /// Version of the revocations it knows.
    pub revocations: u64,
    /// Hash of that list; empty when it knows none.
    pub revocations_digest: String,
    /// The last message it has received.
    pub messages_until: u64,
    /// How busy it is as a relay, 0 to 1000.
    pub load: u32,
    /// Longest time to wait when there is nothing to report; at most [`MAX_WAIT_SECONDS`].
    pub wait_seconds: u64,
    /// How many of the broker's [`RECORDS`] it has fetched, once the broker has said that there are some. If
    /// there are more, the answer does not wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub records: Option<u64>,
}

/// A point in a broker's history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Since {
    /// Random, chosen anew at each start of the broker: numbers from another start mean nothing.
    pub history: String,
    /// Changes up to this one are known.
    pub revision: u64,
}

/// What a site's gateway announces of itself and its site.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// See [`SyncRequest::instance`].
    pub instance: String,
    /// Address ranges of its nodes.
    pub subnets: Vec<Subnet>,
    /// Where its gateway takes connections of its own nodes.
    pub lan: Vec<SocketAddr>,
    /// How other gateways may meet it.
    pub reach: Reach,
    /// Where it speaks UDP, if it does.
    pub udp_port: Option<u16>,
    /// Its compute nodes.
    pub nodes: Vec<Node>,
    /// Whether other sites that set this, too, may have the same addresses: the grid then knows each by
    /// virtual ones.
    pub overlap_ok: bool,
    /// The virtual ranges that it asks for, one for each of `subnets` and of the same size; empty: any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub virtual_subnets: Vec<Subnet>,
    /// The version of the gateway's program.
    pub version: String,
}

/// How other gateways may meet a gateway.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reach {
    /// Where to dial it.
    pub public: Vec<SocketAddr>,
    /// Ports that its site's firewall lets in, first and last.
    pub ports: Option<(u16, u16)>,
    /// Whether the gateway cannot be dialled at all.
    pub outbound_only: bool,
    /// Whether the gateway carries streams of other sites.
    pub relay_willing: bool,
}

/// A compute node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Node {
    /// The name by which its site's remote shell knows it.
    pub name: String,
    /// Its addresses in the site.
    pub addresses: Vec<IpAddr>,
    /// How many processes the node runs.
    #[serde(default = "one")]
    pub slots: u32,
}

fn one() -> u32 {
    1
}

/// An empty answer: the request was accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {}

/// Answer to [`SyncRequest`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyncAnswer {
    /// The point in the broker's history to which this answer brings the caller.
    pub now: Since,
    /// Whether the list of members begins anew: then forget the members that are not in this answer or its
    /// continuations.
    pub full: bool,
    /// Whether there is more: then ask again at once.
    pub more: bool,
    /// Members that are new or changed.
    pub members: Vec<Member>,
    /// Sites that are no longer members.
    pub removed: Vec<String>,
    /// Revocations, if the broker has a later list than the caller.
    pub revocations: Option<SignedRevocations>,
    /// Whether the broker lacks revocations that the gateway knows: then send them to [`REVOCATIONS`].
    pub wants_revocations: bool,
    /// Whether the broker lacks the gateway's own record: then send it.
    pub wants_record: bool,
    /// Messages of other gateways, in the order of their numbers.
    pub messages: Vec<Message>,
    /// Where this request came from, as the broker sees it.
    pub observed: SocketAddr,
    /// The broker's clock, in seconds since 1970.
    pub time: u64,
    /// How many [`RECORDS`] it has; `None` in a grid of one broker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub records: Option<u64>,
}

/// `POST /v1/records`, by a site or another broker, in a grid of several brokers: the caller sends records
/// that the broker lacks, and receives those that it lacks itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordsRequest {
    /// The point up to which the caller has been told; `None` at first.
    pub since: Option<Since>,
    /// Records that the caller has, each after the record of the broker that signed it.
    pub records: Vec<SignedRecord>,
}

/// Answer to [`RecordsRequest`], sent once the caller's records are on disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordsAnswer {
    /// The position in the broker's log of records to which this brings the caller.
    pub now: Since,
    /// Records that follow those the caller knew; some of them may be the caller's own.
    pub records: Vec<SignedRecord>,
    /// Whether there are more: then ask again at once.
    pub more: bool,
}

/// A site of the grid.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Its name, as its certificate has it.
    pub site: String,
    /// What it announces about itself.
    pub record: Record,
    /// The virtual ranges of its subnets, in their order; empty if the grid knows the real ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub virtual_subnets: Vec<Subnet>,
    /// The address that it speaks from, as the broker sees it.
    pub observed: Option<SocketAddr>,
    /// When it last spoke, in seconds since 1970.
    pub last_seen: u64,
    /// Serial number of its certificate, in hexadecimal.
    pub serial: String,
    /// When that certificate begins, in seconds since 1970: a revocation voids certificates that began before
    /// it.
    pub not_before: u64,
}

impl Member {
    /// Estimates its size in memory and as JSON.
    pub(crate) fn bytes(&self) -> usize {
        let record = &self.record;
        let addresses: usize = record.nodes.iter().map(|node| node.addresses.len()).sum();
        let lists =
            record.subnets.len() + record.lan.len() + record.reach.public.len() + self.virtual_subnets.len();
        1024 + 96 * record.nodes.len() + 24 * addresses + 32 * lists
    }
}

/// A message between gateways.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Rises with each message.
    pub number: u64,
    /// Who sent it, as their certificate has it.
    pub from: String,
    /// The address at which the broker saw the sender; a broker of an earlier version does not report it.
    #[serde(default)]
    pub seen: Option<IpAddr>,
    /// What it is about.
    pub kind: String,
    /// A text whose form is the gateways' own business.
    pub body: String,
}

/// `POST /v1/send`: a message for another site's gateway.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SendRequest {
    /// The other site.
    pub to: String,
    /// The kind of message, which says what it is about.
    pub kind: String,
    /// A text whose form is the gateways' own business.
    pub body: String,
}

/// `POST /v1/reach`: can I be dialled from outside?
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReachRequest {
    /// Addresses that the gateway's record declares as public.
    pub addresses: Vec<SocketAddr>,
}

/// Answer to [`ReachRequest`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReachAnswer {
    /// One result for each address.
    pub results: Vec<Reached>,
    /// Where the request came from.
    pub observed: SocketAddr,
}

/// Whether one address could be dialled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reached {
    /// The address.
    pub address: SocketAddr,
    /// Whether a connection came up.
    pub reached: bool,
    /// The reason, if it could not be dialled.
    pub reason: Option<String>,
}

/// `POST /v1/jobs`: which jobs run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum JobsRequest {
    /// A job begins at the asking site.
    Start(JobStart),
    /// A job of the asking site has ended.
    End {
        /// The job's number.
        id: String,
    },
    /// Only lists the jobs.
    List {},
}

/// A job that begins. Its token is not sent: only gateways may know it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobStart {
    /// An id that the gateway chose, once: 32 hexadecimal digits at most. It is not the job's token.
    pub id: String,
    /// What runs.
    pub name: String,
    /// The sites it runs at.
    pub sites: Vec<String>,
    /// Its processes; 0 if unknown.
    pub ranks: u32,
    /// How long it has run at this time; not 0 if the broker was away when it began.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub age_seconds: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Answer to [`JobsRequest`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobsAnswer {
    /// Jobs of the asking site and, in a list, those of the others, in the order in which they began.
    pub jobs: Vec<Job>,
    /// Number of other sites' jobs for which a list had no room.
    #[serde(default)]
    pub left_out: usize,
}

/// A job that runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// Where it was started.
    pub from: String,
    /// The start of the gateway that started it: when that gateway ends, so does the job.
    pub instance: String,
    /// What runs where.
    pub job: JobStart,
    /// When it began, in seconds since 1970.
    pub since: u64,
}

/// Answer to `GET /v1/relays`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RelaysAnswer {
    /// Gateways that carry streams of others, the least busy first.
    pub relays: Vec<Relay>,
}

/// A gateway that carries streams of others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Relay {
    /// Its site.
    pub site: String,
    /// Addresses at which to dial the site.
    pub addresses: Vec<SocketAddr>,
    /// Its load, 0 to 1000.
    pub load: u32,
}

/// Makes a random name of 128 bits, for a start of a gateway or the history of a broker.
///
/// # Errors
/// No random numbers.
pub fn new_instance() -> std::io::Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(std::io::Error::other)?;
    Ok(hexadecimal(&bytes))
}
