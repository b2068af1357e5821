//! The broker: who is in the grid, where, and who may join. Gateways dial out to it; it is never on the data
//! path.
//!
//! ```text
//! causeway grid create ── authority, broker.toml          [gateway] ── client ─┐
//! causeway grid token  ── one line ──> a new site ── join ── certificate       │ HTTPS, mutual TLS 1.3
//!                                                                              v
//! causeway grid list, revoke ── broker.sock ──────────> [server] ── state ── store.redb
//! ```
//! Read `identity` and `tls` (who is who), then `api` (the messages), `state` (what it does), `server` (how
//! it gets there) and `client` (the gateway's end). No type of the async runtime is in any public interface.
#![deny(unsafe_code)]

pub mod api;
pub mod authority;
pub mod client;
pub mod clock;
pub mod config;
mod credentials;
mod exchange;
mod files;
mod granted;
pub mod identity;
pub mod join_token;
pub mod members;
pub mod new_grid;
pub mod ranges;
pub mod records;
pub mod reflection;
pub mod revocation;
pub mod root;
mod say;
mod server;
mod state;
mod store;
mod subnet;
mod text;
pub mod tls;
mod trust;
mod virtual_addresses;

pub use config::BrokerConfig;
pub use credentials::Credentials;
pub use files::FileError;
pub use granted::holds;
pub use say::Log;
pub use server::admin;
pub use server::{Broker, BrokerError, Limits, Options, Rate};
pub use state::{ListedBroker, ListedSite, ListedToken, Listing, MAX_TTL_SECONDS, StateError};
pub use store::{StoreError, VERSION as STORE_VERSION};
pub use virtual_addresses::may_be_virtual;
