//! Makes one HTML page of measurements, which works from a mail attachment: script and style are inside, and
//! nothing is loaded.
//!
//! `page` and `plot` and `bars` draw. `messages`, `operations`, `programs` and `network` are the parts that
//! measurements have, `cost` and `features` those of the papers, and `report` puts all together.

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
