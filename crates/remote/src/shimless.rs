//! Notices processes of a job whose MPI does not connect through the shim: they reach no other site, and wait
//! for ever.
//!
//! Wrappers that drop the shim are handled by the shim itself, but not one that loads no library (because it
//! is statically linked) or that clears the environment even of what the shim has added (a container). Nor
//! can the shim precede an MPI that a program opens with RTLD_DEEPBIND: such a library calls connect() of the
//! C library, past everything preloaded. Only inspecting the processes shows this. This module asks the
//! kernel which libraries they have loaded, and reads from their memory which connect() these libraries call.
//! It does so a few times in quick succession when a job begins, and ever more rarely later.
//!
//! Reading a process's memory delays what that process loads meanwhile, for as long as the reader waits for a
//! processor. So a library's table is read once for all processes that have loaded the library, a sound
//! process is left alone from then on, and inspections take a twentieth of the time at most. (With 32 ranks
//! on each of two nodes that shared two cores, MPI_Init took 20 to 80 s instead of 3 to 6.)

use super::tree::descendants;
use super::unloaded::{Why, has_connections, hidden_program, loads_nothing_of_ours, why};
use causeway_host::processes::Process;
use causeway_mpis::elf::Elf;
use causeway_mpis::names::{CONNECTING, LIBRARIES, RANKS};
use causeway_mpis::preload::SHIM;
use nix::unistd::{Pid, gethostname};
use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, Write};
use std::ops::Range;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// The pause before the first inspection, and between the early ones: an MPI that cannot connect may end the
/// process within a second of its start.
const FIRST: Duration = Duration::from_millis(250);

/// The number of early inspections: a container takes a second to start, and its ranks may end within
/// another.
const EARLY: u32 = 12;

/// A pause between inspections is at least this many times as long as the inspection before it.
const REST: u32 = 20;

/// Longest pause between two inspections, which is reached some time after the job began.
const LONGEST: Duration = Duration::from_secs(120);

/// Names of the libraries with connect(): the C library and, before glibc 2.34, the library of threads.
const C_LIBRARIES: [&str; 3] = ["libc.so", "libc-2", "libpthread"];

/// See the module.
pub struct Watch {
    /// When to inspect next; `None` once a process was reported.
    due: Option<Instant>,
    pause: Duration,
    looks: u32,
    /// Processes that had connections at the last inspection, and into which nothing can be loaded.
    suspects: HashSet<Pid>,
    /// Processes whose MPI connects through the shim.
    sound: HashSet<Pid>,
    slots: Slots,
}

/// For each library, by its device and inode, where it keeps the address of the connect() that it calls;
/// `None` if it calls none.
type Slots = HashMap<(String, String), Option<u64>>;

impl Watch {
    /// Watches the processes that a command starts, if these must have the shim.
    pub fn over(command: &Command, now: Instant) -> Watch {
        let mut variables = command.get_envs();
        let preloads = variables.any(|(name, value)| {
            name == "LD_PRELOAD" && value.is_some_and(|value| value.to_string_lossy().contains(SHIM))
        });
        Watch {
            due: preloads.then_some(now + FIRST),
            pause: FIRST,
            looks: 0,
            suspects: HashSet::new(),
            sound: HashSet::new(),
            slots: Slots::new(),
        }
    }

    /// When to call [`Watch::look`].
    pub fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Inspects the processes, if it is time. Reports the first one that lacks the shim on that process's own
    /// standard error, where the user reads the program's messages.
    pub fn look(&mut self, now: Instant) {
        if self.due.is_none_or(|due| now < due) {
            return;
        }
        let pids = descendants().into_iter().map(|descendant| descendant.pid);
        self.examine(pids.collect(), now);
        let rested = Instant::now() + now.elapsed() * REST;
        self.due = self.due.map(|due| due.max(rested));
    }

