//! `causeway grid`: a grid's authority, its members, and how sites join. For the host on which the broker
//! runs, or will run.

mod brokers;

use causeway_broker::admin::{self, AdminReply, AdminRequest, Via};
use causeway_broker::api::{Job, Subnet};
use causeway_broker::clock::{Clock, date, span};
use causeway_broker::new_grid::CONFIG_FILE;
use causeway_broker::{BrokerConfig, ListedSite, Listing, MAX_TTL_SECONDS};
use causeway_host::say;
use causeway_host::user_directories::{self, NoHome};
use causeway_wire::Cidr;
use causeway_wire::TextError;
use causeway_wire::shown::Line;
use clap::{Args, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;

/// A grid's authority, members and tokens.
#[derive(Subcommand)]
pub enum Task {
    /// Make a new grid: its certificate authority and its broker's configuration.
    Create(CreateArgs),
    /// Print a token with which a site can join once.
    Token(TokenArgs),
    /// Show the grid's sites, valid tokens and running jobs.
    List(ListArgs),
    /// Exclude a site: its certificates and tokens are void from now on.
    Revoke(RevokeArgs),
    /// Make another broker, in a grid of several. Where the grid's authority lies.
    AddBroker(brokers::AddArgs),
    /// Take a broker out of service for ever. Where the grid's authority lies.
    RetireBroker(brokers::RetireArgs),
    /// Make a broker in the place of another one. Where the grid's authority lies.
    ReplaceBroker(brokers::ReplaceArgs),
    /// Tell a broker what the grid's authority has signed. Where that broker runs.
    Take(brokers::TakeArgs),
    /// Move the authority out of the directory of the grid's only broker, so that the grid can have several.
    /// That broker must not run meanwhile.
    MoveAuthority(brokers::MoveArgs),
}

#[derive(Args)]
pub struct CreateArgs {
    /// 1 to 63 letters, digits, '-', '_' or '.'.
    name: String,
    /// Where sites find the broker [default: this host's name, port 7443].
    #[arg(long, value_name = "HOST:PORT")]
    broker: Option<String>,
    /// Where sites find the brokers of a grid that is to have several: each gets a directory with an
    /// authority of its own, and the grid's authority is needed only to add and retire brokers.
    #[arg(
        long,
        value_name = "HOST:PORT,...",
        value_delimiter = ',',
        conflicts_with = "broker"
    )]
    brokers: Vec<String>,
    #[command(flatten)]
    grid: GridDirectory,
}

#[derive(Args)]
pub struct TokenArgs {
    /// The site that may join.
    #[arg(long, value_name = "NAME")]
    site: String,
    /// How long the token is valid: 30min, 1h, 2d; 7d at most.
    #[arg(long, default_value = "1h", value_parser = lifetime)]
    ttl: u64,
    /// A range that the site's addresses must be in; may be repeated [default: any private, shared, unique
    /// local or loopback range that no other site has].
    #[arg(long, value_name = "CIDR")]
    subnet: Vec<Cidr>,
    #[command(flatten)]
    grid: GridDirectory,
}

#[derive(Args)]
pub struct ListArgs {
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    grid: GridDirectory,
}

#[derive(Args)]
pub struct RevokeArgs {
    /// The site.
    site: String,
    /// Revoke it even if the broker has never heard of it, for example after the broker lost its store.
    #[arg(long)]
    unknown: bool,
    #[command(flatten)]
    grid: GridDirectory,
}

