//! Collectives that cross between sites once: which libraries are preloaded for them (mpi/), and which
//! variables these get.

use causeway_control::{LINKED_SITES, Link, Status, TunnelStatus};
use causeway_host::say;
use causeway_mpis::Mpi;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The beginning of the names of the libraries' variables.
pub const FAMILY: &str = "CAUSEWAY_COLLECTIVES_";

/// Variables that mpi/collectives/select/settings.c reads.
pub const RTT_MICROSECONDS: &str = "CAUSEWAY_COLLECTIVES_RTT_MICROSECONDS";
/// See [`RTT_MICROSECONDS`].
pub const MEGABITS: &str = "CAUSEWAY_COLLECTIVES_MEGABITS";
const LINKS: &str = "CAUSEWAY_COLLECTIVES_LINKS";

/// The lowest rate that is believed, in Mbit/s: a tenth of the rate of most links. A lane that has carried
/// little reports too low a rate.
const MIN_RATE: u64 = 100;

/// The variable by which reductions combine in the order of ranks.
pub const SAME_BITS: &str = "CAUSEWAY_COLLECTIVES_SAME_BITS";

/// The first library for an MPI, which messages name if none was built.
pub fn wanted(own: &Path, mpi: Mpi) -> PathBuf {
    own.with_file_name(mpi.row().collectives[0])
}

/// The libraries for an MPI that were built. Building one needs the headers of its interface. Without any of
/// them a job is slower, and the user is told why.
pub fn libraries(own: &Path, mpi: Mpi) -> Vec<PathBuf> {
    let found = built(own, mpi);
    if found.is_empty() {
        say::error(format_args!("causeway: {}", without(own, mpi)));
    }
    found
}

/// The same, without a message.
pub fn built(own: &Path, mpi: Mpi) -> Vec<PathBuf> {
    let paths = mpi.row().collectives.iter().map(|name| own.with_file_name(name));
    paths.filter(|path| path.is_file()).collect()
}

/// What follows if none was built, for a message.
pub fn without(own: &Path, mpi: Mpi) -> String {
    format!(
        "collective operations cross between sites as often as {} makes them, because {} is missing ('make build' builds it \
         where that MPI's headers are)",
        mpi.name(),
        wanted(own, mpi).display()
    )
}

/// Settings about the links between the named sites, or between all if none is named: those of the longest
/// and the slowest link, and for three sites or more those of each link.
pub fn settings(links: &BTreeMap<String, Vec<Link>>, sites: &[String]) -> Vec<(&'static str, String)> {
    let both = both_ends(links, sites);
    let round = both.values().map(|(round, _)| *round).max();
    let rate = both.values().map(|(_, rate)| *rate).min();
    let ends: BTreeSet<_> = both.keys().flat_map(|(one, other)| [one, other]).collect();
    let each = (3..=LINKED_SITES)
        .contains(&ends.len())
        .then(|| (LINKS, each(&both)));
    let round = round.map(|round| (RTT_MICROSECONDS, round.to_string()));
    let rate = rate.map(|rate| (MEGABITS, rate.to_string()));
    round.into_iter().chain(rate).chain(each).collect()
}

/// Whether the user has set a variable.
pub fn is_set(name: &str) -> bool {
    std::env::var_os(name).is_some()
}

/// Microseconds of a round trip, and Mbit/s, between two sites whose names are in order.
type Between<'a> = BTreeMap<(&'a str, &'a str), (u32, u64)>;

/// The links of this site alone, for commands that start no job.
pub fn links_of(status: &Status) -> BTreeMap<String, Vec<Link>> {
    let links = status.tunnels.iter().filter_map(TunnelStatus::link);
    [(status.site.clone(), links.collect())].into()
}

