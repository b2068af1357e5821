//! Removes from a rank's environment what is for its launcher alone.

use causeway_wire::env::NOT_FOR_RANKS;
use std::ffi::{OsStr, OsString};

/// Lists the variables that must be removed from this process, if it is a rank.
pub fn not_for_ranks(value: impl Fn(&OsStr) -> Option<OsString>) -> Vec<OsString> {
    let told = value(OsStr::new(NOT_FOR_RANKS)).unwrap_or_default();
    let told = told.to_string_lossy();
    let Some((rank, names)) = told.split_once('|') else {
        return Vec::new();
    };
    match value(OsStr::new(rank)) {
        // No variable can have such a name, and removing one would panic and so end the process.
        Some(_) => { names.split(' ') }
            .filter(|name| !name.is_empty() && !name.contains(['=', '\0']))
            .map(OsString::from)
            .collect(),
        None => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_loses_what_is_for_its_launcher_and_the_launcher_loses_nothing() {
        let lost = |all: &[(&str, &str)]| {
            not_for_ranks(|name| {
                let found = all.iter().find(|(other, _)| name == *other);
                found.map(|(_, value)| OsString::from(value))
            })
        };
        let told = (NOT_FOR_RANKS, "PMI_RANK|HYDRA_HOST_FILE HYDRA_LAUNCHER_EXEC");
        assert_eq!(
            lost(&[told, ("PMI_RANK", "0")]),
            ["HYDRA_HOST_FILE", "HYDRA_LAUNCHER_EXEC"]
        );
        assert!(lost(&[told, ("OMPI_COMM_WORLD_RANK", "0")]).is_empty());
        assert!(lost(&[told]).is_empty());
        assert!(lost(&[("PMI_RANK", "0")]).is_empty());
        assert!(lost(&[(NOT_FOR_RANKS, "what"), ("PMI_RANK", "0")]).is_empty());
        let odd = (NOT_FOR_RANKS, "PMI_RANK|A=1  =");
        assert!(lost(&[odd, ("PMI_RANK", "0")]).is_empty());
        assert!(lost(&[(NOT_FOR_RANKS, "PMI_RANK|"), ("PMI_RANK", "0")]).is_empty());
    }
}
