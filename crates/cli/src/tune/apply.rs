//! Makes the changes that this user may make and asked for, and undoes them.

use super::host::{SYSCTL_ROOT, setting_path};
use super::item::{Change, Item, Who};
use super::journal::{Journal, JournalError, Undone};
use super::mca_file::{self, MARK, McaFile};
use causeway_host::journal_entry::Target;
use causeway_host::say;
use causeway_host::user_directories::{self, NoHome};
use causeway_wire::TextError;
use nix::unistd::{AccessFlags, access};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The word that users type for all rows.
const ALL: &str = "all";

/// Who can make the change of a row.
pub fn who(item: &Item) -> Who {
    match &item.change {
        Change::Setting { name, .. } => {
            let path = setting_path(Path::new(SYSCTL_ROOT), name);
            match access(&path, AccessFlags::W_OK) {
                Ok(()) => Who::You,
                Err(_) => Who::Administrator,
            }
        }
        Change::OpenMpi { .. } | Change::Environment { .. } | Change::Own { .. } => Who::You,
        Change::Told { .. } => Who::Administrator,
        Change::ByRun => Who::CausewayRun,
    }
}

/// Changes the rows with these names or groups that are not as they should be.
pub fn apply(items: &[Item], names: &[String]) -> ExitCode {
    match apply_all(items, names) {
        Ok(status) => status,
        Err(error) => failed(&error),
    }
}

fn failed(error: &JournalError) -> ExitCode {
    say::error(format_args!("causeway tune: {error}"));
    ExitCode::FAILURE
}

fn apply_all(items: &[Item], names: &[String]) -> Result<ExitCode, JournalError> {
    let is_of = |item: &Item, name: &String| match name.as_str() {
        ALL => true,
        "mpi" => matches!(
            item.change,
            Change::OpenMpi { .. } | Change::Environment { .. } | Change::Own { .. }
        ),
        name => item.name == name || item.group == name,
    };
    if let Some(name) = names.iter().find(|name| {
        let is_group = [ALL, "mpi", "kernel"].contains(&name.as_str());
        !is_group && !items.iter().any(|item| is_of(item, name))
    }) {
        say::error(format_args!(
            "causeway tune: there is no row {name:?}; 'causeway tune' lists them"
        ));
        return Ok(ExitCode::from(2));
    }
    let wanted = items
        .iter()
        .filter(|item| names.iter().any(|name| is_of(item, name)));
    let wanted: Vec<&Item> = wanted.filter(|item| !item.is_enough).collect();
    // A row that was asked for by name and is refused is a failure; "all" asks only for what this user may
    // change.
    let by_name = !names.iter().any(|name| name == ALL);
    let mut is_done = true;
    let mut lines = Vec::new();
    let (mut of_host, mut of_home) = (Journal::open(&host_journal()?)?, Journal::open(&home_journal()?)?);
    for item in wanted {
        let command = item.change.command();
        let changed = match (&item.change, who(item)) {
            (_, Who::CausewayRun) => continue,
            (Change::Setting { name, value }, Who::You) => {
                of_host.change(Target::Setting(name.clone()), value)?
            }
            (Change::OpenMpi { parameters }, _) => open_mpi(&mut of_home, parameters)?,
            (Change::Environment { .. } | Change::Own { .. }, _) => {
                lines.push(format!("{}: you must do this yourself: {command}", item.name));
                continue;
            }
            _ => Err("this user must not change it".into()),
        };
        match changed {
            Ok(()) => lines.push(format!("{}: {} -> {}", item.name, item.current, item.wanted)),
            Err(why) => {
                is_done &= !by_name;
                lines.push(format!(
                    "{}: refused ({why}); an administrator can type: {command}",
                    item.name
                ));
            }
        }
    }
    if lines.is_empty() {
        lines.push("nothing needs to be changed".into());
    }
    lines.push("'causeway tune --undo' restores everything".into());
    let shown = say::result(lines.join("\n"));
    Ok(if is_done { shown } else { ExitCode::FAILURE })
}

/// Adds parameters to Open MPI's file. Those that the user has set there stay as they are.
fn open_mpi(
    journal: &mut Journal,
    parameters: &[(String, String)],
) -> Result<Result<(), TextError>, JournalError> {
    let path = match mca_file::path() {
        Ok(path) => path,
        Err(error) => return Ok(Err(TextError::of(error))),
    };
    let target = Target::File(path);
    let before = match journal.original(&target) {
        Ok(before) => before.unwrap_or_default(),
        Err(error) => return Ok(Err(error)),
    };
    let own = McaFile(before.clone());
    let mut text = before.clone();
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    let _ = writeln!(text, "{MARK}");
    for (name, value) in parameters
        .iter()
        .filter(|(name, _)| own.user_value(name).is_none())
    {
        let _ = writeln!(text, "{name} = {value}");
    }
    journal.change(target, &text)
}

/// Undoes all that was applied on this host, and in this home directory.
pub fn undo() -> ExitCode {
    let mut lines = Vec::new();
    let mut is_done = true;
    for path in [host_journal(), home_journal()] {
        let undone = path
            .map_err(JournalError::Home)
            .and_then(|path| Ok((Journal::open(&path)?.undo()?, path)));
        let (undone, path) = match undone {
            Ok(undone) => undone,
            Err(error) => return failed(&error),
        };
        for (target, undone) in undone {
            let name = match &target {
                Target::Setting(name) => name.replace('/', "."),
                Target::File(path) => path.display().to_string(),
            };
            is_done &= undone == Undone::Restored;
            lines.push(match undone {
                Undone::Restored => format!("{name}: restored"),
                Undone::ChangedSince(now) => {
                    format!("{name}: left alone, because somebody has changed it to: {now}; its earlier value is in {}", path.display())
                }
                Undone::Refused(why) => {
                    format!("{name}: refused ({why}); its earlier value is in {}", path.display())
                }
            });
        }
    }
    if lines.is_empty() {
        lines.push("there is nothing to undo".into());
    }
    let shown = say::result(lines.join("\n"));
    if is_done { shown } else { ExitCode::FAILURE }
}

/// A home directory may be shared by hosts: each has its own journal for its kernel.
fn host_journal() -> Result<PathBuf, NoHome> {
    let host = nix::unistd::gethostname().unwrap_or_default();
    Ok(user_directories::state()?.join(format!("tune-{}.json", host.to_string_lossy())))
}

fn home_journal() -> Result<PathBuf, NoHome> {
    Ok(user_directories::state()?.join("tune-home.json"))
}
