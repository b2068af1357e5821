//! Says what this site lets other sites do.

use super::steps::Step;
use super::{Subject, accounts};
use causeway_control::Status;
use causeway_gateway::Config;
use causeway_gateway::config::accept::Accept;
use causeway_wire::grid::ALL_SITES;

/// Checks the configuration; empty if none is known.
pub fn look(subject: &Subject) -> Vec<Step> {
    let Some(config) = subject.config() else {
        return Vec::new();
    };
    let accept = &config.accept;
    let mut steps = vec![jobs(accept, config), partners(accept), connections(accept)];
    steps.extend(unknown(accept, subject.status()));
    if !accept.addresses.is_empty() {
        let ranges: Vec<String> = accept.addresses.iter().map(ToString::to_string).collect();
        let detail = format!(
            "other sites also reach {}, besides the listed nodes",
            ranges.join(", ")
        );
        steps.push(Step::ok("addresses", detail));
    }
    steps.extend(accounts::look(config, subject.status()));
    steps
}

fn jobs(accept: &Accept, config: &Config) -> Step {
    let name = "jobs";
    if accept.jobs.is_empty() {
        let detail = "no other site's jobs run here; to allow some, name their sites under jobs in [accept]";
        return Step::ok(name, detail);
    }
    let whose = match config.has_accounts_of_sites() {
        true => ", one for each site",
        false => ", who also runs this site's own jobs",
    };
    let detail = format!(
        "jobs of {} run any program on {} listed nodes, as the user whom {} logs in as{whose}",
        accept.jobs.join(", "),
        config.nodes.len(),
        config.remote_shell[0]
    );
    Step::ok(name, detail)
}

fn partners(accept: &Accept) -> Step {
    let detail = match accept.partners() {
        [] => "jobs of this site's users run at no other site; to allow some, name them under partners in [accept]".to_owned(),
        partners => format!("jobs of this site's users may run at {}", partners.join(", ")),
    };
    Step::ok("partners", detail)
}

/// Names in `[accept]` that no site has: typing errors, or sites that have not joined yet.
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
        "there is no site {} in the grid; its sites are {}",
        unknown.join(", "),
        sites.join(", ")
    );
    Some(Step::warn(
        "names",
        detail,
        "correct [accept], unless that site has yet to join",
    ))
}

fn connections(accept: &Accept) -> Step {
    let detail = match accept.connect_from.as_slice() {
        [] => "users of other sites cannot connect here with 'causeway connect'".to_owned(),
        from => {
            let from: Vec<String> = from.iter().map(ToString::to_string).collect();
            format!(
                "users of other sites may connect to listed nodes (SITE:PORT): {}",
                from.join(", ")
            )
        }
    };
    Step::ok("connections", detail)
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::steps::Verdict;
    use super::*;
    use crate::status::text::tests::status;
    use causeway_control::SiteStatus;
    use std::path::Path;

    /// A configuration with these lines, for a site with two nodes.
    pub fn config(directory: &Path, accept: &str) -> Config {
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
}
