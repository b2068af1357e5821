//! The batch system of a site: `[batch]`.

use super::accept::site_or_all;
use super::reader::{Reader, Table};
use causeway_batch::System;
use causeway_batch::budget::Bounds;
use causeway_wire::TextError;
use causeway_wire::grid::ALL_SITES;
use std::path::PathBuf;

/// The largest bound: minutes of many years, or more ranks than there are.
const MOST: i64 = 10_000_000;

const KEYS: [&str; 10] = [
    "system",
    "conf",
    "from",
    "options",
    "allow",
    "max_ranks",
    "max_minutes",
    "max_allocations",
    "core_hours_a_day",
    "core_hours_a_month",
];

/// The prefix of the name of the directory of intents; the site's name follows.
pub(super) const INTENTS: &str = "allocations-";

/// The batch system whose allocations jobs may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// The batch system itself.
    pub system: System,
    /// Its configuration; by default, the one that its commands find by themselves.
    pub conf: Option<PathBuf>,
    /// Words that are added to each request for an allocation.
    pub options: Vec<String>,
    /// Options that a run may choose: others run programs, or write files.
    pub allow: Vec<String>,
    /// Most processes of an allocation that a run asks for.
    pub max_ranks: Option<u32>,
    /// Most minutes of such an allocation.
    pub max_minutes: Option<u32>,
    /// Most allocations of one other site at a time.
    pub max_allocations: Option<u32>,
    /// What each other site may take.
    pub budget: Bounds,
    /// The directory in which requests are noted before they are made.
    pub intents: PathBuf,
    /// Other sites whose jobs may use allocations of this gateway's account, and so spend its budget.
    pub from: Vec<String>,
}

impl Batch {
    /// The file that records what other sites have used.
    pub fn spent(&self) -> PathBuf {
        let name = self.intents.file_name().unwrap_or_default().to_string_lossy();
        let name = name.strip_prefix(INTENTS).unwrap_or(&name);
        self.intents.with_file_name(format!("spent-{name}.json"))
    }

    /// Whether jobs of another site may use allocations here.
    pub fn is_open_to(&self, site: &str) -> bool {
        self.from.iter().any(|known| known == site || known == ALL_SITES)
    }
}

/// Reads the section, which may be missing.
pub(super) fn read_batch<'a>(reader: &mut Reader<'a>, root: &Table<'a>, intents: PathBuf) -> Option<Batch> {
    let table = reader.table(root, "batch", false)?;
    let system = reader.required_string(&table, "system", |text| {
        text.parse::<System>().map_err(TextError::from)
    })?;
    let conf = reader.string(&table, "conf", |text| match text.starts_with('/') {
        _ if system.configuration().is_none() => Err("is nothing that its commands can be told".into()),
        true => Ok(PathBuf::from(text)),
        false => Err("is not an absolute path: nodes need it, too".into()),
    });
    let from = reader.list_or_empty(&table, "from", site_or_all);
    let options = reader.list_or_empty(&table, "options", |text| {
        system.check_option(text).map_err(TextError::from)?;
        Ok(text.to_owned())
    });
    let allow = reader.list_or_empty(&table, "allow", |text| {
        let is_name = |byte: u8| byte.is_ascii_lowercase() || byte == b'-';
        if text.is_empty() || text.starts_with('-') || !text.bytes().all(is_name) {
            let example = system.usual_choice().first().unwrap_or(&"");
            return Err(format!("{text:?} is not the name of an option, such as {example}").into());
        }
        match system.is_never_chosen(text) {
            Some(why) => Err(format!("{text:?} {why}").into()),
            None => Ok(text.to_owned()),
        }
    });
    let count = |reader: &mut Reader<'a>, key| {
        let count = reader.integer(&table, key, 1..=MOST);
        count.and_then(|count| u32::try_from(count).ok())
    };
    let (max_ranks, max_minutes) = (count(reader, "max_ranks"), count(reader, "max_minutes"));
    let max_allocations = count(reader, "max_allocations");
    let budget = Bounds {
        a_day: count(reader, "core_hours_a_day"),
        a_month: count(reader, "core_hours_a_month"),
    };
    reader.no_other_keys(&table, &KEYS);
    Some(Batch {
        system,
        conf,
        options: options.unwrap_or_default(),
        allow: allow.unwrap_or_else(|| {
            { system.usual_choice().iter() }
                .map(|name| (*name).to_owned())
                .collect()
        }),
        max_ranks,
        max_minutes,
        max_allocations,
        budget,
        intents,
        from: from.unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use std::path::Path;

    fn read(batch: &str) -> Result<Option<Batch>, String> {
        let text = format!(
            "[site]\nname = \"a\"\nsubnets = [\"10.1.0.0/24\"]\n[listen]\nlan = [\"10.1.0.9:7000\"]\n\
             [grid]\nmembership = \"m\"\n{batch}"
        );
        let config = Config::parse(&text, Path::new("gateway.toml"));
        config
            .map(|config| config.batch)
            .map_err(|mistakes| mistakes.to_string())
    }

    #[test]
    fn a_site_says_which_batch_system_it_has_and_who_may_spend_its_budget() {
        assert_eq!(read(""), Ok(None));
        let batch = read("[batch]\nsystem = \"slurm\"\nconf = \"/etc/slurm/slurm.conf\"\nfrom = [\"nancy\"]");
        let batch = batch.unwrap().unwrap();
        assert_eq!(batch.conf.as_deref(), Some(Path::new("/etc/slurm/slurm.conf")));
        assert!(batch.is_open_to("nancy") && !batch.is_open_to("lyon"));
        // By default, nobody else.
        assert!(
            !read("[batch]\nsystem = \"slurm\"")
                .unwrap()
                .unwrap()
                .is_open_to("nancy")
        );
        for (mistake, reason) in [
            ("[batch]", "batch.system: is missing"),
            (
                "[batch]\nsystem = \"lsf\"",
                "it knows \"slurm\", \"pbs\" and \"oar\"",
            ),
            (
                "[batch]\nsystem = \"oar\"\nconf = \"/etc/oar/oar.conf\"",
                "batch.conf: is nothing that its commands can be told",
            ),
            (
                "[batch]\nsystem = \"slurm\"\nconf = \"slurm.conf\"",
                "batch.conf: is not an absolute path",
            ),
            ("[batch]\nsystem = \"slurm\"\nfrom = [\"No Site\"]", "batch.from"),
            (
                "[batch]\nsystem = \"pbs\"\noptions = [\"--partition=a\"]",
                "PBS has no --partition here",
            ),
            (
                "[batch]\nsystem = \"pbs\"\nallow = [\"resource\"]",
                "cannot be chosen with PBS",
            ),
            (
                "[batch]\nsystem = \"slurm\"\npartition = \"a\"",
                "batch.partition",
            ),
        ] {
            let said = read(mistake).unwrap_err();
            assert!(said.contains(reason), "{said}");
        }
    }
}