    fn examine(&mut self, processes: Vec<Pid>, now: Instant) {
        self.looks += 1;
        if self.looks > EARLY {
            self.pause = (2 * self.pause).min(LONGEST);
        }
        self.due = Some(now + self.pause);
        self.sound.retain(|pid| processes.contains(pid));
        let processes: Vec<Pid> = { processes.into_iter() }
            .filter(|pid| !self.sound.contains(pid))
            .collect();
        let mut lacking = None;
        for pid in &processes {
            // At the first inspection the ranks of a small job are in MPI_Init, and share processors with
            // this process.
            let verdict = match self.looks {
                1 => judge_libraries(*pid),
                _ => judge(*pid, &mut self.slots),
            };
            match verdict {
                Verdict::Unknown => {}
                Verdict::Sound => drop(self.sound.insert(*pid)),
                Verdict::Lacks(lack) => {
                    lacking = Some((*pid, lack));
                    break;
                }
            }
        }
        // Two such inspections are a second apart: the connections of a tool may last half a second, those of
        // a rank last.
        let is_apart = self.looks > EARLY || self.looks.is_multiple_of(4);
        let found = lacking.or_else(|| {
            is_apart
                .then(|| self.suspect(&processes))
                .flatten()
                .map(|pid| (pid, Lack::Loader))
        });
        if let Some((pid, lack)) = found {
            self.due = None;
            // A hidden process usually has the same standard error as its parent.
            let error = standard_error(pid).or_else(|error| {
                Process::of(pid).map_or(Err(error), |process| standard_error(process.parent))
            });
            tell(error, &line(pid, &lack));
        }
    }
}

impl Watch {
    /// A process into which nothing can be loaded, and that also had connections at the last inspection. It
    /// may be a rank, since it has no library that would show it. A tool that makes a query has ended by
    /// then.
    fn suspect(&mut self, processes: &[Pid]) -> Option<Pid> {
        // The emulator of another processor is static, and has the shim of the program that it runs.
        let is_one =
            |pid: &&Pid| loads_nothing_of_ours(**pid) && !may_have_shim(**pid) && has_connections(**pid);
        let now: HashSet<Pid> = processes.iter().filter(is_one).copied().collect();
        let found = now.intersection(&self.suspects).next().copied();
        self.suspects = now;
        found
    }
}

/// Writes a line to a program's standard error, unless that would block: perhaps nobody reads the pipe any
/// more, and this process still has others to end. To a file the line is appended, as the program may have
/// written there.
fn tell(error: io::Result<File>, line: &str) {
    let _ = error.and_then(|mut error| error.write_all(line.as_bytes()));
}

fn open(error: &Path) -> io::Result<File> {
    let mut options = fs::OpenOptions::new();
    options.append(true).custom_flags(libc::O_NONBLOCK).open(error)
}

fn standard_error(pid: Pid) -> io::Result<File> {
    open(Path::new(&format!("/proc/{pid}/fd/2")))
}

/// Why a process reaches no other site.
#[derive(Debug, PartialEq, Eq)]
enum Lack {
    /// The process has an MPI, but not the shim.
    Shim,
    /// The process has an MPI and the shim, but this library of the MPI calls the C library's connect().
    Way(String),
    /// The process has connections, and nothing can be loaded into it.
    Loader,
    /// This program of an MPI has rights of its own: the loader preloads nothing, and nobody may inspect it.
    Hidden(PathBuf),
}

/// A process's mappings; `None` if it ended while they were read: the kernel returns them in pieces, and
/// nothing more once the process has ended, so that some libraries would seem to be loaded and others not.
fn mappings(pid: Pid) -> Option<String> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).ok()?;
    is_whole(&maps).then_some(maps)
}

/// Whether these are all of a process's mappings: the stack lies above its libraries, and comes last.
fn is_whole(maps: &str) -> bool {
    maps.contains("[stack]")
}

/// Whether a process has the shim; true also if this is not known.
fn may_have_shim(pid: Pid) -> bool {
    mappings(pid).is_none_or(|maps| objects(&maps).any(|object| object.begins(&[SHIM])))
}

/// What inspecting a process has shown.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    /// Nothing yet: the process has no MPI, or has ended.
    Unknown,
    /// The process's MPI connects through the shim.
    Sound,
    Lacks(Lack),
}

/// Judges a process by the names of its libraries alone: not by whether its MPI connects through the shim.
fn judge_libraries(pid: Pid) -> Verdict {
    if let Some(program) = hidden_program(pid) {
        return Verdict::Lacks(Lack::Hidden(program));
    }
    let maps = mappings(pid).unwrap_or_default();
    let has = |names: &[&str]| objects(&maps).any(|object| object.begins(names));
    match has(&LIBRARIES) && !has(&[SHIM]) {
        true => Verdict::Lacks(Lack::Shim),
        false => Verdict::Unknown,
    }
}

