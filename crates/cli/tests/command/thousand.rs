//! A grid of a thousand sites with a hundred nodes each, end to end: a real gateway, `causeway run` and the
//! preload library. The test plays the other sites' gateways, each in a thread.

use causeway_control::{self as control, Reply, Request};
use causeway_tunnel::frame::HEADER_BYTES;
use causeway_tunnel::hello::{Hello, PROOF_BYTES};
use causeway_tunnel::{Header, Kind, OpenRequest, Target};
use hmac::{Hmac, Mac};
use serde_json::{Value, json};
use sha2::Sha256;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

const DEADLINE: Duration = Duration::from_secs(120);

const NODES: u32 = 100;
const SLOTS: u32 = 4;
const KEY: &str = "one key for all of them";

/// The real gateway, which is that of site 0.
struct Gateway {
    dir: tempfile::TempDir,
    child: Child,
    wan: SocketAddr,
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Gateway {
    fn start(names: &[String]) -> Gateway {
        let net = crate::nets::own();
        let dir = tempfile::tempdir().unwrap();
        let key = dir.path().join("grid.key");
        std::fs::write(&key, KEY).unwrap();
        std::fs::set_permissions(&key, PermissionsExt::from_mode(0o600)).unwrap();
        let peers = names[1..]
            .iter()
            .map(|name| format!("[[peer]]\nsite = \"{name}\"\n"));
        let wan = SocketAddr::from(([127, net, 0, 1], 7001));
        let text = format!(
            r#"
            [site]
            name = "{}"
            subnets = ["127.0.0.0/8"]
            nodes = [{{ name = "head", address = "127.0.0.1", slots = {SLOTS} }}]
            [listen]
            lan = ["127.{net}.0.253:7000"]
            wan = "{wan}"
            control = "{}"
            [accept]
            partners = ["all"]
            [grid]
            key_file = "grid.key"
            train = false
            transport = "tcp"
            insecure = true
            {}
            "#,
            names[0],
            dir.path().join("gateway.sock").display(),
            peers.collect::<String>()
        );
        let file = dir.path().join("gateway.toml");
        std::fs::write(&file, text).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_causeway"));
        command.args(["gateway", "--config"]).arg(file);
        let log = std::fs::File::create(dir.path().join("log")).unwrap();
        let child = command.stderr(log).spawn().unwrap();
        Gateway { dir, child, wan }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn dial(&self) -> TcpStream {
        let began = Instant::now();
        loop {
            match TcpStream::connect(self.wan) {
                Ok(stream) => return stream,
                Err(error) => assert!(began.elapsed() < DEADLINE, "the gateway does not listen: {error}"),
            }
            std::thread::yield_now();
        }
    }

    /// Waits until all sites can be used.
    fn wait_for(&self, sites: usize) {
        let began = Instant::now();
        loop {
            let Ok((Reply::Status(status), _)) =
                control::ask(&self.path("gateway.sock"), &Request::Status {})
            else {
                panic!("no status: {}", self.log());
            };
            let usable = status.sites.iter().filter(|site| site.unreachable.is_none());
            let usable = usable.count();
            if usable == sites {
                return;
            }
            assert!(
                began.elapsed() < DEADLINE,
                "{usable} of {sites} sites within {DEADLINE:?}: {}",
                self.log()
            );
        }
    }

    /// The end of its log.
    fn log(&self) -> String {
        let text = std::fs::read_to_string(self.path("log")).unwrap_or_default();
        let lines: Vec<&str> = text.lines().rev().take(20).collect();
        lines.join("\n")
    }

    /// Runs `causeway run` with a launcher that does what `script` says.
    fn run(&self, script: &str, words: &[&str]) -> Output {
        let launcher = self.path("mpirun");
        let text = format!(
            "#!/bin/bash\nif [ \"$1\" = --version ]; then echo 'mpirun (Open MPI) 4.1.4'; exit; fi\n{script}\n"
        );
        std::fs::write(&launcher, text).unwrap();
        std::fs::set_permissions(&launcher, PermissionsExt::from_mode(0o755)).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_causeway"));
        command
            .args(["run", "--no-collectives", "--"])
            .arg(launcher)
            .args(words);
        command.env("CAUSEWAY_CONTROL", self.path("gateway.sock"));
        command.env("XDG_RUNTIME_DIR", self.dir.path());
        command.stdin(Stdio::null()).output().unwrap()
    }
}

/// What a stream was opened for, and what arrived on it.
#[derive(Debug, PartialEq)]
struct Told {
    site: u32,
    destination: SocketAddr,
    text: String,
}

/// A site's gateway.
struct Member {
    site: u32,
    stream: TcpStream,
    said: u64,
    taken: u64,
    destination: Option<SocketAddr>,
    told: Sender<Told>,
}

fn net(site: u32) -> Ipv4Addr {
    Ipv4Addr::from(0x0a00_0000 | site << 8)
}

fn node(site: u32, number: u32) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(net(site)) | number)
}

impl Member {
    fn join(gateway: &Gateway, site: u32, name: &str, told: Sender<Told>) -> Member {
        let mut stream = gateway.dial();
        stream.set_nodelay(true).unwrap();
        let own = Hello {
            site: name.into(),
            nonce: [3; 32],
            session: 3,
            lane: 0,
        };
        stream.write_all(&own.encode()).unwrap();
        let mut bytes = Vec::new();
        let (other, _) = loop {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            bytes.push(byte[0]);
            if let Some(read) = Hello::decode(&bytes).unwrap() {
                break read;
            }
        };
        stream.read_exact(&mut [0; PROOF_BYTES]).unwrap();
        let mut mac = Hmac::<Sha256>::new_from_slice(KEY.as_bytes()).unwrap();
        mac.update(&own.transcript(&other));
        stream.write_all(&mac.finalize().into_bytes()).unwrap();
        let mut member = Member {
            site,
            stream,
            said: 0,
            taken: 0,
            destination: None,
            told,
        };
        let nodes = (1..=NODES).map(|number| {
            json!({ "name": format!("{name}-{number}"), "address": node(site, number), "slots": SLOTS })
        });
        member.say(&json!({ "accepts": { "jobs": null, "connections": null } }));
        member.say(&json!({ "site": {
            "name": name, "subnets": [format!("{}/24", net(site))], "gateways": [format!("{}:7000", node(site, 253))],
            "delivery_ports": "20000-32767", "nodes": nodes.collect::<Vec<_>>(),
        }}));
        member
    }

