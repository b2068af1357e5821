//! The agent, which launchers call in place of ssh, passes on that it is being ended. A listener of the test
//! plays the gateway and the node.

use causeway_control::Reply;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Frames of `remote/frame.rs`.
const HELLO: [u8; 6] = [1, 1, 0, 0, 0, 0];
const HURRY: [u8; 6] = [1, 10, 0, 0, 0, 0];

/// The value of `remote/tree.rs`.
const HURRY_VALUE: usize = 0x6875_7272;

/// How long an agent may take: it answers at once, but the machine may be busy with other tests.
const DEADLINE: Duration = Duration::from_secs(30);

/// An agent that has sent its request, and the node's end of its stream.
fn agent(directory: &std::path::Path) -> (Child, UnixStream) {
    let socket = directory.join("gateway.sock");
    std::fs::set_permissions(directory, PermissionsExt::from_mode(0o700)).unwrap();
    let listener = UnixListener::bind(&socket).unwrap();
    let agent = Command::new(env!("CARGO_BIN_EXE_causeway"))
        .args(["agent", "nancy-1", "orted"])
        .env("CAUSEWAY_CONTROL", &socket)
        .env("CAUSEWAY_TOKEN", "30313233343536373839616263646566")
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let (mut stream, _) = listener.accept().unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    let mut asked = String::new();
    BufReader::new(&stream).read_line(&mut asked).unwrap();
    stream.write_all(&Reply::Spawn {}.line()).unwrap();
    stream.write_all(&HELLO).unwrap();
    let mut head = [0; 6];
    stream.read_exact(&mut head).unwrap();
    assert_eq!(head[..2], [1, 2], "a request");
    let length = u32::from_be_bytes(head[2..].try_into().unwrap());
    stream.read_exact(&mut vec![0; length as usize]).unwrap();
    // The agent's standard input has ended, which it has reported; so it is ready for signals, too.
    stream.read_exact(&mut head).unwrap();
    assert_eq!(head[..2], [1, 4], "the end of standard input");
    (agent, stream)
}

/// Returns everything that the agent sends from now on.
fn said_until_its_end(agent: &mut Child, stream: &mut UnixStream) -> Vec<u8> {
    let mut said = Vec::new();
    stream.read_to_end(&mut said).unwrap();
    assert!(!agent.wait().unwrap().success());
    said
}

#[test]
fn an_agent_that_is_ended_in_a_hurry_tells_the_node() {
    let directory = tempfile::tempdir().unwrap();
    let (mut agent, mut stream) = agent(directory.path());
    let value = libc::sigval {
        sival_ptr: std::ptr::without_provenance_mut(HURRY_VALUE),
    };
    // SAFETY: only numbers are passed.
    unsafe { libc::sigqueue(agent.id().cast_signed(), libc::SIGTERM, value) };
    assert_eq!(said_until_its_end(&mut agent, &mut stream), &HURRY);
}

#[test]
fn an_agent_that_is_ended_otherwise_tells_the_node_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let (mut agent, mut stream) = agent(directory.path());
    kill(Pid::from_raw(agent.id().cast_signed()), Signal::SIGTERM).unwrap();
    assert_eq!(said_until_its_end(&mut agent, &mut stream), b"");
}
