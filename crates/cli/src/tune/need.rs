//! What a path between sites demands of a host: the bytes in flight, and who keeps them in flight.

use causeway_bench::plan::KnownLink;
use causeway_control::{Status, TunnelStatus};

/// Who has the connections between sites.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carrier {
    /// The ranks themselves, without Causeway.
    Ranks,
    /// The lanes of this host's gateway.
    Gateway,
}

/// See the module.
#[derive(Debug, Clone)]
pub struct Need {
    /// See [`Carrier`].
    pub carrier: Carrier,
    /// The path that holds the most bytes; `None` if none is known.
    pub link: Option<KnownLink>,
    /// Share of segments that get lost on it.
    pub loss: f64,
    /// Largest packet that the path takes; 0 if it is not known.
    pub mtu_bytes: u32,
    /// The congestion control that lanes use; empty if there are none.
    pub lanes_use: String,
    /// The congestion control that the gateway's configuration wants.
    pub lanes_want: String,
}

impl Need {
    /// The need according to this gateway's tunnels; `given` takes precedence.
    pub fn new(carrier: Carrier, status: Option<&Status>, given: Option<KnownLink>) -> Need {
        let tunnels = status.map_or(&[][..], |status| &status.tunnels);
        let held = |tunnel: &&TunnelStatus| {
            u64::from(tunnel.rtt_microseconds).saturating_mul(tunnel.rate_bits_per_second)
        };
        let largest = tunnels.iter().filter(|tunnel| held(tunnel) > 0).max_by_key(held);
        let lane = largest.and_then(|tunnel| tunnel.lanes.first());
        Need {
            carrier,
            link: given.or_else(|| {
                largest.map(|tunnel| KnownLink {
                    round_trip_us: f64::from(tunnel.rtt_microseconds),
                    rate_bits_per_second: tunnel.rate_bits_per_second as f64,
                    source: format!("probed, to {}", tunnel.site),
                })
            }),
            loss: tunnels.iter().map(|tunnel| tunnel.loss).fold(0.0, f64::max),
            mtu_bytes: lane.map_or(0, |lane| lane.mtu_bytes),
            lanes_use: lane
                .map(|lane| lane.congestion_control.clone())
                .unwrap_or_default(),
            lanes_want: "bbr".into(),
        }
    }

    /// Bytes that the path holds.
    pub fn on_the_way(&self) -> Option<u64> {
        let link = self.link.as_ref()?;
        Some((link.round_trip_us / 1e6 * link.rate_bits_per_second / 8.0) as u64)
    }

    /// The round trip in milliseconds.
    pub fn round_trip_ms(&self) -> Option<f64> {
        Some(self.link.as_ref()?.round_trip_us / 1e3)
    }
}
