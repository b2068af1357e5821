//! The kernel's mount calls, in the form in which a node's file system is made.

use std::io;
use std::path::{Path, PathBuf};

use nix::mount::{MsFlags, mount};

/// The path at which a path of the host is seen.
pub(crate) fn below(host: &Path, path: &Path) -> PathBuf {
    host.join(path.strip_prefix("/").unwrap_or(path))
}

/// Mounts an empty file system of this kind.
pub(crate) fn fresh(kind: &str, target: &str, options: &str) -> io::Result<()> {
    plain(
        Some(kind),
        target,
        Some(kind),
        MsFlags::MS_NOSUID | MsFlags::MS_NODEV,
        Some(options),
    )
}

/// Shows one place at another, without what is mounted below it.
pub(crate) fn bind(source: &Path, target: &str) -> io::Result<()> {
    Ok(mount(
        Some(source),
        target,
        None::<&str>,
        MsFlags::MS_BIND,
        None::<&str>,
    )?)
}

/// Calls mount(2) once, with these arguments.
pub(crate) fn plain(
    source: Option<&str>,
    target: &str,
    kind: Option<&str>,
    flags: MsFlags,
    options: Option<&str>,
) -> io::Result<()> {
    Ok(mount(source, target, kind, flags, options)?)
}
