//! The commands of a run, as the user gives them, and the environment that each gets. Pure.

use crate::error::RunError;
use crate::meant::SiteCommand;
use causeway_host::quoted;
use causeway_mpis::launchers;
use causeway_mpis::names::{FORWARDED, FORWARDS_ALL, JOINS_FORWARDED, SRUN_ENDS_ALL};
use causeway_mpis::preload::{ASAN_OPTIONS, asan_options, preload};
use causeway_rendezvous::message::VERSION;
use causeway_wire::env;
use std::ffi::{OsStr, OsString};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Runs the setup inside the double quotes of a shell. Without a setup it does nothing.
const SETUP: &str = "eval \\\"\\$CAUSEWAY_MPI_SETUP\\\" || \
     { echo \\\"causeway: site \\$CAUSEWAY_SITE: setup of its gateway's [mpi] failed: \\$CAUSEWAY_MPI_SETUP\\\" >&2; exit 1; }; ";

/// Words that bash knows, but the sh of a site may not.
const OF_BASH: [&str; 3] = ["pipefail", "[[", "shopt"];

impl SiteCommand {
    /// Whether the command calls srun without naming the component of a heterogeneous allocation.
    pub fn lacks_component(&self) -> bool {
        let mut words = self
            .text
            .split(|c: char| c.is_whitespace() || ";&|\"'".contains(c));
        words.any(|word| word == "srun") && !self.text.contains("--het-group")
    }

    /// A word in the command that the site's sh may not know.
    pub fn word_of_bash(&self) -> Option<&'static str> {
        let mut words = self.text.split(|c: char| c.is_whitespace() || ";&|".contains(c));
        let is_for_bash = words.clone().next() == Some("bash");
        words
            .find_map(|word| OF_BASH.into_iter().find(|of_bash| *of_bash == word))
            .filter(|_| !is_for_bash)
    }
}

/// Refuses a launcher where a program is expected, which each site starts with its own launcher.
///
/// # Errors
/// The word is a launcher.
pub fn refuse_launcher(program: &OsStr) -> Result<(), RunError> {
    let name = Path::new(program).file_name().unwrap_or_default();
    match launchers::STARTING.iter().any(|launcher| name == *launcher) {
        true => Err(RunError::OwnLauncher(name.to_string_lossy().into_owned())),
        false => Ok(()),
    }
}

/// The commands with which each site starts a program in its own way, and the ranks of each. `options` are
/// those of `causeway start-program` at a site.
///
/// # Errors
/// There is no program, or a site without ranks.
pub fn program_commands(
    own: &Path,
    shares: &[(String, Option<u32>)],
    program: &[OsString],
    options: impl Fn(&str) -> String,
) -> Result<(Vec<SiteCommand>, Vec<u32>), RunError> {
    let ranks: Option<Vec<u32>> = shares.iter().map(|(_, ranks)| *ranks).collect();
    let is_whole = !program.is_empty() && !shares.is_empty();
    let ranks = ranks.filter(|_| is_whole).ok_or(RunError::NoShares)?;
    refuse_launcher(&program[0])?;
    let words: Vec<String> = program.iter().map(quoted).collect();
    let commands = shares.iter().zip(&ranks).map(|((site, _), ranks)| {
        let own = quoted(own);
        // If the site has this program at another path, the site's variable says so.
        let there = env::OWN_PROGRAM;
        let text = format!(
            "own={own}; \"${{{there}:-$own}}\" start-program --ranks {ranks}{} -- {}",
            options(site),
            words.join(" ")
        );
        let site = site.clone();
        SiteCommand { site, text }
    });
    Ok((commands.collect(), ranks))
}

/// Facts that are the same for all processes of a run.
#[derive(Debug, Clone)]
pub struct Facts<'a> {
    /// Where the commands start.
    pub directory: &'a Path,
    /// The job's token.
    pub token: &'a str,
    /// The map of the grid.
    pub grid: &'a str,
    /// The rendezvous's address in the grid.
    pub rendezvous: SocketAddr,
    /// Libraries, in the order in which they must be loaded.
    pub preloads: &'a [PathBuf],
    /// Variables for the library of collectives.
    pub collectives: &'a [(String, String)],
}

