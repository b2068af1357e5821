//! Why a process of a job has not loaded the shim, as far as its program, the way it was started and its
//! environment show.

use causeway_mpis::names::LIBRARIES;
use causeway_mpis::preload::SHIM;
use nix::unistd::Pid;
use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// Sizes of the header of a 64-bit program, and of an entry of its table of segments (elf(5)).
const HEADER: usize = 64;
const SEGMENT: usize = 56;

/// Most segments that are read, and the longest path of a loader.
const MOST_SEGMENTS: u16 = 64;
const MOST_PATH: usize = 256;

/// Most bytes of a program that are searched for the names of libraries, which are near its beginning.
const MOST_OF_PROGRAM: u64 = 4 << 20;

/// The type of the segment that contains the path of the loader.
const INTERPRETER: u32 = 3;

/// The entry of the auxiliary vector that says whether the loader ignores the environment (getauxval(3)).
const SECURE: u64 = 23;

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// The program is static: nothing is loaded into it.
    Static,
    /// The program has this loader, which belongs to another C library.
    OtherLibrary(String),
    /// The program is for another kind of processor, or has 32 bits.
    OtherProcessor,
    /// The program has rights that its user lacks.
    Privileged,
    /// Nothing in the environment asks for the shim.
    Dropped,
    /// The environment asks for the shim.
    Refused,
}

impl Why {
    /// The reason and the remedy, for a line that begins with the process.
    pub fn remedy(&self) -> String {
        match self {
            Why::Static => "it is statically linked, so that nothing can be preloaded; link it dynamically, or run the \
                            job with --transparent (docs/transparent.md)"
                .to_owned(),
            Why::OtherLibrary(loader) => format!(
                "its loader is {loader}, and the shim is for glibc; build it on a system with glibc, or run the job with \
                 --transparent (docs/transparent.md)"
            ),
            Why::OtherProcessor => {
                "it is for another processor than Causeway here; use a program for this one".to_owned()
            }
            Why::Privileged => "it runs with rights of its own (set-user-ID, set-group-ID or capabilities), for which \
                                the loader ignores LD_PRELOAD; run a copy without them, or run the job with \
                                --transparent (docs/transparent.md)"
                .to_owned(),
            Why::Dropped => "the wrapper or container that starts it drops LD_PRELOAD, because it is statically linked or \
                             clears its environment; let it pass on LD_PRELOAD and CAUSEWAY_*"
                .to_owned(),
            Why::Refused => "LD_PRELOAD names the shim, but the loader has not loaded it: it does not see the file, as in \
                             a container without that directory, or its glibc is older than 2.28; bind the directory"
                .to_owned(),
        }
    }
}

/// Whether a program has capabilities of its own (capabilities(7)). The loader then ignores the environment.
pub fn has_capabilities(program: &File) -> bool {
    // SAFETY: without a buffer the call only returns how long the attribute is.
    let length = unsafe {
        libc::fgetxattr(
            program.as_raw_fd(),
            c"security.capability".as_ptr(),
            std::ptr::null_mut(),
            0,
        )
    };
    length > 0
}

/// The MPI program of a process that even its own user may not inspect, because the program has capabilities.
pub fn hidden_program(pid: Pid) -> Option<PathBuf> {
    let maps = fs::read(format!("/proc/{pid}/maps"));
    if !maps.is_err_and(|error| error.kind() == ErrorKind::PermissionDenied) {
        return None;
    }
    let words = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let program = PathBuf::from(OsStr::from_bytes(words.split(|byte| *byte == 0).next()?));
    let file = File::open(&program).ok()?;
    (has_capabilities(&file) && needs_mpi(file)).then_some(program)
}

/// Whether a program names an MPI's library among those that it needs.
fn needs_mpi(program: File) -> bool {
    let mut bytes = Vec::new();
    let read = program.take(MOST_OF_PROGRAM).read_to_end(&mut bytes);
    let holds = |name: &&str| bytes.windows(name.len()).any(|window| window == name.as_bytes());
    read.is_ok() && LIBRARIES.iter().any(holds)
}

