//! Rows of each MPI: up to which size it sends messages without asking first, and its buffers. Pure.
//!
//! Hablot et al. (2007), section IV: beyond that size a message waits a round trip for the receiver's
//! permission.

use super::item::{Change, Item};
use super::mca_file::McaFile;
use super::need::{Carrier, Need};
use causeway_bench::plan::KnownLink;
use causeway_bench::running::by_hand::{self, Allowed};
use causeway_bench::running::mpis::NamedMpi;
use causeway_mpis::Mpi;
use causeway_mpis::names::MCA;

/// A message longer than every default limit, to estimate the gain.
const EXAMPLE_BYTES: u64 = 64 << 10;

/// Ranks of a usual job: with more, limits are smaller.
const RANKS: u32 = 16;

/// Rows for one MPI. `set` is what Open MPI's file contains.
pub fn items(mpi: &NamedMpi, need: &Need, allowed: Allowed, set: &McaFile) -> Vec<Item> {
    let Some(link) = need.link.as_ref() else {
        return Vec::new();
    };
    let all = by_hand::environment(&mpi.launcher, Some(link), RANKS, allowed);
    let (buffers, limits): (Vec<_>, Vec<_>) = all.into_iter().partition(|(name, _)| is_buffer(name));
    let limit = Item {
        name: format!("eager limit of {}", mpi.name),
        group: mpi.name.clone(),
        why: "a longer message waits a round trip for the receiver to be ready".into(),
        gain: expected(link),
        ..limits_of(mpi.launcher.mpi, need.carrier, &limits, set)
    };
    let mut items = vec![limit];
    if !buffers.is_empty() && need.carrier == Carrier::Ranks {
        items.push(Item {
            name: format!("buffers of {}", mpi.name),
            group: mpi.name.clone(),
            current: "they grow up to the kernel's bound".into(),
            wanted: words(&buffers),
            is_enough: true,
            why: "if set, they have this size from the first message on; the kernel's grow to the same size"
                .into(),
            gain: String::new(),
            change: change(mpi.launcher.mpi, &buffers),
        });
    }
    items
}

/// What the limits are now, what they should be, and how to change them.
fn limits_of(mpi: Mpi, carrier: Carrier, limits: &[Variable], set: &McaFile) -> Item {
    let row = |current: String, is_enough: bool, change: Change| Item {
        name: String::new(),
        group: String::new(),
        current,
        wanted: words(limits),
        is_enough,
        why: String::new(),
        gain: String::new(),
        change,
    };
    if carrier == Carrier::Gateway {
        let sets = format!("causeway run sets {} for a job of {RANKS} ranks", words(limits));
        return row(sets, true, Change::ByRun);
    }
    // What the user has set stays as it is, even if it is too small: tune only says so.
    let own = |name: &str| {
        std::env::var(name)
            .ok()
            .or_else(|| Some(set.user_value(parameter(name))?.to_owned()))
    };
    let in_force = |name: &str| own(name).or_else(|| Some(set.tune_value(parameter(name))?.to_owned()));
    let now: Vec<String> = limits
        .iter()
        .filter_map(|(name, _)| Some(format!("{name}={}", in_force(name)?)))
        .collect();
    let current = match now.as_slice() {
        [] => mpi.row().usual_limit.to_owned(),
        now => now.join(" "),
    };
    let suffices = |(name, wanted): &&Variable| in_force(name).is_some_and(|value| is_enough(&value, wanted));
    let open: Vec<Variable> = limits
        .iter()
        .filter(|limit| own(limit.0).is_none())
        .cloned()
        .collect();
    let by_user: Vec<&Variable> = limits
        .iter()
        .filter(|limit| own(limit.0).is_some() && !suffices(limit))
        .collect();
    let done = limits.iter().all(|limit| suffices(&limit));
    // All lines of tune's own must be in the change, because it writes them all anew.
    let change = match by_user.as_slice() {
        [_, ..] if open.iter().all(|limit| suffices(&limit)) => Change::Own {
            what: format!(
                "you have set it yourself, in your environment or in ~/.openmpi/mca-params.conf; change it there to {}",
                by_user
                    .iter()
                    .map(|(name, value)| format!("{name}={value}"))
                    .collect::<Vec<_>>()
                    .join(" ")
            ),
        },
        _ => change(mpi, &open),
    };
    row(current, done, change)
}

