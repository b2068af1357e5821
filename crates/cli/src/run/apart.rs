//! Options of a run that exclude each other: one table, from which messages and docs/commands.md come.

use super::Args;
use causeway_run::error::RunError;

/// The words that stand for the launcher and its arguments.
const LAUNCHER: &str = "a launcher after --";

/// Groups of options: each option of one excludes each of the other, for this reason.
struct Rule {
    of: &'static [&'static str],
    excludes: &'static [&'static str],
    reason: &'static str,
}

const RULES: &[Rule] = &[
    Rule {
        of: &["--direct"],
        excludes: &["--transparent"],
        reason: "each says how processes reach other sites",
    },
    Rule {
        of: &["--direct", "--transparent"],
        excludes: &["--alloc", "--time", "--send"],
        reason: "without the shim, a job has the nodes that the sites list, and no files are sent",
    },
    Rule {
        of: &["--direct", "--transparent", "--no-collectives"],
        excludes: &["--groups", "--profile", "--collectives", "--same-bits"],
        reason: "only the library of collectives does the latter, and the former leaves it out",
    },
    Rule {
        of: &["--direct"],
        excludes: &["--tune-untested", "--no-tune"],
        reason: "with --direct, nothing is tuned for the link",
    },
    Rule {
        of: &["--no-tune"],
        excludes: &["--tune-untested", "--collectives", "--groups", "--same-bits"],
        reason: "--no-tune leaves the MPI as it comes",
    },
    Rule {
        of: &["--at"],
        excludes: &["--own-mpi"],
        reason: "each starts the sites' own MPIs, --at by commands and --own-mpi by one program",
    },
    Rule {
        of: &["--at"],
        excludes: &[LAUNCHER],
        reason: "the commands of --at have their launchers",
    },
    Rule {
        of: &["--at", "--own-mpi"],
        excludes: &["--direct", "--transparent"],
        reason: "ranks of unlike MPIs meet through the gateways, by the shim",
    },
    Rule {
        of: &["--at", "--own-mpi"],
        excludes: &["--collectives", "--same-bits", "--tune-untested", "--no-tune"],
        reason: "each site's MPI keeps its own settings",
    },
    Rule {
        of: &["--profile"],
        excludes: &["--sites", "--alloc", "--time", "--at", "--groups"],
        reason: "the profile and its placement say that",
    },
    Rule {
        of: &["--alloc"],
        excludes: &["--time"],
        reason: "nodes are those of your allocations, or are asked for",
    },
    Rule {
        of: &["--script"],
        excludes: &["--at", "--own-mpi", "--profile", "--send"],
        reason: "the script itself starts MPI, with the launchers that it finds",
    },
];

/// Refuses options that exclude each other.
///
/// # Errors
/// Two options exclude each other; the error names the first such pair, and why.
pub fn check(args: &Args) -> Result<(), RunError> {
    let is_given = |option: &&&str| is_given(args, option);
    for rule in RULES {
        let one = rule.of.iter().find(is_given);
        let other = rule.excludes.iter().find(is_given);
        if let Some((one, other)) = one.zip(other) {
            return Err(RunError::Apart(one, other, rule.reason));
        }
    }
    Ok(())
}

fn is_given(args: &Args, option: &str) -> bool {
    match option {
        "--sites" => args.sites.is_some(),
        "--alloc" => !args.alloc.is_empty(),
        "--time" => args.time.is_some(),
        "--direct" => args.direct,
        "--transparent" => args.transparent,
        "--no-collectives" => args.no_collectives,
        "--groups" => args.groups.is_some(),
        "--profile" => args.profile.is_some(),
        "--collectives" => args.collectives.is_some(),
        "--same-bits" => args.same_bits,
        "--tune-untested" => args.tune_untested,
        "--no-tune" => args.no_tune,
        "--at" => !args.at.is_empty(),
        "--own-mpi" => args.own_mpi,
        "--script" => args.script,
        "--send" => !args.send.is_empty(),
        LAUNCHER => !args.command.is_empty(),
        _ => false,
    }
}

/// The table for docs/commands.md.
pub fn table() -> String {
    let cell = |options: &[&str]| {
        let options = options.iter().map(|option| match option.starts_with("--") {
            true => format!("`{option}`"),
            false => (*option).to_owned(),
        });
        options.collect::<Vec<_>>().join(", ")
    };
    let mut text = String::from("| any of these | excludes each of these | since |\n|---|---|---|\n");
    for rule in RULES {
        text += &format!(
            "| {} | {} | {} |\n",
            cell(rule.of),
            cell(rule.excludes),
            rule.reason
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::read::read as meant;
    use causeway_run::mode::Mode;

    fn read(line: &str) -> Args {
        Args::typed(&line.split(' ').collect::<Vec<_>>())
    }

    /// An example of each option, with everything that it needs.
    fn example(option: &str) -> String {
        match option {
            "--sites" => "--sites rennes=2,nancy=2".to_owned(),
            "--alloc" => "--alloc rennes:1".to_owned(),
            "--time" => "--sites rennes=2 --time 1h".to_owned(),
            "--groups" | "--profile" | "--collectives" | "--send" => format!("{option} file"),
            "--at" => "--at rennes hostname".to_owned(),
            LAUNCHER => "-- mpirun".to_owned(),
            flag => flag.to_owned(),
        }
    }

    #[test]
    fn each_option_of_the_table_is_one_and_is_refused_beside_each_that_it_excludes() {
        let known = Args::long_options();
        let is_option = |option: &str| known.iter().any(|known| known == option) || option == LAUNCHER;
        for rule in RULES {
            for option in rule.of.iter().chain(rule.excludes) {
                assert!(is_option(option), "{option}");
            }
            for (one, other) in rule
                .of
                .iter()
                .flat_map(|one| rule.excludes.iter().map(move |other| (one, other)))
            {
                let (first, last) = (example(one), example(other));
                let twice = first.contains("--sites") && last.contains("--sites");
                let line = if twice { last } else { format!("{first} {last}") };
                let refused = check(&read(&line)).unwrap_err().to_string();
                assert!(refused.contains("exclude each other: "), "{line}: {refused}");
            }
        }
    }

    #[test]
    fn what_fits_together_has_one_mode() {
        for (line, mode) in [
            (
                "--sites rennes=2,nancy=2 --time 1h --groups file -- mpirun ./app",
                Mode::Shim,
            ),
            ("--direct --no-collectives -- mpirun ./app", Mode::Direct),
            ("--transparent --weight 3 -- mpirun ./app", Mode::Transparent),
            (
                "--at rennes hostname --alloc rennes:1 --no-collectives",
                Mode::OwnMpis,
            ),
            ("--own-mpi --sites rennes=2 --groups file -- ./app", Mode::OwnMpis),
        ] {
            let args = read(line);
            assert_eq!(meant(&args).unwrap().mode, mode, "{line}");
        }
    }
}
