//! Says what this site lets others do, and checks that their jobs cannot take its identity.

use super::Subject;
use super::nodes::{Remote, ask, on_each};
use super::steps::Step;
use crate::grid;
use crate::remote::start_node::{is_this_host, quoted};
use causeway_control::Status;
use causeway_gateway::Config;
use causeway_gateway::config::REMOTE_SHELL;
use causeway_gateway::config::accept::Accept;
use causeway_wire::grid::ALL_SITES;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The authority's key, in the grid's directory.
const AUTHORITY_KEY: &str = "ca.key";

/// Looks at the configuration; says nothing where none is known.
pub fn look(subject: &Subject) -> Vec<Step> {
    let Some(config) = subject.config() else {
        return Vec::new();
    };
    let accept = &config.accept;
    let mut steps = vec![jobs(accept, config), partners(accept), connections(accept)];
    steps.extend(unknown(accept, subject.status()));
    if !accept.addresses.is_empty() {
        let ranges: Vec<String> = accept.addresses.iter().map(ToString::to_string).collect();
        let detail = format!("{} are reached beside the listed nodes", ranges.join(", "));
        steps.push(Step::ok("addresses", detail));
    }
    if !config.nodes.is_empty() {
        steps.push(keys(config));
    }
    steps
}

fn jobs(accept: &Accept, config: &Config) -> Step {
    let name = "jobs";
    if accept.jobs.is_empty() {
        let detail = "no other site's jobs run here; jobs in [accept] would name those whose do";
        return Step::ok(name, detail);
    }
    let detail = format!(
        "jobs of {} run any program on {} listed nodes, as the user whom {} logs in as",
        accept.jobs.join(", "),
        config.nodes.len(),
        config.remote_shell[0]
    );
    Step::ok(name, detail)
}

fn partners(accept: &Accept) -> Step {
    let detail = match accept.partners() {
        [] => "jobs of this site's users run at no other site; partners in [accept] would name those at which they may".to_owned(),
        partners => format!("jobs of this site's users may run at {}", partners.join(", ")),
    };
    Step::ok("partners", detail)
}

/// Names in `[accept]` that no site has: a slip of the pen, or a site that has not joined yet.
fn unknown(accept: &Accept, status: Option<&Status>) -> Option<Step> {
    let sites: Vec<&str> = status?.sites.iter().map(|site| site.name.as_str()).collect();
    let from = accept.connect_from.iter().map(|from| from.site.as_str());
    let jobs = accept.jobs.iter().chain(accept.partners.iter().flatten());
    let named = jobs.map(String::as_str).chain(from);
    let mut unknown: Vec<&str> = named
        .filter(|name| *name != ALL_SITES && !sites.contains(name))
        .collect();
    unknown.sort_unstable();
    unknown.dedup();
    if unknown.is_empty() {
        return None;
    }
    let detail = format!(
        "there is no site {} in the grid, whose sites are {}",
        unknown.join(", "),
        sites.join(", ")
    );
    Some(Step::warn(
        "names",
        detail,
        "correct [accept], unless that site is still to join",
    ))
}

fn connections(accept: &Accept) -> Step {
    let detail = match accept.connect_from.as_slice() {
        [] => "nobody of another site connects here with 'causeway connect'".to_owned(),
        from => {
            let from: Vec<String> = from.iter().map(ToString::to_string).collect();
            format!(
                "users of other sites connect to listed nodes (SITE:PORT): {}",
                from.join(", ")
            )
        }
    };
    Step::ok("connections", detail)
}

