//! Several brokers of a grid: its authority makes them and takes them out of service, and any one of them is
//! told what the authority has signed.

use super::{GridDirectory, ask};
use causeway_broker::admin::{AdminReply, AdminRequest};
use causeway_broker::clock::{Clock, span};
use causeway_broker::new_grid::CONFIG_FILE;
use causeway_broker::records::{SignedRecord, Standing};
use causeway_broker::root::{self, AUTHORITY_DIRECTORY, Root};
use causeway_broker::{BrokerConfig, ListedBroker};
use causeway_host::{say, user_directories};
use causeway_wire::TextError;
use clap::Args;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Where the grid's authority lies.
#[derive(Args)]
pub struct Authority {
    /// The directory of the grid's authority, for example on a stick [default:
    /// ~/.local/share/causeway/grid/authority].
    #[arg(long, value_name = "DIR")]
    authority: Option<PathBuf>,
}

impl Authority {
    fn directory(&self) -> Result<PathBuf, TextError> {
        match &self.authority {
            Some(directory) => Ok(directory.clone()),
            None => {
                let grid = super::default_directory().map_err(TextError::of)?;
                Ok(grid.join(AUTHORITY_DIRECTORY))
            }
        }
    }

    fn open(&self) -> Result<(Root, PathBuf), TextError> {
        let directory = self.directory()?;
        let root = Root::open(&directory).map_err(|error| {
            format!("{error}\nname the directory of the grid's authority with --authority")
        })?;
        Ok((root, directory))
    }
}

