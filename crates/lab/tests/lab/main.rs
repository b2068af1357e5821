//! Labs of namespaces: nodes, firewalls, scenarios, and what is left of them.
#![allow(clippy::panic, clippy::unwrap_used)]

mod common;
mod firewalls;
mod leftovers;
mod nodes;
mod scenarios;
mod systems;
