//! What a careful user sets by hand without Causeway: the direct way under `tuned`. Pure.
//!
//! Hablot et al. (2007), section 4: buffers that hold what is in flight, and messages sent without asking
//! first. The largest size that is sent so is the same that `causeway run` sets, so that only the way
//! differs.

use crate::plan::KnownLink;
use causeway_launchers::launcher::Launcher;
use causeway_mpis::by_hand;
use causeway_mpis::eager::eager_for;

/// What the paper uses for 11.6 ms and 1 Gbit/s.
const LEAST_BYTES: u64 = 4 << 20;

/// More than any link between sites holds today: beyond this, memory is wasted.
const MOST_BYTES: u64 = 64 << 20;

/// The sizes of buffers that the system lets a process choose, in bytes.
#[derive(Debug, Clone, Copy)]
pub struct Allowed {
    /// net.core.wmem_max.
    pub send: u64,
    /// net.core.rmem_max.
    pub receive: u64,
}

impl Allowed {
    /// Reads those of this host; 0 if they cannot be read.
    pub fn here() -> Allowed {
        let read = |name: &str| {
            let text = std::fs::read_to_string(format!("/proc/sys/net/core/{name}"));
            let text = text.unwrap_or_default();
            text.trim().parse().unwrap_or(0)
        };
        Allowed {
            send: read("wmem_max"),
            receive: read("rmem_max"),
        }
    }
}

/// The variables for an MPI over this link.
pub fn environment(
    launcher: &Launcher,
    link: Option<&KnownLink>,
    ranks: u32,
    allowed: Allowed,
) -> Vec<(&'static str, String)> {
    let bytes = buffer_bytes(link);
    let eager = eager_for(link.map_or(0, |link| on_the_way(link) as u64), ranks);
    // A buffer that the system cuts would be worse than none: once set, it no longer grows.
    let fits = allowed.send >= bytes && allowed.receive >= bytes;
    let by_hand = by_hand::variables(launcher.mpi, &eager);
    let buffers = by_hand.buffers.iter().filter(|_| fits);
    let buffers = buffers.map(|name| (*name, bytes));
    let all = by_hand.limits.into_iter().chain(buffers);
    all.map(|(name, value)| (name, value.to_string())).collect()
}

/// Twice what is in flight, as a power of two.
fn buffer_bytes(link: Option<&KnownLink>) -> u64 {
    let wanted = link.map_or(0.0, |link| 2.0 * on_the_way(link));
    (wanted as u64).clamp(LEAST_BYTES, MOST_BYTES).next_power_of_two()
}

/// Bytes that the link holds.
fn on_the_way(link: &KnownLink) -> f64 {
    link.round_trip_us / 1e6 * link.rate_bits_per_second / 8.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_mpis::Mpi;

    fn launcher(mpi: Mpi) -> Launcher {
        Launcher {
            path: "/usr/bin/mpirun".into(),
            mpi,
            version: "4.1.4".into(),
            two_netmods: false,
        }
    }

    fn link(round_trip_us: f64) -> KnownLink {
        KnownLink {
            round_trip_us,
            rate_bits_per_second: 1e9,
            source: "scenario".into(),
        }
    }

    const MUCH: Allowed = Allowed {
        send: 1 << 30,
        receive: 1 << 30,
    };

    #[test]
    fn buffers_hold_twice_what_is_on_the_way_and_limits_are_those_of_causeway_run() {
        assert_eq!(buffer_bytes(None), 4 << 20);
        assert_eq!(buffer_bytes(Some(&link(11_600.0))), 4 << 20);
        assert_eq!(buffer_bytes(Some(&link(90_000.0))), 32 << 20);
        assert_eq!(buffer_bytes(Some(&link(900_000.0))), 64 << 20);
        let set = environment(&launcher(Mpi::OpenMpi4), Some(&link(11_600.0)), 2, MUCH);
        let values: Vec<&str> = set.iter().map(|(_, value)| value.as_str()).collect();
        assert_eq!(values, ["16778240", "16778240", "4194304", "4194304"]);
    }

    #[test]
    fn buffers_that_the_system_would_cut_are_left_to_grow_by_themselves() {
        let little = Allowed {
            send: 212_992,
            receive: 212_992,
        };
        for mpi in [Mpi::OpenMpi5, Mpi::Mpich, Mpi::Intel] {
            let set = environment(&launcher(mpi), None, 2, little);
            assert!(!set.is_empty());
            assert!(
                set.iter()
                    .all(|(name, _)| !name.to_lowercase().contains("buf") || name.contains("RXM"))
            );
        }
    }
}
