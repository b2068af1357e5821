//! Two gateways joined by a tunnel over loopback, no privilege needed: site one has 127.x.1.0/24, site two
//! 127.x.2.0/24, with an x of the test's own, so that tests and other programs do not meet.

pub mod member;
pub mod proxy;
pub mod relay;
pub mod sites;

use causeway_control::audit::AuditEntry;
use causeway_control::{self as control, JobReply, Reply, Request, Status};
use causeway_gateway::{Config, Gateway};
use causeway_wire::preface::Claim;
use causeway_wire::{Preface, Sender, Token, Verdict};
use nix::sys::pthread::pthread_kill;
use nix::sys::signal::Signal;
use proxy::Proxy;
use relay::Relay;
use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::thread::JoinHandleExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Nothing on loopback takes this long; a test that waits longer has found a hang.
pub const DEADLINE: Duration = Duration::from_secs(20);

pub struct Grid {
    dir: tempfile::TempDir,
    net: u8,
    job: Option<UnixStream>,
    pub token: Token,
    /// The proxy between the gateways, if the test wants one.
    pub proxy: Option<Proxy>,
    pub relay: Option<Relay>,
    /// Last byte of the address that site one's gateway dials: the far gateway's own or the proxy's.
    dialled: u8,
    /// Lines for `[grid]` of both configurations, and of site one's alone.
    extra: String,
    extra_here: String,
    /// Lines for `[site]` of site two's configuration.
    extra_site: String,
    /// The lines of `[accept]` of site two's configuration, and of site one's.
    accept: String,
    accept_here: String,
    forgets_peer: bool,
    running: HashMap<u8, JoinHandle<()>>,
    /// The far gateway as a separate process, if the test wants to kill it.
    far: Option<Child>,
}

impl Drop for Grid {
    fn drop(&mut self) {
        self.kill_far();
    }
}

/// What sites let each other do if a test says nothing else.
const ACCEPTS_ALL: &str = "jobs = [\"all\"]\nconnect_from = [\"all:1024-65535\"]\nover_clear_text = true";

/// Last byte of the proxy's address.
const PROXY: u8 = 9;

/// Every site of any test: those that exist take part.
pub fn everywhere() -> control::Plan {
    control::Plan {
        sites: (1..=9).map(|site| format!("site{site}")).collect(),
        ..control::Plan::default()
    }
}

impl Grid {
    /// Both gateways, their tunnel up, and one job.
    pub fn start() -> Grid {
        Grid::with_keys("one key for both sites", "one key for both sites").with_job()
    }

    /// The same with `extra` lines in `[grid]`.
    pub fn with_settings(extra: &str) -> Grid {
        let mut grid = Grid::plan(extra);
        [2, 1].into_iter().for_each(|site| grid.gateway(site));
        grid.with_job()
    }

    /// The same with a proxy between the gateways and `extra` lines in `[grid]`.
    pub fn through_proxy(extra: &str) -> Grid {
        let mut grid = Grid::plan(extra);
        grid.start_proxy();
        [2, 1].into_iter().for_each(|site| grid.gateway(site));
        grid.with_job()
    }

    /// The same with a relay of UDP datagrams between the gateways, and with a proxy.
    pub fn through_relay(extra: &str) -> Grid {
        let mut grid = Grid::plan(extra);
        grid.start_proxy();
        let address = |host| SocketAddr::from(([127, grid.net, 0, host], 7001));
        grid.relay = Some(Relay::start(address(PROXY), address(2)));
        [2, 1].into_iter().for_each(|site| grid.gateway(site));
        grid.with_job()
    }

    /// Returns the address at which a site's gateway listens for others.
    pub fn wan(&self, site: u8) -> SocketAddr {
        SocketAddr::from(([127, self.net, 0, site], 7001))
    }

    /// Two gateways between which nothing passes, not even a refusal, until the silence is dropped and the
    /// proxy started.
    pub fn in_silence() -> (Grid, Silence) {
        let mut grid = Grid::plan("");
        grid.dialled = PROXY;
        let silence = Silence::at(SocketAddr::from(([127, grid.net, 0, PROXY], 7001)));
        [2, 1].into_iter().for_each(|site| grid.gateway(site));
        (grid, silence)
    }

    pub fn start_proxy(&mut self) {
        let address = |host| SocketAddr::from(([127, self.net, 0, host], 7001));
        self.proxy = Some(Proxy::start(address(PROXY), address(2)));
        self.dialled = PROXY;
    }

