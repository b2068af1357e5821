//! Two gateways as processes, or three, and what their jobs do. Loopback only: site one has 127.x.1.0/24,
//! site two 127.x.2.0/24, with an x of the test's own.

use crate::programs::copy;
use causeway_control::{self as control, ControlError, Plan, Reply, Request, Status, TunnelStatus};
use causeway_wire::{Preface, Sender, Token, Verdict};
use std::collections::HashMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Nothing on loopback takes this long; a test that waits longer has found a hang.
pub const DEADLINE: Duration = Duration::from_secs(30);

pub const MEGABYTE: u64 = 1_000_000;

/// Both gateways as processes, and one job of site one.
pub struct Grid {
    pub dir: tempfile::TempDir,
    pub net: u8,
    pub gateways: HashMap<u8, Child>,
    pub token: Token,
    pub job: Option<UnixStream>,
    /// The program to which the gateways are handed over.
    pub next: PathBuf,
    pub ways: Ways,
}

/// How the gateways of sites one and two reach each other.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Ways {
    /// Site one dials.
    OneDials,
    /// Each dials the other.
    BothDial,
    /// Neither can dial the other: they meet at the gateway of site three.
    Relayed,
}

impl Drop for Grid {
    fn drop(&mut self) {
        for gateway in self.gateways.values_mut() {
            let _ = gateway.kill();
            let _ = gateway.wait();
        }
    }
}

impl Grid {
    pub fn start() -> Grid {
        Grid::with(Ways::OneDials)
    }

    pub fn with(ways: Ways) -> Grid {
        let mut grid = Grid::plan(ways);
        for site in grid.sites() {
            let mut gateway = Command::new(env!("CARGO_BIN_EXE_causeway"));
            gateway.args(["gateway", "--config"]).arg(grid.file(site));
            grid.gateways.insert(site, gateway.spawn().unwrap());
        }
        grid.wait_for_tunnel();
        let (token, job) = grid.new_job("held");
        (grid.token, grid.job) = (token, Some(job));
        grid
    }

    /// Configurations and the key; nothing runs.
    pub fn plan(ways: Ways) -> Grid {
        // Different from the networks of the gateway crate's tests, and from those of another run of these.
        let net = crate::nets::own();
        let dir = tempfile::tempdir().unwrap();
        let next = dir.path().join("causeway");
        copy(Path::new(env!("CARGO_BIN_EXE_causeway")), &next);
        set_mode(&next, 0o755);
        std::fs::write(dir.path().join("grid.key"), "one key for both sites").unwrap();
        set_mode(&dir.path().join("grid.key"), 0o600);
        let grid = Grid {
            dir,
            net,
            gateways: HashMap::new(),
            token: Token([0; 16]),
            job: None,
            next,
            ways,
        };
        for site in grid.sites() {
            std::fs::write(grid.file(site), grid.configuration(site)).unwrap();
        }
        grid
    }

    /// Sites in the order in which they start.
    pub fn sites(&self) -> Vec<u8> {
        match self.ways {
            Ways::Relayed => vec![3, 2, 1],
            _ => vec![2, 1],
        }
    }

    pub fn configuration(&self, site: u8) -> String {
        let net = self.net;
        let dials = |other: u8| match self.ways {
            Ways::OneDials => site == 1,
            Ways::BothDial => true,
            Ways::Relayed => other == 3,
        };
        let others = self.sites().into_iter().filter(|other| *other != site);
        let peers: String = others
            .map(|other| match dials(other) {
                true => format!("[[peer]]\nsite = \"site{other}\"\naddress = \"127.{net}.0.{other}:7001\"\n"),
                false => format!("[[peer]]\nsite = \"site{other}\"\n"),
            })
            .collect();
        let relays = site == 3;
        let control = self.control(site);
        format!(
            r#"
            [site]
            name = "site{site}"
            subnets = ["127.{net}.{site}.0/24"]
            nodes = [{{ name = "node{site}", address = "127.{net}.{site}.1" }}]
            remote_shell = ["sh", "-c", "ACCOUNT_OF={{site}} exec sh -c \"$1\"", "{{node}}"]
            [listen]
            lan = ["127.{net}.{site}.253:7000"]
            wan = "127.{net}.0.{site}:7001"
            control = "{}"
            metrics = "127.{net}.{site}.253:9464"
            [accept]
            jobs = ["all"]
            connect_from = ["all:1", "all:1024-65535"]
            [grid]
            key_file = "grid.key"
            train = false
            lanes = 2
            relay = {relays}
            {peers}
            "#,
            control.display()
        )
    }

