//! Remembers which sites `causeway up` has made a grid of, so that `causeway down` needs no arguments.

use causeway_host::{own_file, user_directories};
use std::fs;
use std::path::PathBuf;

fn file() -> Result<PathBuf, String> {
    Ok(user_directories::state()
        .map_err(|error| error.to_string())?
        .join("up.json"))
}

/// Keeps the sites and the destinations of ssh.
///
/// # Errors
/// The file cannot be written.
pub fn keep(sites: &[(String, String)]) -> Result<(), String> {
    let file = file()?;
    let write = || {
        if let Some(directory) = file.parent() {
            fs::create_dir_all(directory)?;
        }
        own_file::keep(&file, &serde_json::to_vec(sites)?)
    };
    write().map_err(|error: std::io::Error| format!("write {}: {error}", file.display()))
}

/// The sites that were kept, if there are any.
pub fn sites() -> Option<Vec<(String, String)>> {
    serde_json::from_slice(&fs::read(file().ok()?).ok()?).ok()
}

/// Forgets the sites.
pub fn forget() {
    if let Ok(file) = file() {
        let _ = fs::remove_file(file);
    }
}
