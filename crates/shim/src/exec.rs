//! Keeps the shim in the programs that a process of the job executes.
//!
//! Scripts between a launcher and its ranks may set LD_PRELOAD for a tool, unset it, or begin with an empty
//! environment. Their program would then start MPI without the shim, and wait for other sites for ever. So
//! the functions of the exec family add what is missing: Causeway's libraries, and its variables.
//!
//! A child of vfork() shares its parent's memory, and may share its locks with other threads. So nothing here
//! allocates from the heap, takes a lock or changes anything lasting after the start of the process.
//!
//! Two things are not handled: execl, execlp and execle, which no known shell or wrapper uses, and statically
//! linked programs, which load nothing.

use crate::rank;
use crate::real;
use crate::sys::{self, Errno};
use causeway_wire::env;
use libc::{c_char, c_int, c_void, pid_t};
use std::ffi::{CStr, CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicPtr, Ordering};

/// What a program must find in its environment.
struct Kept {
    /// The shim, as LD_PRELOAD names it.
    shim: CString,
    /// Causeway's libraries that precede others, each followed by a colon, and those that follow others, each
    /// preceded by one.
    first: Vec<u8>,
    last: Vec<u8>,
    /// Causeway's variables, as `NAME=VALUE`.
    variables: Vec<CString>,
}

/// What must be kept: it is set once, before the program's own code runs, and never freed.
static KEPT: AtomicPtr<Kept> = AtomicPtr::new(std::ptr::null_mut());

/// Most variables: larger environments are passed on unchanged.
const MOST_VARIABLES: usize = 64 * 1024;

/// The size up to which an environment is built on the stack, of which a thread may have little.
const SMALL_BYTES: usize = 8 * 1024;

const PRELOAD: &[u8] = b"LD_PRELOAD=";
const OURS: &[u8] = b"libcauseway_";
/// The beginning of the names of the collectives' libraries, which follow tools that watch MPI calls.
const LAST: &[u8] = b"libcauseway_mpi_";
/// The beginning of the names of the world libraries: if sites run their own MPIs, the collectives are above
/// these, and all of them come first.
const WORLD: &[u8] = b"libcauseway_world_";
const SHIM: &[u8] = b"libcauseway_shim.so";

#[cfg(not(test))]
#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = at_start;

/// Reads the environment while it is still as the launcher made it, and removes what is not for ranks.
#[cfg_attr(test, allow(dead_code))]
extern "C" fn at_start() {
    for name in rank::not_for_ranks(|name| std::env::var_os(name)) {
        // SAFETY: the loader runs this before the program, and the process has one thread.
        unsafe { std::env::remove_var(name) };
    }
    let preload = std::env::var_os("LD_PRELOAD").unwrap_or_default();
    let variables = std::env::vars_os().filter(|(name, _)| name.as_bytes().starts_with(b"CAUSEWAY_"));
    let variables = variables.filter_map(|(name, value)| {
        let variable = [name.as_bytes(), value.as_bytes()].join(&b'=');
        CString::new(variable).ok()
    });
    if let Some(kept) = Kept::of(&preload, variables.collect()) {
        KEPT.store(Box::into_raw(Box::new(kept)), Ordering::Release);
    }
}

impl Kept {
    /// Selects Causeway's libraries from a list; `None` if the shim is not in it.
    fn of(preload: &OsStr, variables: Vec<CString>) -> Option<Kept> {
        let entries = preload.as_bytes().split(|byte| matches!(byte, b':' | b' '));
        let ours: Vec<&[u8]> = entries.filter(|entry| name(entry).starts_with(OURS)).collect();
        let shim = ours.iter().find(|entry| name(entry) == SHIM)?;
        let has_world = ours.iter().any(|entry| name(entry).starts_with(WORLD));
        let is_last = |entry: &&&[u8]| !has_world && name(entry).starts_with(LAST);
        let first = ours.iter().filter(|entry| !is_last(entry));
        Some(Kept {
            shim: CString::new(*shim).ok()?,
            first: first.flat_map(|entry| [*entry, b":"].concat()).collect(),
            last: ours
                .iter()
                .filter(is_last)
                .flat_map(|entry| [b":", *entry].concat())
                .collect(),
            variables,
        })
    }
}

/// The name of a file without its directory.
fn name(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or_default()
}

/// An environment as C represents it, and what it lacks.
struct Complete<'a> {
    kept: &'a Kept,
    /// The place of LD_PRELOAD in it, and the value.
    preload: Option<(usize, &'a [u8])>,
    /// How many variables it has.
    count: usize,
    lacks_shim: bool,
    /// Whether the job's variables are missing, and it is not an environment that another job has made.
    lacks_job: bool,
}