    /// The same with the far gateway in a separate process.
    pub fn with_far_process() -> Grid {
        Grid::with_far_log(Stdio::inherit())
    }

    /// The same with the far gateway's stderr.
    pub fn with_far_log(log: Stdio) -> Grid {
        let mut grid = Grid::plan("");
        grid.start_far_logging(log);
        grid.gateway(1);
        grid.with_job()
    }

    /// The same; the far gateway's process may open only this many files.
    pub fn with_far_files(files: u32) -> Grid {
        let mut grid = Grid::plan("");
        let mut limited = Command::new("sh");
        limited
            .args(["-c", &format!("ulimit -n {files} && exec \"$0\" \"$@\"")])
            .arg(std::env::current_exe().unwrap());
        grid.start_far_as(limited);
        grid.gateway(1);
        grid.with_job()
    }

    pub fn with_keys(one: &str, two: &str) -> Grid {
        Grid::with_keys_and_settings(one, two, "")
    }

    pub fn with_keys_and_settings(one: &str, two: &str, extra: &str) -> Grid {
        let mut grid = Grid::plan(extra);
        for (site, key) in [(2, two), (1, one)] {
            write_key(&grid.dir.path().join(format!("{site}.key")), key);
            grid.gateway(site);
        }
        grid
    }

    /// Only site one has `extra` lines in `[grid]`: no tunnel is waited for.
    pub fn with_settings_here(extra: &str) -> Grid {
        let mut grid = Grid::plan("");
        grid.extra_here = extra.to_owned();
        [2, 1].into_iter().for_each(|site| grid.gateway(site));
        grid
    }

    /// Both gateways, and a job of site two. Site one has a [[peer]] for a third site, which the test plays
    /// (`member`).
    pub fn with_member() -> Grid {
        Grid::with_member_and_accept(ACCEPTS_ALL)
    }

    /// The same, with these lines in `[accept]` of site one.
    pub fn with_member_and_accept(accept: &str) -> Grid {
        // The member speaks in clear text. Its lanes are not trained, because training would fill a lane that
        // nobody reads.
        let mut grid = Grid::plan("insecure = true");
        grid.accept_here = accept.to_owned();
        grid.extra_here =
            "train = false\nlane_timeout = \"8s\"\nrelay = true\n[[peer]]\nsite = \"site3\"".to_owned();
        [2, 1].into_iter().for_each(|site| grid.gateway(site));
        wait_for("the tunnel", || {
            let status = grid.try_status(2);
            status.is_some_and(|status| status.sites.iter().all(|site| site.unreachable.is_none()))
        });
        let (job, held) = grid.job_at(2, "test");
        grid.token = job.token.parse().unwrap();
        grid.job = Some(held);
        grid
    }

    /// Both gateways, with `extra` lines in `[site]` of site two, and one job.
    pub fn with_far_site(extra: &str) -> Grid {
        let mut grid = Grid::plan("");
        grid.extra_site = extra.to_owned();
        [2, 1].into_iter().for_each(|site| grid.gateway(site));
        grid.with_job()
    }

    /// Both gateways, with these lines in `[accept]` of site two, and no job.
    pub fn with_far_accept(accept: &str) -> Grid {
        let mut grid = Grid::plan("");
        grid.accept = accept.to_owned();
        [2, 1].into_iter().for_each(|site| grid.gateway(site));
        grid.wait_for_tunnel();
        grid
    }

    /// The same, but site two opens one more address to the jobs of others.
    pub fn with_far_accept_of_addresses(host: u8) -> Grid {
        let mut grid = Grid::plan("");
        let address = grid.address(2, host, 0).ip();
        grid.accept = format!("jobs = [\"all\"]\naddresses = [\"{address}\"]");
        [2, 1].into_iter().for_each(|site| grid.gateway(site));
        grid.wait_for_tunnel();
        grid
    }

    fn spawn_and_hold_at(&self, site: u8, token: &str, node: &str) -> UnixStream {
        let request = Request::Spawn {
            token: token.to_owned(),
            node: node.to_owned(),
            takes_connection: true,
        };
        let (reply, stream) = control::ask(&self.control(site), &request).unwrap();
        assert!(matches!(reply, Reply::Spawn {}), "{reply:?}");
        stream
    }

