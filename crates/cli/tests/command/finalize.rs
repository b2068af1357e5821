//! Runs the library of mpi/ucx/ against an MPI of a few lines (tests/ucx). Skips, with the reason, if there
//! is no C compiler.

use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// Both programs end within milliseconds, or never.
const DEADLINE: Duration = Duration::from_secs(20);

struct Built {
    directory: tempfile::TempDir,
}

impl Built {
    /// The preload library, and the program with or without the MPI.
    fn new(with_mpi: bool) -> Option<Built> {
        if let Err(error) = Command::new("cc").arg("--version").output() {
            println!("skipped: cc: {error}");
            return None;
        }
        let built = Built {
            directory: tempfile::tempdir().unwrap(),
        };
        let library = |name| vec!["-shared".into(), "-fPIC".into(), "-o".into(), built.path(name)];
        compile(library("ucx.so"), &["mpi/ucx/finalize.c", "mpi/ucx/unpack.c"]);
        let mut program = vec!["-o".into(), built.path("program")];
        if with_mpi {
            compile(library("mpi.so"), &["tests/ucx/mpi.c"]);
            program.extend(["-Wl,--no-as-needed".into(), built.path("mpi.so")]);
        }
        compile(program, &["tests/ucx/program.c"]);
        Some(built)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Runs the program under the preload library, and returns its status.
    fn status(&self) -> Option<i32> {
        let mut program = Command::new(self.path("program"));
        program.env("LD_PRELOAD", self.path("ucx.so"));
        let mut child = program.spawn().unwrap();
        let ended = wait(&mut child);
        if ended.is_none() {
            let _ = child.kill();
            let _ = child.wait();
        }
        ended
    }
}

fn compile(mut arguments: Vec<PathBuf>, sources: &[&str]) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    // Sources first: a library is searched only for what precedes it.
    arguments.splice(0..0, sources.iter().map(|source| root.join(source)));
    let status = Command::new("cc").args(&arguments).status().unwrap();
    assert!(status.success(), "cc {arguments:?}: {status}");
}

fn wait(child: &mut Child) -> Option<i32> {
    let deadline = Instant::now() + DEADLINE;
    while Instant::now() < deadline {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    None
}

#[test]
fn a_signal_during_the_wait_for_the_process_manager_does_not_end_progress() {
    if let Some(built) = Built::new(true) {
        assert_eq!(built.status(), Some(0), "None: it hangs");
    }
}

#[test]
fn a_program_without_an_mpi_gets_an_error() {
    if let Some(built) = Built::new(false) {
        assert_eq!(built.status(), Some(16));
    }
}
