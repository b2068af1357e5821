//! The command as users run it.
#![allow(clippy::panic, clippy::unwrap_used)]

mod agent;
mod background;
mod broker;
mod brokers;
mod collectives;
mod describe;
mod finalize;
mod first_sittings;
mod first_writes;
mod full_disk;
mod handover;
mod join;
mod killed_workers;
mod lab;
mod left;
#[path = "../../../../tests/nets.rs"]
mod nets;
mod output;
mod paths;
mod programs;
mod report;
mod resources;
mod run_directory;
mod run_exits;
mod running;
mod sites;
mod start_node;
mod status_watch;
mod thousand;
mod whereabouts;
