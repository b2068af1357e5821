//! Reads what a run is meant to do from what was typed. Everything that can be wrong with the command line
//! itself is found here, before anything is requested.

use super::Args;
use super::apart;
use causeway_run::batch::allocations;
use causeway_run::error::RunError;
use causeway_run::files;
use causeway_run::groups::Groups;
use causeway_run::meant::{
    Asked, Collectives, FilesWanted, Nodes, Profile, Run, Shares, SiteCommand, Start, Tuning,
};
use causeway_run::mode::Mode;
use causeway_run::own::refuse_launcher;
use causeway_run::sites;
use std::collections::BTreeMap;
use std::time::Duration;

/// Reads arguments.
///
/// # Errors
/// The arguments are wrong; the error says how, and what to type.
pub fn read(args: &Args) -> Result<Run, RunError> {
    apart::check(args)?;
    let files = FilesWanted {
        send: args.send.clone(),
        send_anew: args.send_anew,
        fetch: args.fetch.clone(),
    };
    files::check(&files)?;
    let weighing = args.weighing.read();
    if args.profile.is_none() && !weighing.is_usual() {
        return Err(RunError::NothingToWeigh);
    }
    let sites = args.sites.as_deref().map(sites::parse).transpose()?;
    let start = start(args)?;
    check_sites(args, &start, sites.as_ref())?;
    Ok(Run {
        mode: mode(args, &start),
        nodes: nodes(args, sites.as_ref())?,
        start,
        sites,
        wait: args.wait,
        wait_until: args.wait_until.map(Duration::from_secs),
        profile: args.profile.clone().map(|file| Profile {
            file,
            weighing: weighing.clone(),
        }),
        groups: args.groups.clone().map_or(Groups::None, Groups::File),
        collectives: Collectives {
            are_left_alone: args.no_collectives,
            rules: args.collectives.clone(),
            keep_bits: args.same_bits,
        },
        tuning: match (args.no_tune, args.tune_untested) {
            (true, _) => Tuning::None,
            (false, true) => Tuning::Any,
            (false, false) => Tuning::Tested,
        },
        weight: args.weight,
        files,
        is_verbose: args.verbose,
        report: args.report.clone(),
    })
}

fn mode(args: &Args, start: &Start) -> Mode {
    match () {
        () if args.own_mpi || matches!(start, Start::Commands(_)) => Mode::OwnMpis,
        () if args.direct => Mode::Direct,
        () if args.transparent => Mode::Transparent,
        () => Mode::Shim,
    }
}

fn start(args: &Args) -> Result<Start, RunError> {
    let words = args.command.clone();
    match () {
        () if !args.at.is_empty() => Ok(Start::Commands(commands(&args.at)?)),
        () if words.is_empty() && args.profile.is_some() => Ok(Start::Profile),
        () if words.is_empty() && args.own_mpi => Err(RunError::NoShares),
        () if words.is_empty() => Err(RunError::NoCommand),
        () if args.script => Ok(Start::Script(words)),
        () if args.own_mpi => {
            refuse_launcher(&words[0])?;
            Ok(Start::Program(words))
        }
        () => Ok(Start::Launcher(words)),
    }
}

/// The commands of `--at`, in the order of the ranks.
fn commands(at: &[String]) -> Result<Vec<SiteCommand>, RunError> {
    let mut commands: Vec<SiteCommand> = Vec::new();
    for pair in at.chunks(2) {
        let [site, text] = pair else {
            return Err(RunError::NoAt);
        };
        if text.trim().is_empty() {
            return Err(RunError::NoCommandAt(site.clone()));
        }
        if commands.iter().any(|other| other.site == *site) {
            return Err(RunError::TwiceAt(site.clone()));
        }
        let (site, text) = (site.clone(), text.clone());
        commands.push(SiteCommand { site, text });
    }
    Ok(commands)
}

/// Refuses a `--sites` that does not fit what starts at the sites.
fn check_sites(args: &Args, start: &Start, sites: Option<&Shares>) -> Result<(), RunError> {
    match start {
        Start::Commands(commands) => match (sites, args.time) {
            (Some(_), None) => Err(RunError::AtSites),
            (Some(sites), Some(_)) => {
                let asked = sites.iter().map(|(site, _)| site);
                let named = commands.iter().map(|command| &command.site);
                let is_in_one = |site: &&String| {
                    let is_asked = sites.iter().any(|(asked, _)| asked == *site);
                    is_asked != commands.iter().any(|command| command.site == **site)
                };
                let odd = asked.chain(named).find(is_in_one);
                odd.map_or(Ok(()), |site| Err(RunError::AtOtherSites(site.clone())))
            }
            (None, _) => Ok(()),
        },
        Start::Program(_) if args.profile.is_none() => {
            let has_ranks = |sites: &Shares| sites.iter().all(|(_, ranks)| ranks.is_some());
            match sites.is_some_and(has_ranks) {
                true => Ok(()),
                false => Err(RunError::NoShares),
            }
        }
        _ => Ok(()),
    }
}