impl<'a> Complete<'a> {
    /// # Safety
    /// `environment` is null, or an array of strings that ends with a null pointer, as exec expects it.
    unsafe fn look(kept: &'a Kept, environment: *const *const c_char) -> Option<Complete<'a>> {
        let mut look = Complete {
            kept,
            preload: None,
            count: 0,
            lacks_shim: true,
            lacks_job: true,
        };
        if environment.is_null() {
            return Some(look);
        }
        loop {
            // SAFETY: the caller's promise; the array has not ended before this place.
            let entry = unsafe { *environment.add(look.count) };
            if entry.is_null() {
                break;
            }
            // SAFETY: the caller's promise.
            let entry: &'a [u8] = unsafe { CStr::from_ptr(entry) }.to_bytes();
            if let Some(libraries) = entry.strip_prefix(PRELOAD) {
                // If there were several LD_PRELOADs, the loader would use the last one and getenv the first;
                // usually there is only one.
                look.preload = Some((look.count, libraries));
                let mut libraries = libraries.split(|byte| matches!(byte, b':' | b' '));
                look.lacks_shim = !libraries.any(|library| library == kept.shim.as_bytes());
            }
            look.lacks_job &= !is_named(entry, env::TOKEN.as_bytes());
            look.count += 1;
        }
        let is_complete = !look.lacks_shim && !look.lacks_job;
        (!is_complete && look.count <= MOST_VARIABLES).then_some(look)
    }

    /// How many bytes [`Complete::write`] needs.
    fn bytes(&self) -> usize {
        let pointers = (self.count + 2 + self.kept.variables.len()) * size_of::<*const c_char>();
        let theirs = self.preload.map_or(0, |(_, libraries)| libraries.len());
        pointers + PRELOAD.len() + self.kept.first.len() + theirs + self.kept.last.len() + 2
    }

    /// Writes the whole environment to a place of [`Complete::bytes`] bytes that is aligned like a pointer.
    ///
    /// # Safety
    /// `environment` is the one that `look` got, and `place` is writable.
    unsafe fn write(&self, environment: *const *const c_char, place: *mut u8) -> *const *const c_char {
        let pointers: *mut *const c_char = place.cast();
        let most = self.count + 2 + self.kept.variables.len();
        // SAFETY: there are at least as many entries as were counted, and room for all pointers, followed by
        // room for the text.
        unsafe {
            if self.count > 0 {
                std::ptr::copy_nonoverlapping(environment, pointers, self.count);
            }
            let mut next = self.count;
            if self.lacks_shim {
                let text = place.add(most * size_of::<*const c_char>());
                self.write_preload(text);
                let at = self.preload.map_or(next, |(at, _)| at);
                *pointers.add(at) = text.cast();
                next = next.max(at + 1);
            }
            if self.lacks_job {
                for variable in &self.kept.variables {
                    if !self.has(environment, variable) {
                        *pointers.add(next) = variable.as_ptr();
                        next += 1;
                    }
                }
            }
            *pointers.add(next) = std::ptr::null();
        }
        pointers
    }

    /// Writes `LD_PRELOAD=` with all libraries, and a final zero. A sanitizer's runtime stays first.
    ///
    /// # Safety
    /// `text` has room for this.
    unsafe fn write_preload(&self, mut text: *mut u8) {
        let theirs = self.preload.map_or(&[][..], |(_, libraries)| libraries);
        let (first, last) = (&self.kept.first[..], &self.kept.last[..]);
        let first_alone = first.strip_suffix(b":").unwrap_or(first);
        let pieces: [&[u8]; 6] = match (theirs.is_empty(), is_sanitizer(theirs)) {
            (true, _) => [PRELOAD, first_alone, b"", b"", last, b"\0"],
            (false, true) => [PRELOAD, theirs, b":", first_alone, last, b"\0"],
            (false, false) => [PRELOAD, first, theirs, b"", last, b"\0"],
        };
        for piece in pieces {
            // SAFETY: the caller's promise.
            unsafe {
                std::ptr::copy_nonoverlapping(piece.as_ptr(), text, piece.len());
                text = text.add(piece.len());
            }
        }
    }

    /// Whether the environment has a variable of the same name as this one.
    ///
    /// # Safety
    /// `environment` is the one that `look` got.
    unsafe fn has(&self, environment: *const *const c_char, variable: &CStr) -> bool {
        let mut name = variable.to_bytes().split(|byte| *byte == b'=');
        let name = name.next().unwrap_or_default();
        (0..self.count).any(|at| {
            // SAFETY: the caller's promise; none of the counted entries is null.
            let entry = unsafe { CStr::from_ptr(*environment.add(at)) };
            is_named(entry.to_bytes(), name)
        })
    }
}

fn is_named(entry: &[u8], name: &[u8]) -> bool {
    entry
        .strip_prefix(name)
        .is_some_and(|rest| rest.first() == Some(&b'='))
}

/// Whether one of these libraries is the runtime of a sanitizer.
fn is_sanitizer(libraries: &[u8]) -> bool {
    let mut names = libraries.split(|byte| matches!(byte, b':' | b' ')).map(name);
    names.any(|name| {
        let mut runtimes = env::SANITIZERS.iter();
        runtimes.any(|runtime| name.starts_with(runtime.as_bytes()))
    })
}

/// Calls the real function with an environment that also contains what this one lacks.
///
/// # Safety
/// `environment` is as exec expects it.
unsafe fn with_environment(
    environment: *const *const c_char,
    call: impl FnOnce(*const *const c_char) -> c_int,
) -> c_int {
    // SAFETY: the pointer is set once, from a box, and never freed.
    let kept = unsafe { KEPT.load(Ordering::Acquire).as_ref() };
    // SAFETY: the caller's promise.
    let look = kept.and_then(|kept| unsafe { Complete::look(kept, environment) });
    let Some(look) = look else {
        return call(environment);
    };
    let bytes = look.bytes();
    if bytes <= SMALL_BYTES {
        let mut place = [0_u64; SMALL_BYTES / size_of::<u64>()];
        // SAFETY: the place has as many bytes as are needed, and is aligned like a pointer.
        let whole = unsafe { look.write(environment, place.as_mut_ptr().cast()) };
        return call(whole);
    }
    let Ok(place) = sys::map(bytes) else {
        return call(environment);
    };
    // SAFETY: these are fresh pages, with as many bytes as are needed.
    let whole = unsafe { look.write(environment, place.cast()) };
    let result = call(whole);
    let errno = Errno::last();
    sys::unmap(place, bytes);
    errno.set();
    result
}

unsafe extern "C" {
    static mut environ: *const *const c_char;
}

/// The environment of this process.
fn own_environment() -> *const *const c_char {
    // SAFETY: this reads one pointer, as execv(3) does.
    unsafe { environ }
}

/// Calls the real function; fails with ENOSYS if there is none.
macro_rules! forward {
    ($name:ident($($argument:expr),*)) => {
        match real::$name() {
            // This is in the callers' unsafe blocks: the arguments are their own, except the environment.
            Some(real) => real($($argument),*),
            None => {
                Errno(libc::ENOSYS).set();
                -1
            }
        }
    };
}

/// execve(2).
///
/// # Safety
/// Those of the C function.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn execve(
    path: *const c_char,
    words: *const *const c_char,
    environment: *const *const c_char,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { with_environment(environment, |whole| forward!(execve(path, words, whole))) }
}

