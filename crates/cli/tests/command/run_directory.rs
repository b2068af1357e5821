//! `causeway run` against a gateway that only answers: if a signal arrives before the launcher runs, nothing
//! is left behind.

use crate::programs::copy;
use causeway_control::{Envelope, JobReply, NodeInfo, Reply, SiteInfo, SiteStatus, Sites, Status, VERSION};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// The longest wait; nothing here takes a second.
const DEADLINE: Duration = Duration::from_secs(20);

fn sites() -> Vec<SiteStatus> {
    vec![SiteStatus {
        name: "rennes".into(),
        info: Some(SiteInfo {
            name: "rennes".into(),
            subnets: vec!["127.0.0.0/8".into()],
            real_subnets: vec![],
            gateways: vec![([127, 0, 0, 1], 7000).into()],
            delivery_ports: "20000-32767".into(),
            nodes: vec![NodeInfo {
                name: "rennes-1".into(),
                address: [127, 0, 0, 1].into(),
                slots: 4,
            }],
            relays: false,
            transparent: false,
            local: vec![],
        }),
        unreachable: None,
    }]
}

/// Answers requests for a job and for the status until the test's process ends.
fn serve(listener: UnixListener) {
    let mut held = Vec::new();
    for connection in listener.incoming() {
        let mut connection = connection.unwrap();
        let mut line = String::new();
        BufReader::new(&connection).read_line(&mut line).unwrap();
        let body = if line.contains("\"job\"") {
            Reply::Job(JobReply {
                token: "00".repeat(16),
                grid: "1|rennes;127.0.0.0/8;127.0.0.1:7000;20000-32767".into(),
                left_out: Default::default(),
            })
        } else if line.contains("\"sites\"") {
            Reply::Sites(Sites {
                site: "rennes".into(),
                links: Default::default(),
                mpi: Default::default(),
                allocated_by: None,
                batch: None,
                start: Default::default(),
                sites: sites(),
            })
        } else {
            Reply::Status(Box::new(Status {
                site: "rennes".into(),
                pid: 1,
                sites: sites(),
                ..Status::default()
            }))
        };
        let version = VERSION;
        let line = serde_json::to_string(&Envelope { version, body }).unwrap();
        writeln!(connection, "{line}").unwrap();
        // A job lasts as long as its connection.
        held.push(connection);
    }
}

fn run_directories(base: &Path) -> usize {
    let entries = std::fs::read_dir(base).unwrap().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with("causeway-run-")).count()
}

#[test]
fn a_signal_before_the_launcher_runs_leaves_no_directory() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    // A copy of the command, with some file under the preload library's name put beside it: only the launcher
    // would load it.
    copy(Path::new(env!("CARGO_BIN_EXE_causeway")), &path("causeway"));
    std::fs::write(path("libcauseway_shim.so"), "").unwrap();
    let script = "#!/bin/sh\ntest \"$1\" = --version || touch \"$0.ran\"\necho 'mpirun (Open MPI) 4.1.4'\n";
    std::fs::write(path("mpirun"), script).unwrap();
    std::fs::set_permissions(path("mpirun"), PermissionsExt::from_mode(0o755)).unwrap();
    let listener = UnixListener::bind(path("gateway.sock")).unwrap();
    std::thread::spawn(|| serve(listener));

    // A full pipe for its messages holds it between making the directory and starting the launcher.
    let (mut messages, mut full) = std::io::pipe().unwrap();
    let capacity = nix::fcntl::fcntl(&full, nix::fcntl::FcntlArg::F_GETPIPE_SZ).unwrap();
    full.write_all(&vec![b'.'; capacity as usize]).unwrap();
    let mut child = Command::new(path("causeway"))
        .args(["run", "--verbose", "--"])
        .arg(path("mpirun"))
        .args(["-n", "1", "./app"])
        .env("XDG_RUNTIME_DIR", directory.path())
        .env("CAUSEWAY_CONTROL", path("gateway.sock"))
        .stderr(full)
        .spawn()
        .unwrap();
    let deadline = Instant::now() + DEADLINE;
    while run_directories(directory.path()) == 0 {
        let ended = child.try_wait().unwrap();
        assert!(
            ended.is_none() && Instant::now() < deadline,
            "no directory: {ended:?}"
        );
        std::thread::yield_now();
    }
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
    let mut said = Vec::new();
    messages.read_to_end(&mut said).unwrap();
    let status = child.wait().unwrap();
    let said = String::from_utf8_lossy(&said).trim_start_matches('.').to_owned();
    assert_eq!(status.code(), Some(130), "{said}");
    assert_eq!(run_directories(directory.path()), 0, "{said}");
    assert!(!path("mpirun.ran").exists(), "{said}");
}