    fn put(&mut self, kind: Kind, stream: u32, position: u64, payload: &[u8]) {
        let header = Header {
            kind,
            detail: 0,
            length: u16::try_from(payload.len()).unwrap(),
            stream,
            position,
        };
        // The gateway ends before its members' threads do.
        let _ = self.stream.write_all(&[&header.encode()[..], payload].concat());
    }

    fn say(&mut self, message: &Value) {
        let text = json!({ "version": 1, "message": message }).to_string();
        self.put(Kind::Message, 0, self.said, text.as_bytes());
        self.said += 1;
    }

    /// Does what a gateway does for jobs, until the lane ends.
    fn serve(mut self) {
        loop {
            let mut header = [0; HEADER_BYTES];
            if self.stream.read_exact(&mut header).is_err() {
                return;
            }
            let header = Header::decode(&header).unwrap();
            let mut payload = vec![0; usize::from(header.length)];
            if self.stream.read_exact(&mut payload).is_err() {
                return;
            }
            self.taken += (HEADER_BYTES + payload.len()) as u64;
            self.act(&header, &payload);
            if header.kind != Kind::Ack {
                self.put(Kind::Ack, 0, self.taken, &[]);
            }
        }
    }

    fn act(&mut self, header: &Header, payload: &[u8]) {
        match header.kind {
            Kind::Message => {
                let said: Value = serde_json::from_slice(payload).unwrap();
                if let Some(token) = said["message"]["job_start"]["token"].as_str() {
                    self.say(&json!({ "job_known": { "token": token } }));
                }
            }
            Kind::Open => {
                let request = OpenRequest::decode(&payload[8..]).unwrap();
                let Target::Connection { destination, .. } = request.target else {
                    panic!("{request:?}");
                };
                self.destination = Some(destination);
                self.put(Kind::Opened, header.stream, 1 << 20, &[]);
            }
            Kind::Data => {
                let told = Told {
                    site: self.site,
                    destination: self.destination.unwrap(),
                    text: String::from_utf8_lossy(payload).into_owned(),
                };
                let _ = self.told.send(told);
                self.put(Kind::Data, header.stream, 0, b"welcome\n");
            }
            _ => {}
        }
    }
}

/// The gateway of site 0 and all the others, which have introduced themselves.
fn grid(names: &[String]) -> (Gateway, Receiver<Told>) {
    let gateway = Gateway::start(names);
    let (told, heard) = channel();
    for (site, name) in (0..).zip(names).skip(1) {
        let member = Member::join(&gateway, site, name, told.clone());
        let thread = std::thread::Builder::new().stack_size(256 * 1024);
        thread.spawn(|| member.serve()).unwrap();
    }
    gateway.wait_for(names.len());
    (gateway, heard)
}

fn shim_is_built() -> bool {
    let built = Path::new(env!("CARGO_BIN_EXE_causeway")).with_file_name("libcauseway_shim.so");
    if !built.exists() {
        println!("skipped: libcauseway_shim.so is not built; make test T=unit builds it");
    }
    built.exists()
}

#[test]
fn a_job_over_a_thousand_sites_with_a_hundred_nodes_each_reaches_the_last_of_them() {
    if !shim_is_built() {
        return;
    }
    let names: Vec<String> = (0..1000).map(|site| format!("site-{site}")).collect();
    let (gateway, heard) = grid(&names);
    let to = SocketAddr::from((node(999, NODES), 5000));
    let script = format!(
        "wc -l < \"$OMPI_MCA_orte_default_hostfile\"\nexec 3<>/dev/tcp/{}/{} || exit 3\necho hello >&3\nread answer <&3\necho \"$answer\"\nexit 7",
        to.ip(),
        to.port()
    );
    let ranks = (SLOTS + 999 * NODES * SLOTS).to_string();
    let output = gateway.run(&script, &["-n", &ranks, "./app"]);
    let said = String::from_utf8_lossy(&output.stderr);
    // A launcher that reports success must have started something at every site, and this one has not.
    assert_eq!(output.status.code(), Some(7), "{said}\n{}", gateway.log());
    let hosts = 1 + 999 * NODES;
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        format!("{hosts}\nwelcome\n"),
        "{said}"
    );
    let told = heard.recv_timeout(DEADLINE).unwrap();
    let expected = Told {
        site: 999,
        destination: to,
        text: "hello\n".to_owned(),
    };
    assert_eq!(told, expected);
}

#[test]
fn a_job_whose_processes_could_not_read_the_map_of_the_grid_does_not_start_and_its_user_is_told_why() {
    let names: Vec<String> = (0..1250).map(|site| format!("{site:0>60}")).collect();
    let (gateway, _heard) = grid(&names);
    if !shim_is_built() {
        return;
    }
    let at_all = (SLOTS + 1249 * NODES * SLOTS).to_string();
    let output = gateway.run("echo started", &["-n", &at_all, "./app"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("this job cannot start: grid map of") && output.stdout.is_empty(),
        "{said}"
    );
}
