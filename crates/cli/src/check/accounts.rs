//! Finds out on the nodes as which users jobs run there: whether these users can reach this site's keys, or
//! each other.

use super::nodes::{Remote, ask};
use super::steps::Step;
use crate::grid;
use causeway_control::Status;
use causeway_control::spawned::REMOTE_SHELL;
use causeway_gateway::Config;
use causeway_host::quoted;
use causeway_remote::ask::on_each;
use causeway_remote::start_node::is_this_host;
use causeway_wire::grid::ALL_SITES;
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The authority's key, in the grid's directory.
const AUTHORITY_KEY: &str = "ca.key";

/// What precedes the number of the user as whom a node runs processes.
const ACCOUNT: &str = "causeway runs as ";

/// What to do if no account is separate from the gateway's.
const REMEDY: &str = "give the gateway an account of its own, and a remote_shell that logs in as the jobs' account \
                      (docs/security-officer.md)";

/// What to do if the batch system starts other sites' jobs as the gateway's own user.
const NO_ACCOUNT: &str = "an allocation belongs to the gateway's user: remove [batch], or accept only jobs of sites that may act as \
                          this one (docs/security-officer.md)";

/// What to do if jobs of several sites share an account.
const OF_SITES: &str = "give each site's jobs an account: use {site} in a word of remote_shell, such as \"-l\", \"jobs-{site}\" \
                        (docs/security-officer.md)";

/// See the module; empty if no nodes are listed and no batch system has any.
pub fn look(config: &Config, status: Option<&Status>) -> Vec<Step> {
    let mut steps = Vec::new();
    if config.batch.is_some() && !config.accept.starters().is_empty() {
        let detail = format!(
            "jobs that {} take part in run in allocations as the gateway's user",
            config.accept.starters().join(", ")
        );
        steps.push(Step::fail("keys", detail, NO_ACCOUNT));
    }
    if config.nodes.is_empty() {
        return steps;
    }
    let (seen, accounts) = reach(config, &sites_to_ask(config, status));
    steps.push(keys(config, seen));
    steps.extend(apart(config, &accounts));
    steps
}

/// The sites whose jobs may run under accounts of their own, this site first.
fn sites_to_ask(config: &Config, status: Option<&Status>) -> Vec<String> {
    let mut sites = vec![config.site.clone()];
    if !config.has_accounts_of_sites() {
        return sites;
    }
    let known = status.into_iter().flat_map(|status| &status.sites);
    let known = known
        .map(|site| &site.name)
        .filter(|site| config.accept.takes_jobs_of(site));
    let named = config.accept.jobs.iter().filter(|site| *site != ALL_SITES);
    for site in named.chain(known) {
        if !sites.contains(site) {
            sites.push(site.clone());
        }
    }
    sites
}

/// Whether jobs can read this site's keys. If only jobs of this site run, that is a warning. If jobs of other
/// sites run here, or this site's jobs at others, they could act as this site: with a key that they read, or
/// as the gateway's own user, because they can write files (.ssh/config, .bashrc) that this user's next
/// remote shell on this host reads. No other host can reach the control socket, whatever it mounts.
fn keys(config: &Config, seen: Reach) -> Step {
    match seen {
        Reach::Same(_) if config.accept.starters().is_empty() => Step::ok(
            "keys",
            "only jobs of this site's users run here, as the gateway's user",
        ),
        Reach::Same(detail) => Step::fail("keys", detail, REMEDY),
        Reach::Read(detail) => match config.accept.starters().is_empty() {
            true => Step::warn("keys", detail, REMEDY),
            false => Step::fail("keys", detail, REMEDY),
        },
        Reach::Unknown(detail) => Step::warn("keys", detail, "make the nodes reachable, and check again"),
        Reach::None => Step::ok(
            "keys",
            format!(
                "jobs cannot read them, as checked on {} nodes",
                config.nodes.len()
            ),
        ),
    }
}

