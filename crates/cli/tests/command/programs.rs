//! Copies of programs that tests then run.

use std::path::Path;
use std::process::Command;

/// Copies a file, if it exists. This process must not have the copy open for writing: a child of another
/// thread that has not executed its program yet would have it open, too, and the copy could not be run.
pub fn copy(from: &Path, to: &Path) {
    if from.exists() {
        let copied = Command::new("cp").arg("--").args([from, to]).status();
        assert!(
            copied.is_ok_and(|status| status.success()),
            "copy {}",
            from.display()
        );
    }
}
