//! Groups of a job's ranks, from its profile (`--groups FILE`, docs/topology.md): a program asks which one it
//! is in. Pure, but for `load`.

use causeway_wire::TextError;
use causeway_wire::grid::is_site_name;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use toml::Spanned;

/// Variable of mpi/collectives/topology/groups.c: `0=master,4-7=solvers,@nancy=store`. The first entry that
/// fits a rank counts.
pub const VARIABLE: &str = "CAUSEWAY_COLLECTIVES_GROUPS";

/// What a profile must fit.
#[derive(Debug, Clone, Copy)]
pub struct Job<'a> {
    /// Names of the sites that may be named.
    pub sites: &'a [String],
    /// Its ranks, where they are known.
    pub ranks: Option<u32>,
}

/// Why a profile is not used.
#[derive(Debug, thiserror::Error)]
pub enum GroupsError {
    /// The file cannot be read.
    #[error("--groups: read {}: {source}", .file.display())]
    Read {
        /// The profile.
        file: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// All mistakes in it, `file:line: key: reason` each.
    #[error("--groups: {}", .0.join("\n"))]
    Mistakes(Vec<String>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Typed {
    groups: BTreeMap<Spanned<String>, TypedGroup>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TypedGroup {
    ranks: Option<Spanned<String>>,
    sites: Option<Spanned<Vec<String>>>,
}

/// The variable's value, from a file.
///
/// # Errors
/// See [`GroupsError`].
pub fn load(file: &Path, job: Job) -> Result<String, GroupsError> {
    let text = std::fs::read_to_string(file).map_err(|source| GroupsError::Read {
        file: file.to_owned(),
        source,
    })?;
    parse(&text, file, job)
}

/// The variable's value, from the text of a file, which serves the messages.
fn parse(text: &str, file: &Path, job: Job) -> Result<String, GroupsError> {
    let mistake = |(start, reason): (usize, String)| {
        let line = 1 + text[..start.min(text.len())].matches('\n').count();
        format!("{}:{line}: {reason}", file.display())
    };
    let typed: Typed = toml::from_str(text).map_err(|error| {
        let start = error.span().map_or(0, |span| span.start);
        GroupsError::Mistakes(vec![mistake((start, error.message().to_owned()))])
    })?;
    let mut groups: Vec<_> = typed.groups.into_iter().collect();
    groups.sort_by_key(|(name, _)| name.span().start);
    let mut profile = Profile::new(job);
    for (name, group) in &groups {
        profile.add(name, group);
    }
    if groups.is_empty() {
        profile.mistakes.push((0, "groups: names no group".into()));
    }
    if profile.mistakes.is_empty() {
        Ok(profile.value())
    } else {
        profile.mistakes.sort();
        Err(GroupsError::Mistakes(
            profile.mistakes.into_iter().map(mistake).collect(),
        ))
    }
}

/// What has been read, with the group of each range of ranks and of each site.
struct Profile<'a> {
    job: Job<'a>,
    ranks: Vec<(u32, u32, &'a str)>,
    sites: Vec<(&'a str, &'a str)>,
    /// Where in the text, and the reason.
    mistakes: Vec<(usize, String)>,
}

impl<'a> Profile<'a> {
    fn new(job: Job<'a>) -> Profile<'a> {
        Profile {
            job,
            ranks: Vec::new(),
            sites: Vec::new(),
            mistakes: Vec::new(),
        }
    }

    fn add(&mut self, name: &'a Spanned<String>, group: &'a TypedGroup) {
        let (start, name) = (name.span().start, name.get_ref());
        // It stands in a list, and in an info object beside names of sites.
        if !is_site_name(name) {
            let reason = "a group's name has 1 to 63 letters, digits, '-', '_' or '.'";
            self.mistakes.push((start, format!("groups.{name}: {reason}")));
        }
        if group.ranks.is_none() && group.sites.is_none() {
            let reason = "give it ranks = \"0,4-7\" or sites = [\"nancy\"]";
            self.mistakes.push((start, format!("groups.{name}: {reason}")));
        }
        if let Some(ranks) = &group.ranks {
            for text in ranks.get_ref().split(',').map(str::trim) {
                if let Err(reason) = self.add_ranks(name, text) {
                    let reason = format!("groups.{name}.ranks: {reason}");
                    self.mistakes.push((ranks.span().start, reason));
                }
            }
        }
        if let Some(sites) = &group.sites {
            for site in sites.get_ref() {
                if let Err(reason) = self.add_site(name, site) {
                    let reason = format!("groups.{name}.sites: {reason}");
                    self.mistakes.push((sites.span().start, reason));
                }
            }
        }
    }

    fn add_ranks(&mut self, group: &'a str, text: &str) -> Result<(), TextError> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let (Ok(first), Ok(last)) = (first.trim().parse::<u32>(), last.trim().parse::<u32>()) else {
            return Err(format!("{text:?} is neither a rank nor a range such as 4-7").into());
        };
        if first > last {
            return Err(format!("{text:?} ends before it begins; write {last}-{first}").into());
        }
        if let Some(ranks) = self.job.ranks.filter(|ranks| last >= *ranks) {
            return Err(format!("there is no rank {last}; the job has {ranks}, counted from 0").into());
        }
        let overlaps = |(from, to, _): &&(u32, u32, &str)| first <= *to && *from <= last;
        if let Some((from, _, other)) = self.ranks.iter().find(overlaps) {
            let twice = first.max(*from);
            return Err(format!("rank {twice} is in group {other} already; leave it out of one").into());
        }
        self.ranks.push((first, last, group));
        Ok(())
    }

    fn add_site(&mut self, group: &'a str, site: &'a str) -> Result<(), TextError> {
        if !self.job.sites.iter().any(|known| known == site) {
            let known = self.job.sites.join(", ");
            return Err(format!("no rank is at a site {site:?}; this job's are {known}").into());
        }
        if let Some((_, other)) = self.sites.iter().find(|(known, _)| *known == site) {
            return Err(format!("site {site} is in group {other} already; leave it out of one").into());
        }
        self.sites.push((site, group));
        Ok(())
    }

    /// Ranks before sites: who names a rank means it, wherever it is.
    fn value(&self) -> String {
        let ranks = self.ranks.iter().map(|(first, last, group)| match last - first {
            0 => format!("{first}={group}"),
            _ => format!("{first}-{last}={group}"),
        });
        let sites = self.sites.iter().map(|(site, group)| format!("@{site}={group}"));
        ranks.chain(sites).collect::<Vec<_>>().join(",")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<String, TextError> {
        let sites = ["rennes".to_owned(), "nancy".to_owned()];
        let job = Job {
            sites: &sites,
            ranks: Some(8),
        };
        parse(text, Path::new("job.toml"), job).map_err(TextError::of)
    }

    fn mistakes(text: &str) -> Vec<String> {
        let said = read(text).unwrap_err();
        let said = said.strip_prefix("--groups: ").unwrap();
        said.lines().map(str::to_owned).collect()
    }

    #[test]
    fn groups_of_ranks_go_before_groups_of_sites_and_keep_the_files_order() {
        let text = "[groups.store]\nsites = [\"nancy\"]\n[groups.master]\nranks = \"0\"\n\
                    [groups.a-solver]\nranks = \"4-5, 7\"\nsites = ['rennes']\n";
        let value = "0=master,4-5=a-solver,7=a-solver,@nancy=store,@rennes=a-solver";
        assert_eq!(read(text).unwrap(), value);
    }

    #[test]
    fn each_mistake_is_told_with_its_line_and_what_to_do() {
        let text = "[groups.\"a,b\"]\nranks = \"1\"\n[groups.none]\n[groups.c]\nranks = \"x,5-3,8\"\nsites = [\"nansy\"]\n";
        let known = [
            "job.toml:1: groups.a,b: a group's name has 1 to 63 letters, digits, '-', '_' or '.'",
            "job.toml:3: groups.none: give it ranks = \"0,4-7\" or sites = [\"nancy\"]",
            "job.toml:5: groups.c.ranks: \"5-3\" ends before it begins; write 3-5",
            "job.toml:5: groups.c.ranks: \"x\" is neither a rank nor a range such as 4-7",
            "job.toml:5: groups.c.ranks: there is no rank 8; the job has 8, counted from 0",
            "job.toml:6: groups.c.sites: no rank is at a site \"nansy\"; this job's are rennes, nancy",
        ];
        assert_eq!(mistakes(text), known);
    }

    #[test]
    fn a_rank_or_a_site_is_in_one_group_alone() {
        let text = "[groups.a]\nranks = \"0-3\"\nsites = [\"nancy\"]\n[groups.b]\nranks = \"2-5\"\nsites = [\"nancy\"]\n";
        let known = [
            "job.toml:5: groups.b.ranks: rank 2 is in group a already; leave it out of one",
            "job.toml:6: groups.b.sites: site nancy is in group a already; leave it out of one",
        ];
        assert_eq!(mistakes(text), known);
    }

    #[test]
    fn what_is_no_profile_is_told_with_its_line() {
        assert!(mistakes("[groups.a]\nranks = 3\n")[0].starts_with("job.toml:2: "));
        assert!(mistakes("[groups.a]\nrank = \"3\"\n")[0].starts_with("job.toml:2: "));
        assert!(mistakes("groups = 1\n")[0].starts_with("job.toml:1: "));
        assert_eq!(mistakes("[groups]\n"), ["job.toml:1: groups: names no group"]);
        assert!(mistakes("")[0].contains("groups"));
    }

    #[test]
    fn without_a_count_of_ranks_any_rank_may_be_named() {
        let job = Job {
            sites: &[],
            ranks: None,
        };
        let value = parse("[groups.a]\nranks = \"70\"", Path::new("f"), job).unwrap();
        assert_eq!(value, "70=a");
    }

    #[test]
    fn a_profile_that_is_not_there_is_named() {
        let job = Job {
            sites: &[],
            ranks: None,
        };
        let error = load(Path::new("/nowhere/job.toml"), job).unwrap_err().to_string();
        assert!(error.starts_with("--groups: read /nowhere/job.toml: "), "{error}");
    }
}
