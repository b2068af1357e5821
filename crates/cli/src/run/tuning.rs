//! Computes the MPI's own limits from the link. Pure.
//!
//! From some size on an MPI asks the receiver before it sends (rendezvous), which costs a round trip: at 11.6
//! ms a message of 64 kB takes three times as long as it must (Hablot et al. 2007, section 4, tune this
//! threshold by hand). Below it the receiver may have to keep the message until it is asked for, so the limit
//! bounds memory.

use causeway_control::Status;
use causeway_gateway::lanes::bandwidth_delay_product;

/// The most that one unexpected message of a peer may occupy at its receiver.
pub const MAX_EAGER_BYTES: u64 = 16 << 20;

/// UCX asks twice, so its limit is so many times larger: 64 MB at 11.6 ms and 1 Gbit/s took 1.108 times the
/// limit, sent at once 1.063.
const UCX_TIMES: u64 = 4;

/// The largest limit in libfabric's ofi_rxm, by which Intel MPI uses TCP. It keeps hundreds of buffers of
/// that size: 256 kB take 110 MB of each rank, 1 MB 2 GB. A message of 64 kB took 18.6 ms instead of 6.5,
/// collectives in segments of 256 kB twice as long.
const MAX_RXM_BYTES: u64 = 256 << 10;

/// The most that one such message of every peer may occupy together.
const MAX_TOGETHER_BYTES: u64 = 512 << 20;

/// No MPI has a smaller limit by default.
const MIN_EAGER_BYTES: u64 = 64 << 10;

/// Room for the MPI's own header: a message of a power of two is the usual one, and shall not miss the limit
/// by it.
const HEADER_BYTES: u64 = 1 << 10;

/// What fits on a link, so many times: from there on the round trip is less than a tenth of the transfer.
const PRODUCTS: u64 = 10;

/// The sizes up to which messages should be sent at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Eager {
    pub usual_bytes: u64,
    pub ucx_bytes: u64,
    pub rxm_bytes: u64,
}

/// The sizes for a job of `ranks`. `None` without a tunnel.
pub fn eager(status: &Status, ranks: u32) -> Option<Eager> {
    let tunnels = status.tunnels.iter();
    let products =
        tunnels.map(|tunnel| bandwidth_delay_product(tunnel.rtt_microseconds, tunnel.rate_bits_per_second));
    products.max().map(|largest| eager_for(largest, ranks))
}

/// The sizes for a link that holds so many bytes: powers of two and room for a header, within the bounds
/// above.
pub fn eager_for(on_the_way_bytes: u64, ranks: u32) -> Eager {
    let wanted = on_the_way_bytes
        .saturating_mul(PRODUCTS)
        .clamp(MIN_EAGER_BYTES, MAX_EAGER_BYTES)
        .next_power_of_two();
    let peers = u64::from(ranks.max(1)).next_power_of_two();
    let most = (MAX_TOGETHER_BYTES / peers).max(MIN_EAGER_BYTES);
    Eager {
        usual_bytes: wanted.min(most) + HEADER_BYTES,
        ucx_bytes: (wanted * UCX_TIMES).min(most) + HEADER_BYTES,
        rxm_bytes: wanted.min(most).min(MAX_RXM_BYTES) + HEADER_BYTES,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_control::TunnelStatus;

    /// Round-trip times in microseconds and rates in bits per second.
    fn status(links: &[(u32, u64)]) -> Status {
        let tunnel = |(rtt, rate): &(u32, u64)| TunnelStatus {
            streams: 0,
            site: "nancy".into(),
            peer: ([198, 51, 100, 5], 7001).into(),
            rtt_microseconds: *rtt,
            rate_bits_per_second: *rate,
            loss: 0.0,
            congestion_control: "bbr".into(),
            sent_bytes: 0,
            received_bytes: 0,
            lanes: Vec::new(),
            lanes_lost: 0,
            down_seconds: None,
            why_no_better_way: String::new(),
            refuses_jobs: None,
        };
        Status {
            site: "rennes".into(),
            pid: 1,
            tunnels: links.iter().map(tunnel).collect(),
            ..Status::default()
        }
    }

    const GIGABIT: u64 = 1_000_000_000;

    #[test]
    fn the_link_that_holds_most_decides_within_the_bounds() {
        let limit =
            |links: &[(u32, u64)]| eager(&status(links), 2).map(|eager| eager.usual_bytes - HEADER_BYTES);
        assert_eq!(limit(&[]), None);
        assert_eq!(limit(&[(10, GIGABIT)]), Some(MIN_EAGER_BYTES));
        assert_eq!(limit(&[(100, GIGABIT), (500, GIGABIT)]), Some(1 << 20));
        assert_eq!(
            limit(&[(11_600, GIGABIT), (8_000, GIGABIT)]),
            Some(MAX_EAGER_BYTES)
        );
        assert_eq!(limit(&[(90_000, GIGABIT)]), Some(MAX_EAGER_BYTES));
        assert_eq!(limit(&[(100, 10 * GIGABIT)]), Some(2 << 20));
    }

    #[test]
    fn a_rate_below_the_assumed_one_is_taken_for_a_lane_that_has_carried_little() {
        let limit = |rate| eager(&status(&[(500, rate)]), 2);
        assert_eq!(limit(GIGABIT / 1000), limit(GIGABIT));
    }

    #[test]
    fn many_ranks_have_less_each_so_that_all_together_stay_within_the_bound() {
        let limit = |ranks| {
            let eager = eager(&status(&[(11_600, GIGABIT)]), ranks).unwrap();
            [eager.usual_bytes, eager.ucx_bytes, eager.rxm_bytes].map(|bytes| bytes - HEADER_BYTES)
        };
        assert_eq!(limit(8), [16 << 20, 64 << 20, 256 << 10]);
        assert_eq!(limit(32), [16 << 20, 16 << 20, 256 << 10]);
        assert_eq!(limit(33), [8 << 20, 8 << 20, 256 << 10]);
        assert_eq!(limit(1000), [512 << 10, 512 << 10, 256 << 10]);
        assert_eq!(limit(1_000_000), [MIN_EAGER_BYTES; 3]);
    }
}