#[derive(Args)]
pub struct AddArgs {
    /// Where sites find the new broker.
    #[arg(value_name = "HOST:PORT")]
    broker: String,
    #[command(flatten)]
    authority: Authority,
    /// Where the new broker's directory is made [default: beside the authority's].
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

#[derive(Args)]
pub struct RetireArgs {
    /// The broker's number; 'causeway grid list' shows it.
    broker: u8,
    /// Somebody else may have its keys: nothing that it certified counts any more, and the sites that it
    /// admitted join anew.
    #[arg(long)]
    compromised: bool,
    #[command(flatten)]
    authority: Authority,
}

#[derive(Args)]
pub struct ReplaceArgs {
    /// The broker's number; 'causeway grid list' shows it.
    number: u8,
    /// Where sites find the new broker.
    #[arg(value_name = "HOST:PORT")]
    broker: String,
    /// Somebody else may have the old one's keys; see retire-broker.
    #[arg(long)]
    compromised: bool,
    #[command(flatten)]
    authority: Authority,
    /// Where the new broker's directory is made [default: beside the authority's].
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

#[derive(Args)]
pub struct MoveArgs {
    /// The new directory of the authority.
    to: PathBuf,
    #[command(flatten)]
    grid: GridDirectory,
}

#[derive(Args)]
pub struct TakeArgs {
    /// The file records.json of the authority's directory, or a copy of it.
    file: PathBuf,
    #[command(flatten)]
    grid: GridDirectory,
}

/// Makes a grid of several brokers.
pub fn create(name: &str, brokers: &[String], grid: &GridDirectory) -> Result<ExitCode, TextError> {
    let directory = grid.path().map_err(TextError::of)?;
    let configs = root::create_several(name, brokers, &directory, &Clock::system()).map_err(TextError::of)?;
    let mut lines = vec![format!(
        "grid {name} is in {}; the whole grid trusts {}: move that directory to a place of its own, such as a stick in a drawer",
        directory.display(),
        directory.join(AUTHORITY_DIRECTORY).join("ca.key").display()
    )];
    for (config, broker) in configs.iter().zip(brokers) {
        lines.push(steps_for_new_broker(config, broker));
    }
    lines.push(
        "then, for each site, at the host of any broker: causeway grid token --site NAME --dir DIR"
            .to_owned(),
    );
    Ok(say::result(lines.join("\n")))
}

/// Makes another broker.
pub fn add(args: &AddArgs) -> Result<ExitCode, TextError> {
    let (mut root, directory) = args.authority.open()?;
    let config = make(&mut root, &args.broker, out(args.out.as_deref(), &directory)?)?;
    Ok(say::result(format!(
        "{}\nthe others learn of it from it, once it runs",
        steps_for_new_broker(&config, &args.broker)
    )))
}

/// Takes a broker out of service.
pub fn retire(args: &RetireArgs) -> Result<ExitCode, TextError> {
    let (mut root, directory) = args.authority.open()?;
    root.retire(args.broker, standing(args.compromised))
        .map_err(TextError::of)?;
    Ok(say::result(format!(
        "broker {} is out of service once any broker has heard of it: copy {} to the host of one, and run there: causeway grid \
         take FILE",
        args.broker,
        directory.join("records.json").display()
    )))
}

/// Takes a broker out of service, and makes another one.
pub fn replace(args: &ReplaceArgs) -> Result<ExitCode, TextError> {
    let (mut root, directory) = args.authority.open()?;
    let out = out(args.out.as_deref(), &directory)?;
    if root.brokers().all(|broker| broker.number != args.number) {
        return Err(format!("no broker {} was ever made by this authority", args.number).into());
    }
    let config = make(&mut root, &args.broker, out.clone())?;
    root.retire(args.number, standing(args.compromised))
        .map_err(TextError::of)?;
    // With this, the new broker tells the others about both.
    let place = config.parent().unwrap_or(&out);
    std::fs::copy(directory.join("records.json"), place.join("records.json"))
        .map_err(|error| format!("copy records.json to {}: {error}", place.display()))?;
    Ok(say::result(format!(
        "{}\nthe others learn from it, once it runs, that it takes the place of broker {}",
        steps_for_new_broker(&config, &args.broker),
        args.number
    )))
}

/// Gives the broker of a grid an authority of its own.
pub fn move_authority(args: &MoveArgs) -> Result<ExitCode, TextError> {
    let file = args.grid.path().map_err(TextError::of)?.join(CONFIG_FILE);
    let config = BrokerConfig::load(&file).map_err(TextError::of)?;
    root::move_authority(&config, &args.to, &Clock::system()).map_err(TextError::of)?;
    Ok(say::result(format!(
        "the authority of grid {} is in {} now; move that directory to a place of its own, such as a stick in a drawer, and \
         delete copies of ca.key\n\
         this broker is broker 1, with an authority of its own: start 'causeway broker' again\n\
         next: causeway grid add-broker HOST:PORT --authority {}",
        config.grid,
        args.to.display(),
        args.to.display()
    )))
}

/// Tells a broker what the authority has signed.
pub fn take(args: &TakeArgs) -> Result<ExitCode, TextError> {
    let place = args.file.display();
    let text = std::fs::read_to_string(&args.file).map_err(|error| format!("read {place}: {error}"))?;
    let records: Vec<SignedRecord> =
        serde_json::from_str(&text).map_err(|error| format!("{place} holds no records: {error}"))?;
    let before = sites_in(&args.grid)?;
    let mut news = 0;
    let mut by = "";
    for part in records.chunks(RECORDS_AT_A_TIME) {
        let records = part.to_vec();
        match ask(&args.grid, &AdminRequest::Take { records })? {
            (AdminReply::Taken(count), via) => (news, by) = (news + count, super::note(via)),
            (other, _) => return Err(format!("the broker answered something else: {other:?}").into()),
        }
    }
    let told = match news {
        0 => "nothing of it is news".to_owned(),
        1 => format!("1 record was news{by}; the other brokers and the sites hear of it now"),
        news => format!("{news} records were news{by}; the other brokers and the sites hear of them now"),
    };
    let after = sites_in(&args.grid)?;
    let out: Vec<&str> = before.difference(&after).map(String::as_str).collect();
    Ok(say::result(told + &steps_for_expelled_sites(&out)))
}

/// Lists the sites that are members.
fn sites_in(grid: &GridDirectory) -> Result<BTreeSet<String>, TextError> {
    match ask(grid, &AdminRequest::List {})? {
        (AdminReply::Listing(listing), _) => {
            let sites = listing.sites.into_iter();
            let sites = sites.filter(|site| site.revoked.is_none());
            Ok(sites.map(|site| site.site).collect())
        }
        (other, _) => Err(format!("the broker answered something else: {other:?}").into()),
    }
}

/// What sites must do that are no longer members because only an expelled broker has admitted them.
fn steps_for_expelled_sites(sites: &[&str]) -> String {
    let Some(first) = sites.first() else {
        return String::new();
    };
    let (are, join) = match sites.len() {
        1 => (
            "is no member any more, for an expelled broker alone has let it in",
            "it joins",
        ),
        _ => (
            "are no members any more, for an expelled broker alone has let them in",
            "each joins",
        ),
    };
    format!(
        "\n{} {are}; {join} again with a token of this broker: causeway grid token --site {first}",
        sites.join(", ")
    )
}

/// The most records in one line to the broker, which reads 64 KiB: a broker's record has 1 KiB, a site's
/// seldom as much.
const RECORDS_AT_A_TIME: usize = 16;

/// Shows the brokers in a list.
pub fn lines(brokers: &[ListedBroker], now: u64) -> impl Iterator<Item = String> {
    brokers.iter().map(move |broker| {
        let met = match (broker.met, &broker.trouble) {
            _ if broker.is_own => "this one".to_owned(),
            (_, Some(trouble)) => format!("cannot be reached: {trouble}"),
            (Some(met), None) => format!("records exchanged {} ago", span(now.saturating_sub(met))),
            (None, None) => "not met yet".to_owned(),
        };
        let standing = match broker.standing {
            Standing::Serving => met,
            Standing::Retired => "out of service".to_owned(),
            Standing::Expelled => "expelled: somebody else may have its keys".to_owned(),
        };
        format!(
            "  broker {} at {}: {standing}",
            broker.number,
            broker.public.join(", ")
        )
    })
}

fn standing(compromised: bool) -> Standing {
    if compromised {
        Standing::Expelled
    } else {
        Standing::Retired
    }
}

fn out(wanted: Option<&Path>, authority: &Path) -> Result<PathBuf, TextError> {
    let beside = || authority.parent().filter(|parent| !parent.as_os_str().is_empty());
    match wanted.or_else(beside) {
        Some(out) => Ok(out.to_owned()),
        None => std::env::current_dir().map_err(TextError::of),
    }
}

fn make(root: &mut Root, broker: &str, out: PathBuf) -> Result<PathBuf, TextError> {
    let changed = root
        .add_broker(broker, &out, &Clock::system())
        .map_err(TextError::of)?;
    changed
        .config
        .ok_or_else(|| "the authority has made no broker".into())
}

fn steps_for_new_broker(config: &Path, broker: &str) -> String {
    let place = config.parent().unwrap_or(config);
    let home = user_directories::data().map(|data| data.join("grid"));
    let home = home.map_or_else(
        |_| "~/.local/share/causeway/grid".to_owned(),
        |home| home.display().to_string(),
    );
    format!(
        "move {} to the host of {broker}, as {home}, and start there: causeway broker",
        place.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sites_that_need_a_token_are_named() {
        assert_eq!(steps_for_expelled_sites(&[]), "");
        let one = steps_for_expelled_sites(&["lyon"]);
        assert!(
            one.contains("lyon is no member") && one.ends_with("--site lyon"),
            "{one}"
        );
        let two = steps_for_expelled_sites(&["lille", "lyon"]);
        assert!(two.contains("lille, lyon are no members"), "{two}");
    }
}
