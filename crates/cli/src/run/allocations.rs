//! Allocations of the sites' batch systems: `--alloc`, and the one that a run starts in. Their nodes take the
//! place of those that the sites list, for this run.

use super::Args;
use super::error::RunError;
use super::job::known_sites;
use super::sites::{may_use, named, usable_site};
use causeway_control::{self as control, ControlError, Reply, Request, Sites};
use causeway_mpis::command_line::CommandLine;
use std::collections::BTreeMap;
use std::process::Command;

/// At which sites a run has an allocation, and which.
pub type Allocations = BTreeMap<String, String>;

/// Reads `--alloc`.
///
/// # Errors
/// One that is not of its form, or a second one of a site.
pub fn parse(words: &[String]) -> Result<Allocations, RunError> {
    let mut found = Allocations::new();
    for word in words.iter().flat_map(|words| words.split(',')).map(str::trim) {
        let (site, id) = word
            .split_once(':')
            .ok_or_else(|| RunError::Alloc(word.to_owned()))?;
        if site.is_empty() || !causeway_batch::is_id(id) {
            return Err(RunError::Alloc(word.to_owned()));
        }
        if found.insert(site.to_owned(), id.to_owned()).is_some() {
            return Err(RunError::AllocTwice(site.to_owned()));
        }
    }
    Ok(found)
}

/// The sites that a run is to use: those of `--sites`, or without it those of `--alloc`.
///
/// # Errors
/// Those of [`parse`].
pub fn sites(args: &Args) -> Result<Option<String>, RunError> {
    let allocations = parse(&args.alloc)?;
    let named = || { allocations.keys() }.cloned().collect::<Vec<_>>().join(",");
    Ok(args
        .sites
        .clone()
        .or_else(|| (!allocations.is_empty()).then(named)))
}

/// What the gateway knows of the sites, with the nodes of this run's allocations, which it returns, too.
///
/// # Errors
/// Those of [`apply`] and [`known_sites`].
pub fn known(
    args: &Args,
    wanted: Option<&str>,
    line: &CommandLine,
) -> Result<(Sites, Allocations), RunError> {
    let mut known = known_sites(args, &named(wanted))?;
    let allocations = match args.direct || args.transparent || line.starts_nothing {
        true => Allocations::new(),
        false => apply(args, &mut known, |site| may_use(wanted, site))?,
    };
    Ok((known, allocations))
}

/// Asks for the nodes of the allocations, and puts them in the place of those that the sites list. Adds the
/// allocation in which this run starts, where the own site takes part and the user has named none.
///
/// # Errors
/// An allocation cannot be used, or its site takes no part.
pub fn apply(
    args: &Args,
    known: &mut Sites,
    takes_part: impl Fn(&str) -> bool,
) -> Result<Allocations, RunError> {
    let mut allocations = parse(&args.alloc)?;
    if let Some(site) = allocations.keys().find(|site| !takes_part(site)) {
        return Err(RunError::AllocElsewhere(site.clone()));
    }
    let own = known.allocated_by.as_ref().and_then(std::env::var_os);
    if let Some(id) = own
        .and_then(|id| id.into_string().ok())
        .filter(|_| takes_part(&known.site))
    {
        allocations.entry(known.site.clone()).or_insert(id);
    }
    for (site, id) in &allocations {
        usable_site(known, site)?;
        let (site, id) = (site.clone(), id.clone());
        let request = Request::Allocation {
            site: site.clone(),
            id: id.clone(),
        };
        let nodes = match control::ask(&control::socket(), &request) {
            Ok((Reply::Allocation { nodes }, _)) => nodes,
            Ok((other, _)) => return Err(ControlError::Answer(format!("{other:?}")).into()),
            Err(ControlError::Refused(why)) => return Err(RunError::NoAllocation(site, id, why)),
            Err(error) => return Err(error.into()),
        };
        let mut all = known.sites.iter_mut().filter(|known| known.name == site);
        if let Some(info) = all.find_map(|known| known.info.as_mut()) {
            info.nodes = nodes;
        }
    }
    Ok(allocations)
}

/// Takes from a launcher what the batch system says of the shell in which this run starts: it would start its
/// daemons there, and only there.
pub fn leave(command: &mut Command) {
    for (name, _) in std::env::vars_os().filter(|(name, _)| causeway_batch::is_of_a_process(name)) {
        command.env_remove(name);
    }
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
