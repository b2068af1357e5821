//! Computes the MPI's own limits from the link. Pure.
//!
//! From some size on, an MPI asks the receiver before it sends (rendezvous), which costs a round trip: at
//! 11.6 ms, a message of 64 kB takes three times as long as necessary (Hablot et al. 2007, section 4, tune
//! this threshold by hand). Below it, the receiver may have to keep the message until it is asked for, so the
//! limit bounds memory.

/// The most memory that one unexpected message of a peer may occupy at its receiver.
pub const MAX_EAGER_BYTES: u64 = 16 << 20;

/// UCX asks twice, so its limit is larger by this factor: 64 MB at 11.6 ms and 1 Gbit/s took 1.108 times the
/// physical limit, and 1.063 times if sent at once.
const UCX_TIMES: u64 = 4;

/// The largest limit in libfabric's ofi_rxm, through which Intel MPI uses TCP. It keeps hundreds of buffers
/// of that size: 256 kB take 110 MB of each rank, 1 MB takes 2 GB. A message of 64 kB took 18.6 ms instead of
/// 6.5, and collectives in segments of 256 kB took twice as long.
const MAX_RXM_BYTES: u64 = 256 << 10;

/// The most memory that one such message from every peer may occupy together.
const MAX_TOGETHER_BYTES: u64 = 512 << 20;

/// No MPI has a smaller limit by default.
pub const MIN_EAGER_BYTES: u64 = 64 << 10;

/// Space for the MPI's own header: the usual message has a power of two, and must not exceed the limit
/// because of the header.
pub const HEADER_BYTES: u64 = 1 << 10;

/// The limit is the bandwidth-delay product times this: from there on, the round trip is less than a tenth of
/// the transfer.
const PRODUCTS: u64 = 10;

/// The sizes up to which messages should be sent at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Eager {
    /// The size that most MPIs are given.
    pub usual_bytes: u64,
    /// The same for UCX.
    pub ucx_bytes: u64,
    /// The same for libfabric's ofi_rxm.
    pub rxm_bytes: u64,
}

/// The sizes for a link that holds this many bytes: powers of two plus space for a header, within the bounds
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