/// Which grid.
#[derive(Args)]
pub struct GridDirectory {
    /// The grid's directory [default: ~/.local/share/causeway/grid].
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

impl GridDirectory {
    fn path(&self) -> Result<PathBuf, NoHome> {
        self.dir.clone().map_or_else(default_directory, Ok)
    }
}

/// One grid for each user, unless another directory is named.
pub fn default_directory() -> Result<PathBuf, NoHome> {
    Ok(user_directories::data()?.join("grid"))
}

/// Runs one of them.
pub fn main(task: Task) -> ExitCode {
    let (name, done) = match task {
        Task::Create(args) => ("create", create(&args)),
        Task::Token(args) => ("token", token(&args)),
        Task::List(args) => ("list", list(&args)),
        Task::Revoke(args) => ("revoke", revoke(&args)),
        Task::AddBroker(args) => ("add-broker", brokers::add(&args)),
        Task::RetireBroker(args) => ("retire-broker", brokers::retire(&args)),
        Task::ReplaceBroker(args) => ("replace-broker", brokers::replace(&args)),
        Task::Take(args) => ("take", brokers::take(&args)),
        Task::MoveAuthority(args) => ("move-authority", brokers::move_authority(&args)),
    };
    done.unwrap_or_else(|reason| {
        say::error(format_args!("causeway grid {name}: {reason}"));
        ExitCode::FAILURE
    })
}

fn create(args: &CreateArgs) -> Result<ExitCode, TextError> {
    if !args.brokers.is_empty() {
        return brokers::create(&args.name, &args.brokers, &args.grid);
    }
    let broker = match &args.broker {
        Some(broker) => broker.clone(),
        None => {
            let host = nix::unistd::gethostname().map_err(|error| format!("this host's name: {error}"))?;
            format!("{}:{}", host.to_string_lossy(), causeway_broker::config::PORT)
        }
    };
    let directory = args.grid.path().map_err(TextError::of)?;
    let config = causeway_broker::new_grid::create(&args.name, &broker, &directory, &Clock::system())
        .map_err(|error| error.to_string())?;
    let option = args
        .grid
        .dir
        .as_ref()
        .map_or_else(String::new, |dir| format!(" --dir {}", dir.display()));
    Ok(say::result(format_args!(
        "grid {} is in {}; the whole grid trusts ca.key there: keep it safe and secret\n\
         sites will find the broker at {broker}\n\
         next: causeway broker --config {}\n\
         then, for each site: causeway grid token --site NAME{option}",
        args.name,
        directory.display(),
        config.display()
    )))
}

fn token(args: &TokenArgs) -> Result<ExitCode, TextError> {
    let request = AdminRequest::Token {
        site: args.site.clone(),
        ttl_seconds: args.ttl,
        subnets: args.subnet.iter().copied().map(Subnet).collect(),
    };
    match ask(&args.grid, &request)? {
        (AdminReply::Token(token), via) => {
            say::error(format_args!(
                "site {} can join once within {} with this line{}:",
                args.site,
                span(args.ttl),
                note(via)
            ));
            Ok(say::result(token))
        }
        (other, _) => Err(format!("the broker answered something else: {other:?}").into()),
    }
}

fn revoke(args: &RevokeArgs) -> Result<ExitCode, TextError> {
    let request = AdminRequest::Revoke {
        site: args.site.clone(),
        unknown: args.unknown,
    };
    match ask(&args.grid, &request)? {
        (AdminReply::RevokedUntil(until), via) => Ok(say::result(format_args!(
            "site {} is revoked, with all that any broker has given it until {}{}",
            args.site,
            date(until),
            note(via)
        ))),
        (AdminReply::Revoked(counter), via) => Ok(say::result(format_args!(
            "site {} is revoked (list {counter}{})",
            args.site,
            note(via)
        ))),
        (other, _) => Err(format!("the broker answered something else: {other:?}").into()),
    }
}

fn list(args: &ListArgs) -> Result<ExitCode, TextError> {
    let (AdminReply::Listing(listing), via) = ask(&args.grid, &AdminRequest::List {})? else {
        return Err("the broker answered something else".into());
    };
    if args.json {
        let json = serde_json::to_string(&listing).map_err(|error| error.to_string())?;
        return Ok(say::result(json));
    }
    Ok(say::result(text(&listing, via)))
}

fn ask(grid: &GridDirectory, request: &AdminRequest) -> Result<(AdminReply, Via), TextError> {
    let file = grid.path().map_err(TextError::of)?.join(CONFIG_FILE);
    let config = BrokerConfig::load(&file).map_err(|mistakes| {
        format!("{mistakes}\nmake a grid with 'causeway grid create NAME', or name its directory with --dir")
    })?;
    admin::ask(&config, request).map_err(TextError::of)
}

fn note(via: Via) -> &'static str {
    match via {
        Via::Broker => "",
        Via::Store => {
            "; no broker runs here, so it was written to the broker's store: start 'causeway broker'"
        }
    }
}