/// Whether jobs of several sites share an account, so that they can read each other's tokens and data. `jobs`
/// tells whether jobs of a single other site run beside this site's own.
fn apart(config: &Config, accounts: &Accounts) -> Option<Step> {
    let jobs = &config.accept.jobs;
    if !config.has_accounts_of_sites() {
        let several = jobs.len() > 1 || jobs.iter().any(|site| site == ALL_SITES);
        return several.then(|| {
            let detail = format!(
                "jobs of {} run as one user, and can read each other's tokens and data",
                jobs.join(", ")
            );
            Step::warn("accounts", detail, OF_SITES)
        });
    }
    for ((node, account), sites) in &accounts.0 {
        if sites.len() > 1 {
            let detail = format!(
                "jobs of {} run as one user ({account}) on node {node}, and can read each other's tokens and data",
                sites.join(", ")
            );
            return Some(Step::warn("accounts", detail, OF_SITES));
        }
    }
    (!jobs.is_empty()).then(|| Step::ok("accounts", "jobs of each site run as a user of their own"))
}

/// The sites whose jobs run on a node as the user of this number.
#[derive(Default)]
struct Accounts(BTreeMap<(String, String), Vec<String>>);

/// How close jobs come to the gateway's keys.
enum Reach {
    /// Jobs can read one, as the text says.
    Read(String),
    /// Jobs run as the gateway's user, as the text says.
    Same(String),
    /// Not all nodes answered, as the text says. On those that did, jobs can read no key.
    Unknown(String),
    None,
}

/// What the accounts of jobs were seen to reach.
#[derive(Default)]
struct Seen {
    /// Which account can read which key, and where.
    read: Option<String>,
    /// Where an account is the gateway's own.
    same: Option<String>,
    /// Which nodes have not answered, and why.
    unasked: Vec<String>,
    accounts: Accounts,
}

impl Seen {
    /// Takes what a node answered, as asked for a job of this site; `here` are the secrets with their marks.
    fn add(&mut self, (node, site): (&str, &str), answer: Remote, here: &[(PathBuf, String)]) {
        let said = match answer {
            Remote::Said(said) => said,
            Remote::Failed(why) => return self.unasked.push(format!("{node}, for jobs of {site}: {why}")),
        };
        let lines: Vec<&str> = said.lines().map(str::trim).collect();
        if let Some((path, _)) = here.iter().find(|(_, mark)| lines.contains(&mark.as_str())) {
            let path = path.display();
            let text = format!("{path} can be read on node {node} by the account of jobs of {site}");
            self.read.get_or_insert(text);
        }
        let Some(account) = lines.iter().find_map(|line| line.strip_prefix(ACCOUNT)) else {
            let why = "it does not say which user its processes run as";
            return self.unasked.push(format!("{node}, for jobs of {site}: {why}"));
        };
        if account == nix::unistd::geteuid().to_string() {
            self.same
                .get_or_insert_with(|| format!("{node}, for jobs of {site}"));
        }
        let key = (node.to_owned(), account.to_owned());
        self.accounts.0.entry(key).or_default().push(site.to_owned());
    }

    fn judge(&mut self, asked: usize) -> Reach {
        if let Some(text) = self.read.take() {
            return Reach::Read(text);
        }
        match (self.same.take(), self.unasked.first()) {
            (Some(whose), _) => Reach::Same(format!(
                "processes run as the gateway's own user on node {whose}: what they write there, such as .ssh/config or .bashrc in \
                 a shared home, runs on this host"
            )),
            (None, None) => Reach::None,
            (None, Some(first)) => Reach::Unknown(format!(
                "{} of {asked} checks on nodes, whether jobs can read them, had no answer; the first: {first}",
                self.unasked.len(),
            )),
        }
    }
}

