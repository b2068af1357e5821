//! The gateway: one per site, on its head node.
//!
//! It accepts connections from shims, carries them as streams through a tunnel to the gateway of the destination's
//! site, and delivers them there. One thread, one epoll loop. Read `gateway` (the loop), then follow a byte:
//! `intake` -> `leg` -> `pump` == WAN == `lane` -> `deliver` -> `leg`; `pair` holds the
//! lanes of a tunnel together, `dial` and `handshake` bring them up, `relay` where neither site can dial the other. `command` serves the commands of the
//! same host; `status` and `tally` are what it tells of itself, `metrics` tells it to Prometheus; `handover` gives it all to
//! another program.
#![deny(unsafe_code)]

mod accept;
mod carrier;
mod command;
pub mod config;
mod course;
mod crowd;
mod deliver;
mod dial;
mod directory;
mod farewell;
mod gateway;
mod grid;
mod handover;
mod handshake;
mod intake;
mod jobs;
mod lane;
pub mod lanes;
mod leg;
mod links;
mod listeners;
mod meet;
mod metrics;
pub mod nft;
mod pair;
mod peer;
mod ping;
pub mod ports;
mod priority;
mod pump;
mod quic;
mod register;
mod relay;
mod report;
mod signals;
mod socket;
mod starter;
mod status;
mod streams;
mod tail;
mod tally;
mod timers;
mod tls;
mod train;
mod transparent;

pub use config::Config;
pub use gateway::{Gateway, GatewayError};
pub use handover::{InheritError, STATE_VERSION, StateError};
pub use quic::KERNEL_BYTES as UDP_BUFFER_BYTES;
pub use socket::may_begin_anew;
