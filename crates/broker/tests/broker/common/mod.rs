//! A grid on loopback: a real broker, sites that join it, and requests written by hand.

pub mod brokers;

use causeway_broker::admin::{self, AdminReply, AdminRequest};
use causeway_broker::api::{ErrorAnswer, Node, Reach, Record, Subnet, SyncAnswer, SyncRequest, new_instance};
use causeway_broker::client::{Client, ClientConfig, Event, Membership, join};
use causeway_broker::clock::Clock;
use causeway_broker::join_token::JoinToken;
use causeway_broker::revocation::Revocations;
use causeway_broker::tls::{Expect, client_config, joining_config, server_name};
use causeway_broker::{Broker, BrokerConfig, Limits, Log, Options};
use rustls::{ClientConnection, StreamOwned};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant, SystemTime};

/// How long an expected event may take on a busy host.
pub const DEADLINE: Duration = Duration::from_secs(30);

/// A clock that tests can set forward and back.
#[derive(Clone, Default)]
pub struct TestClock(Arc<AtomicI64>);

impl TestClock {
    pub fn shift(&self, seconds: i64) {
        self.0.fetch_add(seconds, Ordering::SeqCst);
    }

    pub fn clock(&self) -> Clock {
        let shift = self.0.clone();
        Clock::new(move || {
            let shift = shift.load(Ordering::SeqCst);
            let by = Duration::from_secs(shift.unsigned_abs());
            if shift < 0 {
                SystemTime::now() - by
            } else {
                SystemTime::now() + by
            }
        })
    }
}

/// A grid with its broker.
pub struct Grid {
    pub dir: tempfile::TempDir,
    pub config: BrokerConfig,
    pub broker: Option<Broker>,
    pub address: SocketAddr,
    pub clock: TestClock,
    pub limits: Limits,
    lines: Arc<(Mutex<Vec<String>>, Condvar)>,
}

impl Grid {
    pub fn new(name: &str) -> Grid {
        Grid::with(name, Limits::default())
    }

    pub fn with(name: &str, limits: Limits) -> Grid {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("grid");
        let file =
            causeway_broker::new_grid::create(name, "localhost:7443", &place, &Clock::system()).unwrap();
        let mut config = BrokerConfig::load(&file).unwrap();
        config.listen = vec!["127.0.0.1:0".parse().unwrap()];
        config.reach_local = true;
        let mut grid = Grid {
            dir,
            config,
            broker: None,
            address: "127.0.0.1:0".parse().unwrap(),
            clock: TestClock::default(),
            limits,
            lines: Arc::default(),
        };
        grid.start();
        grid
    }

    /// Starts the broker, or starts it again at the same address.
    pub fn start(&mut self) {
        let lines = self.lines.clone();
        let options = Options {
            clock: self.clock.clock(),
            limits: self.limits.clone(),
            log: Log::new(move |line| {
                lines.0.lock().unwrap().push(line.to_owned());
                lines.1.notify_all();
            }),
        };
        let broker = Broker::start(&self.config, options).unwrap();
        self.address = broker.addresses()[0];
        self.config.listen = vec![self.address];
        self.config.public = vec![self.address.to_string()];
        self.broker = Some(broker);
    }

    pub fn stop(&mut self) {
        self.broker.take().unwrap().stop();
    }

    /// Returns the lines of the broker's log so far that contain this text.
    pub fn said(&self, what: &str) -> Vec<String> {
        matching(&self.lines.0.lock().unwrap(), what)
    }

    /// Waits for lines that the broker may write only after its peer has noticed, and returns them.
    pub fn says(&self, what: &str) -> Vec<String> {
        let lines = self.lines.0.lock().unwrap();
        let (lines, _) = (self.lines.1)
            .wait_timeout_while(lines, DEADLINE, |lines| matching(lines, what).is_empty())
            .unwrap();
        matching(&lines, what)
    }

    pub fn ask(&self, request: &AdminRequest) -> AdminReply {
        admin::ask(&self.config, request).unwrap().0
    }

    pub fn token(&self, site: &str) -> JoinToken {
        self.token_for(site, &[])
    }

    /// Makes a token that grants ranges.
    pub fn token_for(&self, site: &str, subnets: &[&str]) -> JoinToken {
        let request = AdminRequest::Token {
            site: site.into(),
            ttl_seconds: 3600,
            subnets: subnets.iter().map(|text| Subnet(text.parse().unwrap())).collect(),
        };
        let AdminReply::Token(line) = self.ask(&request) else {
            panic!("no token");
        };
        let mut token: JoinToken = line.parse().unwrap();
        token.brokers = vec![self.address.to_string()];
        token
    }

    pub fn revoke(&self, site: &str) -> AdminReply {
        self.ask(&AdminRequest::Revoke {
            site: site.into(),
            unknown: true,
        })
    }

    /// Returns the directory of a site.
    pub fn home(&self, site: &str) -> PathBuf {
        self.dir.path().join(site)
    }

    pub fn join(&self, site: &str) -> Membership {
        join(&self.token(site), &self.home(site), &self.clock.clock()).unwrap()
    }

    /// A session of a site, with a record of its own.
    pub fn session(&self, membership: &Membership, record: Record) -> Client {
        Client::start(self.session_config(membership, record)).unwrap()
    }

    pub fn session_config(&self, membership: &Membership, record: Record) -> ClientConfig {
        let home = self.home(&membership.site);
        let mut config = ClientConfig::new(membership.clone(), home, record, Box::new(|| {}));
        config.clock = self.clock.clock();
        config.retry = Duration::from_millis(10)..=Duration::from_millis(100);
        config.refused = Duration::from_millis(50);
        config
    }

