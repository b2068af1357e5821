//! The remote start: MPI launchers use it in place of ssh, so that their daemons start at any site.
//!
//! ```text
//!   mpirun -- agent == gateway A == tunnel == gateway B -- start-node -- ssh -- node-exec -- sh -c COMMAND
//!             `------------- frames (frame.rs), one byte stream -------------------'
//! ```
//!
//! Whichever process of the chain dies, the others see the end of the stream, and `node-exec` leaves no
//! process of the job behind. Read `frame` first, then `guard`.

#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod agent;
pub mod ask;
mod ending;
pub mod frame;
pub mod guard;
mod lease;
pub mod node_exec;
pub mod parent;
pub mod parts;
mod shimless;
pub mod start_node;
pub mod stdin;
pub mod text;
pub mod tree;
pub mod unloaded;

/// The name by which the agent is called if a launcher takes a path without arguments.
pub const AGENT_NAME: &str = "causeway-agent";

/// Reports to this site's gateway what runs on a node for the process `pid`, which the gateway has started. A
/// job does not depend on the record: a gateway that does not answer is about to end what it has started.
fn tell_gateway(control: &std::path::Path, pid: u32, started: frame::Started) {
    let request = causeway_control::Request::Started {
        pid,
        node_pid: started.pid,
        command: started.command,
    };
    let _ = causeway_control::ask(control, &request);
}
