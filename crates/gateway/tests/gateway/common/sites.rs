//! Sites one and two, which cannot dial each other, and gateways of further sites, from three on, that both
//! can dial: site n has 127.x.n.0/24. Those from three on are separate processes, which tests kill. A test
//! that wants more sites that cannot be dialled says so.

use super::proxy::Proxy;
use super::{accept, connect_from, send_preface, wait_for, write_key};
use causeway_control::{self as control, LaneStatus, Reply, Request, Status};
use causeway_gateway::{Config, Gateway};
use causeway_wire::{Preface, Token};
use std::collections::HashMap;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command};

pub struct Sites {
    dir: tempfile::TempDir,
    net: u8,
    /// Lines for `[grid]` of all sites, and of those in the middle.
    pub extra: String,
    pub middle: String,
    /// Whether site two has no [[peer]] for site one.
    pub forgets: bool,
    /// The address at which one site (first) dials another (second), if not the one at which that site
    /// listens.
    detours: HashMap<(u8, u8), SocketAddr>,
    /// The sites that cannot be dialled: one, two, and more.
    pub ends: Vec<u8>,
    relays: Vec<u8>,
    children: HashMap<u8, Child>,
    token: Token,
    job: Option<UnixStream>,
}

impl Drop for Sites {
    fn drop(&mut self) {
        for mut child in self.children.drain().map(|(_, child)| child) {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Sites {
    /// Plans sites with these relays between them. Nothing runs yet.
    pub fn plan(extra: &str, relays: &[u8]) -> Sites {
        let dir = tempfile::tempdir().unwrap();
        write_key(&dir.path().join("grid.key"), "one key for all sites");
        Sites {
            dir,
            net: crate::nets::own(),
            extra: extra.to_owned(),
            middle: "relay = true".to_owned(),
            forgets: false,
            detours: HashMap::new(),
            ends: vec![1, 2],
            relays: relays.to_vec(),
            children: HashMap::new(),
            token: Token([0; 16]),
            job: None,
        }
    }

    /// The same, running: one and two have met, and one has a job.
    pub fn start(extra: &str, relays: &[u8]) -> Sites {
        let mut sites = Sites::plan(extra, relays);
        sites.run();
        sites.meet();
        sites
    }

    /// Starts every gateway.
    pub fn run(&mut self) {
        for relay in self.relays.clone() {
            self.start_relay(relay);
        }
        for site in self.ends.clone().into_iter().rev() {
            let text = self.configuration(site);
            let config = Config::parse(&text, &self.dir.path().join("gateway.toml")).unwrap();
            let mut gateway = Gateway::new(config).unwrap();
            // Ends with the test's process.
            std::thread::spawn(move || gateway.run().unwrap());
        }
    }

    /// Waits until one and two have a tunnel, and starts a job.
    pub fn meet(&mut self) {
        let reaches = |site: u8, other: &str| {
            let status = self.try_status(site);
            let sites = status.map(|status| status.sites).unwrap_or_default();
            sites
                .iter()
                .any(|site| site.name == other && site.unreachable.is_none())
        };
        wait_for("the tunnel", || reaches(1, "site2") && reaches(2, "site1"));
        let request = Request::Job {
            name: "test".into(),
            weight: 1,
            plan: super::everywhere(),
        };
        match control::ask(&self.control(1), &request).unwrap() {
            (Reply::Job(job), held) => {
                self.token = job.token.parse().unwrap();
                self.job = Some(held);
            }
            (other, _) => panic!("{other:?}"),
        }
    }

    pub fn start_relay(&mut self, site: u8) {
        let file = self.dir.path().join(format!("{site}.toml"));
        std::fs::write(&file, self.configuration(site)).unwrap();
        let program = Command::new(std::env::current_exe().unwrap());
        self.children.insert(site, super::serving(program, &file));
    }

    /// Kills a relay, as a power cut would.
    pub fn kill_relay(&mut self, site: u8) {
        let mut child = self.children.remove(&site).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Makes `site` dial `other` at a proxy, which will run at `proxy` and lead to `other`.
    pub fn detour(&mut self, site: u8, other: u8, host: u8) -> SocketAddr {
        let address = SocketAddr::from(([127, self.net, 0, host], 7001));
        self.detours.insert((site, other), address);
        address
    }

    /// Gives `other` no address for `site`, which dials it.
    pub fn dials(&mut self, site: u8, other: u8) {
        self.detours.insert((site, other), self.wan(other));
    }

    /// The same with the proxy running.
    pub fn through_proxy(&mut self, site: u8, other: u8, host: u8) -> Proxy {
        let address = self.detour(site, other, host);
        Proxy::start(address, self.wan(other))
    }

    /// Returns the address at which a gateway listens for others, if it listens.
    pub fn wan(&self, site: u8) -> SocketAddr {
        SocketAddr::from(([127, self.net, 0, site], 7001))
    }

    fn configuration(&self, site: u8) -> String {
        let net = self.net;
        let is_relay = self.relays.contains(&site);
        let listens = is_relay || self.detours.keys().any(|(_, other)| *other == site);
        let wan = if listens {
            format!("wan = \"{}\"", self.wan(site))
        } else {
            String::new()
        };
        let middle = if is_relay { self.middle.as_str() } else { "" };
        let others = self.ends.iter().chain(&self.relays).copied();
        let peers: String = others
            .filter(|other| *other != site && !(self.forgets && (site, *other) == (2, 1)))
            .map(|other| {
                let detour = self.detours.get(&(site, other)).copied();
                let is_dialled = self.detours.contains_key(&(other, site));
                let to_relay = !is_relay && !is_dialled && self.relays.contains(&other);
                let dials = detour.or_else(|| to_relay.then(|| self.wan(other)));
                let address = dials.map_or_else(String::new, |at| format!("address = \"{at}\"\n"));
                format!("[[peer]]\nsite = \"site{other}\"\n{address}")
            })
            .collect();
        format!(
            r#"
            [site]
            name = "site{site}"
            subnets = ["127.{net}.{site}.0/24"]
            nodes = [{{ name = "node{site}", address = "127.{net}.{site}.1" }}]
            remote_shell = ["false", "{{node}}"]
            [listen]
            lan = ["127.{net}.{site}.253:7000"]
            {wan}
            control = "{}"
            [accept]
            jobs = ["all"]
            over_clear_text = true
            [grid]
            key_file = "grid.key"
            {}
            {middle}
            {peers}
            "#,
            self.control(site).display(),
            self.extra,
        )
    }

    fn control(&self, site: u8) -> PathBuf {
        self.dir.path().join(format!("{site}.sock"))
    }

    pub fn status(&self, site: u8) -> Status {
        self.try_status(site).unwrap()
    }

    pub fn try_status(&self, site: u8) -> Option<Status> {
        match control::ask(&self.control(site), &Request::Status {}) {
            Ok((Reply::Status(status), _)) => Some(*status),
            Ok((other, _)) => panic!("{other:?}"),
            Err(_) => None,
        }
    }

    /// The lanes between one and two, as one of them sees them.
    pub fn lanes(&self, site: u8) -> Vec<LaneStatus> {
        let other = format!("site{}", 3 - site);
        let tunnels = self.status(site).tunnels.into_iter();
        let lanes = tunnels.filter(|tunnel| tunnel.site == other);
        lanes.flat_map(|tunnel| tunnel.lanes).collect()
    }

    /// Returns how each of them came about.
    pub fn techniques(&self, site: u8) -> Vec<String> {
        let lanes = self.lanes(site).into_iter();
        lanes.map(|lane| lane.technique).collect()
    }

    /// Returns how all lanes came about between sites that cannot be dialled, as seen by the gateways that
    /// asked for them.
    pub fn all_techniques(&self) -> Vec<String> {
        let asked = |asks: u8| {
            let tunnels = self.status(asks).tunnels.into_iter();
            let name = |site: &u8| format!("site{site}");
            let others: Vec<String> = self.ends.iter().filter(|end| **end > asks).map(name).collect();
            let lanes = tunnels.filter(move |tunnel| others.contains(&tunnel.site));
            lanes.flat_map(|tunnel| tunnel.lanes)
        };
        let lanes = self.ends.iter().flat_map(|asks| asked(*asks));
        lanes.map(|lane| lane.technique).collect()
    }

    /// Returns the reason why one does not reach two.
    pub fn trouble(&self) -> String {
        let mut sites = self.status(1).sites.into_iter();
        let far = sites.find(|site| site.name == "site2").unwrap();
        far.unreachable.unwrap_or_default()
    }

    /// Number of connections that a gateway has refused under this kind.
    pub fn refused(&self, site: u8, kind: &str) -> u64 {
        let status = self.try_status(site);
        status.map_or(0, |status| status.refused.get(kind).copied().unwrap_or(0))
    }

    /// Connects a stranger to the address at which a gateway waits for others.
    pub fn stranger(&self, host: u8, site: u8) -> TcpStream {
        let own = SocketAddr::from(([127, self.net, 0, host], 0));
        connect_from(own, self.wan(site))
    }

    /// A connection from one to two: the connecting end, the accepting end.
    pub fn pair(&self) -> (TcpStream, TcpStream) {
        let at = |site: u8, host: u8, port: u16| SocketAddr::from(([127, self.net, site, host], port));
        let listener = TcpListener::bind(at(2, 1, 0)).unwrap();
        let stream = connect_from(at(1, 1, 0), at(1, 253, 7000));
        let preface = Preface {
            source: stream.local_addr().unwrap(),
            destination: listener.local_addr().unwrap(),
            token: self.token,
            wants: causeway_wire::Wants::Verdict,
        };
        let near = send_preface(stream, &preface).unwrap();
        let (far, _) = accept(&listener, &self.token);
        (near, far)
    }
}