    /// A request of a site that has joined.
    pub fn post<Q: Serialize, A: DeserializeOwned>(
        &self,
        who: &Membership,
        path: &str,
        asked: &Q,
    ) -> Result<A, ErrorAnswer> {
        post(&mut self.connect(Some(who)), path, asked)
    }

    pub fn sync(&self, who: &Membership, asked: &SyncRequest) -> Result<SyncAnswer, ErrorAnswer> {
        self.post(who, "/v1/sync", asked)
    }

    /// A TLS session with the broker, as a site or as a stranger.
    pub fn connect(&self, who: Option<&Membership>) -> Stream {
        match who {
            Some(who) => connect_as(who, self.address, &self.clock),
            None => {
                let config = joining_config(self.token("nobody").authority, self.clock.clock()).unwrap();
                connect_with(config, self.address)
            }
        }
    }
}

/// A TLS session with a broker, as a site.
pub fn connect_as(who: &Membership, address: SocketAddr, clock: &TestClock) -> Stream {
    let trust = who.trust(Revocations::default(), clock.clock()).unwrap();
    connect_with(
        client_config(&who.credentials, &trust, Expect::Broker).unwrap(),
        address,
    )
}

fn connect_with(config: rustls::ClientConfig, address: SocketAddr) -> Stream {
    let socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(DEADLINE)).unwrap();
    socket.set_nodelay(true).unwrap();
    let session = ClientConnection::new(Arc::new(config), server_name()).unwrap();
    StreamOwned::new(session, socket)
}

/// Makes one request.
pub fn post<Q: Serialize, A: DeserializeOwned>(
    stream: &mut Stream,
    path: &str,
    asked: &Q,
) -> Result<A, ErrorAnswer> {
    let body = serde_json::to_vec(asked).unwrap();
    write_request(stream, path, &body, body.len());
    let (status, body) = read_answer(stream).unwrap();
    if status == 200 {
        Ok(serde_json::from_slice(&body).unwrap())
    } else {
        Err(serde_json::from_slice(&body).unwrap())
    }
}

fn matching(lines: &[String], what: &str) -> Vec<String> {
    lines.iter().filter(|line| line.contains(what)).cloned().collect()
}

pub type Stream = StreamOwned<ClientConnection, TcpStream>;

/// A request whose body may have another length than its head says.
pub fn write_request(stream: &mut Stream, path: &str, body: &[u8], length: usize) {
    let head = format!("POST {path} HTTP/1.1\r\nhost: broker\r\ncontent-length: {length}\r\n\r\n");
    let _ = stream.write_all(head.as_bytes());
    // A server that refuses a long body need not read it.
    let _ = stream.write_all(body);
    let _ = stream.flush();
}

/// Status and body; `None` if the broker has closed the connection.
pub fn read_answer(stream: &mut Stream) -> Option<(u16, Vec<u8>)> {
    let mut bytes = Vec::new();
    let mut chunk = [0; 16 * 1024];
    loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
            let status = head.split(' ').nth(1)?.parse().ok()?;
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "))?;
            let length: usize = length.trim().parse().ok()?;
            if bytes.len() >= end + 4 + length {
                return Some((status, bytes[end + 4..end + 4 + length].to_vec()));
            }
        }
        match stream.read(&mut chunk) {
            Ok(0) => return None,
            Ok(count) => bytes.extend_from_slice(&chunk[..count]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                panic!("no answer within {DEADLINE:?}");
            }
            Err(_) => return None,
        }
    }
}

/// A site with one subnet and one node, each numbered `number`.
pub fn record(number: u8) -> Record {
    let subnet = Subnet(format!("10.{number}.0.0/24").parse().unwrap());
    Record {
        instance: new_instance().unwrap(),
        subnets: vec![subnet],
        lan: vec![format!("10.{number}.0.253:7000").parse().unwrap()],
        reach: Reach::default(),
        udp_port: None,
        nodes: vec![Node {
            name: format!("node-{number}"),
            addresses: vec![format!("10.{number}.0.1").parse().unwrap()],
            slots: 4,
        }],
        overlap_ok: false,
        virtual_subnets: vec![],
        version: "0.1.0".into(),
    }
}

/// The first request of a gateway, which does not wait.
pub fn question(record: &Record) -> SyncRequest {
    SyncRequest {
        record: Some(record.clone()),
        instance: record.instance.clone(),
        since: None,
        revocations: 0,
        revocations_digest: String::new(),
        messages_until: 0,
        load: 0,
        wait_seconds: 0,
        records: None,
    }
}

/// Waits for the event that `pick` wants.
pub fn wait<T>(client: &Client, what: &str, pick: impl Fn(&Event) -> Option<T>) -> T {
    let began = Instant::now();
    let mut others = Vec::new();
    while began.elapsed() < DEADLINE {
        if let Some(event) = client.wait_event(Duration::from_millis(100)) {
            if let Some(found) = pick(&event) {
                return found;
            }
            others.push(event);
        }
    }
    panic!("no {what} within {DEADLINE:?}; there were {others:#?}");
}

pub fn connected(client: &Client) {
    wait(client, "Connected", |event| {
        matches!(event, Event::Connected { .. }).then_some(())
    });
}

/// Waits until a site is known.
pub fn member(client: &Client, site: &str) -> causeway_broker::api::Member {
    wait(client, &format!("member {site}"), |event| match event {
        Event::Member(member) if member.site == site => Some((**member).clone()),
        _ => None,
    })
}

/// Copies the files of a stopped broker.
pub fn copy_store(from: &Path, to: &Path) {
    std::fs::copy(from.join("store.redb"), to.join("store.redb")).unwrap();
}