/// Looks on each node as whom processes run, and whether that account can read this site's keys. Where jobs
/// run at this site alone, the latter is a warning. Where jobs of others run, or own ones at others, too,
/// these could act as this site: by a key that they read, or as the gateway's own user, whose files they
/// write (.ssh/config, .bashrc) and whose next remote shell reads these on this host. No other host can reach
/// the control socket, whatever it mounts.
fn keys(config: &Config) -> Step {
    let remedy = "give the gateway an account of its own, and a remote_shell that logs in as the jobs' account \
                  (docs/security-officer.md)";
    match reach(config) {
        Reach::Same(_) if config.accept.starters().is_empty() => Step::ok(
            "keys",
            "jobs of this site's users alone run here, as the gateway's user",
        ),
        Reach::Same(detail) => Step::fail("keys", detail, remedy),
        Reach::Read(detail) => match config.accept.starters().is_empty() {
            true => Step::warn("keys", detail, remedy),
            false => Step::fail("keys", detail, remedy),
        },
        Reach::Unknown(detail) => Step::warn("keys", detail, "make the nodes reachable, and check again"),
        Reach::None => Step::ok(
            "keys",
            format!("out of reach of jobs, as seen on {} nodes", config.nodes.len()),
        ),
    }
}

/// How near jobs come to the gateway's keys.
enum Reach {
    /// They can read one, as the text says.
    Read(String),
    /// They run as the gateway's user, as the text says.
    Same(String),
    /// Not all nodes were asked, as the text says. Those that were asked can read none.
    Unknown(String),
    None,
}

fn reach(config: &Config) -> Reach {
    if config.remote_shell == REMOTE_SHELL
        && let Some(node) = config.nodes.iter().find(|node| is_this_host(&node.name))
    {
        return Reach::Read(format!(
            "node {} is this host, where processes run as the gateway's own user: they can read its keys and use its control socket",
            node.name
        ));
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
    let answers = on_each(&config.nodes, |node| {
        ask(&config.remote_shell, &node.name, &script)
    });
    let mut same = None;
    let mut unasked = Vec::new();
    for (answer, node) in answers.into_iter().zip(&config.nodes) {
        let name = &node.name;
        match answer.unwrap_or_else(|| Remote::Failed("the look at it failed".to_owned())) {
            Remote::Said(said) => match read(&said, &here) {
                Seen::Secret(path) => {
                    let path = path.display();
                    let text = format!("{path} can be read on node {name} by the account that jobs run as");
                    return Reach::Read(text);
                }
                Seen::SameAccount => same = same.or(Some(name)),
                Seen::OtherAccount => {}
                Seen::NoAccount => unasked.push(format!("{name}: it does not say as whom processes run")),
            },
            Remote::Failed(why) => unasked.push(format!("{name}: {why}")),
        }
    }
    match (same, unasked.first()) {
        (Some(node), _) => Reach::Same(format!(
            "processes of others' jobs run as the gateway's own user on node {node}: what they write there, such as .ssh/config or \
             .bashrc in a shared home, runs on this host"
        )),
        (None, None) => Reach::None,
        (None, Some(first)) => Reach::Unknown(format!(
            "{} of {} nodes were not asked whether jobs can read them, the first being {first}",
            unasked.len(),
            config.nodes.len()
        )),
    }
}

/// What a node says of the account that runs processes there.
enum Seen<'a> {
    /// It can read this file.
    Secret(&'a Path),
    /// It is the gateway's.
    SameAccount,
    OtherAccount,
    /// It has said nothing.
    NoAccount,
}

/// Reads a node's answer; `here` are the secrets with their marks.
fn read<'a>(said: &str, here: &'a [(PathBuf, String)]) -> Seen<'a> {
    let own = format!("{ACCOUNT}{}", nix::unistd::geteuid());
    let seen: Vec<&str> = said.lines().map(str::trim).collect();
    if let Some((path, _)) = here.iter().find(|(_, mark)| seen.contains(&mark.as_str())) {
        return Seen::Secret(path);
    }
    match seen.iter().find(|line| line.starts_with(ACCOUNT)) {
        Some(account) if *account == own => Seen::SameAccount,
        Some(_) => Seen::OtherAccount,
        None => Seen::NoAccount,
    }
}

/// What stands before the number of the user as whom a node runs processes.
const ACCOUNT: &str = "causeway runs as ";

/// The mark by which another host that mounts the file knows it again. No secret is read for it.
fn mark(path: &Path) -> Option<String> {
    let found = std::fs::metadata(path).ok()?;
    Some(format!("{} {} {}", found.ino(), found.size(), found.mtime()))
}

