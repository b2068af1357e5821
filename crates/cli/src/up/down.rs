//! `causeway down`: removes what `causeway up` has made.

use super::host::{self, Host, PATIENCE};
use super::remove::{installed_line, programs_line};
use super::steps::Work;
use super::{confirmed, kept, pair};
use causeway_host::{quoted, say};
use std::process::ExitCode;

/// End the gateways and the broker that 'causeway up' has started, and remove what it has made.
#[derive(clap::Args)]
pub struct DownArgs {
    /// The sites and their head nodes, as for 'causeway up' [default: those of the last 'causeway up'].
    #[arg(value_name = "SITE=[USER@]HOST", value_parser = pair)]
    sites: Vec<(String, String)>,
    /// Do not ask before removing anything.
    #[arg(long, short)]
    yes: bool,
    /// End jobs that run.
    #[arg(long)]
    force: bool,
}

/// Ends and removes the grid.
pub fn down(args: &DownArgs) -> ExitCode {
    match try_down(args) {
        Ok(status) => status,
        Err(why) => {
            say::error(format_args!("causeway down: {why}"));
            ExitCode::FAILURE
        }
    }
}

fn try_down(args: &DownArgs) -> Result<ExitCode, String> {
    let sites = match args.sites.is_empty() {
        false => args.sites.clone(),
        true => kept::sites().ok_or("'causeway up' has made nothing from here; name the sites as for it")?,
    };
    let names: Vec<&str> = sites.iter().map(|(site, _)| site.as_str()).collect();
    say::output(format_args!(
        "At {}: the gateway and the broker end; their configuration, the site's membership, copies of sent files and Causeway's \
         programs are removed. Logs and the audit stay.",
        names.join(", ")
    ))
    .map_err(|_| "standard output has gone")?;
    if !args.yes && !confirmed()? {
        return Ok(say::result("Nothing was done."));
    }
    let connections = host::connections().map_err(|error| format!("make a directory for ssh: {error}"))?;
    let work = Work::new(false);
    let mut failures = Vec::new();
    for (site, destination) in &sites {
        let host = Host {
            site: site.clone(),
            destination: destination.clone(),
            connections: connections.path().to_owned(),
        };
        // The other sites are cleared nevertheless.
        if let Err(why) = remove(&work, &host, args.force) {
            say::error(format_args!("causeway down: {why}"));
            failures.push(site.as_str());
        }
    }
    if failures.is_empty() {
        kept::forget();
        return Ok(ExitCode::SUCCESS);
    }
    Err(format!("it is not done at {}; repeat it", failures.join(", ")))
}

fn remove(work: &Work, host: &Host, force: bool) -> Result<(), String> {
    let home = host.run(r#"echo "$HOME""#, b"", PATIENCE)?;
    let home = home.lines().last().unwrap_or_default().trim().to_owned();
    if !home.starts_with('/') {
        return Err(format!("{}: its home directory is {home:?}", host.site));
    }
    // Another version may have installed the command, or one for another processor.
    let command = host.run(&installed_line(&home), b"", PATIENCE)?.trim().to_owned();
    if !command.is_empty() {
        let part = format!("{} up-part", quoted(command));
        let force = if force { " --force" } else { "" };
        work.say(&host.site, "pkill -f '[c]auseway (gateway|broker)'")?;
        host.run(&format!("{part} stop{force}"), b"", PATIENCE)?;
        work.say(
            &host.site,
            "rm -r ~/.config/causeway ~/.local/share/causeway/grid ~/.cache/causeway/sent",
        )?;
        host.run(&format!("{part} remove"), b"", PATIENCE)?;
    }
    work.say(
        &host.site,
        "rm -r ~/.local/bin/causeway ~/.local/share/causeway/installed",
    )?;
    host.run(&programs_line(&home), b"", PATIENCE).map(drop)
}