/// Asks every node, once for each of these sites, as jobs of that site would be started there.
fn reach(config: &Config, sites: &[String]) -> (Reach, Accounts) {
    if config.remote_shell == REMOTE_SHELL
        && let Some(node) = config.nodes.iter().find(|node| is_this_host(&node.name))
    {
        let text = format!(
            "node {} is this host, where processes run as the gateway's own user: they can read its keys and use its control socket",
            node.name
        );
        return (Reach::Read(text), Accounts::default());
    }
    let mut secrets = config.secrets.clone();
    secrets.extend(grid::default_directory().map(|grid| grid.join(AUTHORITY_KEY)));
    let here: Vec<(PathBuf, String)> = secrets
        .into_iter()
        .filter_map(|path| std::path::absolute(path).ok())
        .filter_map(|path| Some((path.clone(), mark(&path)?)))
        .collect();
    let looks = here.iter().map(|(path, _)| look_for(path));
    let script: Vec<String> = [format!("echo {ACCOUNT}$(id -u)")]
        .into_iter()
        .chain(looks)
        .collect();
    let script = script.join("; ");
    let mut seen = Seen::default();
    for site in sites {
        let shell = config.remote_shell_of(site);
        let answers = on_each(&config.nodes, |node| ask(&shell, &node.name, &script));
        for (answer, node) in answers.into_iter().zip(&config.nodes) {
            let answer = answer.unwrap_or_else(|| Remote::Failed("the check failed".to_owned()));
            seen.add((&node.name, site), answer, &here);
        }
    }
    let reach = seen.judge(config.nodes.len() * sites.len());
    (reach, seen.accounts)
}

/// The mark by which another host that mounts a file recognises it. No secret is read for this.
fn mark(path: &Path) -> Option<String> {
    let found = std::fs::metadata(path).ok()?;
    Some(format!("{} {} {}", found.ino(), found.size(), found.mtime()))
}

/// A shell command that prints the mark of a file that it may read, and nothing otherwise.
fn look_for(path: &Path) -> String {
    let path = quoted(path);
    format!("if [ -r {path} ]; then stat -L -c '%i %s %Y' {path}; fi")
}

#[cfg(test)]
mod tests {
    use super::super::accept::tests::config;
    use super::super::steps::Verdict;
    use super::*;
    use crate::status::text::tests::status;
    use causeway_control::SiteStatus;

    fn keys_of(config: &Config) -> Step {
        look(config, None).remove(0)
    }

    fn accounts_of(config: &Config, status: Option<&Status>) -> Option<Step> {
        look(config, status)
            .into_iter()
            .find(|step| step.name == "accounts")
    }

    #[test]
    fn a_key_that_jobs_of_others_can_read_fails_and_of_nobody_is_worth_a_word() {
        let dir = tempfile::tempdir().unwrap();
        let alone = keys_of(&config(dir.path(), ""));
        assert_eq!(alone.result, Verdict::Warn, "{alone}");
        let mut shared = config(dir.path(), "[accept]\njobs = [\"nancy\"]");
        let step = keys_of(&shared);
        assert_eq!(step.result, Verdict::Fail, "{step}");
        assert!(step.detail.contains("grid.key"), "{step}");
        // One of two nodes is enough.
        let script = "[ \"$1\" = rennes-1 ] || exec sh -c \"$2\"";
        shared.remote_shell = ["sh", "-c", script, "sh", "{node}"].map(str::to_owned).to_vec();
        let step = keys_of(&shared);
        assert_eq!(step.result, Verdict::Fail, "{step}");
        assert!(step.detail.contains("on node rennes-2"), "{step}");
        // Nodes that do not mount it: with another account, with the same one, and one that says nothing.
        for (says, result) in [("1", Verdict::Ok), ("0", Verdict::Fail), ("", Verdict::Warn)] {
            let own: u32 = nix::unistd::geteuid().as_raw();
            let line = match says {
                "" => String::new(),
                other => format!("{ACCOUNT}{}", own + other.parse::<u32>().unwrap()),
            };
            shared.remote_shell = ["sh", "-c", &format!("echo '{line}'"), "{node}"]
                .map(str::to_owned)
                .to_vec();
            let step = keys_of(&shared);
            assert_eq!(step.result, result, "{says}: {step}");
        }
        shared.remote_shell = ["true", "{node}"].map(str::to_owned).to_vec();
        assert_eq!(keys_of(&shared).result, Verdict::Warn);
        shared.remote_shell = ["false", "{node}"].map(str::to_owned).to_vec();
        assert_eq!(keys_of(&shared).result, Verdict::Warn);
    }