fn judge(pid: Pid, slots: &mut Slots) -> Verdict {
    let Some(maps) = mappings(pid) else {
        return judge_libraries(pid);
    };
    let has = |names: &[&str]| objects(&maps).any(|object| object.begins(names));
    if !has(&[SHIM]) {
        return judge_libraries(pid);
    }
    let memory = || File::open(format!("/proc/{pid}/mem")).ok();
    let mut past = |object: &Object| {
        // This process is the other's ancestor, which security modules require for this.
        let find = || Elf::from_process(memory()?, object.addresses.start)?.slot(b"connect");
        let (device, inode) = object.file;
        let file = (device.to_owned(), inode.to_owned());
        let slot = (*slots.entry(file).or_insert_with(find))?;
        let mut bound = [0; 8];
        let at = object.addresses.start.checked_add(slot)?;
        memory()?.read_exact_at(&mut bound, at).ok()?;
        let bound = u64::from_le_bytes(bound);
        let holds = |object: Object| object.begins(&C_LIBRARIES) && object.addresses.contains(&bound);
        objects(&maps)
            .any(holds)
            .then(|| Lack::Way(object.name.to_owned()))
    };
    let connecting = |object: &Object| object.begins(&CONNECTING) || object.begins(&LIBRARIES);
    let mut begins = objects(&maps).filter(|object| object.is_begin && connecting(object));
    match begins.find_map(|object| past(&object)) {
        Some(lack) => Verdict::Lacks(lack),
        // The library that connects is loaded last.
        None if has(&LIBRARIES) && has(&CONNECTING) => Verdict::Sound,
        None => Verdict::Unknown,
    }
}

/// A part of a file in the memory of a process.
struct Object<'a> {
    name: &'a str,
    /// The file's device and inode.
    file: (&'a str, &'a str),
    addresses: Range<u64>,
    /// Whether the part begins where the file does.
    is_begin: bool,
}

impl Object<'_> {
    fn begins(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.name.starts_with(name))
    }
}

/// The parts of files in a process's mappings (proc_pid_maps(5)).
fn objects(maps: &str) -> impl Iterator<Item = Object<'_>> {
    maps.lines().filter_map(|line| {
        let (numbers, name) = line.rsplit_once('/')?;
        let mut words = numbers.split(' ');
        let (from, to) = words.next()?.split_once('-')?;
        let number = |digits| u64::from_str_radix(digits, 16).ok();
        let offset = words.nth(1)?;
        Some(Object {
            name,
            file: (words.next()?, words.next()?),
            addresses: number(from)?..number(to)?,
            is_begin: number(offset)? == 0,
        })
    })
}

