//! Two tunnel ends in virtual time.
#![allow(clippy::panic, clippy::unwrap_used)]

mod common;
mod lanes;
mod model;
mod programs;
mod unread;