    /// Asks a site for a process of its own job on one of its own nodes; returns everything that arrived
    /// until the stream ended.
    pub fn spawned_at(&self, site: u8, token: &str, node: &str) -> String {
        let mut got = Vec::new();
        let mut stream = self.spawn_and_hold_at(site, token, node);
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        let _ = stream.read_to_end(&mut got);
        String::from_utf8_lossy(&got).into_owned()
    }

    /// The same, but this site's gateway says why nothing is started.
    pub fn spawn_fails(&self, token: &str, node: &str) -> String {
        let request = Request::Spawn {
            token: token.to_owned(),
            node: node.to_owned(),
            takes_connection: true,
        };
        control::ask(&self.control(1), &request).unwrap_err().to_string()
    }

    /// The same; returns everything that arrived until the stream ended.
    pub fn spawned(&self, token: &str, node: &str) -> String {
        self.spawned_at(1, token, node)
    }

    fn audit_file(&self, site: u8) -> PathBuf {
        self.dir.path().join(format!("audit-site{site}.jsonl"))
    }

    /// Reads the audit of a site's gateway.
    pub fn audit(&self, site: u8) -> Vec<AuditEntry> {
        let mut entries = Vec::new();
        for file in [
            self.audit_file(site),
            control::audit::refusals(&self.audit_file(site)),
        ] {
            let damaged = control::audit::read(&file, |entry| entries.push(entry));
            assert_eq!(damaged.unwrap(), 0);
        }
        entries
    }

    /// Puts the audit of a site's gateway on a disk that hangs: whoever opens a file waits.
    pub fn hang_audit(&self, site: u8) {
        let mode = nix::sys::stat::Mode::from_bits_truncate(0o600);
        for file in [
            self.audit_file(site),
            control::audit::refusals(&self.audit_file(site)),
        ] {
            nix::unistd::mkfifo(&file, mode).unwrap();
        }
    }

    /// Makes it impossible to write any more lines.
    pub fn spoil_audit(&self, site: u8) {
        std::fs::create_dir(self.audit_file(site)).unwrap();
    }

    /// The same over a tunnel in clear text.
    pub fn in_clear_with_far_accept(accept: &str) -> Grid {
        let mut grid = Grid::plan("insecure = true\ntransport = \"tcp\"");
        grid.accept = accept.to_owned();
        [2, 1].into_iter().for_each(|site| grid.gateway(site));
        grid.wait_for_tunnel();
        grid
    }

    /// Site two has no [[peer]] for site one.
    pub fn with_forgotten_peer() -> Grid {
        let mut grid = Grid::plan("");
        grid.forgets_peer = true;
        [2, 1].into_iter().for_each(|site| grid.gateway(site));
        grid
    }

    /// A place for both sites; nothing runs yet.
    fn plan(extra: &str) -> Grid {
        let net = crate::nets::own();
        let dir = tempfile::tempdir().unwrap();
        for site in [1, 2] {
            write_key(&dir.path().join(format!("{site}.key")), "one key for both sites");
        }
        Grid {
            dir,
            net,
            job: None,
            token: Token([0; 16]),
            proxy: None,
            relay: None,
            dialled: 2,
            extra: extra.to_owned(),
            extra_here: String::new(),
            extra_site: String::new(),
            accept: ACCEPTS_ALL.to_owned(),
            accept_here: ACCEPTS_ALL.to_owned(),
            forgets_peer: false,
            running: HashMap::new(),
            far: None,
        }
    }

    pub fn gateway(&mut self, site: u8) {
        let text = self.configuration(site);
        let config = Config::parse(&text, &self.dir.path().join("gateway.toml")).unwrap();
        let mut gateway = Gateway::new(config).unwrap();
        // The gateway ends with the test's process, or when it is stopped.
        let running = std::thread::spawn(move || gateway.run().unwrap());
        self.running.insert(site, running);
    }

    /// Stops a gateway that runs in a thread of the test, as SIGTERM to its process would.
    pub fn stop(&mut self, site: u8) {
        let running = self.running.remove(&site).unwrap();
        pthread_kill(running.as_pthread_t(), Signal::SIGTERM).unwrap();
        running.join().unwrap();
    }

    pub fn start_far(&mut self) {
        self.start_far_logging(Stdio::inherit());
    }

