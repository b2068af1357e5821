//! The connection between a command on the head node and its gateway: one JSON line asks, another answers, on
//! a Unix socket.
//!
//! The socket is the user's own (mode 0600), so the file system says who may ask. A job lives exactly as long
//! as the connection that asked for it: however `causeway run` ends, the gateway notices.
#![deny(unsafe_code)]

pub mod audit;
mod client;
pub mod descriptor;
pub mod name;
pub mod private;
mod protocol;
pub mod questions;
mod site;
pub mod spawned;
mod status;
mod whereabouts;

pub use client::{ControlError, PARENTS_ENV, ask, later_reply};
pub use protocol::{
    BATCH_NODE, BatchAccess, Envelope, HandedOver, JobReply, MAX_LINE_BYTES, MAX_WEIGHT, NEW_WORKER, Plan,
    Pong, Reply, Request, SINK_PORT, SiteMpi, Sites, VERSION,
};
pub use site::{LINKED_SITES, Link, MAX_NODES, MAX_SUBNETS, NodeInfo, SiteInfo};
pub use status::{
    BrokerStatus, BudgetStatus, GridStatus, JobStatus, LaneStatus, SiteStatus, Status, TunnelStatus,
    WorkerEnd,
};
pub use whereabouts::{
    FORWARDED, Known, SOCKET_ENV, answers, know, socket, takes_connections, use_socket, usual_sockets,
};