fn nodes(args: &Args, sites: Option<&Shares>) -> Result<Nodes, RunError> {
    let allocations = allocations::parse(&args.alloc)?;
    let Some(time) = args.time else {
        return Ok(match allocations.is_empty() {
            true => Nodes::Listed,
            false => Nodes::Allocated(allocations),
        });
    };
    let sites = sites.filter(|sites| sites.iter().all(|(_, ranks)| ranks.is_some()));
    let sites = sites.ok_or(RunError::TimeWithoutRanks)?;
    let mut options: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for word in &args.batch {
        let named = word.split_once(':');
        let named = named.filter(|(site, _)| sites.iter().any(|(share, _)| share == site));
        let (site, words) = named.ok_or_else(|| RunError::BatchOptions(word.clone()))?;
        let words = words.split_whitespace().map(str::to_owned);
        options.entry(site.to_owned()).or_default().extend(words);
    }
    let idle = args.idle;
    Ok(Nodes::Asked(Asked { time, idle, options }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;

    fn meant(words: &[OsString]) -> Result<Run, String> {
        read(&Args::typed(words)).map_err(|error| error.to_string())
    }

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ')
            .map(|word| word.replace('_', " ").into())
            .collect()
    }

    #[test]
    fn a_run_is_read_from_the_words_that_it_is_written_in() {
        for line in [
            "-- mpirun -n 4 ./app",
            "--sites rennes=2,nancy=2 --time 90s --idle 1min --batch rennes:--partition=fast_--qos=x --wait 1h -- mpirun ./a",
            "--sites rennes,nancy --alloc rennes:1 --alloc nancy:2+1 --weight 3 --verbose -- mpirun ./app",
            "--direct --no-collectives -- mpiexec ./app -- x",
            "--transparent --no-tune -- mpirun ./app",
            "--tune-untested --collectives rules --same-bits --groups job.toml -- mpirun ./app",
            "--at rennes srun_./a --at nancy mpirun_./a",
            "--sites rennes=32,nancy=16 --own-mpi -- ./app -v",
            "--script --sites rennes=2 --time 1h -- ./driver.sh --wait 1",
            "--profile job.toml --worth w.json --price rennes=0.04 --price nancy=1 --start-later",
            "--own-mpi --profile job.toml -- ./app",
            "--send src --send Cargo.toml=c --send-anew --fetch out-* -- mpirun ./app",
            "--wait-until 17 --report /f -- mpirun ./app",
            "--groups=-odd.toml --collectives=--rules -- mpirun --version",
        ] {
            let run = meant(&words(line)).unwrap();
            let written = run.words();
            assert_eq!(meant(&written).as_ref(), Ok(&run), "{line}: {written:?}");
            let count = |words: &[OsString]| words.len();
            assert_eq!(count(&written), count(&words(line)), "{line}: {written:?}");
        }
    }

    #[test]
    fn each_mistake_of_a_command_line_is_one_line_that_says_what_to_type() {
        for (line, said) in [
            ("--weight 2", "type 'causeway run -- mpirun"),
            (
                "--own-mpi --sites rennes=2",
                "--sites rennes=32,nancy=16 -- ./app",
            ),
            (
                "--own-mpi --sites rennes -- ./app",
                "--sites rennes=32,nancy=16 -- ./app",
            ),
            (
                "--own-mpi --sites rennes=2 -- /usr/bin/mpirun ./app",
                "leave out mpirun",
            ),
            (
                "--at rennes a --at rennes b",
                "--at names site rennes twice; give each site one command",
            ),
            ("--at rennes _", "--at rennes: the command is empty"),
            (
                "--at rennes a --sites rennes=2",
                "leave out --sites, or add --time",
            ),
            (
                "--at rennes a --sites rennes=2,nancy=2 --time 1h",
                "nancy is in one of them",
            ),
            (
                "--sites rennes --time 1h -- mpirun a",
                "--time needs the ranks of each site",
            ),
            (
                "--sites rennes=1 --time 1h --batch nancy:x -- mpirun a",
                "--batch nancy:x: name one",
            ),
            (
                "--sites rennes=x -- mpirun a",
                "the number of ranks is not a number",
            ),
            ("--price rennes=1 -- mpirun a", "--profile FILE"),
            ("--alloc rennes -- mpirun a", "--alloc rennes:1234"),
        ] {
            let refused = meant(&words(line)).unwrap_err();
            assert!(
                refused.contains(said) && !refused.contains('\n'),
                "{line}: {refused}"
            );
        }
    }

    #[test]
    fn commands_keep_the_order_of_their_sites() {
        let run = meant(&words("--at rennes srun_./a --at nancy mpirun_./a")).unwrap();
        let command = |site: &str, text: &str| SiteCommand {
            site: site.to_owned(),
            text: text.to_owned(),
        };
        let commands = vec![command("rennes", "srun ./a"), command("nancy", "mpirun ./a")];
        assert_eq!(run.start, Start::Commands(commands));
        assert_eq!(run.mode, Mode::OwnMpis);
    }
}
