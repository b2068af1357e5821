//! Labs of namespaces: nodes, firewalls, scenarios, and what they leave behind.
#![allow(clippy::panic, clippy::unwrap_used)]

mod common;
mod firewalls;
mod leftovers;
mod nodes;
mod scenarios;
mod systems;