/// execv(3).
///
/// # Safety
/// Those of the C function.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn execv(path: *const c_char, words: *const *const c_char) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { with_environment(own_environment(), |whole| forward!(execve(path, words, whole))) }
}

/// execvp(3).
///
/// # Safety
/// Those of the C function.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn execvp(file: *const c_char, words: *const *const c_char) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { with_environment(own_environment(), |whole| forward!(execvpe(file, words, whole))) }
}

/// execvpe(3).
///
/// # Safety
/// Those of the C function.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn execvpe(
    file: *const c_char,
    words: *const *const c_char,
    environment: *const *const c_char,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { with_environment(environment, |whole| forward!(execvpe(file, words, whole))) }
}

/// fexecve(3).
///
/// # Safety
/// Those of the C function.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn fexecve(
    fd: c_int,
    words: *const *const c_char,
    environment: *const *const c_char,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { with_environment(environment, |whole| forward!(fexecve(fd, words, whole))) }
}

/// posix_spawn(3).
///
/// # Safety
/// Those of the C function.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn posix_spawn(
    pid: *mut pid_t,
    path: *const c_char,
    actions: *const c_void,
    attributes: *const c_void,
    words: *const *const c_char,
    environment: *const *const c_char,
) -> c_int {
    let call = |whole| match real::posix_spawn() {
        // SAFETY: the arguments are the caller's own, except the environment.
        Some(real) => unsafe { real(pid, path, actions, attributes, words, whole) },
        None => libc::ENOSYS,
    };
    // SAFETY: the caller's promise.
    unsafe { with_environment(environment, call) }
}

