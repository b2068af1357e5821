//! Finds files of the checkout that this program was built from.

use std::path::{Path, PathBuf};

/// The checkout that this program was built from: its test programs are run, and the results are written into
/// it.
pub fn repository() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().unwrap_or(root)
}

/// Path of one of the programs of tests/programs, built for the MPI whose directory is `mpi`.
pub fn test_program(mpi: &str, name: &str) -> String {
    let path = repository().join("target/mpi").join(mpi).join(name);
    path.display().to_string()
}