    #[test]
    fn each_site_has_an_account_where_the_remote_shell_names_the_site() {
        let dir = tempfile::tempdir().unwrap();
        let mut config = config(dir.path(), "[accept]\njobs = [\"nancy\", \"lyon\"]");
        let mut say = |script: &str| {
            let words = ["sh", "-c", script, "{site}", "{node}"];
            config.remote_shell = words.map(str::to_owned).to_vec();
            (keys_of(&config), accounts_of(&config, None))
        };
        let own = nix::unistd::geteuid().as_raw();
        let each = format!("echo {ACCOUNT}$(({own} + ${{#0}}))");
        let (keys, accounts) = say(&each);
        assert_eq!(keys.result, Verdict::Ok, "{keys}");
        assert_eq!(accounts.unwrap().result, Verdict::Ok);
        // One of them runs jobs in the gateway's account, or in that of another site.
        let (keys, _) = say(&format!("[ $0 = lyon ] && echo {ACCOUNT}{own} || {each}"));
        assert_eq!(keys.result, Verdict::Fail, "{keys}");
        assert!(keys.detail.contains("node rennes-1, for jobs of lyon"), "{keys}");
        let (_, accounts) = say(&format!(
            "[ $0 = lyon ] && echo {ACCOUNT}$(({own} + 5)) || {each}"
        ));
        let accounts = accounts.unwrap();
        assert_eq!(accounts.result, Verdict::Warn, "{accounts}");
        assert!(
            accounts.detail.contains("jobs of nancy, lyon run as one user"),
            "{accounts}"
        );
    }

    #[test]
    fn jobs_of_several_sites_as_one_user_are_worth_a_word() {
        let dir = tempfile::tempdir().unwrap();
        let warned = |accept: &str| {
            let mut config = config(dir.path(), accept);
            config.remote_shell = ["sh", "-c", "echo causeway runs as 12345", "{node}"]
                .map(str::to_owned)
                .to_vec();
            accounts_of(&config, None).map(|step| step.result)
        };
        assert_eq!(warned(""), None);
        assert_eq!(warned("[accept]\njobs = [\"nancy\"]"), None);
        assert_eq!(
            warned("[accept]\njobs = [\"nancy\", \"lyon\"]"),
            Some(Verdict::Warn)
        );
        assert_eq!(warned("[accept]\njobs = [\"all\"]"), Some(Verdict::Warn));
    }

    #[test]
    fn of_jobs_of_all_sites_those_are_asked_for_that_the_gateway_knows() {
        let dir = tempfile::tempdir().unwrap();
        let mut config = config(dir.path(), "[accept]\njobs = [\"all\"]");
        let mut status = status();
        status.sites.push(SiteStatus {
            name: "nancy".to_owned(),
            info: None,
            unreachable: None,
        });
        assert_eq!(sites_to_ask(&config, Some(&status)), ["rennes"]);
        config.remote_shell = ["ssh", "-l", "jobs-{site}", "{node}"].map(str::to_owned).to_vec();
        assert_eq!(sites_to_ask(&config, None), ["rennes"]);
        let asked = sites_to_ask(&config, Some(&status));
        assert!(
            asked.starts_with(&["rennes".to_owned()]) && asked.contains(&"nancy".to_owned()),
            "{asked:?}"
        );
    }
}
