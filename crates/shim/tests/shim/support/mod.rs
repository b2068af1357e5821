//! A node of site rennes in a separate namespace, a gateway that the test controls, and Python programs that
//! run with the real library preloaded.
//!
//! Each test runs itself again inside `unshare`, so it needs no privilege and leaves nothing behind; if user
//! namespaces are not allowed, it says that it was skipped.

use causeway_wire::preface::Decoded;
use causeway_wire::question::Question;
use causeway_wire::{Preface, Sender, Token, Wants};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

pub const TOKEN: Token = Token(*b"0123456789abcdef");
pub const GATEWAY: &str = "10.1.0.253:7000";
pub const GATEWAY_V6: &str = "[fd00:1::fd]:7000";
/// Sites that both have both address families.
pub const GRID: &str = "1|rennes;10.1.0.0/24,fd00:1::/64;10.1.0.253:7000,[fd00:1::fd]:7000;20000-32767\
                        |nancy;10.2.0.0/24,fd00:2::/64;10.2.0.253:7000,[fd00:2::fd]:7000;20000-32767";
/// Sites with IPv6 nodes, but whose gateways have only IPv4 addresses.
pub const GRID_V4_GATEWAYS: &str = "1|rennes;10.1.0.0/24,fd00:1::/64;10.1.0.253:7000;20000-32767\
                        |nancy;10.2.0.0/24,fd00:2::/64;10.2.0.253:7000;20000-32767";
/// Two sites with the same addresses.
pub const GRID_OVERLAP: &str = "2|nancy;100.64.2.0/24=10.1.0.0/24,fdca:2::/64=fd00:1::/64;10.1.0.252:7000;20000-32767\
                        |rennes;100.64.1.0/24=10.1.0.0/24,fdca:1::/64=fd00:1::/64;10.1.0.253:7000;20000-32767";
const INSIDE: &str = "CAUSEWAY_TEST_INSIDE";
/// How long a program may run: the longest one starts twenty interpreters, each of which takes a second on an
/// emulated processor.
const PROGRAM_DEADLINE: Duration = Duration::from_secs(50);
const TEST_DEADLINE: Duration = Duration::from_secs(60);

/// The beginning of every program.
const PRELUDE: &str = r#"
import array, ctypes, errno, fcntl, itertools, os, select, signal, socket, struct, subprocess, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
REMOTE, REMOTE6, MAPPED = ("10.2.0.1", 1234), ("fd00:2::1", 1234), ("::ffff:10.2.0.1", 1234)
def tcp(family=socket.AF_INET):
    return socket.socket(family, socket.SOCK_STREAM)
def raw_peer(fd, room):
    "getpeername() with so much room: the bytes written and the length claimed"
    buffer, length = ctypes.create_string_buffer(b"\xee" * 64, 64), ctypes.c_uint32(room)
    assert libc.getpeername(fd, buffer, ctypes.byref(length)) == 0, os.strerror(ctypes.get_errno())
    return buffer.raw, length.value
def tag(token, data):
    "SipHash-2-4"
    mask = 2**64 - 1
    v = [int.from_bytes(token[at:at + 8], "little") ^ constant for constant, at in (
        (0x736f6d6570736575, 0), (0x646f72616e646f6d, 8), (0x6c7967656e657261, 0), (0x7465646279746573, 8))]
    def mix(a, b, left, after=0):
        v[a] = (v[a] + v[b]) & mask
        v[b] = (v[b] << left | v[b] >> 64 - left) & mask ^ v[a]
        if after: v[a] = (v[a] << 32 | v[a] >> 32) & mask
    def rounds(count):
        for _ in range(count): mix(0, 1, 13, 1); mix(2, 3, 16); mix(0, 3, 21); mix(2, 1, 17, 1)
    data += bytes(-(len(data) + 1) % 8) + bytes([len(data) % 256])
    for at in range(0, len(data), 8):
        word = int.from_bytes(data[at:at + 8], "little"); v[3] ^= word; rounds(2); v[0] ^= word
    v[2] ^= 255; rounds(4)
    return (v[0] ^ v[1] ^ v[2] ^ v[3]).to_bytes(8, "big")
nonces = itertools.count(1)
delivered_to = ("10.1.0.1", 5000)
def preface(source=("10.2.0.9", 12345), destination=None, token=b"0123456789abcdef", sender=b"G"):
    "what a gateway sends first, to where it has connected last"
    destination = destination or delivered_to
    v6 = ":" in source[0]
    family = socket.AF_INET6 if v6 else socket.AF_INET
    nonce = next(nonces).to_bytes(8, "big")
    body = socket.inet_pton(family, source[0]) + socket.inet_pton(family, destination[0])
    body += struct.pack(">HH", source[1], destination[1])
    proof = tag(token, b"N") + nonce + tag(token, sender + nonce + b"\0" + body)
    body += struct.pack(">BHBB", 0xE0, 26, 2, 0) + proof
    return b"\r\n\r\n\0\r\nQUIT\n" + struct.pack(">BBH", 0x21, 0x21 if v6 else 0x11, len(body)) + body