type Variable = (&'static str, String);

fn change(mpi: Mpi, variables: &[Variable]) -> Change {
    let all = variables.iter();
    match mpi.row().has_parameter_file {
        true => Change::OpenMpi {
            parameters: all
                .map(|(name, value)| (parameter(name).to_owned(), value.clone()))
                .collect(),
        },
        false => Change::Environment {
            variables: all
                .map(|(name, value)| ((*name).to_owned(), value.clone()))
                .collect(),
        },
    }
}

/// The name of a variable as Open MPI's file has it.
fn parameter(name: &str) -> &str {
    name.trim_start_matches(MCA)
}

fn words(variables: &[Variable]) -> String {
    let all = variables.iter().map(|(name, value)| format!("{name}={value}"));
    all.collect::<Vec<_>>().join(" ")
}

/// Whether a value has the effect of the wanted one: a higher limit has, too.
fn is_enough(value: &str, wanted: &str) -> bool {
    match (value.parse::<u64>(), wanted.parse::<u64>()) {
        (Ok(value), Ok(wanted)) => value >= wanted,
        _ => value == wanted,
    }
}

/// Whether a variable sets a socket's buffer.
fn is_buffer(name: &str) -> bool {
    let name = name.to_lowercase();
    name.contains("sndbuf") || name.contains("rcvbuf")
}

/// What a message gains if it is spared one round trip.
fn expected(link: &KnownLink) -> String {
    let without = link.link().one_way_us(EXAMPLE_BYTES);
    let ratio = (without + link.round_trip_us) / without;
    format!("expected: 64 kB in 1/{ratio:.1} of the time")
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_launchers::launcher::Launcher;

    fn items_of(carrier: Carrier, mpi: Mpi) -> Vec<Item> {
        items_with(carrier, mpi, "")
    }

    fn items_with(carrier: Carrier, mpi: Mpi, file: &str) -> Vec<Item> {
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
        items(&mpi, &need, allowed, &McaFile(file.to_owned()))
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
        // 64 kB take 6.32 ms, and 17.9 ms with one more round trip.
        assert_eq!(open[0].gain, "expected: 64 kB in 1/2.8 of the time");
        let intel = items_of(Carrier::Ranks, Mpi::Intel);
        assert!(matches!(intel[0].change, Change::Environment { .. }));
    }

    #[test]
    fn what_tune_has_applied_is_enough_and_what_the_user_has_set_is_left_and_told() {
        let row = |file: &str| items_with(Carrier::Ranks, Mpi::OpenMpi4, file).remove(0);
        let Change::OpenMpi { parameters } = row("").change else {
            panic!("a file is to be changed");
        };
        let applied: String = parameters
            .iter()
            .map(|(name, value)| format!("{name} = {value}\n"))
            .collect();
        let mark = super::super::mca_file::MARK;
        let done = row(&format!("{mark}\n{applied}"));
        assert!(done.is_enough && done.current == done.wanted, "{done:?}");
        // The link is wider than before: tune's own lines are written anew.
        let narrow = row(&format!("{mark}\n{}", applied.replace("16778240", "70000")));
        assert!(!narrow.is_enough, "{narrow:?}");
        assert_eq!(
            narrow.change,
            Change::OpenMpi {
                parameters: parameters.clone()
            }
        );
        // One value is the user's, the others are tune's.
        let mixed = row(&format!("btl_tcp_eager_limit = 70000\n{mark}\n{applied}"));
        let Change::Own { what } = &mixed.change else {
            panic!("{mixed:?}");
        };
        assert!(
            !mixed.is_enough && what.ends_with("btl_tcp_eager_limit=16778240"),
            "{mixed:?}"
        );
        let first = row("btl_tcp_eager_limit = 70000\n");
        let Change::OpenMpi { parameters: rest } = first.change else {
            panic!("{first:?}");
        };
        assert_eq!(rest, parameters[1..]);
    }

    #[test]
    fn with_causeway_nothing_is_left_to_do() {
        let items = items_of(Carrier::Gateway, Mpi::Mpich);
        assert_eq!(items.len(), 1);
        assert!(items[0].is_enough && items[0].change == Change::ByRun);
    }
}
