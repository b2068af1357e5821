//! Groups of a job's ranks, from its profile (`--groups FILE`, docs/topology.md): a program asks which group
//! it is in. What a profile may say is in crates/profile.

use causeway_control::Sites;
use causeway_host::{say, text_file};
use causeway_profile::{Job, MAX_BYTES, Mistakes, Read};
use std::path::{Path, PathBuf};

/// The variable that mpi/collectives/topology/groups.c reads: `0=master,4-7=solvers,@nancy=store`. The first
/// entry that fits a rank counts.
pub const VARIABLE: &str = "CAUSEWAY_COLLECTIVES_GROUPS";

/// Where the groups of a run's ranks come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Groups {
    /// There are no groups.
    None,
    /// A profile.
    File(PathBuf),
    /// A placement, as the variable's value.
    Placed(String),
}

/// Why a profile cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum GroupsError {
    /// The file cannot be read.
    #[error("--groups: {0}")]
    Read(#[from] text_file::ReadError),
    /// All mistakes in the file, each as `file:line: key: reason`.
    #[error("--groups: {0}")]
    Mistakes(#[from] Mistakes),
}

/// The variable's value for a run over these sites (all, if none is named) with this many ranks.
///
/// # Errors
/// See [`GroupsError`].
pub fn value_for_run(
    groups: &Groups,
    known: &Sites,
    sites: &[String],
    ranks: Option<u32>,
) -> Result<Option<String>, GroupsError> {
    let file = match groups {
        Groups::None => return Ok(None),
        Groups::Placed(value) => return Ok(Some(value.clone())),
        Groups::File(file) => file,
    };
    let any: Vec<String> = known.sites.iter().map(|site| site.name.clone()).collect();
    let sites = if sites.is_empty() { &any } else { sites };
    load(file, Job { sites, ranks }).map(Some)
}

/// The variable's value from a file. Warnings are printed.
fn load(file: &Path, job: Job) -> Result<String, GroupsError> {
    let text = text_file::read(file, MAX_BYTES)?;
    let read = parse(&text, file, job)?;
    for warning in &read.warnings {
        say::error(format_args!("causeway: --groups: {warning}"));
    }
    Ok(read.value)
}

/// The variable's value from the text of a file; messages name the file.
fn parse(text: &str, file: &Path, job: Job) -> Result<Read<String>, GroupsError> {
    let read = causeway_profile::read(text, &file.display().to_string());
    Ok(read.groups_for(job)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_wire::TextError;

    fn read(text: &str) -> Result<String, TextError> {
        let sites = ["rennes".to_owned(), "nancy".to_owned()];
        let job = Job {
            sites: &sites,
            ranks: Some(8),
        };
        let read = parse(text, Path::new("job.toml"), job).map_err(TextError::of);
        read.map(|read| read.value)
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
        let read = parse("[groups.a]\nranks = \"70\"", Path::new("f"), job).unwrap();
        assert_eq!(read.value, "70=a");
    }

    #[test]
    fn groups_with_numbers_of_ranks_are_numbered_in_the_files_order() {
        let text = "time = '1h'\n[groups.z]\nranks = 2\nsites = ['rennes', 'lyon']\n\
                    [groups.b]\nranks = 1\n[groups.a]\nranks = 5\n";
        assert_eq!(read(text).unwrap(), "0-1=z,2=b,3-7=a");
    }

    #[test]
    fn groups_of_a_profile_in_xml_are_numbered_in_the_same_way() {
        let group = |name: &str, ranks: u32| {
            let count = format!("<processesCount><value>{ranks}</value></processesCount>");
            format!("<group groupId='{name}'><processes>{count}</processes></group>")
        };
        let groups = group("z", 3) + &group("a", 5);
        let topology = format!("<resourcesDescription><topology>{groups}</topology></resourcesDescription>");
        let text = format!("<grmsJob><task>{topology}</task></grmsJob>");
        assert_eq!(read(&text).unwrap(), "0-2=z,3-7=a");
    }

    #[test]
    fn a_whole_job_has_as_many_ranks_and_is_at_sites_that_take_part() {
        let text = "[groups.a]\nranks = 4\n[groups.b]\nranks = 5\nsites = ['lyon']\n";
        let known = [
            "job.toml:2: groups: have 9 ranks together; the job has 8",
            "job.toml:5: groups.b.sites: none of them takes part in this job; its sites are rennes, nancy",
        ];
        assert_eq!(mistakes(text), known);
        let text = "time = '1h'\n[groups.a]\nranks = '0-5'\n";
        assert_eq!(
            mistakes(text),
            ["job.toml:3: groups: have 6 ranks together; the job has 8"]
        );
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