def listening(address=("10.1.0.1", 0), family=socket.AF_INET):
    server = tcp(family); server.bind(address); server.listen(50); return server
delivery_ports = itertools.count(20010)
def from_gateway(server, address="10.1.0.253", family=socket.AF_INET):
    "a connection as the gateway makes one to deliver"
    global delivered_to; delivered_to = server.getsockname()[:2]
    client = tcp(family); client.bind((address, next(delivery_ports)))
    client.connect(delivered_to); return client
def answered(client, token=b"0123456789abcdef"):
    "takes the process's answer to the last preface"
    nonce = (next(nonces) - 1).to_bytes(8, "big")
    assert client.recv(8, socket.MSG_WAITALL) == tag(token, b"R" + nonce)
"#;

/// Python functions that list interfaces.
pub const LISTS: &str = r#"
class sockaddr(ctypes.Structure): _fields_ = [("family", ctypes.c_ushort), ("data", ctypes.c_ubyte * 26)]
class ifaddrs(ctypes.Structure): pass
ifaddrs._fields_ = [("next", ctypes.POINTER(ifaddrs)), ("name", ctypes.c_char_p), ("flags", ctypes.c_uint),
    ("addr", ctypes.POINTER(sockaddr))]
def by_getifaddrs():
    head, shown = ctypes.POINTER(ifaddrs)(), set()
    assert libc.getifaddrs(ctypes.byref(head)) == 0
    entry = head
    while entry:
        e = entry.contents
        if e.addr:
            data = bytes(e.addr.contents.data)
            if e.addr.contents.family == socket.AF_INET: shown.add((e.name, socket.inet_ntoa(data[2:6])))
            if e.addr.contents.family == socket.AF_INET6:
                shown.add((e.name, socket.inet_ntop(socket.AF_INET6, data[6:22])))
        entry = e.next
    libc.freeifaddrs.argtypes = [ctypes.c_void_p]
    libc.freeifaddrs(head)
    return shown
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
def by_ioctl():
    buffer = array.array("B", bytes(4096))
    conf = bytearray(struct.pack("iP", len(buffer), buffer.buffer_info()[0]))
    fcntl.ioctl(udp, 0x8912, conf)
    length = struct.unpack("iP", conf)[0]
    entries = [bytes(buffer[at:at + 40]) for at in range(0, length, 40)]
    return {(e[:16].rstrip(b"\0"), socket.inet_ntoa(e[20:24])) for e in entries}
def address_of(name):
    return socket.inet_ntoa(fcntl.ioctl(udp, 0x8915, struct.pack("40s", name))[20:24])
"#;

/// A node of site rennes: it has 10.1.0.1 and fd00:1::1 on `site0`, and 192.168.7.1, which is in no site, on
/// `other0`. It also has the head node's addresses, 10.1.0.253 and fd00:1::fd.
pub struct Node {
    library: PathBuf,
}

/// Runs the body of the calling test on a node. It must be called once, with a closure, directly in the test
/// function: the test's name is derived from the closure's.
pub fn on_a_node<F: FnOnce(&Node)>(body: F) {
    if std::env::var_os(INSIDE).is_some() {
        return body(&Node::set_up());
    }
    let closure = std::any::type_name::<F>();
    let (_, path) = closure.split_once("::").expect("a closure lies in a crate");
    let test = path.trim_end_matches("::{{closure}}");
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--net", "--pid", "--fork", "--kill-child"]);
    if !command
        .arg("true")
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
    {
        eprintln!("skipped: {test}: user namespaces are not allowed here (unshare --map-root-user --net)");
        return;
    }
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--net", "--pid", "--fork", "--kill-child"]);
    command.arg(std::env::current_exe().expect("the test's own path"));
    command
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(INSIDE, "1");
    let output = finished(&mut command, TEST_DEADLINE);
    assert!(output.status.success(), "{}", shown(&command, &output));
    let ran = String::from_utf8_lossy(&output.stdout).contains("1 passed");
    assert!(
        ran,
        "{test} is not the name of a test: {}",
        shown(&command, &output)
    );
}

