//! What follows from the link for the MPI's own limits. Pure.
//!
//! From some size on an MPI asks the receiver before it sends (rendezvous), which costs a round trip: at 11.6 ms a message
//! of 64 kB takes three times as long as it must (Hablot et al. 2007, section 4, tune this threshold by hand).
//! Below it the receiver may have to keep the message until it is asked for, so the limit bounds memory.

use causeway_gateway::control::Status;
use std::time::Duration;

/// Most that one unexpected message of a peer may occupy at its receiver.
pub const MOST_EAGER_BYTES: u64 = 4 << 20;

/// No MPI has a smaller limit by default.
const LEAST_EAGER_BYTES: u64 = 64 << 10;

/// Room for the MPI's own header: a message of a power of two is the usual one, and shall not miss the limit by it.
const HEADER_BYTES: u64 = 1 << 10;

/// The link's rate where nothing is known of it: what Hablot et al. had, and few sites have less.
const ASSUMED_BITS_PER_SECOND: f64 = 1e9;

/// The size up to which messages should be sent at once: twice what fits on the longest link, from where on a round trip
/// is a third of the transfer at most; a power of two, within the bounds above. `None` without a tunnel.
pub fn eager_bytes(status: &Status) -> Option<u64> {
    let longest = status
        .tunnels
        .iter()
        .map(|tunnel| tunnel.rtt_microseconds)
        .max()?;
    let seconds = Duration::from_micros(longest.into()).as_secs_f64();
    let product = (seconds * ASSUMED_BITS_PER_SECOND / 8.0) as u64;
    let bytes = (2 * product)
        .next_power_of_two()
        .clamp(LEAST_EAGER_BYTES, MOST_EAGER_BYTES);
    Some(bytes + HEADER_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_gateway::control::TunnelStatus;

    fn status(rtts: &[u32]) -> Status {
        let tunnel = |rtt: &u32| TunnelStatus {
            site: "nancy".into(),
            peer: ([198, 51, 100, 5], 7001).into(),
            rtt_microseconds: *rtt,
            congestion_control: "bbr".into(),
            streams: 0,
            sent_bytes: 0,
            received_bytes: 0,
            lanes: Vec::new(),
            lanes_lost: 0,
            down_seconds: None,
        };
        Status {
            site: "rennes".into(),
            pid: 1,
            resident_bytes: 0,
            streams: 0,
            streams_peak: 0,
            streams_opened: 0,
            refused: Default::default(),
            jobs: Vec::new(),
            sites: Vec::new(),
            tunnels: rtts.iter().map(tunnel).collect(),
        }
    }

    #[test]
    fn the_longest_link_decides_within_the_bounds() {
        assert_eq!(eager_bytes(&status(&[])), None);
        assert_eq!(
            eager_bytes(&status(&[100])),
            Some(LEAST_EAGER_BYTES + HEADER_BYTES)
        );
        assert_eq!(
            eager_bytes(&status(&[100, 2000])),
            Some((512 << 10) + HEADER_BYTES)
        );
        assert_eq!(
            eager_bytes(&status(&[11_600, 8_000])),
            Some(MOST_EAGER_BYTES + HEADER_BYTES)
        );
        assert_eq!(
            eager_bytes(&status(&[90_000])),
            Some(MOST_EAGER_BYTES + HEADER_BYTES)
        );
    }
}