    pub fn file(&self, site: u8) -> PathBuf {
        self.dir.path().join(format!("{site}.toml"))
    }

    pub fn control(&self, site: u8) -> PathBuf {
        self.dir.path().join(format!("{site}.sock"))
    }

    pub fn status(&self, site: u8) -> Status {
        self.try_status(site).unwrap()
    }

    pub fn try_status(&self, site: u8) -> Option<Status> {
        match control::ask(&self.control(site), &Request::Status {}).ok()? {
            (Reply::Status(status), _) => Some(*status),
            (other, _) => panic!("{other:?}"),
        }
    }

    pub fn wait_for_tunnel(&self) {
        wait_for("the tunnel", || {
            [1, 2].iter().all(|site| {
                let status = self.try_status(*site);
                status.is_some_and(|status| {
                    let lanes = Grid::between(&status, *site).map_or(0, |tunnel| tunnel.lanes.len());
                    status.sites.iter().all(|site| site.unreachable.is_none()) && lanes == 2
                })
            })
        });
    }

    /// The tunnel between sites one and two, as one of them sees it.
    pub fn between(status: &Status, site: u8) -> Option<&TunnelStatus> {
        let other = format!("site{}", 3 - site);
        status.tunnels.iter().find(|tunnel| tunnel.site == other)
    }

    /// A job of site one, which ends with the connection.
    pub fn new_job(&self, name: &str) -> (Token, UnixStream) {
        let request = Request::Job {
            name: name.to_owned(),
            weight: 1,
            plan: Plan {
                sites: vec!["site2".into(), "site3".into()],
                ranks: 0,
                ..Plan::default()
            },
        };
        match control::ask(&self.control(1), &request).unwrap() {
            (Reply::Job(job), held) => (job.token.parse().unwrap(), held),
            (other, _) => panic!("{other:?}"),
        }
    }

    /// A process of site two that accepts what is delivered.
    pub fn listen(&self) -> TcpListener {
        TcpListener::bind(SocketAddr::from(([127, self.net, 2, 1], 0))).unwrap()
    }

    /// A connection of a process of site one to its gateway, and a preface that asks for a verdict and has
    /// not been sent yet.
    pub fn dial(&self, destination: SocketAddr) -> (TcpStream, Vec<u8>) {
        self.dial_under(self.token, destination)
    }

    /// The same for a process of this job.
    pub fn dial_under(&self, token: Token, destination: SocketAddr) -> (TcpStream, Vec<u8>) {
        let stream = connect_from(
            SocketAddr::from(([127, self.net, 1, 1], 0)),
            SocketAddr::from(([127, self.net, 1, 253], 7000)),
        );
        patient(&stream);
        let preface = Preface {
            source: stream.local_addr().unwrap(),
            destination,
            token,
            wants: causeway_wire::Wants::Verdict,
        };
        (stream, preface.encode(Sender::Process, b"a nonce.").unwrap())
    }

    /// A connection across the sites: the connecting end, the accepting end.
    pub fn pair(&self, listener: &TcpListener) -> (TcpStream, TcpStream) {
        let (mut near, preface) = self.dial(listener.local_addr().unwrap());
        near.write_all(&preface).unwrap();
        let far = accept(listener, &self.token);
        assert_eq!(verdict(&near), Verdict::Connected);
        (near, far)
    }

