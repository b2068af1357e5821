//! Describes the commands, for shells, for man and for docs/commands.md: all of it from what clap knows.

use crate::run::apart;
use causeway_host::failure::Failure;
use causeway_host::say;
use clap::{Arg, Command};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The command whose options have a table of their own.
const RUN: &str = "causeway run";

/// The width of a line of a document.
const COLUMNS: usize = 100;

/// `causeway describe`.
#[derive(Debug, clap::Subcommand)]
pub enum Task {
    /// Print completions for a shell, which it reads at its start.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Write a man page for each command into a directory, such as share/man/man1.
    Man {
        /// The directory, which is made if it is not there.
        directory: PathBuf,
    },
    /// Print docs/commands.md: each command with its options.
    Page,
    /// Print docs/profile.schema.json: the JSON schema of a job's profile, for editors.
    ProfileSchema,
}

/// The status is 1 if something cannot be written.
pub fn main(task: Task, command: Command) -> ExitCode {
    let done = match task {
        Task::Completions { shell } => completions(shell, command),
        Task::Man { directory } => man(command, &directory).map(|()| ExitCode::SUCCESS),
        Task::Page => Ok(say::result(page(command).trim_end())),
        Task::ProfileSchema => Ok(say::result(causeway_profile::schema().trim_end())),
    };
    done.unwrap_or_else(|failure| {
        say::error(format_args!("causeway describe: {failure}"));
        ExitCode::from(failure.code)
    })
}

fn completions(shell: clap_complete::Shell, mut command: Command) -> Result<ExitCode, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "causeway", &mut script);
    let script = String::from_utf8(script).map_err(Failure::new)?;
    Ok(say::result(script.trim_end()))
}

fn man(command: Command, directory: &Path) -> Result<(), Failure> {
    let named = |error| Failure::new(format_args!("write {}: {error}", directory.display()));
    std::fs::create_dir_all(directory).map_err(named)?;
    clap_mangen::generate_to(command, directory).map_err(named)
}

/// A document with a section for each command that is not hidden.
fn page(mut command: Command) -> String {
    command.build();
    let mut text = String::from(
        "# Commands\n\nThis page is for whoever looks up a command or an option. `causeway describe page` prints it.\n",
    );
    for command in command.get_subcommands().filter(|command| !command.is_hide_set()) {
        section(&mut text, command, "causeway");
    }
    text
}

fn section(text: &mut String, command: &Command, parent: &str) {
    let name = format!("{parent} {}", command.get_name());
    let subcommands = || {
        command
            .get_subcommands()
            .filter(|command| !command.is_hide_set() && command.get_name() != "help")
    };
    let _ = writeln!(text, "\n## `{name}`\n");
    let about = command.get_long_about().or_else(|| command.get_about());
    for paragraph in about.map(ToString::to_string).unwrap_or_default().split("\n\n") {
        let end = if paragraph.ends_with('.') { "" } else { "." };
        let _ = writeln!(text, "{}\n", wrapped(&format!("{paragraph}{end}")));
    }
    if subcommands().next().is_none() {
        let usage = command.clone().render_usage().to_string();
        let usage = usage.trim_start_matches("Usage:").trim();
        let _ = writeln!(text, "    {usage}\n");
        let shown: Vec<&Arg> = command
            .get_arguments()
            .filter(|arg| !arg.is_hide_set() && arg.get_id() != "help")
            .collect();
        if !shown.is_empty() {
            let _ = writeln!(text, "| argument | meaning | default |\n|---|---|---|");
        }
        for arg in shown {
            let _ = writeln!(text, "{}", row(arg));
        }
    }
    if name == RUN {
        let _ = write!(text, "\nOptions that exclude each other:\n\n{}", apart::table());
    }
    subcommands().for_each(|command| section(text, command, &name));
}

fn row(arg: &Arg) -> String {
    let values = arg
        .get_value_names()
        .unwrap_or_default()
        .iter()
        .map(|name| name.to_string());
    let values = values.collect::<Vec<_>>().join(" ");
    let takes_value = arg.get_action().takes_values();
    let name = match (arg.get_long(), takes_value) {
        (Some(long), true) => format!("--{long} {values}"),
        (Some(long), false) => format!("--{long}"),
        (None, _) => values,
    };
    let help = arg.get_long_help().or_else(|| arg.get_help());
    let help = help
        .map(ToString::to_string)
        .unwrap_or_default()
        .replace("\n\n", " ")
        .replace('\n', " ");
    let defaults = arg
        .get_default_values()
        .iter()
        .map(|value| value.to_string_lossy());
    let default = match takes_value {
        true => defaults.collect::<Vec<_>>().join(","),
        false => String::new(),
    };
    let cell = |text: &str| text.replace('|', "\\|");
    format!(
        "| `{}` | {} | {} |",
        cell(name.trim()),
        cell(&help),
        cell(&default)
    )
    .replace("|  |", "| |")
}

/// A paragraph in lines of at most [`COLUMNS`].
fn wrapped(paragraph: &str) -> String {
    let mut lines: Vec<String> = vec![String::new()];
    for word in paragraph.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if line.chars().count() + 1 + word.chars().count() <= COLUMNS => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines.join("\n")
}
