//! Knows which versions of MPI were seen to compute the same with everything that `causeway run` sets:
//! `versions.toml` lists them and says how. Others get only what they need to run. Pure.

use crate::Mpi;
use serde::Deserialize;
use std::sync::OnceLock;

/// A version that was seen to work.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Version {
    mpi: String,
    series: Vec<String>,
    /// The programs with which the data test was run, and where the version came from.
    pub seen: Vec<String>,
    /// Arguments of the data test, which leave out defects of the MPI itself.
    pub data: String,
}

/// A version that itself computes wrong.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Faulty {
    mpi: String,
    version: String,
    what: String,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    version: Vec<Version>,
    faulty: Vec<Faulty>,
}

/// The contents of the file.
fn table() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    // A unit test reads the same text, which is compiled in.
    TABLE.get_or_init(|| toml::from_str(include_str!("versions.toml")).unwrap_or_default())
}

/// What a version itself computes wrong, if that was seen.
pub fn fault(mpi: Mpi, version: &str) -> Option<&'static str> {
    let mut all = table().faulty.iter();
    let found = all.find(|faulty| faulty.mpi == mpi.name() && faulty.version == version)?;
    Some(&found.what)
}

/// The row of a version, as its launcher reports it; `None` if no such version was seen.
pub fn known(mpi: Mpi, version: &str) -> Option<&'static Version> {
    of(mpi).find(|row| row.series.iter().any(|series| is_of(version, series)))
}

/// The versions of an MPI that were seen, for people.
pub fn seen(mpi: Mpi) -> String {
    let seen: Vec<&str> = of(mpi).flat_map(|row| &row.seen).map(String::as_str).collect();
    seen.join(", ")
}

fn of(mpi: Mpi) -> impl Iterator<Item = &'static Version> {
    let all = table().version.iter();
    all.filter(move |row| row.mpi == mpi.name())
}

/// Whether a version belongs to a series: 4.1.4 belongs to 4.1; 4.10.1 does not, and neither does 4.1rc1,
/// which nobody has tested.
fn is_of(version: &str, series: &str) -> bool {
    let Some(rest) = version.strip_prefix(series) else {
        return false;
    };
    let mut parts = rest.split('.');
    parts.next() == Some("") && parts.all(|part| part.chars().all(|c| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_can_be_read_and_says_what_was_seen() {
        let read: Table = toml::from_str(include_str!("versions.toml")).unwrap();
        for row in &read.version {
            let known = [Mpi::OpenMpi4, Mpi::Mpich, Mpi::Intel];
            assert!(known.iter().any(|mpi| mpi.name() == row.mpi), "{row:?}");
            assert!(!row.series.is_empty() && !row.seen.is_empty(), "{row:?}");
        }
        assert_eq!(read.version.len(), table().version.len());
        assert_eq!(read.faulty.len(), table().faulty.len());
    }

    #[test]
    fn a_version_that_computes_wrong_by_itself_is_none_that_nobody_has_tested() {
        assert!(fault(Mpi::OpenMpi4, "4.1.0").is_some_and(|what| what.contains("MPI_C_DOUBLE_COMPLEX")));
        assert_eq!(fault(Mpi::OpenMpi4, "4.1.4"), None);
        for faulty in &table().faulty {
            let mpis = [Mpi::OpenMpi4, Mpi::Mpich, Mpi::Intel];
            let mpi = mpis.into_iter().find(|mpi| mpi.name() == faulty.mpi).unwrap();
            assert!(known(mpi, &faulty.version).is_none(), "{faulty:?}");
        }
    }

    #[test]
    fn versions_of_a_series_are_known_and_others_are_not() {
        for (mpi, version) in [
            (Mpi::OpenMpi4, "4.1.4"),
            (Mpi::OpenMpi5, "5.0.11"),
            (Mpi::OpenMpi5, "PRRTE 3.0.13"),
            (Mpi::OpenMpi5, "6.0.0rc2"),
            (Mpi::Mpich, "4.0"),
            (Mpi::Mpich, "5.0.2"),
            (Mpi::Intel, "2021.18.1"),
        ] {
            assert!(known(mpi, version).is_some(), "{mpi:?} {version}");
        }
        for (mpi, version) in [
            (Mpi::OpenMpi4, "4.10.1"),
            (Mpi::OpenMpi4, "4.0.7"),
            (Mpi::OpenMpi4, "4.1.0"),
            (Mpi::OpenMpi5, "5.0.7"),
            (Mpi::OpenMpi5, "6.0.0"),
            (Mpi::OpenMpi5, "5.0.0rc2"),
            (Mpi::OpenMpi5, "5.1.0"),
            (Mpi::Mpich, "5.0rc1"),
            (Mpi::Mpich, "5.1.0"),
            (Mpi::Mpich, "2021.18.1"),
            (Mpi::Intel, "2022.1"),
        ] {
            assert!(known(mpi, version).is_none(), "{mpi:?} {version}");
        }
    }
}