/// Finds out why a process has not loaded the shim.
pub fn why(pid: Pid) -> Why {
    let program = File::open(format!("/proc/{pid}/exe")).ok();
    if let Some(why) = program.and_then(|file| by_program(&file)) {
        return why;
    }
    let vector = fs::read(format!("/proc/{pid}/auxv")).unwrap_or_default();
    if is_secure(&vector) {
        return Why::Privileged;
    }
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let mut variables = environment.split(|byte| *byte == 0);
    let asks = |variable: &[u8]| {
        let text = String::from_utf8_lossy(variable);
        text.starts_with("LD_PRELOAD=") && text.contains(SHIM)
    };
    match variables.any(asks) {
        true => Why::Refused,
        false => Why::Dropped,
    }
}

/// Whether the shim is never loaded into a process because of the kind of its program.
pub fn loads_nothing_of_ours(pid: Pid) -> bool {
    let program = File::open(format!("/proc/{pid}/exe")).ok();
    program.is_some_and(|file| by_program(&file).is_some())
}

/// What the program shows; `None` if it has glibc's loader.
fn by_program(file: &File) -> Option<Why> {
    let mut header = [0; HEADER];
    file.read_exact_at(&mut header, 0).ok()?;
    if !header.starts_with(b"\x7fELF") {
        return None;
    }
    let mut own = [0; HEADER];
    File::open("/proc/self/exe")
        .ok()?
        .read_exact_at(&mut own, 0)
        .ok()?;
    // The class and byte order, and the processor.
    if header[4..6] != own[4..6] || header[18..20] != own[18..20] {
        return Some(Why::OtherProcessor);
    }
    let table = u64::from_le_bytes(header[32..40].try_into().ok()?);
    let count = u16::from_le_bytes(header[56..58].try_into().ok()?);
    for number in 0..u64::from(count.min(MOST_SEGMENTS)) {
        let mut segment = [0; SEGMENT];
        let at = table.checked_add(number * SEGMENT as u64)?;
        file.read_exact_at(&mut segment, at).ok()?;
        if u32::from_le_bytes(segment[..4].try_into().ok()?) == INTERPRETER {
            let offset = u64::from_le_bytes(segment[8..16].try_into().ok()?);
            let length = u64::from_le_bytes(segment[32..40].try_into().ok()?);
            let mut path = vec![0; usize::try_from(length).ok()?.min(MOST_PATH)];
            file.read_exact_at(&mut path, offset).ok()?;
            let path = String::from_utf8_lossy(&path).trim_end_matches('\0').to_owned();
            let is_glibc = path.contains("/ld-linux") || path.contains("/ld-2.");
            return (!is_glibc).then_some(Why::OtherLibrary(path));
        }
    }
    Some(Why::Static)
}

fn is_secure(vector: &[u8]) -> bool {
    let number = |bytes: &[u8]| bytes.try_into().map(u64::from_ne_bytes).unwrap_or_default();
    let mut entries = vector.chunks_exact(16);
    entries.any(|entry| number(&entry[..8]) == SECURE && number(&entry[8..]) != 0)
}

