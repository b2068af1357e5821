//! `causeway status --watch` with a gateway that only answers a number of times: the command goes on when the
//! gateway has gone, and ends with its reader or with Ctrl-C.

use causeway_control::{Envelope, JobStatus, Reply, Status, TunnelStatus, VERSION};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixListener;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// The longest wait; nothing here takes a second.
const DEADLINE: Duration = Duration::from_secs(20);

/// Answers this many requests for its status, each with a megabyte more sent, and then goes away.
fn gateway(directory: &Path, answers: u64) -> std::thread::JoinHandle<()> {
    let socket = directory.join("gateway.sock");
    let _ = std::fs::remove_file(&socket);
    let listener = UnixListener::bind(&socket).unwrap();
    std::thread::spawn(move || {
        for answer in 0..answers {
            let (mut connection, _) = listener.accept().unwrap();
            BufReader::new(&connection).read_line(&mut String::new()).unwrap();
            let body = Reply::Status(Box::new(status(answer * 1_000_000)));
            let version = VERSION;
            let line = serde_json::to_string(&Envelope { version, body }).unwrap();
            writeln!(connection, "{line}").unwrap();
        }
    })
}

fn status(sent_bytes: u64) -> Status {
    Status {
        site: "rennes".into(),
        pid: 1,
        streams: 1,
        streams_peak: 1,
        streams_opened: 1,
        jobs: vec![JobStatus {
            name: "mpirun".into(),
            weight: 2,
            streams: 1,
            sent_bytes,
            received_bytes: 0,
        }],
        tunnels: vec![TunnelStatus {
            site: "nancy".into(),
            peer: ([198, 51, 100, 5], 7001).into(),
            rtt_microseconds: 11_600,
            rate_bits_per_second: 0,
            loss: 0.0,
            congestion_control: "bbr".into(),
            streams: 1,
            sent_bytes,
            received_bytes: 0,
            lanes: Vec::new(),
            lanes_lost: 0,
            down_seconds: None,
            why_no_better_way: String::new(),
            refuses_jobs: None,
        }],
        ..Status::default()
    }
}

/// The command, which is killed at the deadline: whoever waits for its output then sees its end instead.
struct Watching {
    child: Child,
    _alive: mpsc::Sender<()>,
}

fn watch(directory: &Path, words: &[&str]) -> Watching {
    // A shell that starts tests in the background makes them ignore SIGINT, which children inherit (POSIX,
    // 2.11).
    let mut command = Command::new("env");
    command.args(["--default-signal=INT", env!("CARGO_BIN_EXE_causeway")]);
    command.args(["status", "--watch", "0.1"]).args(words);
    command.env("CAUSEWAY_CONTROL", directory.join("gateway.sock"));
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let pid = Pid::from_raw(child.id().cast_signed());
    let (alive, ended) = mpsc::channel::<()>();
    std::thread::spawn(move || {
        if ended.recv_timeout(DEADLINE) == Err(mpsc::RecvTimeoutError::Timeout) {
            let _ = kill(pid, Signal::SIGKILL);
        }
    });
    Watching { child, _alive: alive }
}

fn line(reader: &mut impl BufRead) -> String {
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    line
}

#[test]
fn it_goes_on_without_its_gateway_and_ends_with_its_reader() {
    let directory = tempfile::tempdir().unwrap();
    let serving = gateway(directory.path(), 2);
    let mut watching = watch(directory.path(), &["--json"]);
    let mut stdout = BufReader::new(watching.child.stdout.take().unwrap());
    let mut stderr = BufReader::new(watching.child.stderr.take().unwrap());
    let mut look = || serde_json::from_str::<Value>(&line(&mut stdout)).unwrap();
    let first = look();
    assert_eq!(first["jobs"][0]["weight"], 2);
    assert_eq!(first.get("rates"), None);
    let second = look();
    assert_eq!(second["rates"][0]["site"], "nancy");
    assert!(
        second["rates"][0]["sent_bits_per_second"].as_f64().unwrap() > 0.0,
        "{second}"
    );
    assert!(second["unix_seconds"].as_f64() >= first["unix_seconds"].as_f64());

    let said = line(&mut stderr);
    assert!(
        said.contains("has gone away") && said.contains("trying again"),
        "{said}"
    );
    serving.join().unwrap();
    let serving = gateway(directory.path(), 1);
    let said = line(&mut stderr);
    assert!(said.contains("the gateway is back"), "{said}");
    // What another gateway had sent before is not compared with this one.
    assert_eq!(look().get("rates"), None);
    serving.join().unwrap();

    let said = line(&mut stderr);
    assert!(said.contains("has gone away"), "{said}");
    drop(stdout);
    assert_eq!(watching.child.wait().unwrap().code(), Some(141));
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "");
}

#[test]
fn blocks_are_appended_to_a_pipe_until_ctrl_c() {
    let directory = tempfile::tempdir().unwrap();
    let serving = gateway(directory.path(), 2);
    let mut watching = watch(directory.path(), &[]);
    let mut lines = BufReader::new(watching.child.stdout.take().unwrap()).lines();
    let mut next = |start: &str| {
        let found = lines.find(|line| line.as_ref().is_ok_and(|line| line.starts_with(start)));
        found
            .unwrap_or_else(|| panic!("no line begins with {start:?}"))
            .unwrap()
    };
    assert!(!next("tunnel to nancy").contains("now"));
    assert!(next("job mpirun").contains("weight 2  streams 1  sent 0.0 MB"));
    assert_eq!(next(""), "");
    // The new figure has a line of its own if the line is full.
    next("    now sending ");
    serving.join().unwrap();
    assert!(next("causeway status: ").contains("the gateway has gone away"));
    kill(Pid::from_raw(watching.child.id().cast_signed()), Signal::SIGINT).unwrap();
    let ended = watching.child.wait().unwrap();
    assert_eq!(ended.signal(), Some(Signal::SIGINT as i32), "{ended}");
}