    fn start_far_logging(&mut self, log: Stdio) {
        let mut program = Command::new(std::env::current_exe().unwrap());
        program.stderr(log);
        self.start_far_as(program);
    }

    fn start_far_as(&mut self, program: Command) {
        let file = self.dir.path().join("far.toml");
        std::fs::write(&file, self.configuration(2)).unwrap();
        self.far = Some(serving(program, &file));
    }

    pub fn kill_far(&mut self) {
        if let Some(mut far) = self.far.take() {
            let _ = far.kill();
            let _ = far.wait();
        }
    }

    fn with_job(mut self) -> Grid {
        self.wait_for_tunnel();
        let (job, held) = self.job("test");
        self.token = job.token.parse().unwrap();
        self.job = Some(held);
        self
    }

    pub fn wait_for_tunnel(&self) {
        let up = |site| {
            let status = self.try_status(site);
            status.is_some_and(|status| status.sites.iter().all(|site| site.unreachable.is_none()))
        };
        wait_for("the tunnel", || up(1) && up(2));
    }

    fn configuration(&self, site: u8) -> String {
        let net = self.net;
        let other = 3 - site;
        let here = if site == 1 { &self.extra_here } else { "" };
        let there = if site == 2 { &self.extra_site } else { "" };
        let accept = if site == 2 {
            &self.accept
        } else {
            &self.accept_here
        };
        let dial = if site == 1 {
            format!("address = \"127.{net}.0.{}:7001\"", self.dialled)
        } else {
            String::new()
        };
        let peer = if site == 2 && self.forgets_peer {
            String::new()
        } else {
            format!("[[peer]]\nsite = \"site{other}\"")
        };
        format!(
            r#"
            [site]
            name = "site{site}"
            subnets = ["127.{net}.{site}.0/24"]
            nodes = [{{ name = "node{site}", address = "127.{net}.{site}.1" }}]
            remote_shell = ["false", "{{node}}"]
            {there}
            [listen]
            lan = ["127.{net}.{site}.253:7000"]
            wan = "127.{net}.0.{site}:7001"
            control = "{}"
            metrics = "{}"
            [accept]
            {accept}
            [grid]
            key_file = "{site}.key"
            {}
            {here}
            {peer}
            {dial}
            "#,
            self.control(site).display(),
            self.metrics(site),
            self.extra
        )
    }

    /// Returns the address at which a site's gateway serves its metrics.
    pub fn metrics(&self, site: u8) -> SocketAddr {
        self.address(site, 253, 9464)
    }

    pub fn control(&self, site: u8) -> PathBuf {
        self.dir.path().join(format!("{site}.sock"))
    }

    /// Returns the reason why site one does not reach site two.
    pub fn trouble(&self) -> String {
        let sites = self.status(1).sites;
        let far = sites.into_iter().find(|site| site.name == "site2").unwrap();
        far.unreachable.unwrap()
    }

    pub fn status(&self, site: u8) -> Status {
        self.try_status(site).unwrap()
    }

    fn try_status(&self, site: u8) -> Option<Status> {
        match control::ask(&self.control(site), &Request::Status {}) {
            Ok((Reply::Status(status), _)) => Some(*status),
            Ok((other, _)) => panic!("{other:?}"),
            Err(_) => None,
        }
    }

    /// A new job of site one, which ends when the connection is dropped.
    pub fn job(&self, name: &str) -> (JobReply, UnixStream) {
        self.job_at(1, name)
    }

    pub fn job_at(&self, site: u8, name: &str) -> (JobReply, UnixStream) {
        match control::ask(
            &self.control(site),
            &Request::Job {
                name: name.into(),
                weight: 1,
                plan: everywhere(),
            },
        )
        .unwrap()
        {
            (Reply::Job(job), held) => (job, held),
            (other, _) => panic!("{other:?}"),
        }
    }

    pub fn end_job(&mut self) {
        self.job = None;
    }

    pub fn address(&self, site: u8, host: u8, port: u16) -> SocketAddr {
        SocketAddr::from(([127, self.net, site, host], port))
    }

    /// A process of site two that accepts what is delivered.
    pub fn listen(&self) -> TcpListener {
        TcpListener::bind(self.address(2, 1, 0)).unwrap()
    }

    /// A connection of a process of site one to its gateway, on which nothing was sent yet.
    pub fn dial(&self) -> TcpStream {
        self.dial_at(1)
    }

