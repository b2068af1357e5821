//! The gateway: one for each site, on its head node.
//!
//! It accepts connections from shims, carries them as streams through a tunnel to the gateway of the
//! destination's site, and delivers them there. One thread, one epoll loop. Read `gateway` (the loop), then
//! follow a byte: `site::intake` -> `site::leg` -> `site::fill` -> `tunnels::lanes::pump` == WAN ==
//! `tunnels::lanes::receive` -> `flow` -> `site::streams` -> `site::leg`.
#![deny(unsafe_code)]

mod accept;
mod actions;
mod audit;
mod base;
mod book;
mod commands;
pub mod config;
mod driver;
mod error;
mod flow;
mod gateway;
mod inherited;
mod keeper;
mod keys;
mod lifecycle;
mod link;
mod listeners;
mod log;
mod membership;
mod site;
mod sys;
mod telemetry;
mod traversal;
mod tunnels;
mod turn;

pub use config::Config;
pub use error::GatewayError;
pub use gateway::Gateway;
pub use inherited::{InheritError, STATE_VERSION, StateError};
pub use keeper::Keeper;
pub use listeners::try_bind;
pub use site::{nft, ports};
pub use sys::socket::may_begin_anew;
pub use tunnels::capacity as lanes;
pub use tunnels::quic::KERNEL_BYTES as UDP_BUFFER_BYTES;
