//! Two tunnel ends in virtual time.
#![allow(clippy::panic, clippy::unwrap_used)]

mod frames;
mod killed;
mod lanes;
mod model;
mod programs;
mod unread;