    /// Runs `causeway gateway --drain` of the next program.
    pub fn try_drain(&self, site: u8) -> Output {
        let mut drain = Command::new(&self.next);
        drain
            .args(["gateway", "--drain", "--config"])
            .arg(self.file(site));
        drain.output().unwrap()
    }

    pub fn drain(&self, site: u8) {
        let before = self.status(site).handed_over;
        let output = self.try_drain(site);
        assert!(output.status.success(), "{output:?}");
        let said = String::from_utf8(output.stdout).unwrap();
        let wanted = format!("gateway of site{site} handed ");
        let program = self.next.display().to_string();
        println!("{}", said.trim_end());
        assert!(said.starts_with(&wanted) && said.contains(&program), "{said}");
        let status = self.status(site);
        assert_eq!(status.handed_over, before + 1);
        assert_eq!(status.pid, self.pid(site), "a process of its own");
        let running = std::fs::read_link(format!("/proc/{}/exe", status.pid));
        assert_eq!(running.unwrap(), self.next);
    }

    pub fn pid(&self, site: u8) -> u32 {
        self.gateways[&site].id()
    }

    /// Asks for a hand-over as a program would, and is refused.
    pub fn refusal(&self, state_version: u32, program: &Path, config: &Path) -> String {
        let request = Request::HandOver {
            state_version,
            program: program.to_owned(),
            config: config.to_owned(),
        };
        match control::ask(&self.control(1), &request) {
            Err(ControlError::Refused(why)) => why,
            other => panic!("{other:?}"),
        }
    }

    /// Processes that a gateway has started: children of its worker, and those of earlier workers.
    pub fn started(&self, site: u8) -> Vec<u32> {
        let (keeper, worker) = (self.pid(site), self.status(site).worker);
        let mut started = children(keeper);
        started.extend(children(worker));
        started.retain(|process| *process != worker);
        started.sort_unstable();
        started
    }

    /// The file of a site's audit.
    pub fn audit(&self, site: u8) -> PathBuf {
        self.dir.path().join(format!("audit-site{site}.jsonl"))
    }

    /// Counts the open files of a gateway once nothing is in progress.
    pub fn open_files(&self, site: u8) -> usize {
        let directory = format!("/proc/{}/fd", self.pid(site));
        std::fs::read_dir(directory).unwrap().count()
    }
}

fn children(process: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let children_of = |task: std::io::Result<std::fs::DirEntry>| {
        // A thread may end meanwhile.
        std::fs::read_to_string(task.unwrap().path().join("children")).unwrap_or_default()
    };
    let text: Vec<String> = tasks.map(children_of).collect();
    let numbers = text.iter().flat_map(|text| text.split_whitespace());
    numbers.map(|number| number.parse().unwrap()).collect()
}

pub fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
}

pub fn patient(stream: &TcpStream) {
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    stream.set_write_timeout(Some(DEADLINE)).unwrap();
}

pub fn verdict(mut stream: &TcpStream) -> Verdict {
    let mut verdict = [0; Verdict::BYTES];
    stream.read_exact(&mut verdict).unwrap();
    // If the gateway knows the job, its proof comes first, and this was half of it.
    if !matches!(Verdict::decode(verdict), Some(Verdict::Failed(_))) {
        stream.read_exact(&mut verdict).unwrap();
        stream.read_exact(&mut verdict).unwrap();
    }
    Verdict::decode(verdict).unwrap()
}

/// Accepts as a shim of this job does.
pub fn accept(listener: &TcpListener, token: &Token) -> TcpStream {
    use causeway_wire::preface::{Decoded, FIXED_BYTES};
    let (mut stream, _) = listener.accept().unwrap();
    patient(&stream);
    let mut bytes = vec![0; FIXED_BYTES];
    stream.read_exact(&mut bytes).unwrap();
    loop {
        match Preface::decode(&bytes).unwrap() {
            Decoded::Incomplete { needed } => {
                let have = bytes.len();
                bytes.resize(needed, 0);
                stream.read_exact(&mut bytes[have..]).unwrap();
            }
            Decoded::Complete { claim, .. } => {
                stream.write_all(&claim.answer(Sender::Process, token)).unwrap();
                return stream;
            }
            Decoded::Question { .. } => panic!("a question and no preface"),
        }
    }
}