/// Adds an address to the node.
pub fn add_address(address: &str) {
    let mut ip = Command::new("ip");
    let status = ip.args(["addr", "add", address, "dev", "site0"]).status();
    assert!(status.expect("ip runs").success(), "{address}");
}

impl Node {
    fn set_up() -> Node {
        let commands = "link set lo up\n\
            link add site0 type veth peer name site1\nlink set site0 up\nlink set site1 up\n\
            link add other0 type veth peer name other1\nlink set other0 up\nlink set other1 up\n\
            addr add 10.1.0.1/24 dev site0\naddr add 10.1.0.253/24 dev site0\n\
            addr add fd00:1::1/64 dev site0 nodad\naddr add fd00:1::fd/64 dev site0 nodad\n\
            addr add 192.168.7.1/24 dev other0\naddr add fd00:7::1/64 dev other0 nodad\n";
        let mut ip = Command::new("ip")
            .args(["-batch", "-"])
            .stdin(Stdio::piped())
            .spawn()
            .expect("ip runs");
        ip.stdin
            .take()
            .expect("piped")
            .write_all(commands.as_bytes())
            .expect("ip reads");
        assert!(ip.wait().expect("ip ends").success(), "ip -batch failed");
        let deps = std::env::current_exe()
            .expect("the test's own path")
            .with_file_name("libcauseway_shim.so");
        assert!(
            deps.exists(),
            "{} is missing: cargo builds it for `cargo test -p causeway-shim`",
            deps.display()
        );
        Node { library: deps }
    }

    /// `python3 -c program`, preloaded, as a process of the job.
    pub fn python(&self, program: &str) -> Command {
        let mut command = self.python_outside(program);
        command
            .env("CAUSEWAY_GRID", GRID)
            .env("CAUSEWAY_TOKEN", TOKEN.to_hex());
        command
    }

    /// The same, without a job's environment.
    pub fn python_outside(&self, program: &str) -> Command {
        let mut command = Command::new("python3");
        command
            .arg("-c")
            .arg(format!("{PRELUDE}{program}"))
            .env("LD_PRELOAD", &self.library);
        command
    }

    /// Runs a program that contains its own assertions; returns what it wrote to standard error.
    pub fn passes(&self, program: &str) -> String {
        passes(&mut self.python(program))
    }

    /// A C program, compiled beside the test's own executable.
    pub fn compiled(&self, name: &str, source: &str) -> PathBuf {
        self.compile(&format!("shim-test-{name}"), &[], source)
    }

    /// A C library, compiled in the same way.
    pub fn shared_library(&self, name: &str, source: &str) -> PathBuf {
        self.compile(name, &["-shared", "-fPIC"], source)
    }

    fn compile(&self, name: &str, flags: &[&str], source: &str) -> PathBuf {
        let program = self.library.with_file_name(name);
        let mut cc = Command::new("cc");
        cc.args(["-x", "c", "-O1", "-Wall", "-pthread"])
            .args(flags)
            .arg("-o")
            .arg(&program)
            .arg("-");
        let mut cc = cc.stdin(Stdio::piped()).spawn().expect("a C compiler");
        cc.stdin
            .take()
            .expect("piped")
            .write_all(source.as_bytes())
            .expect("cc reads");
        assert!(cc.wait().expect("cc ends").success(), "{name} does not compile");
        program
    }

    /// A program, preloaded, as a process of the job.
    pub fn preloaded(&self, program: &PathBuf) -> Command {
        let mut command = Command::new(program);
        command.env("LD_PRELOAD", &self.library);
        command
            .env("CAUSEWAY_GRID", GRID)
            .env("CAUSEWAY_TOKEN", TOKEN.to_hex());
        command
    }
}

/// Runs a command that must succeed; returns its standard error.
pub fn passes(command: &mut Command) -> String {
    let output = finished(command, PROGRAM_DEADLINE);
    assert!(output.status.success(), "{}", shown(command, &output));
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Counts the shim's lines in a text from standard error.
pub fn lines_of_the_shim(stderr: &str) -> usize {
    stderr.lines().filter(|line| line.starts_with("causeway")).count()
}

fn finished(command: &mut Command, deadline: Duration) -> Output {
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = child.expect("the command starts");
    let (stdout, stderr) = (collect(child.stdout.take()), collect(child.stderr.take()));
    let end = Instant::now() + deadline;
    let text = |pipe: Receiver<Vec<u8>>, child: &mut Child| match pipe
        .recv_timeout(end.saturating_duration_since(Instant::now()))
    {
        Ok(bytes) => bytes,
        Err(RecvTimeoutError::Disconnected) => Vec::new(),
        Err(RecvTimeoutError::Timeout) => {
            let _ = child.kill();
            let mut bytes = pipe.recv_timeout(Duration::from_secs(1)).unwrap_or_default();
            bytes.extend(format!("[killed: not done within {deadline:?}]").as_bytes());
            bytes
        }
    };
    let stdout = text(stdout, &mut child);
    let stderr = text(stderr, &mut child);
    Output {
        status: child.wait().expect("the command ends"),
        stdout,
        stderr,
    }
}

fn collect(pipe: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            let _ = pipe.read_to_end(&mut bytes);
        }
        let _ = sender.send(bytes);
    });
    receiver
}

