//! Two gateways joined by a tunnel over loopback, no privilege needed: site one owns 127.x.1.0/24, site two 127.x.2.0/24,
//! where x is the test's own, so that tests and other programs do not meet.
#![allow(dead_code, clippy::unwrap_used, clippy::panic)]

use causeway_gateway::control::{self, JobReply, Reply, Request, Status};
use causeway_gateway::{Config, Gateway};
use causeway_wire::{Preface, Token, Verdict};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

/// Nothing on loopback takes this long; a test that waits longer has found a hang.
pub const DEADLINE: Duration = Duration::from_secs(20);

pub struct Grid {
    dir: tempfile::TempDir,
    net: u8,
    job: Option<UnixStream>,
    pub token: Token,
}

static NEXT_NET: AtomicU8 = AtomicU8::new(0);

impl Grid {
    /// Both gateways, their tunnel up, and one job.
    pub fn start() -> Grid {
        let mut grid = Grid::with_keys("one key for both sites", "one key for both sites");
        wait_for("the tunnel", || {
            [1, 2].iter().all(|site| {
                grid.status(*site)
                    .sites
                    .iter()
                    .all(|site| site.unreachable.is_none())
            })
        });
        let (job, held) = grid.job("test");
        grid.token = job.token.parse().unwrap();
        grid.job = Some(held);
        grid
    }

    pub fn with_keys(one: &str, two: &str) -> Grid {
        // Test binaries run one after the other, tests of one binary in threads.
        let net = 10 + NEXT_NET.fetch_add(1, Ordering::Relaxed) + (std::process::id() % 4) as u8 * 50;
        let dir = tempfile::tempdir().unwrap();
        let grid = Grid {
            dir,
            net,
            job: None,
            token: Token([0; 16]),
        };
        for (site, key) in [(2, two), (1, one)] {
            std::fs::write(grid.dir.path().join(format!("{site}.key")), key).unwrap();
            let text = grid.configuration(site);
            let config = Config::parse(&text, &grid.dir.path().join("gateway.toml")).unwrap();
            let mut gateway = Gateway::new(config).unwrap();
            // Ends with the test's process.
            std::thread::spawn(move || gateway.run());
        }
        grid
    }

    fn configuration(&self, site: u8) -> String {
        let net = self.net;
        let other = 3 - site;
        let dial = if site == 1 {
            format!("address = \"127.{net}.0.2:7001\"")
        } else {
            String::new()
        };
        format!(
            r#"
            [site]
            name = "site{site}"
            subnets = ["127.{net}.{site}.0/24"]
            nodes = [{{ name = "node{site}", address = "127.{net}.{site}.1" }}]
            remote_shell = ["false", "{{node}}"]
            [listen]
            lan = ["127.{net}.{site}.253:7000"]
            wan = "127.{net}.0.{site}:7001"
            control = "{}"
            [grid]
            key_file = "{site}.key"
            [[peer]]
            site = "site{other}"
            {dial}
            "#,
            self.control(site).display()
        )
    }

    pub fn control(&self, site: u8) -> PathBuf {
        self.dir.path().join(format!("{site}.sock"))
    }

    pub fn status(&self, site: u8) -> Status {
        match control::ask(&self.control(site), &Request::Status {}).unwrap() {
            (Reply::Status(status), _) => *status,
            (other, _) => panic!("{other:?}"),
        }
    }

    /// A new job; it ends when the connection is dropped.
    pub fn job(&self, name: &str) -> (JobReply, UnixStream) {
        match control::ask(&self.control(1), &Request::Job { name: name.into() }).unwrap() {
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

    /// A connection of a process of site one to its gateway, nothing sent yet.
    pub fn dial(&self) -> TcpStream {
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
        socket.bind(&self.address(1, 1, 0).into()).unwrap();
        socket.connect(&self.address(1, 253, 7000).into()).unwrap();
        let stream = TcpStream::from(socket);
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        stream.set_nodelay(true).unwrap();
        stream
    }

    pub fn preface(&self, stream: &TcpStream, destination: SocketAddr, wants_verdict: bool) -> Preface {
        Preface {
            source: stream.local_addr().unwrap(),
            destination,
            token: self.token,
            wants_verdict,
        }
    }

    /// What a shim does for a blocking connect.
    pub fn connect(&self, destination: SocketAddr) -> Result<TcpStream, Verdict> {
        let stream = self.dial();
        let preface = self.preface(&stream, destination, true);
        send_preface(stream, &preface)
    }

    /// A connection across the sites: the connecting end, the accepting end.
    pub fn pair(&self, listener: &TcpListener) -> (TcpStream, TcpStream) {
        let near = self.connect(listener.local_addr().unwrap()).unwrap();
        let (far, preface) = accept(listener);
        assert_eq!(preface.source, near.local_addr().unwrap());
        assert_eq!(preface.destination, listener.local_addr().unwrap());
        assert_eq!(preface.token, self.token);
        (near, far)
    }
}

/// Sends a preface that asks for a verdict and reads it.
pub fn send_preface(mut stream: TcpStream, preface: &Preface) -> Result<TcpStream, Verdict> {
    stream.write_all(&preface.encode().unwrap()).unwrap();
    let mut verdict = [0; Verdict::BYTES];
    stream.read_exact(&mut verdict).unwrap();
    match Verdict::decode(verdict).unwrap() {
        Verdict::Connected => Ok(stream),
        failed => Err(failed),
    }
}

/// What a shim does in accept.
pub fn accept(listener: &TcpListener) -> (TcpStream, Preface) {
    use causeway_wire::preface::{Decoded, FIXED_BYTES};
    let (mut stream, peer) = listener.accept().unwrap();
    assert!(
        (20000..=32767).contains(&peer.port()),
        "delivered from port {}",
        peer.port()
    );
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    let mut bytes = vec![0; FIXED_BYTES];
    stream.read_exact(&mut bytes).unwrap();
    loop {
        match Preface::decode(&bytes).unwrap() {
            Decoded::Complete { preface, .. } => return (stream, preface),
            Decoded::Incomplete { needed } => {
                let have = bytes.len();
                bytes.resize(needed, 0);
                stream.read_exact(&mut bytes[have..]).unwrap();
            }
        }
    }
}

/// Waits for something no event tells of.
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