    /// The same for this site.
    pub fn dial_at(&self, site: u8) -> TcpStream {
        connect_from(self.address(site, 1, 0), self.address(site, 253, 7000))
    }

    /// A connection from this WAN address to the address at which site two's gateway waits for others.
    pub fn stranger(&self, host: u8) -> TcpStream {
        connect_from(self.address(0, host, 0), self.address(0, 2, 7001))
    }

    pub fn preface(&self, stream: &TcpStream, destination: SocketAddr, wants_verdict: bool) -> Preface {
        Preface {
            source: stream.local_addr().unwrap(),
            destination,
            token: self.token,
            wants: if wants_verdict {
                causeway_wire::Wants::Verdict
            } else {
                causeway_wire::Wants::Nothing
            },
        }
    }

    /// Connects as a shim does for a blocking connect.
    pub fn connect(&self, destination: SocketAddr) -> Result<TcpStream, Verdict> {
        let stream = self.dial();
        let preface = self.preface(&stream, destination, true);
        send_preface(stream, &preface)
    }

    /// A connection across the sites: the connecting end, the accepting end. The accepting side waits for it:
    /// a gateway that hears nothing from that side takes 40 ms until it reports the connection as
    /// established.
    pub fn pair(&self, listener: &TcpListener) -> (TcpStream, TcpStream) {
        let accepts = accepts(listener, self.token);
        let near = self.connect(listener.local_addr().unwrap()).unwrap();
        let (far, preface) = accepts.join().unwrap();
        assert_eq!(preface.source, near.local_addr().unwrap());
        assert_eq!(preface.destination, listener.local_addr().unwrap());
        assert_eq!(preface.token, self.token);
        (near, far)
    }
}

impl Grid {
    /// A connection of a process of site two to one of site one: the connecting end, the accepting end.
    pub fn pair_back(&self, listener: &TcpListener) -> (TcpStream, TcpStream) {
        let stream = connect_from(self.address(2, 1, 0), self.address(2, 253, 7000));
        let preface = self.preface(&stream, listener.local_addr().unwrap(), true);
        let accepts = accepts(listener, self.token);
        let near = send_preface(stream, &preface).unwrap();
        let (far, _) = accepts.join().unwrap();
        (near, far)
    }
}

fn write_key(file: &Path, key: &str) {
    std::fs::write(file, key).unwrap();
    std::fs::set_permissions(file, PermissionsExt::from_mode(0o600)).unwrap();
}

