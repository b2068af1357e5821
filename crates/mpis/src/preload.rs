//! The libraries that are preloaded into a job's processes, and are beside the causeway binary: their file
//! names, and the loader's list of them and of the user's own.

use crate::Mpi;
use crate::names::WORLD;
use causeway_wire::env::SANITIZERS;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The library that sends connections between sites through the gateway.
pub const SHIM: &str = "libcauseway_shim.so";

/// File name of the workaround for MPICH over UCX. Without it, that MPI may not end, and does not receive
/// every datatype correctly; see mpi/ucx/.
pub const UCX: &str = "libcauseway_ucx.so";

/// The names of all libraries.
pub fn names() -> impl Iterator<Item = &'static str> {
    let collectives = Mpi::ALL
        .into_iter()
        .flat_map(|mpi| mpi.row().collectives)
        .copied();
    let collectives: BTreeSet<&str> = collectives.collect();
    let worlds = WORLD.iter().map(|(_, world)| *world);
    [SHIM, UCX].into_iter().chain(collectives).chain(worlds)
}

/// Says for a message what in a path cannot be passed to the loader or to a launcher; `None` if the path can
/// be passed. The loader splits LD_PRELOAD at blanks and colons, and replaces what a dollar begins
/// (ld.so(8)); a launcher splits the words of its agent at blanks, and may remove quotes.
pub fn unsayable(path: &Path) -> Option<&'static str> {
    let text = path.to_string_lossy();
    text.chars().find_map(|character| match character {
        ':' => Some("a colon"),
        '$' | '`' | '\\' => Some("a character that shells and the loader replace"),
        '\'' | '"' => Some("a quote"),
        character if character.is_whitespace() => Some("a blank"),
        _ => None,
    })
}

/// The value of LD_PRELOAD. A sanitizer's runtime comes first, because it accepts no other place. Then come
/// Causeway's libraries, then what else the user preloads, and finally the collectives: so a tool that
/// intercepts MPI calls (Score-P, mpiP, Darshan) sees those of the program, and passes them on.
pub fn preload(ours: &[PathBuf], present: Option<&OsStr>, last: &[PathBuf]) -> OsString {
    // The loader treats blanks like colons (ld.so(8)).
    let present = present.unwrap_or_default().as_bytes();
    let present = present.split(|byte| matches!(byte, b':' | b' '));
    let present = present.filter(|entry| !entry.is_empty()).map(OsStr::from_bytes);
    let (runtimes, theirs): (Vec<&OsStr>, Vec<&OsStr>) = present.partition(|entry| is_sanitizer(entry));
    let all: Vec<&OsStr> = runtimes
        .into_iter()
        .chain(ours.iter().map(|path| path.as_os_str()))
        .chain(theirs)
        .chain(last.iter().map(|path| path.as_os_str()))
        .collect();
    all.join(OsStr::new(":"))
}

/// The list from another site's host, for this host. A command that a site runs by itself takes libraries of
/// ours that do not exist at their path from `here`, the directory of this causeway: accounts have other
/// names at other sites, and so have home directories. A launcher for several sites gives all of its ranks
/// one list, so for its daemons nothing changes.
///
/// # Errors
/// The first library of ours that exists in neither place: ld.so only warns about it, once for each process,
/// and the job hangs.
pub fn as_here(
    list: &OsStr,
    here: Option<&Path>,
    is_there: impl Fn(&Path) -> bool,
) -> Result<OsString, PathBuf> {
    let all = list.as_bytes().split(|byte| matches!(byte, b':' | b' '));
    let found = all.map(|entry| {
        let library = Path::new(OsStr::from_bytes(entry));
        let Some(name) = names().find(|name| library.ends_with(name)) else {
            return Ok(library.to_owned());
        };
        let beside = here.map(|here| here.join(name));
        let mut places = std::iter::once(library.to_owned()).chain(beside);
        places
            .find(|place| is_there(place))
            .ok_or_else(|| library.to_owned())
    });
    let found: Vec<PathBuf> = found.collect::<Result<_, _>>()?;
    let found: Vec<&OsStr> = found.iter().map(|path| path.as_os_str()).collect();
    Ok(found.join(OsStr::new(":")))
}