fn text(listing: &Listing, via: Via) -> String {
    let mut lines = vec![format!(
        "grid {}{}",
        listing.grid,
        note(via).trim_end_matches(": start 'causeway broker'")
    )];
    lines.extend(brokers::lines(&listing.brokers, listing.time));
    lines.extend(listing.sites.iter().map(|site| line(site, listing.time)));
    if listing.sites.is_empty() {
        lines.push("no site has joined yet".to_owned());
    }
    for token in &listing.tokens {
        let left = span(token.expires.saturating_sub(listing.time));
        lines.push(format!(
            "  {:<24} can join with a token, for {left} more",
            token.site
        ));
    }
    lines.extend(listing.jobs.iter().map(|job| job_line(job, listing.time)));
    if listing.jobs_left_out > 0 {
        lines.push(format!("  and {} more jobs", listing.jobs_left_out));
    }
    // Nothing that a site chose can begin a line of its own.
    let shown: Vec<String> = lines.iter().map(|line| Line(line).to_string()).collect();
    shown.join("\n")
}

fn job_line(job: &Job, now: u64) -> String {
    let ranks = match job.job.ranks {
        0 => String::new(),
        ranks => format!(", {ranks} ranks"),
    };
    format!(
        "  job {} of {} at {}{ranks}, for {}: {}",
        job.job.id,
        job.from,
        job.job.sites.join(", "),
        span(now.saturating_sub(job.since)),
        job.job.name
    )
}

fn line(site: &ListedSite, now: u64) -> String {
    if let Some(before) = site.revoked {
        return format!("  {:<24} revoked at {}", site.site, date(before));
    }
    if site.last_seen == 0 {
        return format!("  {:<24} has joined; its gateway has never connected", site.site);
    }
    let from = site
        .observed
        .map_or_else(|| "nowhere".to_owned(), |from| from.ip().to_string());
    let known = match site.virtual_subnets.as_slice() {
        [] => String::new(),
        ranges => format!(", known as {}", ranges.join(", ")),
    };
    let granted = match site.granted.as_slice() {
        [] => String::new(),
        ranges => format!(" (granted {})", ranges.join(", ")),
    };
    let seen = span(now.saturating_sub(site.last_seen));
    format!(
        "  {:<24} {} nodes in {}{granted}{known}, last heard {seen} ago from {from}",
        site.site,
        site.nodes,
        site.subnets.join(", ")
    )
}

fn lifetime(text: &str) -> Result<u64, TextError> {
    match causeway_units::span(text)? {
        0 => Err("a token must be valid for some time; 1h is usual".into()),
        seconds @ 1..=MAX_TTL_SECONDS => Ok(seconds),
        _ => Err(format!("a token is valid for at most {}", span(MAX_TTL_SECONDS)).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lifetimes_of_tokens_need_a_unit_and_stay_within_a_week() {
        for (text, seconds) in [("30min", 1800), ("1h", 3600), ("7d", 604_800), ("90s", 90)] {
            assert_eq!(lifetime(text), Ok(seconds), "{text}");
        }
        for text in ["", "1", "0s", "8d", "-1h", "h", "18446744073709551615d"] {
            assert!(lifetime(text).is_err(), "{text}");
        }
    }
}
