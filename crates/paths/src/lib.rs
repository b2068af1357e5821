//! Paths to other sites. `connection` makes one connection to a `destination` there, and `copy` joins it to
//! standard input and output. `measure` finds the rate of a stream, `trips` sums up round trips.

pub mod connection;
pub mod copy;
pub mod destination;
pub mod measure;
pub mod trips;