/// Combines what both ends have measured. It uses the shorter time, because queues only add to it, and the
/// lower rate, which is the rate of at least one direction.
fn both_ends<'a>(links: &'a BTreeMap<String, Vec<Link>>, sites: &[String]) -> Between<'a> {
    let takes_part = |site: &String| sites.is_empty() || sites.contains(site);
    let mut both = Between::new();
    for (from, links) in links.iter().filter(|(from, _)| takes_part(from)) {
        for link in links
            .iter()
            .filter(|link| takes_part(&link.to) && link.to != *from)
        {
            let ends = (from.min(&link.to).as_str(), from.max(&link.to).as_str());
            let seen = (
                link.rtt_microseconds,
                (link.rate_bits_per_second / 1_000_000).max(MIN_RATE),
            );
            both.entry(ends)
                .and_modify(|(round, rate)| (*round, *rate) = ((*round).min(seen.0), (*rate).min(seen.1)))
                .or_insert(seen);
        }
    }
    both
}

/// Writes the links in the form that mpi/collectives/select/links.c reads.
fn each(both: &Between) -> String {
    let each = both
        .iter()
        .map(|((one, other), (round, rate))| format!("{one} {other} {round} {rate}"));
    each.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A measured link: the site to which it leads, its microseconds and its Mbit/s.
    type Measured<'a> = (&'a str, u32, u64);

    fn links(of: &[(&str, &[Measured])]) -> BTreeMap<String, Vec<Link>> {
        let link = |(to, rtt, megabits): &Measured| Link {
            to: (*to).to_owned(),
            rtt_microseconds: *rtt,
            rate_bits_per_second: megabits * 1_000_000,
        };
        let of = of.iter();
        of.map(|(from, links)| ((*from).to_owned(), links.iter().map(link).collect()))
            .collect()
    }

    fn told(links: &BTreeMap<String, Vec<Link>>, sites: &[&str]) -> Vec<String> {
        let sites: Vec<String> = sites.iter().map(|site| (*site).to_owned()).collect();
        let settings = settings(links, &sites).into_iter();
        settings.map(|(_, value)| value).collect()
    }

    #[test]
    fn the_longest_and_the_slowest_way_between_the_jobs_own_sites_are_told() {
        let links = links(&[(
            "rennes",
            &[("nancy", 11_600, 900), ("orsay", 8_000, 400), ("far", 90_000, 1)],
        )]);
        assert_eq!(told(&links, &["rennes", "nancy"]), ["11600", "900"]);
        assert_eq!(told(&links, &["rennes", "far"]), ["90000", "100"]);
        assert_eq!(told(&links, &[])[..2], ["90000", "100"]);
        assert!(told(&links, &["rennes"]).is_empty());
    }

    #[test]
    fn from_three_sites_on_each_link_is_told_once_as_its_two_ends_know_it() {
        let links = links(&[
            ("rennes", &[("nancy", 11_600, 900), ("orsay", 8_000, 400)]),
            (
                "nancy",
                &[("rennes", 11_500, 940), ("orsay", 300_000, 0), ("far", 1, 1)],
            ),
        ]);
        assert_eq!(
            told(&links, &["rennes", "nancy", "orsay"]),
            [
                "300000",
                "100",
                "nancy orsay 300000 100,nancy rennes 11500 900,orsay rennes 8000 400"
            ]
        );
        assert_eq!(told(&links, &["rennes", "nancy"]).len(), 2);
    }

    #[test]
    fn of_the_libraries_that_are_there_the_one_with_the_wider_handles_comes_first() {
        let directory = tempfile::tempdir().unwrap();
        let own = directory.path().join("causeway");
        let found = |mpi| {
            let paths = libraries(&own, mpi).into_iter();
            let name = |path: PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
            paths.map(name).collect::<Vec<_>>()
        };
        assert!(found(Mpi::Mpich).is_empty());
        for name in causeway_mpis::preload::names() {
            std::fs::write(directory.path().join(name), "").unwrap();
        }
        assert_eq!(
            found(Mpi::Intel),
            ["libcauseway_mpi_abi.so", "libcauseway_mpi_mpich.so"]
        );
        assert_eq!(found(Mpi::OpenMpi5), ["libcauseway_mpi_openmpi5.so"]);
    }
}