/// The error that ends reading; `None` if the stream ends in order.
pub fn end_of(mut stream: &TcpStream) -> Option<ErrorKind> {
    let result = stream.read_to_end(&mut Vec::new());
    result.err().map(|error| error.kind())
}

/// Waits for something that no event announces.
pub fn wait_for(what: &str, mut done: impl FnMut() -> bool) {
    let started = Instant::now();
    while !done() {
        assert!(
            started.elapsed() < DEADLINE,
            "{what} did not come within {DEADLINE:?}"
        );
        std::thread::yield_now();
    }
}

/// Bytes that show their position: the period is not a divisor of any buffer's size.
pub fn pattern(seed: usize) -> Vec<u8> {
    pub const PERIOD: usize = 65_521;
    (0..PERIOD)
        .map(|at| (at * 31 + seed * 7 + at / 251) as u8)
        .collect()
}

/// Sends one message each way.
pub fn cross(near: &TcpStream, far: &TcpStream) {
    for (mut from, mut to) in [(near, far), (far, near)] {
        let bytes = pattern(3);
        let mut got = vec![0; bytes.len()];
        std::thread::scope(|scope| {
            scope.spawn(|| from.write_all(&bytes).unwrap());
            to.read_exact(&mut got).unwrap();
        });
        assert!(got == bytes);
    }
}

/// Sends until told to stop, then ends its half; returns how many bytes it sent.
pub fn send(mut stream: &TcpStream, seed: usize, stop: &AtomicBool) -> u64 {
    let bytes = pattern(seed);
    let mut sent = 0;
    while !stop.load(Ordering::Relaxed) {
        stream.write_all(&bytes).unwrap();
        sent += bytes.len() as u64;
    }
    stream.shutdown(Shutdown::Write).unwrap();
    sent
}

/// Reads to the end and checks every byte; counts them in `total` too.
pub fn receive(mut stream: &TcpStream, seed: usize, total: &AtomicU64) -> u64 {
    let wanted = pattern(seed);
    let mut buffer = vec![0; 100_000];
    let mut received = 0;
    loop {
        let count = stream.read(&mut buffer).unwrap();
        if count == 0 {
            return received;
        }
        let mut got = &buffer[..count];
        while !got.is_empty() {
            let at = (received % wanted.len() as u64) as usize;
            let length = got.len().min(wanted.len() - at);
            if let Some(first) = (0..length).find(|index| got[*index] != wanted[at + index]) {
                panic!(
                    "stream {seed} differs at byte {}: {}",
                    received + first as u64,
                    place_of(&got[first..], seed, at + first)
                );
            }
            received += length as u64;
            got = &got[length..];
        }
        total.fetch_add(count as u64, Ordering::Relaxed);
    }
}

/// Says where bytes belong that arrived instead of those that the pattern has at a position.
fn place_of(got: &[u8], seed: usize, wanted: usize) -> String {
    let some = &got[..got.len().min(2000)];
    for seed in std::iter::once(seed).chain(0..16) {
        let mut twice = pattern(seed);
        let period = twice.len();
        twice.extend_from_within(..some.len());
        if let Some(at) = twice.windows(some.len()).position(|window| window == some) {
            let ahead = (at + period - wanted) % period;
            return format!("{} bytes of stream {seed}, {ahead} of {period} ahead", some.len());
        }
    }
    format!("{} bytes: {:?}", got.len(), &some[..some.len().min(64)])
}

/// A connection from a node's own address: by itself, loopback would use another one.
pub fn connect_from(source: SocketAddr, to: SocketAddr) -> TcpStream {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.bind(&source.into()).unwrap();
    socket.connect(&to.into()).unwrap();
    socket.into()
}