/// The variables of a site's command. `present` returns what that command already has of a variable, which is
/// known only at the own site.
pub fn environment(
    command: &SiteCommand,
    facts: &Facts,
    present: impl Fn(&str) -> Option<OsString>,
) -> Vec<(String, OsString)> {
    let own = present("LD_PRELOAD");
    let mut set = vec![
        (env::TOKEN, facts.token.into()),
        (env::GRID, facts.grid.into()),
        (
            env::WORLD,
            format!("{VERSION},{},{}", command.site, facts.rendezvous).into(),
        ),
        ("LD_PRELOAD", preload(facts.preloads, own.as_deref(), &[])),
    ];
    let is_odd = facts.grid.contains('=');
    if is_odd {
        set.push((env::GRID_BY_OPEN_MPI, facts.grid.into()));
    }
    let mut ours = vec!["LD_PRELOAD", env::WORLD, env::TOKEN, env::SITE, ASAN_OPTIONS];
    ours.extend((!is_odd).then_some(env::GRID));
    ours.extend(facts.collectives.iter().map(|(name, _)| name.as_str()));
    let ours = OsString::from(ours.join(";"));
    let theirs = present(FORWARDED).filter(|list| !list.is_empty());
    let forwarded = match theirs {
        Some(theirs) => [theirs, ours].join(OsStr::new(";")),
        None => ours,
    };
    set.push((FORWARDED, forwarded));
    let options = asan_options(present(ASAN_OPTIONS).as_deref());
    set.extend(options.map(|options| (ASAN_OPTIONS, options)));
    let switches = [FORWARDS_ALL, SRUN_ENDS_ALL].into_iter();
    set.extend(
        switches
            .filter(|name| present(name).is_none())
            .map(|name| (name, "1".into())),
    );
    set.extend(std::env::var_os(env::DEBUG).map(|value| (env::DEBUG, value)));
    let set = set.into_iter().map(|(name, value)| (name.to_owned(), value));
    let collectives = facts.collectives.iter().cloned();
    set.chain(collectives.map(|(name, value)| (name, value.into())))
        .collect()
}