fn line(pid: Pid, lack: &Lack) -> String {
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let environment = String::from_utf8_lossy(&environment);
    let value = |name: &str| {
        let mut variables = environment
            .split('\0')
            .filter_map(|variable| variable.split_once('='));
        variables
            .find(|(other, _)| *other == name)
            .map(|(_, value)| value)
    };
    let rank = RANKS.iter().find_map(|name| value(name));
    let rank = rank.map_or("a process".to_owned(), |rank| format!("rank {rank}"));
    let program = match lack {
        Lack::Hidden(program) => program.clone(),
        _ => fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default(),
    };
    let host = gethostname().unwrap_or_default();
    let (what, remedy) = match lack {
        Lack::Shim => (
            "uses an MPI without Causeway's shim".to_owned(),
            why(pid).remedy(),
        ),
        Lack::Loader => (
            "has connections without Causeway's shim".to_owned(),
            why(pid).remedy(),
        ),
        Lack::Hidden(_) => (
            "uses an MPI without Causeway's shim".to_owned(),
            Why::Privileged.remedy(),
        ),
        Lack::Way(library) => (
            format!("has loaded {library} past Causeway's shim"),
            "it opens its MPI, or a library that needs one, with RTLD_DEEPBIND; let it use dlopen() without \
             that flag, or link the program with the MPI"
                .to_owned(),
        ),
    };
    format!(
        "causeway: {rank} on {} ({}) {what} and cannot reach other sites: {remedy}\n",
        host.display(),
        program.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::process::Stdio;

    #[test]
    fn a_process_is_known_by_its_libraries() {
        let map = |path: &str| format!("7f00-7f01 r--p 00000000 08:01 42      {path}\n");
        let mpis = [
            "/usr/lib/x86_64-linux-gnu/libmpi.so.40.30.4",
            "/usr/lib/x86_64-linux-gnu/libmpich.so.12.1.8",
            "/home/u/mpi dir/lib/libmpi_abi.so.1",
        ];
        for mpi in mpis {
            let maps = map(mpi);
            let object = objects(&maps).next().unwrap();
            assert!(object.begins(&LIBRARIES) && object.is_begin, "{mpi}");
            assert_eq!(object.file, ("08:01", "42"));
            assert_eq!(object.addresses, 0x7f00..0x7f01);
        }
        // The digits of an address may include those of the offset.
        let maps = "7f1200000000-7f1200001000 r--p 00000000 08:01 42      /usr/lib/libmpi.so.40\n";
        let object = objects(maps).next().unwrap();
        assert_eq!((object.file, object.is_begin), (("08:01", "42"), true));
        let others = map("/usr/lib/libopen-rte.so.40") + "7f00-7f01 rw-p 00000000 00:00 0 \n";
        assert!(!objects(&others).any(|object| object.begins(&LIBRARIES)));
    }

    #[test]
    fn mappings_of_a_process_that_ends_while_they_are_read_tell_nothing() {
        let own = mappings(nix::unistd::getpid()).unwrap();
        let stack = own.find("[stack]").unwrap();
        assert!(!is_whole(&own[..stack]));
        assert!(objects(&own[..stack]).any(|object| object.begins(&["libc."])));
    }

    /// Starts a Python process with an MPI's library, which runs until its standard input closes.
    fn python(preload: &Path, program: &str) -> (std::process::Child, Pid) {
        let mut python = Command::new("python3");
        python.args([
            "-c",
            &format!("import sys\n{program}\nprint(flush=True); sys.stdin.read()"),
        ]);
        python.env("LD_PRELOAD", preload);
        python.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut python = python.spawn().unwrap();
        let mut line = [0];
        python.stdout.as_mut().unwrap().read_exact(&mut line).unwrap();
        let pid = Pid::from_raw(python.id().try_into().unwrap());
        (python, pid)
    }

    #[test]
    fn an_mpi_that_is_opened_past_the_shim_is_known_by_the_connect_it_calls() {
        let directory = tempfile::tempdir().unwrap();
        let library = |name: &str, source: &str| {
            let path = directory.path().join(name);
            let mut cc = Command::new("cc")
                .args(["-xc", "-", "-shared", "-fPIC", "-Wl,-z,now", "-o"])
                .arg(&path)
                .stdin(Stdio::piped())
                .spawn()
                .unwrap();
            cc.stdin.take().unwrap().write_all(source.as_bytes()).unwrap();
            assert!(cc.wait().unwrap().success());
            path
        };
        let shim = library(
            "libcauseway_shim.so",
            "int connect(int fd, void *to, unsigned length) { return fd + length + !to; }",
        );
        let ucs = library(
            "libucs.so.0",
            "int connect(int, void *, unsigned); int reach(void) { return connect(-1, 0, 0); }",
        );
        let opened = |flags: &str| {
            let ucs = ucs.display();
            format!("import ctypes, os\nctypes.CDLL('{ucs}', mode=os.RTLD_NOW | {flags}).reach()")
        };
        // The processes share it: the place of the address in a library is the same for all who load the
        // file.
        let mut slots = Slots::new();
        for (flags, expected) in [
            ("os.RTLD_GLOBAL", None),
            ("os.RTLD_LOCAL", None),
            ("os.RTLD_DEEPBIND", Some(Lack::Way("libucs.so.0".to_owned()))),
        ] {
            let (mut python, pid) = python(&shim, &opened(flags));
            let judged = judge(pid, &mut slots);
            let expected = expected.map_or(Verdict::Unknown, Verdict::Lacks);
            assert_eq!(judged, expected, "{flags}");
            drop(python.stdin.take());
            python.wait().unwrap();
        }
    }

    #[test]
    fn a_pipe_that_nobody_reads_keeps_nobody_waiting_and_a_file_keeps_what_it_has() {
        let directory = tempfile::tempdir().unwrap();
        let (pipe, file) = (directory.path().join("pipe"), directory.path().join("file"));
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        // A blocking open would never return, as nobody reads.
        tell(open(&pipe), "line\n");
        fs::write(&file, "before\n").unwrap();
        tell(open(&file), "line\n");
        assert_eq!(fs::read_to_string(&file).unwrap(), "before\nline\n");
    }

    #[test]
    fn only_what_is_to_have_the_shim_is_watched_and_ever_more_rarely() {
        let now = Instant::now();
        let mut command = Command::new("true");
        assert_eq!(Watch::over(&command, now).due(), None);
        command.env("LD_PRELOAD", "/c/libcauseway_shim.so:/t.so");
        let mut watch = Watch::over(&command, now);
        assert_eq!(watch.due(), Some(now + FIRST));
        watch.look(now);
        assert_eq!(watch.due(), Some(now + FIRST));
        // look() would inspect what other tests of this process have started.
        watch.examine(Vec::new(), now + FIRST);
        assert_eq!(watch.due(), Some(now + 2 * FIRST));
        (1..EARLY).for_each(|_| watch.examine(Vec::new(), now));
        assert_eq!(watch.due(), Some(now + FIRST));
        watch.examine(Vec::new(), now);
        assert_eq!(watch.due(), Some(now + 2 * FIRST));
    }
}