/// A shell's command that prints the mark of a file that it may read, and nothing else.
fn look_for(path: &Path) -> String {
    let path = quoted(path);
    format!("if [ -r {path} ]; then stat -L -c '%i %s %Y' {path}; fi")
}

#[cfg(test)]
mod tests {
    use super::super::steps::Verdict;
    use super::*;
    use crate::status::text::tests::status;
    use causeway_control::SiteStatus;

    fn config(directory: &Path, accept: &str) -> Config {
        let key = directory.join("grid.key");
        std::fs::write(&key, "0123456789abcdef").unwrap();
        std::fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        let text = format!(
            r#"
            [site]
            name = "rennes"
            subnets = ["10.1.0.0/24"]
            nodes = [{{ name = "rennes-1", address = "10.1.0.1" }}, {{ name = "rennes-2", address = "10.1.0.2" }}]
            remote_shell = ["sh", "-c", "exec sh -c \"$1\"", "{{node}}"]
            {accept}
            [listen]
            lan = ["10.1.0.253:7000"]
            [grid]
            key_file = "grid.key"
            "#
        );
        Config::parse(&text, &directory.join("gateway.toml")).unwrap()
    }

    #[test]
    fn a_name_that_no_site_of_the_grid_has_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let mut status = status();
        status.sites.push(SiteStatus {
            name: "nancy".to_owned(),
            info: None,
            unreachable: None,
        });
        let known = |accept| unknown(&config(dir.path(), accept).accept, Some(&status));
        assert_eq!(
            known("[accept]\njobs = [\"nancy\"]\nconnect_from = [\"all:22\"]"),
            None
        );
        assert_eq!(known("[accept]\njobs = [\"all\"]"), None);
        let step = known("[accept]\njobs = [\"renes\"]\nconnect_from = [\"nanzy:22\"]").unwrap();
        assert_eq!(step.result, Verdict::Warn);
        assert!(step.detail.contains("no site nanzy, renes in the grid"), "{step}");
    }

    #[test]
    fn a_key_that_jobs_of_others_can_read_fails_and_of_nobody_is_worth_a_word() {
        let dir = tempfile::tempdir().unwrap();
        let alone = keys(&config(dir.path(), ""));
        assert_eq!(alone.result, Verdict::Warn, "{alone}");
        let mut shared = config(dir.path(), "[accept]\njobs = [\"nancy\"]");
        let step = keys(&shared);
        assert_eq!(step.result, Verdict::Fail, "{step}");
        assert!(step.detail.contains("grid.key"), "{step}");
        // One node of two is enough.
        let script = "[ \"$1\" = rennes-1 ] || exec sh -c \"$2\"";
        shared.remote_shell = ["sh", "-c", script, "sh", "{node}"].map(str::to_owned).to_vec();
        let step = keys(&shared);
        assert_eq!(step.result, Verdict::Fail, "{step}");
        assert!(step.detail.contains("on node rennes-2"), "{step}");
        // Nodes that do not mount it, with another account, the same one, and one that says nothing.
        for (says, result) in [("1", Verdict::Ok), ("0", Verdict::Fail), ("", Verdict::Warn)] {
            let own: u32 = nix::unistd::geteuid().as_raw();
            let line = match says {
                "" => String::new(),
                other => format!("{ACCOUNT}{}", own + other.parse::<u32>().unwrap()),
            };
            shared.remote_shell = ["sh", "-c", &format!("echo '{line}'"), "{node}"]
                .map(str::to_owned)
                .to_vec();
            let step = keys(&shared);
            assert_eq!(step.result, result, "{says}: {step}");
        }
        shared.remote_shell = ["true", "{node}"].map(str::to_owned).to_vec();
        assert_eq!(keys(&shared).result, Verdict::Warn);
        shared.remote_shell = ["false", "{node}"].map(str::to_owned).to_vec();
        assert_eq!(keys(&shared).result, Verdict::Warn);
    }
}
