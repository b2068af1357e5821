//! An emulated grid on one machine: every site is a router, a head node and compute nodes in namespaces of
//! their own, with real firewall rules, a real sshd in each node, and a WAN in user space between the
//! routers.
//!
//! It knows nothing about the product that it is used to test: no gateway, no shim, no job. Read first:
//! [`Scenario`] (what is asked for), `plan` (who gets which address), `keeper` (who makes the namespaces),
//! `enter` (how a command gets in).

mod batch_system;
mod batches;
mod commands;
mod control;
mod daemons;
mod emulators;
mod enter;
mod error;
mod fabric;
mod init;
mod keeper;
mod lab;
mod mount_calls;
mod mounts;
mod networks;
mod oar;
mod pbs;
mod plan;
mod preflight;
mod roots;
pub mod scenario;
mod serve;
mod signals;
mod slurm;
mod ssh;
mod state;
mod state_dir;
mod subnet;
mod sys;
mod system;
pub mod wan;

pub use control::{Answer, Request};
pub use enter::{NodeChild, NodeCommand, Session, Stdio};
pub use error::LabError;
pub use lab::{Lab, LabOptions};
pub use pbs::PBS_CONF;
pub use plan::{Node, Role, SiteView};
pub use scenario::{Batch, Firewall, Mistake, Mistakes, Overrides, Scenario};
pub use serve::Ended;
pub use signals::Arrived;
pub use state::{LabState, Router, down_all, down_all_in};
