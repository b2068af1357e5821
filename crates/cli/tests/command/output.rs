//! Commands whose output nobody can read end quietly, with a status that says so.

use causeway_control::{JobStatus, Reply, SiteStatus, Status};
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long a gateway may take to start or end: a moment, but the machine may be busy with other tests.
const DEADLINE: Duration = Duration::from_secs(20);

/// `causeway` in an empty directory for labs and gateways.
fn causeway(directory: &tempfile::TempDir, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_causeway"));
    command.args(words).env("XDG_RUNTIME_DIR", directory.path());
    command.env("CAUSEWAY_CONTROL", directory.path().join("no-gateway.sock"));
    command
}

fn full() -> Stdio {
    File::options().write(true).open("/dev/full").unwrap().into()
}

#[test]
fn a_reader_that_has_gone_ends_a_command_as_sigpipe_would() {
    let directory = tempfile::tempdir().unwrap();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut list = causeway(&directory, &["lab", "list", "--json"]);
    let output = list.stdout(writer).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), said.as_str()), (Some(141), ""));
}

#[test]
fn output_that_cannot_be_written_is_a_failure_with_its_reason() {
    let directory = tempfile::tempdir().unwrap();
    let mut list = causeway(&directory, &["lab", "list", "--json"]);
    let output = list.stdout(full()).stderr(Stdio::piped()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.starts_with("causeway: write to standard output: No space"),
        "{said}"
    );
}

#[test]
fn messages_that_cannot_be_written_change_no_status() {
    let directory = tempfile::tempdir().unwrap();
    for (words, status) in [
        (&["status"][..], 1),
        (&["lab", "exec", "n1", "--", "true"], 1),
        (&["run", "--", "mpirun-that-is-not-there"], 2),
        (&["gateway", "--config", "/nowhere.toml"], 2),
        (&["agent", "n1"], 255),
    ] {
        let ended = causeway(&directory, words).stderr(full()).status().unwrap();
        assert_eq!(ended.code(), Some(status), "{words:?}");
    }
}

/// Answers one command with this reply.
fn answering(directory: &tempfile::TempDir, reply: Reply) -> std::thread::JoinHandle<()> {
    let listener = UnixListener::bind(directory.path().join("gateway.sock")).unwrap();
    std::thread::spawn(move || {
        let (mut connection, _) = listener.accept().unwrap();
        BufReader::new(&connection).read_line(&mut String::new()).unwrap();
        connection.write_all(&reply.line()).unwrap();
    })
}

/// Runs `causeway` with a gateway that answers with this reply, and returns both outputs.
fn said(words: &[&str], reply: Reply) -> String {
    let directory = tempfile::tempdir().unwrap();
    let gateway = answering(&directory, reply);
    let mut command = causeway(&directory, words);
    command.env("CAUSEWAY_CONTROL", directory.path().join("gateway.sock"));
    let output = command.output().unwrap();
    gateway.join().unwrap();
    String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
}

/// Clears the screen, forges a line, and reverses the rest of the line.
const HOSTILE: &str = "a\x1b[2J\u{9b}2J\nsite forged\r\u{202e}";

#[test]
fn what_another_site_chose_moves_nothing_on_a_terminal_and_makes_no_line() {
    let status = || Status {
        site: HOSTILE.into(),
        sites: vec![SiteStatus {
            name: HOSTILE.into(),
            info: None,
            unreachable: Some(HOSTILE.into()),
        }],
        jobs: vec![JobStatus {
            name: HOSTILE.into(),
            weight: 1,
            streams: 0,
            sent_bytes: 0,
            received_bytes: 0,
        }],
        ..Status::default()
    };
    let status = || Reply::Status(Box::new(status()));
    for (words, reply) in [
        (&["status"][..], status()),
        (&["status", "--wide"], status()),
        (&["status", "--json"], status()),
        (&["status"], Reply::Error(HOSTILE.into())),
        (&["ping", "nancy"], Reply::Error(HOSTILE.into())),
    ] {
        let said = said(words, reply);
        assert!(said.contains("forged"), "{words:?}: {said:?}");
        assert!(
            !said.lines().any(|line| line.starts_with("site forged")),
            "{said:?}"
        );
        let moves = |letter: char| (letter.is_control() && letter != '\n') || letter == '\u{202e}';
        assert!(!said.contains(moves), "{words:?}: {said:?}");
    }
}

#[test]
fn escaped_json_means_the_same() {
    let status = Status {
        site: HOSTILE.into(),
        ..Status::default()
    };
    let said = said(&["status", "--json"], Reply::Status(Box::new(status)));
    let read: Status = serde_json::from_str(&said).unwrap();
    assert_eq!(read.site, HOSTILE);
}

/// A full pipe, whose reader does not read.
fn stuck() -> (std::io::PipeReader, std::io::PipeWriter) {
    let (reader, mut writer) = std::io::pipe().unwrap();
    let set = |writer: &std::io::PipeWriter, flags| fcntl(writer, FcntlArg::F_SETFL(flags)).unwrap();
    set(&writer, OFlag::O_NONBLOCK);
    while writer.write(&[b'x'; 4096]).is_ok() {}
    while writer.write(b"x").is_ok() {}
    set(&writer, OFlag::empty());
    (reader, writer)
}

#[test]
fn a_gateway_whose_log_nobody_reads_serves_and_ends() {
    let directory = tempfile::tempdir().unwrap();
    let own = std::process::id() % 250;
    let control = directory.path().join("gateway.sock");
    let key = directory.path().join("grid.key");
    std::fs::write(&key, "0123456789abcdef").unwrap();
    std::fs::set_permissions(&key, PermissionsExt::from_mode(0o600)).unwrap();
    let config = directory.path().join("gateway.toml");
    let text = format!(
        "[site]\nname = \"rennes\"\nsubnets = [\"127.8.0.0/16\"]\n\
         nodes = [{{ name = \"rennes-1\", address = \"127.8.{own}.1\" }}]\n\
         [listen]\nlan = [\"127.8.{own}.253:7000\"]\ncontrol = \"{}\"\n[grid]\nkey_file = \"grid.key\"\n",
        control.display()
    );
    std::fs::write(&config, text).unwrap();
    let (_reader, writer) = stuck();
    let mut gateway = causeway(&directory, &["gateway", "--config"]);
    let mut gateway = gateway.arg(&config).stderr(writer).spawn().unwrap();
    let status = || {
        let mut status = causeway(&directory, &["status"]);
        status.env("CAUSEWAY_CONTROL", &control);
        status.output().unwrap().status.success()
    };
    let deadline = Instant::now() + DEADLINE;
    let serves = std::iter::repeat_with(status).take_while(|_| Instant::now() < deadline);
    let serves = serves.into_iter().any(|serves| serves);
    kill(Pid::from_raw(gateway.id().cast_signed()), Signal::SIGTERM).unwrap();
    let ended = std::iter::repeat_with(|| gateway.try_wait().unwrap())
        .take_while(|_| Instant::now() < deadline + DEADLINE);
    let ended = ended.into_iter().find_map(|ended| {
        std::thread::sleep(Duration::from_millis(10));
        ended
    });
    let _ = gateway.kill();
    assert!(serves, "it answers within {DEADLINE:?}");
    assert!(ended.is_some_and(|status| status.success()), "it ends: {ended:?}");
}