/// Whether a process has TCP connections, or listens for them.
pub fn has_connections(pid: Pid) -> bool {
    let links = fs::read_dir(format!("/proc/{pid}/fd"))
        .into_iter()
        .flatten()
        .flatten();
    let sockets: HashSet<String> = links
        .filter_map(|link| {
            let target = fs::read_link(link.path()).ok()?;
            let inode = target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?;
            Some(inode.to_owned())
        })
        .collect();
    let is_one = |table: &str| {
        let text = fs::read_to_string(format!("/proc/{pid}/net/{table}")).unwrap_or_default();
        text.lines().skip(1).any(|line| {
            let inode = line.split_whitespace().nth(9);
            inode.is_some_and(|inode| sockets.contains(inode))
        })
    };
    !sockets.is_empty() && (is_one("tcp") || is_one("tcp6"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::TcpListener;
    use std::path::Path;
    use std::process::{Command, Stdio};

    fn built(directory: &Path, flags: &[&str]) -> File {
        let path = directory.join("program");
        let mut cc = Command::new("cc");
        cc.args(["-xc", "-", "-o"]).arg(&path).args(flags);
        let mut cc = cc.stdin(Stdio::piped()).spawn().unwrap();
        cc.stdin
            .take()
            .unwrap()
            .write_all(b"int main(void) { return 0; }")
            .unwrap();
        assert!(cc.wait().unwrap().success());
        File::open(path).unwrap()
    }

    #[test]
    fn a_program_says_what_keeps_everything_from_being_loaded_into_it() {
        let directory = tempfile::tempdir().unwrap();
        let built = |flags: &[&str]| by_program(&built(directory.path(), flags));
        assert_eq!(built(&[]), None);
        assert_eq!(built(&["-static"]), Some(Why::Static));
        assert_eq!(built(&["-static-pie"]), Some(Why::Static));
        let musl = "/lib/ld-musl-x86_64.so.1";
        let other = built(&[&format!("-Wl,--dynamic-linker={musl}")]);
        assert_eq!(other, Some(Why::OtherLibrary(musl.to_owned())));
        let path = directory.path().join("program");
        let mut bytes = fs::read(&path).unwrap();
        bytes[18] ^= 0xff;
        fs::write(&path, &bytes).unwrap();
        assert_eq!(by_program(&File::open(&path).unwrap()), Some(Why::OtherProcessor));
        // A damaged program shows nothing.
        for length in 0..bytes.len().min(700) {
            fs::write(&path, &bytes[..length]).unwrap();
            by_program(&File::open(&path).unwrap());
        }
    }

    #[test]
    fn a_program_with_capabilities_is_told_apart_and_so_is_one_that_needs_an_mpi() {
        let directory = tempfile::tempdir().unwrap();
        let plain = built(directory.path(), &[]);
        assert!(!has_capabilities(&plain) && !needs_mpi(plain.try_clone().unwrap()));
        let name = directory.path().join("program");
        let text = [&b"\x7fELF..."[..], b"libmpi.so.40\0"].concat();
        fs::write(&name, text).unwrap();
        assert!(needs_mpi(File::open(&name).unwrap()));
        if nix::unistd::geteuid().is_root() {
            // cap_net_raw+ep in revision 2, from linux/capability.h.
            let value: [u32; 5] = [0x0200_0001, 1 << 13, 0, 0, 0];
            let bytes: Vec<u8> = value.iter().flat_map(|word| word.to_le_bytes()).collect();
            let file = File::open(&name).unwrap();
            // SAFETY: the pointer and the length are those of one array.
            let set = unsafe {
                libc::fsetxattr(
                    file.as_raw_fd(),
                    c"security.capability".as_ptr(),
                    bytes.as_ptr().cast(),
                    bytes.len(),
                    0,
                )
            };
            assert!(set != 0 || has_capabilities(&file));
        }
    }

    #[test]
    fn a_process_says_whether_it_was_asked_to_load_the_shim() {
        let loads = |preload: &str| {
            let mut command = Command::new("sleep");
            command.arg("60").env("LD_PRELOAD", preload).stderr(Stdio::null());
            let mut child = command.spawn().unwrap();
            let pid = Pid::from_raw(child.id().cast_signed());
            // The kernel lets the parent go on before the child has got its environment.
            while fs::read(format!("/proc/{pid}/environ")).is_ok_and(|environment| environment.is_empty()) {
                std::thread::yield_now();
            }
            let found = why(pid);
            child.kill().unwrap();
            child.wait().unwrap();
            found
        };
        assert_eq!(loads("/nowhere/libcauseway_shim.so"), Why::Refused);
        assert_eq!(loads("/nowhere/libother.so"), Why::Dropped);
    }

    #[test]
    fn a_process_that_listens_has_connections() {
        let own = nix::unistd::getpid();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        assert!(has_connections(own));
        drop(listener);
        assert!(is_secure(&[23_u64.to_ne_bytes(), 1_u64.to_ne_bytes()].concat()));
        assert!(!is_secure(
            &[23_u64.to_ne_bytes(), 0_u64.to_ne_bytes(), 16_u64.to_ne_bytes()].concat()
        ));
    }
}