/// The line for the login shell: it enters this directory if it exists, runs the `setup` of the site's
/// gateway, and runs the user's words unchanged. As at a terminal, the shell that runs them survives an
/// interrupt until the launcher has ended.
pub fn line(text: &str, directory: &Path) -> String {
    let script = format!("cd \"$1\" 2>/dev/null; exec sh -c \"trap : INT; {SETUP}{JOINS_FORWARDED}$2\"");
    format!(
        "exec sh -c {} sh {} {}",
        quoted(&script),
        quoted(directory),
        quoted(text)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_nancy(text: &str) -> SiteCommand {
        SiteCommand {
            site: "nancy".to_owned(),
            text: text.to_owned(),
        }
    }

    #[test]
    fn words_that_only_bash_knows_are_found_unless_bash_reads_them() {
        let word = |text| at_nancy(text).word_of_bash();
        assert_eq!(
            word("set -o pipefail; mpirun -n 4 ./app | tee log"),
            Some("pipefail")
        );
        assert_eq!(word("[[ -e input ]]&&mpirun ./app"), Some("[["));
        assert_eq!(word("bash -c 'set -o pipefail; mpirun ./app'"), None);
        assert_eq!(word("mpirun ./app pipefail-test"), None);
    }

    #[test]
    fn an_srun_that_names_no_component_is_found() {
        let lacks = |text| at_nancy(text).lacks_component();
        assert!(lacks("srun -n 4 ./app") && lacks("module load x;srun ./app"));
        assert!(!lacks("srun --het-group=1 -n 4 ./app") && !lacks("mpirun ./srun-app"));
    }

    fn facts() -> Facts<'static> {
        Facts {
            directory: Path::new("/home/u"),
            token: "00",
            grid: "1|a",
            rendezvous: "10.1.0.253:4000".parse().unwrap(),
            preloads: &[],
            collectives: &[],
        }
    }

    #[test]
    fn each_site_is_told_its_name_and_the_rendezvous() {
        let command = at_nancy("./a");
        let set = environment(&command, &facts(), |_| None);
        let value = |name: &str| {
            set.iter()
                .find(|(key, _)| key == name)
                .and_then(|(_, value)| value.to_str())
        };
        assert_eq!(value("CAUSEWAY_WORLD"), Some("2,nancy,10.1.0.253:4000"));
        assert_eq!(value(SRUN_ENDS_ALL), Some("1"));
        assert_eq!(
            value(FORWARDED),
            Some("LD_PRELOAD;CAUSEWAY_WORLD;CAUSEWAY_TOKEN;CAUSEWAY_SITE;ASAN_OPTIONS;CAUSEWAY_GRID")
        );
    }

    #[test]
    fn a_map_with_virtual_addresses_reaches_open_mpis_ranks_by_another_name() {
        let command = at_nancy("./a");
        let facts = Facts {
            grid: "2|a;100.64.1.0/24=10.1.0.0/24",
            ..facts()
        };
        let set = environment(&command, &facts, |_| None);
        let value = |name: &str| {
            set.iter()
                .find(|(key, _)| key == name)
                .and_then(|(_, value)| value.to_str())
        };
        assert_eq!(value("OMPI_CAUSEWAY_GRID"), Some(facts.grid));
        assert!(value(FORWARDED).is_some_and(|list| !list.contains("GRID")));
    }

    #[test]
    fn the_users_own_preloads_and_lists_stay() {
        let command = at_nancy("mpirun ./a");
        let preloads = [PathBuf::from("/c/shim.so")];
        let facts = Facts {
            preloads: &preloads,
            ..facts()
        };
        let present = |name: &str| match name {
            "LD_PRELOAD" => Some("/t/trace.so".into()),
            FORWARDED => Some("A;B".into()),
            SRUN_ENDS_ALL => Some("0".into()),
            _ => None,
        };
        let set = environment(&command, &facts, present);
        assert!(set.contains(&("LD_PRELOAD".to_owned(), "/c/shim.so:/t/trace.so".into())));
        assert!(
            set.iter()
                .any(|(name, value)| name == FORWARDED
                    && value.to_string_lossy().starts_with("A;B;LD_PRELOAD;"))
        );
        assert!(set.iter().all(|(name, _)| name != SRUN_ENDS_ALL));
    }

    #[test]
    fn a_program_is_started_by_each_site_itself() {
        let program = ["./my app", "it's"].map(OsString::from);
        let shares = [("rennes".to_owned(), Some(32)), ("nancy".to_owned(), Some(16))];
        let (commands, ranks) = program_commands(Path::new("/c/causeway"), &shares, &program, |_| {
            " --verbose".into()
        })
        .unwrap();
        assert_eq!(ranks, [32, 16]);
        assert_eq!(commands[1].site, "nancy");
        let words = r#"own=/c/causeway; "${CAUSEWAY_PROGRAM:-$own}" start-program --ranks 16 --verbose -- './my app' 'it'\''s'"#;
        assert_eq!(commands[1].text, words);
        let launcher = ["/usr/bin/mpirun", "-n", "2", "./app"].map(OsString::from);
        let refused =
            program_commands(Path::new("/c/causeway"), &shares, &launcher, |_| String::new()).unwrap_err();
        assert!(refused.to_string().contains("leave out mpirun"));
        let without = [("rennes".to_owned(), None)];
        for (shares, program) in [(&without[..], &program[..]), (&shares[..], &[])] {
            let refused = program_commands(Path::new("/c/causeway"), shares, program, |_| String::new());
            assert!(
                refused
                    .unwrap_err()
                    .to_string()
                    .contains("--sites rennes=32,nancy=16")
            );
        }
    }

    #[test]
    fn a_sites_setup_comes_before_the_command_which_does_not_start_without_it() {
        let run = |setup: &str| {
            let mut shell = std::process::Command::new("sh");
            shell.arg("-c").arg(line("echo \"$MODULE\"", Path::new("/")));
            let output = shell
                .env(env::MPI_SETUP, setup)
                .env(env::SITE, "nancy")
                .output()
                .unwrap();
            let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
            (output.status.code(), said.concat())
        };
        assert_eq!(run("MODULE='open mpi'; true"), (Some(0), "open mpi\n".to_owned()));
        let (status, said) = run("false");
        assert_eq!(status, Some(1));
        assert_eq!(
            said,
            "causeway: site nancy: setup of its gateway's [mpi] failed: false\n"
        );
    }

    #[test]
    fn a_sites_own_list_of_variables_for_open_mpis_ranks_gets_ours_too() {
        let run = |setup: &str| {
            let mut shell = std::process::Command::new("sh");
            let text = format!("echo \"${{OMPI_MCA_mca_base_env_list-none}} ${{{FORWARDED}-none}}\"");
            shell.arg("-c").arg(line(&text, Path::new("/")));
            let output = shell.env(env::MPI_SETUP, setup).env(FORWARDED, "A;B").output();
            String::from_utf8(output.unwrap().stdout).unwrap()
        };
        assert_eq!(run(""), "none A;B\n");
        // mpirun refuses this and the other option together, as they are two ways to pass variables.
        let setup = "export OMPI_MCA_mca_base_env_list='X=it s;Y'";
        assert_eq!(run(setup), "X=it s;Y;A;B none\n");
    }

    #[test]
    fn a_command_keeps_its_quotes_and_begins_where_the_user_is() {
        let directory = tempfile::tempdir().unwrap();
        let odd = directory.path().join("o'neil & co");
        std::fs::create_dir(&odd).unwrap();
        for (from, wanted) in [
            (odd.as_path(), odd.as_path()),
            (Path::new("/no/such"), directory.path()),
        ] {
            let line = line(r#"printf '%s|' "it's" "$(pwd)""#, from);
            let output = std::process::Command::new("sh")
                .arg("-c")
                .arg(&line)
                .current_dir(&directory)
                .output();
            let said = String::from_utf8(output.unwrap().stdout).unwrap();
            assert_eq!(said, format!("it's|{}|", wanted.display()));
        }
    }
}