fn shown(command: &Command, output: &Output) -> String {
    let (stdout, stderr) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    format!(
        "{command:?}\nstatus: {}\nstdout:\n{stdout}\nstderr:\n{stderr}",
        output.status
    )
}

/// A connection that a shim has made to the test's gateway.
pub struct Intake {
    pub stream: TcpStream,
    pub preface: Preface,
    /// The bytes of the preface, as they came.
    pub raw: Vec<u8>,
}

/// Prefaces that a test's gateway has read, each with its bytes.
pub type Prefaces = Receiver<(Preface, Vec<u8>)>;

/// Listens like a gateway, and passes every connection whose preface has arrived to `on_intake`, each in a
/// separate thread; the preface is also sent to the receiver that is returned.
pub fn gateway(address: &str, on_intake: impl Fn(Intake) + Clone + Send + 'static) -> Prefaces {
    asked_gateway(address, answer_as_rennes, on_intake)
}

/// Answers a question as the gateway of the node's site does.
pub fn answer_as_rennes(stream: &mut TcpStream, question: &Question) {
    if question.is_of(&TOKEN) {
        let _ = stream.write_all(&question.answer(&TOKEN, "rennes"));
    }
}

/// The same with a function that handles questions.
pub fn asked_gateway(
    address: &str,
    on_question: impl Fn(&mut TcpStream, &Question) + Clone + Send + 'static,
    on_intake: impl Fn(Intake) + Clone + Send + 'static,
) -> Prefaces {
    let listener = TcpListener::bind(address).expect("the gateway's address is free");
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (on_intake, on_question) = (on_intake.clone(), on_question.clone());
            let sender = sender.clone();
            std::thread::spawn(move || {
                let stream = stream.expect("accept works");
                if let Some(intake) = read_preface(stream, on_question) {
                    let _ = sender.send((intake.preface, intake.raw.clone()));
                    on_intake(intake);
                }
            });
        }
    });
    receiver
}

/// A gateway that sends these bytes to everyone whose preface asks for an answer, and then echoes.
pub fn answering_gateway(address: &str, answer: &'static [u8]) -> Prefaces {
    gateway(address, answering(answer))
}

/// Returns a function that answers a preface as such a gateway does.
pub fn answering(answer: &'static [u8]) -> impl Fn(Intake) + Clone + Send + 'static {
    move |mut intake| {
        match intake.preface.wants {
            Wants::Verdict => intake.stream.write_all(answer).expect("the shim reads"),
            Wants::UrgentCode => urgent(&intake.stream, answer[1]),
            Wants::Nothing => {}
        }
        echo(intake.stream);
    }
}

/// Sends back what comes, until the end.
pub fn echo(mut stream: TcpStream) {
    let mut bytes = [0; 1024];
    while let Ok(read @ 1..) = stream.read(&mut bytes) {
        let _ = stream.write_all(&bytes[..read]);
    }
}

/// Sends a verdict's code outside the stream.
pub fn urgent(stream: &TcpStream, code: u8) {
    // SAFETY: one live byte.
    let sent = unsafe { libc::send(stream.as_raw_fd(), (&raw const code).cast(), 1, libc::MSG_OOB) };
    assert_eq!(sent, 1, "the shim reads");
}

fn read_preface(mut stream: TcpStream, on_question: impl Fn(&mut TcpStream, &Question)) -> Option<Intake> {
    let mut raw = Vec::new();
    loop {
        match Preface::decode(&raw).expect("a preface") {
            Decoded::Complete { claim, .. } => {
                let preface = claim.proven(Sender::Process, &TOKEN).expect("of the job");
                stream.write_all(&claim.answer(Sender::Gateway, &TOKEN)).ok()?;
                return Some(Intake { stream, preface, raw });
            }
            Decoded::Question { question, .. } => {
                on_question(&mut stream, &question);
                return None;
            }
            Decoded::Incomplete { needed } => {
                let mut more = vec![0; needed - raw.len()];
                stream.read_exact(&mut more).ok()?;
                raw.extend(more);
            }
        }
    }
}
