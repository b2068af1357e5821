//! Finds the directories that hold the systems of sites (`root` in a scenario).

use std::path::{Path, PathBuf};

use crate::error::LabError;
use crate::scenario::Scenario;

/// The scenario with the absolute path of each root.
///
/// # Errors
/// There is no such root.
pub(crate) fn with_roots(scenario: &Scenario) -> Result<Scenario, LabError> {
    let mut scenario = scenario.clone();
    for site in &mut scenario.sites {
        if let Some(typed) = &site.root {
            site.root = Some(find(&site.name, typed)?.to_string_lossy().into_owned());
        }
    }
    Ok(scenario)
}

fn find(site: &str, typed: &str) -> Result<PathBuf, LabError> {
    let current = std::env::current_dir().unwrap_or_default();
    let candidates: Vec<PathBuf> = match (typed.contains('/'), std::env::var_os(ROOTS_VARIABLE)) {
        (true, _) => vec![current.join(typed)],
        (false, Some(roots)) => vec![Path::new(&roots).join(typed)],
        (false, None) => {
            let directories = current.ancestors();
            directories
                .map(|directory| directory.join(ROOTS).join(typed))
                .collect()
        }
    };
    let found = candidates.iter().find_map(|path| path.canonicalize().ok());
    found.filter(|path| path.is_dir()).ok_or_else(|| {
        let first = candidates.first().map(|path| path.display().to_string());
        LabError::Machine {
            what: format!("site {site}: there is no root {typed} (looked at {} first)", first.unwrap_or_default()),
            remedy: format!(
                "make one of Debian with tools/setup/root.sh {typed}, or say in {ROOTS_VARIABLE} where roots are"
            ),
        }
    })
}

/// The directory in which roots are found that a scenario names without a slash: below the current directory,
/// or one above it.
const ROOTS: &str = ".cache/roots";
/// A variable that names another directory for the roots.
const ROOTS_VARIABLE: &str = "CAUSEWAY_LAB_ROOTS";