/// posix_spawnp(3).
///
/// # Safety
/// Those of the C function.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn posix_spawnp(
    pid: *mut pid_t,
    file: *const c_char,
    actions: *const c_void,
    attributes: *const c_void,
    words: *const *const c_char,
    environment: *const *const c_char,
) -> c_int {
    let call = |whole| match real::posix_spawnp() {
        // SAFETY: the arguments are the caller's own, except the environment.
        Some(real) => unsafe { real(pid, file, actions, attributes, words, whole) },
        None => libc::ENOSYS,
    };
    // SAFETY: the caller's promise.
    unsafe { with_environment(environment, call) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOADED: &str =
        "/c/libcauseway_shim.so:/c/libcauseway_ucx.so:/t/tool.so:/c/libcauseway_mpi_mpich.so";

    /// The environment that exec gets in place of this one, in a process that was started with these
    /// libraries.
    fn executed(loaded: &str, environment: &[&str]) -> Option<Vec<String>> {
        let variables = ["CAUSEWAY_TOKEN=ab", "CAUSEWAY_SITE=nancy"].map(|text| CString::new(text).unwrap());
        let kept = Kept::of(OsStr::new(loaded), variables.to_vec())?;
        let strings: Vec<CString> = environment
            .iter()
            .map(|text| CString::new(*text).unwrap())
            .collect();
        let mut pointers: Vec<*const c_char> = strings.iter().map(|text| text.as_ptr()).collect();
        pointers.push(std::ptr::null());
        // SAFETY: this is an array of strings that ends with a null pointer.
        let look = unsafe { Complete::look(&kept, pointers.as_ptr()) }?;
        let mut place = vec![0_u64; look.bytes().div_ceil(8)];
        // SAFETY: as above, and the place has that size.
        let mut whole = unsafe { look.write(pointers.as_ptr(), place.as_mut_ptr().cast()) };
        let mut all = Vec::new();
        // SAFETY: what was written ends with a null pointer.
        while let Some(entry) = unsafe { (*whole).as_ref() } {
            // SAFETY: this is a string, and another pointer follows it.
            unsafe {
                all.push(CStr::from_ptr(entry).to_str().unwrap().to_owned());
                whole = whole.add(1);
            }
        }
        Some(all)
    }

    #[test]
    fn what_has_the_shim_and_the_job_is_handed_on_as_it_is() {
        let preload = format!("LD_PRELOAD={LOADED}");
        assert_eq!(executed(LOADED, &["A=1", &preload, "CAUSEWAY_TOKEN=other"]), None);
        assert_eq!(executed("/t/tool.so", &["A=1"]), None);
    }

    #[test]
    fn a_list_of_a_wrappers_own_gets_causeways_libraries_around_it() {
        assert_eq!(
            executed(LOADED, &["A=1", "LD_PRELOAD=/own.so", "CAUSEWAY_TOKEN=ab"]).unwrap(),
            [
                "A=1",
                "LD_PRELOAD=/c/libcauseway_shim.so:/c/libcauseway_ucx.so:/own.so:/c/libcauseway_mpi_mpich.so",
                "CAUSEWAY_TOKEN=ab"
            ]
        );
        let sanitized = executed(LOADED, &["LD_PRELOAD=/l/libasan.so.8", "CAUSEWAY_TOKEN=ab"]).unwrap();
        let wanted = "LD_PRELOAD=/l/libasan.so.8:/c/libcauseway_shim.so:/c/libcauseway_ucx.so:/c/libcauseway_mpi_mpich.so";
        assert_eq!(sanitized[0], wanted);
    }

    #[test]
    fn an_environment_that_was_emptied_gets_the_job_back() {
        let all = "LD_PRELOAD=/c/libcauseway_shim.so:/c/libcauseway_ucx.so:/c/libcauseway_mpi_mpich.so";
        let wanted = ["PATH=/bin", all, "CAUSEWAY_TOKEN=ab", "CAUSEWAY_SITE=nancy"];
        assert_eq!(executed(LOADED, &["PATH=/bin"]).unwrap(), wanted);
        assert_eq!(executed(LOADED, &[]).unwrap(), wanted[1..]);
        let kept = executed(LOADED, &["CAUSEWAY_SITE=rennes", "LD_PRELOAD="]).unwrap();
        assert_eq!(kept, ["CAUSEWAY_SITE=rennes", all, "CAUSEWAY_TOKEN=ab"]);
    }

    #[test]
    fn another_jobs_environment_keeps_its_own_variables() {
        let whole = executed(LOADED, &["CAUSEWAY_TOKEN=other"]).unwrap();
        assert_eq!(whole.len(), 2);
        assert!(whole[1].starts_with("LD_PRELOAD=/c/libcauseway_shim.so:"));
    }

    #[test]
    fn where_sites_run_their_own_mpi_all_libraries_come_first() {
        let loaded = "/c/libcauseway_shim.so:/c/libcauseway_mpi_abi.so:/c/libcauseway_world_abi.so";
        let whole = executed(loaded, &["LD_PRELOAD=/own.so"]).unwrap();
        assert_eq!(whole[0], format!("LD_PRELOAD={loaded}:/own.so"));
    }
}
