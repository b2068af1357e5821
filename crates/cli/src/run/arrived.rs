//! Files that a site has sent back, on their way to where the user is.

use crate::say;
use std::collections::HashSet;
use std::ffi::OsString;
use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Component, Path, PathBuf};

/// Copies an archive to tar, which reads no further than the archive's end; the rest is read all the same.
/// Returns how much there was.
///
/// # Errors
/// Those of reading, and of writing to a tar that still reads.
pub fn pass_on(mut from: impl Read, to: &mut impl Write) -> io::Result<u64> {
    let (mut buffer, mut came, mut is_read) = (vec![0; 1 << 16], 0, true);
    loop {
        let count = match from.read(&mut buffer) {
            Ok(0) => return Ok(came),
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            count => count?,
        };
        came += count as u64;
        if is_read && let Err(error) = to.write_all(&buffer[..count]) {
            is_read = false;
            // Its status says what is wrong, if anything is.
            if error.kind() != ErrorKind::BrokenPipe {
                return Err(error);
            }
        }
    }
}

/// Moves what has arrived to its place. A file whose name another site had before gets its site's name.
/// Symbolic links that lead out of the directory are left out: a site must not choose what is read here next.
///
/// # Errors
/// Those of the file system.
pub fn settle(
    from: &Path,
    to: &Path,
    below: &Path,
    site: &str,
    names: &mut HashSet<PathBuf>,
) -> io::Result<()> {
    for entry in fs::read_dir(from.join(below))? {
        let entry = entry?;
        let path = below.join(entry.file_name());
        let kind = entry.file_type()?;
        if kind.is_dir() {
            fs::create_dir_all(to.join(&path))?;
            settle(from, to, &path, site, names)?;
            continue;
        }
        if kind.is_symlink() && leads_out(&path, &fs::read_link(entry.path())?)
            || !kind.is_symlink() && !kind.is_file()
        {
            say::error(format_args!(
                "causeway: {} of {site} is left out: it is no file",
                path.display()
            ));
            continue;
        }
        let mut target = path.clone();
        let mut number = 0;
        // Also of nodes of one site that share no home.
        while !names.insert(target.clone()) {
            number += 1;
            let mut name = OsString::from(path.as_os_str());
            name.push(match number {
                1 => format!(".{site}"),
                _ => format!(".{site}-{number}"),
            });
            target = name.into();
        }
        fs::rename(entry.path(), to.join(&target))?;
    }
    Ok(())
}

/// Whether a link at this path leads out of the directory that the path is in.
fn leads_out(path: &Path, target: &Path) -> bool {
    let mut depth = path.components().count().saturating_sub(1);
    for part in target.components() {
        match part {
            Component::ParentDir if depth == 0 => return true,
            Component::ParentDir => depth -= 1,
            Component::Normal(_) => depth += 1,
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return true,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_two_sites_have_gets_the_second_ones_and_links_stay_inside() {
        let here = tempfile::tempdir().unwrap();
        let mut names = HashSet::new();
        for (site, text) in [("rennes", "one"), ("nancy", "two"), ("nancy", "three")] {
            let came = tempfile::tempdir().unwrap();
            fs::create_dir(came.path().join("out")).unwrap();
            fs::write(came.path().join("out/log"), text).unwrap();
            std::os::unix::fs::symlink("log", came.path().join("out/last")).unwrap();
            std::os::unix::fs::symlink("../../.ssh", came.path().join("out/keys")).unwrap();
            settle(came.path(), here.path(), Path::new(""), site, &mut names).unwrap();
        }
        let read = |name: &str| fs::read_to_string(here.path().join(name)).ok();
        assert_eq!(read("out/log").as_deref(), Some("one"));
        assert_eq!(read("out/log.nancy").as_deref(), Some("two"));
        assert_eq!(read("out/log.nancy-2").as_deref(), Some("three"));
        assert_eq!(read("out/last").as_deref(), Some("one"));
        assert!(!here.path().join("out/keys").is_symlink());
        assert!(
            leads_out(Path::new("a"), Path::new("/etc")) && leads_out(Path::new("d/a"), Path::new("../../b"))
        );
        assert!(!leads_out(Path::new("d/a"), Path::new("../b")));
    }
}