/// Whether a library is the runtime of gcc's or clang's sanitizers.
fn is_sanitizer(library: &OsStr) -> bool {
    let name = Path::new(library)
        .file_name()
        .unwrap_or_default()
        .to_string_lossy();
    SANITIZERS.iter().any(|runtime| name.starts_with(runtime))
}

/// Options of AddressSanitizer.
pub const ASAN_OPTIONS: &str = "ASAN_OPTIONS";

/// The user's options of AddressSanitizer with one more. Without this option, the runtime of a program that
/// is linked with AddressSanitizer ends the program, because a preloaded library comes before it. `None` if
/// the user has decided.
pub fn asan_options(present: Option<&OsStr>) -> Option<OsString> {
    let present = present.unwrap_or_default();
    if present.to_string_lossy().contains(LINK_ORDER) {
        return None;
    }
    let mut options = present.to_owned();
    if !options.is_empty() {
        options.push(":");
    }
    options.push(format!("{LINK_ORDER}=0"));
    Some(options)
}

const LINK_ORDER: &str = "verify_asan_link_order";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_the_loader_or_a_launcher_would_split_is_named_with_what_is_in_it() {
        let what = |path: &str| unsayable(Path::new(path));
        assert_eq!(what("/home/ada/causeway-1.0+x/lib,a@b%c~d=e"), None);
        assert_eq!(what("/home/ada lovelace/causeway"), Some("a blank"));
        assert_eq!(what("/home/ada/a:b/causeway"), Some("a colon"));
        assert_eq!(what("/home/o'neil/causeway"), Some("a quote"));
        assert!(what("/home/$ORIGIN/causeway").is_some());
    }

    #[test]
    fn the_users_own_preloads_follow_ours_and_go_before_the_collectives() {
        let ours = [PathBuf::from("/c/shim.so"), PathBuf::from("/c/end.so")];
        assert_eq!(preload(&ours, None, &[]), "/c/shim.so:/c/end.so");
        assert_eq!(preload(&ours, Some(OsStr::new("")), &[]), "/c/shim.so:/c/end.so");
        let trace = Some(OsStr::new("/t/trace.so"));
        assert_eq!(preload(&ours[..1], trace, &[]), "/c/shim.so:/t/trace.so");
        let last = [PathBuf::from("/c/mpi.so")];
        assert_eq!(
            preload(&ours[..1], trace, &last),
            "/c/shim.so:/t/trace.so:/c/mpi.so"
        );
    }

    #[test]
    fn a_sites_own_command_takes_libraries_from_where_they_lie_there() {
        let list = OsStr::new("/home/ada/c/libcauseway_shim.so:/t/trace.so /home/ada/c/libcauseway_ucx.so");
        let here = Some(Path::new("/home/bob/c"));
        let moved = as_here(list, here, |path| path.starts_with("/home/bob"));
        let expected = "/home/bob/c/libcauseway_shim.so:/t/trace.so:/home/bob/c/libcauseway_ucx.so";
        assert_eq!(moved, Ok(expected.into()));
        let same = as_here(list, here, |path| path.starts_with("/home/ada"));
        assert_eq!(same, Ok(list.to_string_lossy().replace(' ', ":").into()));
        let missing = Err(PathBuf::from("/home/ada/c/libcauseway_shim.so"));
        assert_eq!(as_here(list, here, |_| false), missing);
        assert_eq!(as_here(list, None, |path| path.starts_with("/home/bob")), missing);
        assert_eq!(as_here(OsStr::new(""), here, |_| false), Ok("".into()));
    }

    #[test]
    fn a_sanitizers_runtime_comes_before_the_shim() {
        let ours = [PathBuf::from("/c/shim.so")];
        let present = OsStr::new("/t/trace.so /usr/lib/libasan.so.8:/l/libclang_rt.asan-x86_64.so");
        assert_eq!(
            preload(&ours, Some(present), &[]),
            "/usr/lib/libasan.so.8:/l/libclang_rt.asan-x86_64.so:/c/shim.so:/t/trace.so"
        );
        let options = |present| asan_options(Some(OsStr::new(present)));
        assert_eq!(options(""), Some("verify_asan_link_order=0".into()));
        assert_eq!(
            options("halt_on_error=0"),
            Some("halt_on_error=0:verify_asan_link_order=0".into())
        );
        assert_eq!(options("verify_asan_link_order=1"), None);
    }
}
