//! The nodes of allocations that users have obtained: they replace those that the sites list.

use causeway_batch::own_id;
use causeway_control::{self as control, ControlError, Reply, Request, Sites};
use std::collections::BTreeMap;

/// A job's allocation at each site.
pub type Allocations = BTreeMap<String, String>;

/// Why an allocation cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AllocError {
    /// `--alloc` is malformed.
    #[error("--alloc {0}: give a site and the id of its allocation: --alloc rennes:1234")]
    Form(String),
    /// A site was given two allocations.
    #[error("--alloc names {0} twice; a site has one allocation in a job")]
    Twice(String),
    /// The site or its batch system does not tell which nodes it has.
    #[error("allocation {1} of {0}: {2}")]
    Refused(String, String, String),
    /// The gateway cannot be asked.
    #[error("{0}")]
    Control(#[from] ControlError),
}

/// Reads `--alloc`.
///
/// # Errors
/// A value is malformed, or is a second one for a site.
pub fn parse(words: &[String]) -> Result<Allocations, AllocError> {
    let mut found = Allocations::new();
    for word in words.iter().flat_map(|words| words.split(',')).map(str::trim) {
        let wrong = || AllocError::Form(word.to_owned());
        let (site, id) = word.split_once(':').ok_or_else(wrong)?;
        if site.is_empty() || !causeway_batch::is_id(id) {
            return Err(wrong());
        }
        if found.insert(site.to_owned(), id.to_owned()).is_some() {
            return Err(AllocError::Twice(site.to_owned()));
        }
    }
    Ok(found)
}

/// The allocation in which this command itself runs.
pub fn own(known: &Sites) -> Option<String> {
    let variable = known.allocated_by.as_ref()?;
    own_id(variable, |name| std::env::var_os(name))
}

/// Replaces the nodes that the sites list with those of these allocations.
///
/// # Errors
/// An allocation cannot be used, or the gateway cannot be asked.
pub fn apply(allocations: &Allocations, known: &mut Sites) -> Result<(), AllocError> {
    for (site, id) in allocations {
        let (site, id) = (site.clone(), id.clone());
        let request = Request::Allocation {
            site: site.clone(),
            id: id.clone(),
        };
        let nodes = match control::ask(&control::socket(), &request) {
            Ok((Reply::Allocation { nodes }, _)) => nodes,
            Ok((other, _)) => return Err(ControlError::Answer(format!("{other:?}")).into()),
            Err(ControlError::Refused(why)) => return Err(AllocError::Refused(site, id, why)),
            Err(error) => return Err(error.into()),
        };
        let mut all = known.sites.iter_mut().filter(|known| known.name == site);
        if let Some(info) = all.find_map(|known| known.info.as_mut()) {
            info.nodes = nodes;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str]) -> Result<String, String> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let found = parse(&words).map_err(|error| error.to_string())?;
        let shown = found.iter().map(|(site, id)| format!("{site}:{id}"));
        Ok(shown.collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn an_allocation_is_a_site_and_a_number() {
        assert_eq!(
            read(&["rennes:12", "nancy:7"]).as_deref(),
            Ok("nancy:7 rennes:12")
        );
        assert_eq!(read(&["rennes:12,nancy:7"]).as_deref(), Ok("nancy:7 rennes:12"));
        for wrong in ["rennes", "rennes:", ":7", "rennes:--wrap", "rennes:1:2"] {
            assert!(read(&[wrong]).unwrap_err().contains("--alloc"), "{wrong}");
        }
        assert!(read(&["rennes:1", "rennes:2"]).unwrap_err().contains("rennes"));
    }
}