pub fn connect_from(own: SocketAddr, other: SocketAddr) -> TcpStream {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.bind(&own.into()).unwrap();
    socket.connect(&other.into()).unwrap();
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    stream.set_write_timeout(Some(DEADLINE)).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

/// An address that answers no connection request: its queue of connections is full, and nobody accepts any.
pub struct Silence {
    _listener: socket2::Socket,
    _first: TcpStream,
}

impl Silence {
    fn at(address: SocketAddr) -> Silence {
        let listener = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
        listener.set_reuse_address(true).unwrap();
        listener.bind(&address.into()).unwrap();
        // Linux allows one more than it is told.
        listener.listen(0).unwrap();
        let first = TcpStream::connect(address).unwrap();
        Silence {
            _listener: listener,
            _first: first,
        }
    }
}

/// The bytes of a preface as a shim sends it.
pub fn encoded(preface: &Preface) -> Vec<u8> {
    static NONCE: AtomicU64 = AtomicU64::new(1);
    let nonce = NONCE.fetch_add(1, Ordering::Relaxed).to_be_bytes();
    preface.encode(Sender::Process, &nonce).unwrap()
}

/// Sends a preface, and reads the gateway's proof that it knows the job; returns what arrives in its place.
pub fn introduce(mut stream: &TcpStream, preface: &Preface) -> Option<[u8; Verdict::BYTES]> {
    use causeway_wire::preface::{ANSWER_BYTES, Decoded};
    let bytes = encoded(preface);
    stream.write_all(&bytes).unwrap();
    let Ok(Decoded::Complete { claim, .. }) = Preface::decode(&bytes) else {
        panic!("no preface")
    };
    let expected = claim.answer(Sender::Gateway, &preface.token);
    let mut first = [0; Verdict::BYTES];
    stream.read_exact(&mut first).unwrap();
    let (begin, rest) = expected.split_at(Verdict::BYTES);
    if first != begin {
        return Some(first);
    }
    let mut more = [0; ANSWER_BYTES - Verdict::BYTES];
    stream.read_exact(&mut more).unwrap();
    assert_eq!(more, rest);
    None
}

/// Sends a preface that asks for a verdict, and reads the verdict. A gateway that does not know the job
/// proves nothing.
pub fn send_preface(mut stream: TcpStream, preface: &Preface) -> Result<TcpStream, Verdict> {
    let mut verdict = [0; Verdict::BYTES];
    match introduce(&stream, preface) {
        Some(first) => verdict = first,
        None => stream.read_exact(&mut verdict).unwrap(),
    }
    match Verdict::decode(verdict).unwrap() {
        Verdict::Connected => Ok(stream),
        failed => Err(failed),
    }
}

/// Accepts as a shim of this job does.
pub fn accept(listener: &TcpListener, token: &Token) -> (TcpStream, Preface) {
    let (mut stream, claim) = accept_silently(listener);
    // MPIs do this, too. Without it, what is written next waits until the answer is acknowledged.
    stream.set_nodelay(true).unwrap();
    stream.write_all(&claim.answer(Sender::Process, token)).unwrap();
    (stream, claim.proven(Sender::Gateway, token).unwrap())
}

/// The same in a thread.
fn accepts(listener: &TcpListener, token: Token) -> std::thread::JoinHandle<(TcpStream, Preface)> {
    let listener = listener.try_clone().unwrap();
    std::thread::spawn(move || accept(&listener, &token))
}

/// The same without an answer: it proves nothing. Connections that end without having sent anything are
/// ignored, as a shim ignores them: a gateway that cannot tell whether its preface has arrived wakes the
/// listener with one.
pub fn accept_silently(listener: &TcpListener) -> (TcpStream, Claim) {
    loop {
        let (stream, peer) = listener.accept().unwrap();
        if let Some(accepted) = read_claim(stream, peer) {
            return accepted;
        }
    }
}

fn read_claim(mut stream: TcpStream, peer: SocketAddr) -> Option<(TcpStream, Claim)> {
    use causeway_wire::preface::{Decoded, FIXED_BYTES};
    assert!(
        (20000..=32767).contains(&peer.port()),
        "delivered from port {}",
        peer.port()
    );
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    stream.set_write_timeout(Some(DEADLINE)).unwrap();
    let mut bytes = vec![0; FIXED_BYTES];
    if stream.read(&mut bytes[..1]).unwrap() == 0 {
        return None;
    }
    stream.read_exact(&mut bytes[1..]).unwrap();
    loop {
        match Preface::decode(&bytes).unwrap() {
            Decoded::Complete { claim, .. } => return Some((stream, claim)),
            Decoded::Question { .. } => panic!("a question and no preface"),
            Decoded::Incomplete { needed } => {
                let have = bytes.len();
                bytes.resize(needed, 0);
                stream.read_exact(&mut bytes[have..]).unwrap();
            }
        }
    }
}

/// This program as a gateway with this configuration, started through `program` if one is given.
fn serving(mut program: Command, file: &Path) -> Child {
    program
        .args([
            "--exact",
            "common::serves_in_a_process_of_its_own",
            "--ignored",
            "--nocapture",
        ])
        .env("CAUSEWAY_TEST_GATEWAY", file);
    program.spawn().unwrap()
}

#[test]
#[ignore = "the body of a gateway's process, which serves until it is killed"]
fn serves_in_a_process_of_its_own() {
    let Some(file) = std::env::var_os("CAUSEWAY_TEST_GATEWAY") else {
        return;
    };
    let config = Config::load(std::path::Path::new(&file)).unwrap();
    Gateway::new(config).unwrap().run().unwrap();
}

/// Sends `bytes` one way while the other end checks them.
pub fn cross(mut from: &TcpStream, mut to: &TcpStream, bytes: &[u8]) {
    let mut got = vec![0; bytes.len()];
    std::thread::scope(|scope| {
        scope.spawn(|| from.write_all(bytes).unwrap());
        to.read_exact(&mut got).unwrap();
    });
    assert!(got == bytes, "{} bytes arrived changed", bytes.len());
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

pub fn pattern(seed: usize, length: usize) -> Vec<u8> {
    (0..length)
        .map(|at| (at * 31 + seed * 7 + at / 251) as u8)
        .collect()
}
