//! Makes one HTML page of measurements that can be opened from a mail attachment: script and style are
//! inside, and nothing is loaded.
//!
//! `page`, `plot` and `bars` draw. `messages`, `operations`, `programs` and `network` are the sections on
//! measurements, `cost` and `features` those that follow papers, and `report` combines all.

pub mod bars;
mod cost;
mod escape;
mod features;
mod measurement;
mod messages;
mod network;
mod operations;
pub mod page;
pub mod plot;
mod programs;
mod report;

pub use measurement::Measurement;
pub use page::GENERATOR;
pub use report::{CSV_HEAD, csv, html};
