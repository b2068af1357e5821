//! Rows of each MPI: up to which size it sends without asking first, and its buffers. Pure.
//!
//! Hablot et al. (2007), section IV: beyond that size a message waits a round trip for the receiver's leave.

use super::item::{Change, Item};
use super::need::{Carrier, Need};
use crate::bench::by_hand::{self, Allowed};
use crate::bench::mpis::NamedMpi;
use crate::run::launcher::Mpi;
use causeway_bench::plan::KnownLink;

/// A message beyond every default limit, for what is expected.
const EXAMPLE_BYTES: u64 = 64 << 10;

/// Ranks of a usual job: more have smaller limits.
const RANKS: u32 = 16;

/// Rows for one MPI.
pub fn items(mpi: &NamedMpi, need: &Need, allowed: Allowed) -> Vec<Item> {
    let Some(link) = need.link.as_ref() else {
        return Vec::new();
    };
    let all = by_hand::environment(&mpi.launcher, Some(link), RANKS, allowed);
    let (buffers, limits): (Vec<_>, Vec<_>) = all.into_iter().partition(|(name, _)| is_buffer(name));
    let change = |variables: Vec<(&str, String)>| match (need.carrier, mpi.launcher.mpi) {
        (Carrier::Gateway, _) => Change::ByRun,
        (Carrier::Ranks, Mpi::OpenMpi4 | Mpi::OpenMpi5) => Change::OpenMpi {
            parameters: variables
                .into_iter()
                .map(|(name, value)| (name.trim_start_matches("OMPI_MCA_").to_owned(), value))
                .collect(),
        },
        (Carrier::Ranks, Mpi::Mpich | Mpi::Intel) => Change::Environment {
            variables: variables
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
        },
    };
    let is_set = |variables: &[(&str, String)]| {
        need.carrier == Carrier::Gateway || variables.iter().all(|(name, _)| std::env::var_os(name).is_some())
    };
    let words = |variables: &[(&str, String)]| {
        let all = variables.iter().map(|(name, value)| format!("{name}={value}"));
        all.collect::<Vec<_>>().join(" ")
    };
    let limit = Item {
        name: format!("eager limit of {}", mpi.name),
        group: mpi.name.clone(),
        current: match need.carrier {
            Carrier::Gateway => format!("causeway run sets {} for a job of {RANKS} ranks", words(&limits)),
            Carrier::Ranks => usual_limit(mpi.launcher.mpi).into(),
        },
        wanted: words(&limits),
        is_enough: is_set(&limits),
        why: "a longer message waits a round trip for the receiver's leave".into(),
        gain: expected(link),
        change: change(limits),
    };
    let mut items = vec![limit];
    if !buffers.is_empty() && need.carrier == Carrier::Ranks {
        items.push(Item {
            name: format!("buffers of {}", mpi.name),
            group: mpi.name.clone(),
            current: "they grow with the kernel's bound".into(),
            wanted: words(&buffers),
            is_enough: true,
            why: "set, they are there from the first message on; the kernel's grow to the same".into(),
            gain: String::new(),
            change: change(buffers),
        });
    }
    items
}

/// Whether a variable sets a socket's buffer.
fn is_buffer(name: &str) -> bool {
    let name = name.to_lowercase();
    name.contains("sndbuf") || name.contains("rcvbuf")
}

fn usual_limit(mpi: Mpi) -> &'static str {
    match mpi {
        Mpi::OpenMpi4 | Mpi::OpenMpi5 => "64 kB, the MPI's own",
        Mpi::Mpich => "what UCX or libfabric choose for a cluster",
        Mpi::Intel => "16 kB, libfabric's own",
    }
}

/// What a message takes with the round trip more, and without.
fn expected(link: &KnownLink) -> String {
    let without = link.link().one_way_us(EXAMPLE_BYTES);
    let ratio = (without + link.round_trip_us) / without;
    format!("expected: 64 kB in 1/{ratio:.1} of the time")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::launcher::Launcher;

    fn items_of(carrier: Carrier, mpi: Mpi) -> Vec<Item> {
        let mpi = NamedMpi {
            name: "an MPI".into(),
            launcher: Launcher {
                path: "/nowhere/mpirun".into(),
                mpi,
                version: "1".into(),
                two_netmods: false,
            },
        };
        let need = Need {
            carrier,
            link: Some(KnownLink {
                round_trip_us: 11_600.0,
                rate_bits_per_second: 1e9,
                source: "given".into(),
            }),
            loss: 0.0,
            mtu_bytes: 0,
            lanes_use: String::new(),
            lanes_want: "bbr".into(),
        };
        let allowed = Allowed {
            send: 1 << 30,
            receive: 1 << 30,
        };
        items(&mpi, &need, allowed)
    }

    #[test]
    fn without_causeway_open_mpi_gets_a_file_and_others_get_variables() {
        let open = items_of(Carrier::Ranks, Mpi::OpenMpi4);
        assert_eq!(open.len(), 2);
        let Change::OpenMpi { parameters } = &open[0].change else {
            panic!("{open:?}");
        };
        assert_eq!(
            parameters[0],
            ("btl_tcp_eager_limit".to_owned(), "16778240".to_owned())
        );
        // 64 kB take 6.32 ms, and 17.9 with a round trip more.
        assert_eq!(open[0].gain, "expected: 64 kB in 1/2.8 of the time");
        let intel = items_of(Carrier::Ranks, Mpi::Intel);
        assert!(matches!(intel[0].change, Change::Environment { .. }));
    }

    #[test]
    fn with_causeway_nothing_is_left_to_do() {
        let items = items_of(Carrier::Gateway, Mpi::Mpich);
        assert_eq!(items.len(), 1);
        assert!(items[0].is_enough && items[0].change == Change::ByRun);
    }
}
