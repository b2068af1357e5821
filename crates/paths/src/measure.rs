//! Measures how fast a stream carries bytes to another site. They are sent to a sink that the far gateway
//! starts, which reports how many arrived.

use crate::connection::{ConnectError, gateway_status, start_job, through};
use crate::destination::{self, Destination};
use causeway_control::SINK_PORT;
use causeway_wire::TextError;
use serde::Serialize;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// Size of one write.
const BUFFER_BYTES: usize = 256 * 1024;

/// A path on which nothing moves for this long has no meaningful rate.
const STILL: Duration = Duration::from_secs(30);

/// More bytes than the digits of any number take.
const ANSWER_BYTES: u64 = 32;

/// What was measured.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Measured {
    /// Bytes that were sent, and counted at the far end.
    pub bytes: u64,
    /// Time from the first byte to the answer.
    pub seconds: f64,
    /// The rate: the bytes over that time less one round trip, half of it for the bytes and half for the
    /// answer.
    pub rate_bits_per_second: f64,
}

/// Sends `bytes` to a site; `round_trip` is the shortest that was seen.
///
/// # Errors
/// The measurement failed; the error is a sentence.
pub fn measure(site: &str, bytes: u64, round_trip: Duration) -> Result<Measured, TextError> {
    let (stream, _job) = open(site).map_err(|error| error.to_string())?;
    let began = Instant::now();
    let counted = send(stream, bytes).map_err(|error| format!("the stream to {site} broke: {error}"))?;
    let taken = began.elapsed();
    if counted.trim().parse() != Ok(bytes) {
        return Err(format!("{bytes} bytes were sent to {site}, which counted {counted:?}").into());
    }
    Ok(measured(bytes, taken, round_trip))
}

/// The stream, and the connection of the job, with whose end the sink ends.
fn open(site: &str) -> Result<(TcpStream, UnixStream), ConnectError> {
    let status = gateway_status()?;
    let found = status.sites.iter().find(|found| found.name == site);
    let gateway = found.and_then(|found| {
        let site = found.info.as_ref()?.site().ok()?;
        Some(site.in_grid(site.gateways.first()?.ip()))
    });
    let host = gateway.map_or_else(|| site.to_owned(), |gateway| gateway.to_string());
    let (token, held) = start_job(format!("probe {site}"), site, false)?;
    let stream = match destination::find(&status, &host, SINK_PORT)? {
        Destination::At {
            site,
            address,
            gateway,
        } => through(token, (&status.site, &site), address, gateway)?,
        Destination::Here(address) => {
            return Err(ConnectError::Answer(format!(
                "{site} has our own address {address}"
            )));
        }
    };
    Ok((stream, held))
}

/// Sends the bytes, and returns what the sink reports.
fn send(mut stream: TcpStream, bytes: u64) -> io::Result<String> {
    stream.set_write_timeout(Some(STILL))?;
    stream.set_read_timeout(Some(STILL))?;
    let buffer = vec![0x5a; BUFFER_BYTES];
    let mut left = bytes;
    while left > 0 {
        let piece = left.min(BUFFER_BYTES as u64);
        // The number fits: it is at most a buffer's.
        stream.write_all(&buffer[..piece as usize])?;
        left -= piece;
    }
    stream.shutdown(Shutdown::Write)?;
    let mut answer = String::new();
    stream.take(ANSWER_BYTES).read_to_string(&mut answer)?;
    Ok(answer)
}

fn measured(bytes: u64, taken: Duration, round_trip: Duration) -> Measured {
    // The round trip may have become shorter since, but the result must not be negative.
    let moving = taken.saturating_sub(round_trip).max(taken / 10);
    Measured {
        bytes,
        seconds: taken.as_secs_f64(),
        rate_bits_per_second: bytes as f64 * 8.0 / moving.as_secs_f64().max(f64::MIN_POSITIVE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answers_way_is_no_time_of_the_bytes() {
        let result = measured(1_000_000, Duration::from_millis(90), Duration::from_millis(10));
        assert!((result.rate_bits_per_second - 1e8).abs() < 1.0, "{result:?}");
        let short = measured(1, Duration::from_millis(10), Duration::from_millis(40));
        assert_eq!(short.rate_bits_per_second, 8000.0);
    }
}
