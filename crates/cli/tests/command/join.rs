//! A grid as people make it: create, broker, a token for each site, one command line at each site. On
//! loopback, without privilege.

use crate::sites::{accept, connect_from};
use causeway_control::{Plan, Reply, Request, Status, ask};
use causeway_wire::preface::ANSWER_BYTES;
use causeway_wire::{Preface, Sender, Verdict};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Nothing on loopback takes this long; the longest pause between two attempts is half a minute.
const DEADLINE: Duration = Duration::from_secs(60);

/// A process that ends with the test.
struct Running(Child);

impl Running {
    fn stop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop();
    }
}

struct Grid {
    dir: tempfile::TempDir,
    net: u8,
}

impl Grid {
    fn create() -> Grid {
        let grid = Grid {
            dir: tempfile::tempdir().unwrap(),
            net: crate::nets::own(),
        };
        let broker = grid.broker_address();
        grid.said(&["create", "g5k", "--broker", &broker]);
        let file = grid.home().join("broker.toml");
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::write(&file, text.replace("[::]:7443", &broker)).unwrap();
        grid
    }

    fn home(&self) -> PathBuf {
        self.dir.path().join("grid")
    }

    fn broker_address(&self) -> String {
        format!("127.{}.9.1:7443", self.net)
    }

    fn command(&self, words: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_causeway"));
        command.arg("grid").args(words).arg("--dir").arg(self.home());
        command.output().unwrap()
    }

    fn said(&self, words: &[&str]) -> String {
        let output = self.command(words);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "causeway grid {words:?}: {errors}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    fn broker(&self) -> Running {
        let child = Command::new(env!("CARGO_BIN_EXE_causeway"))
            .args(["broker", "--config"])
            .arg(self.home().join("broker.toml"))
            .stderr(Stdio::null())
            .spawn();
        let running = Running(child.unwrap());
        self.wait_for("the broker", |grid| {
            let serves = std::net::TcpStream::connect(grid.broker_address()).is_ok();
            serves && grid.command(&["list"]).status.success()
        });
        running
    }

    fn site(&self, site: u8) -> PathBuf {
        self.dir.path().join(format!("site{site}"))
    }

    fn control(&self, site: u8) -> PathBuf {
        self.site(site).join("causeway/gateway.sock")
    }

    fn gateway(&self, site: u8, words: &[&str], log: &Path) -> Running {
        let home = self.site(site);
        std::fs::create_dir_all(&home).unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_causeway"))
            .arg("gateway")
            .args(words)
            .env("XDG_RUNTIME_DIR", &home)
            .env("XDG_CONFIG_HOME", &home)
            .stderr(
                std::fs::OpenOptions::new()
                    .create(true)
                    .append(true)
                    .open(log)
                    .unwrap(),
            )
            .spawn();
        Running(child.unwrap())
    }

    /// The one line at a new site.
    fn join(&self, site: u8, token: &str, wan: bool) -> Running {
        self.join_with(site, token, wan, &[])
    }

    fn join_with(&self, site: u8, token: &str, wan: bool, more: &[&str]) -> Running {
        let net = self.net;
        let subnet = format!("127.{net}.{site}.0/24");
        let node = format!("node{site}=127.{net}.{site}.1:4");
        let lan = format!("127.{net}.{site}.253:7000");
        let public = format!("127.{net}.0.{site}:7001");
        let mut words = vec![
            "--join",
            token,
            "--subnet",
            &subnet,
            "--node",
            &node,
            "--lan",
            &lan,
            "--accept-jobs",
            "all",
        ];
        if wan {
            words.extend(["--wan", public.as_str()]);
        }
        words.extend(more);
        self.gateway(site, &words, &self.log(site))
    }

    fn log(&self, site: u8) -> PathBuf {
        self.dir.path().join(format!("site{site}.log"))
    }

    fn status(&self, site: u8) -> Option<Status> {
        match ask(&self.control(site), &Request::Status {}).ok()? {
            (Reply::Status(status), _) => Some(*status),
            _ => None,
        }
    }

    fn wait_for(&self, what: &str, mut done: impl FnMut(&Grid) -> bool) {
        let start = Instant::now();
        while !done(self) {
            if start.elapsed() > DEADLINE {
                for site in [1, 2] {
                    let log = std::fs::read_to_string(self.log(site)).unwrap_or_default();
                    println!("site {site}: {:#?}\n{log}", self.status(site));
                }
                panic!("{what} did not come within {DEADLINE:?}");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// A connection from a process of site one to one of site two, whose bytes arrive as they were sent, in
    /// both directions.
    fn streams_are_whole(&self) {
        let request = Request::Job {
            name: "whole".to_owned(),
            weight: 1,
            plan: Plan {
                sites: vec!["site2".into()],
                ranks: 0,
                ..Plan::default()
            },
        };
        let (Reply::Job(job), _held) = ask(&self.control(1), &request).unwrap() else {
            panic!("no job");
        };
        let listener = TcpListener::bind(SocketAddr::from(([127, self.net, 2, 1], 0))).unwrap();
        let mut near = connect_from(
            SocketAddr::from(([127, self.net, 1, 1], 0)),
            SocketAddr::from(([127, self.net, 1, 253], 7000)),
        );
        near.set_read_timeout(Some(DEADLINE)).unwrap();
        let preface = Preface {
            source: near.local_addr().unwrap(),
            destination: listener.local_addr().unwrap(),
            token: job.token.parse().unwrap(),
            wants: causeway_wire::Wants::Verdict,
        };
        near.write_all(&preface.encode(Sender::Process, b"a nonce.").unwrap())
            .unwrap();
        near.read_exact(&mut [0; ANSWER_BYTES]).unwrap();
        let mut verdict = [0; Verdict::BYTES];
        near.read_exact(&mut verdict).unwrap();
        assert_eq!(Verdict::decode(verdict).unwrap(), Verdict::Connected);
        let far = accept(&listener, &preface.token);
        for (from, to) in [(&near, &far), (&far, &near)] {
            cross(from, to);
        }
    }

    fn techniques(&self, site: u8) -> Vec<(String, String)> {
        let tunnels = self.status(site).map_or_else(Vec::new, |status| status.tunnels);
        let lanes = tunnels.into_iter().flat_map(|tunnel| tunnel.lanes);
        lanes.map(|lane| (lane.carrier, lane.technique)).collect()
    }

    fn says(&self, site: u8, what: &str) -> bool {
        std::fs::read_to_string(self.log(site)).is_ok_and(|log| log.contains(what))
    }

    fn is_joined(&self) -> bool {
        [1, 2].into_iter().all(|site| {
            let status = self.status(site);
            status.is_some_and(|status| {
                let others = &status.sites[1..];
                others.len() == 1 && others.iter().all(|other| other.unreachable.is_none())
            })
        })
    }
}

/// Sends some megabytes, more than any window has at the start, and then ends that half.
fn cross(mut from: &TcpStream, mut to: &TcpStream) {
    let bytes: Vec<u8> = (0..5_000_000_usize)
        .map(|at| (at * 31 + at / 251) as u8)
        .collect();
    let mut got = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            from.write_all(&bytes).unwrap();
            from.shutdown(Shutdown::Write).unwrap();
        });
        to.read_to_end(&mut got).unwrap();
    });
    assert!(got == bytes, "{} bytes arrived of {}", got.len(), bytes.len());
}

#[test]
fn two_sites_meet_with_a_token_each_and_go_on_whatever_becomes_of_the_broker() {
    let grid = Grid::create();
    let mut broker = grid.broker();
    let tokens = ["site1", "site2"].map(|site| grid.said(&["token", "--site", site]));
    // The second one lets nobody in: it has to dial.
    let first = grid.join(1, &tokens[0], true);
    let second = grid.join(2, &tokens[1], false);
    grid.wait_for("the tunnel", Grid::is_joined);
    for site in [1, 2] {
        let status = grid.status(site).unwrap();
        assert!(status.refused.is_empty(), "{:?}", status.refused);
        assert_eq!(status.tunnels[0].lanes[0].carrier, "TLS 1.3");
        assert_eq!(status.grid.unwrap().name, "g5k");
    }
    broker.stop();
    grid.wait_for("news of the broker's end", |grid| {
        let status = grid.status(1).unwrap();
        status.grid.unwrap().broker_away.is_some()
    });
    assert!(grid.is_joined());
    // A gateway that starts while there is no broker still knows what it knew before.
    drop(second);
    grid.wait_for("the loss of the far gateway", |grid| !grid.is_joined());
    let second = grid.gateway(2, &[], &grid.log(2));
    grid.wait_for("the tunnel without a broker", Grid::is_joined);
    let _broker = grid.broker();
    grid.wait_for("the broker", |grid| {
        let away = |site| {
            grid.status(site)
                .is_some_and(|s| s.grid.unwrap().broker_away.is_some())
        };
        !away(1) && !away(2)
    });
    assert!(grid.is_joined());
    grid.said(&["revoke", "site2"]);
    grid.wait_for("the end of what is revoked", |grid| {
        grid.status(1).is_some_and(|status| status.tunnels.is_empty())
    });
    drop((first, second));
}

#[test]
fn a_token_is_good_once_and_for_its_own_grid() {
    let grid = Grid::create();
    let _broker = grid.broker();
    let token = grid.said(&["token", "--site", "site1"]);
    let first = grid.join(1, &token, true);
    grid.wait_for("the gateway", |grid| grid.status(1).is_some());
    let second = grid.join(2, &token, false);
    let says = |site: u8, what: &str| {
        let log = std::fs::read_to_string(grid.log(site)).unwrap();
        log.contains(what)
    };
    grid.wait_for("the refusal", |_| says(2, "the token was used"));
    let forged = token.replace(&token[token.len() - 6..], "AAAAAA");
    let third = grid.join(2, &forged, false);
    grid.wait_for("the other refusal", |_| says(2, "cw1"));
    drop((first, second, third));
}

#[test]
fn a_revoked_site_comes_back_with_one_command_whether_its_gateway_runs_or_not() {
    let grid = Grid::create();
    let _broker = grid.broker();
    let tokens = ["site1", "site2"].map(|site| grid.said(&["token", "--site", site]));
    let _first = grid.join(1, &tokens[0], true);
    // Now it lets others in: the first one dials it, and has to do so again.
    let mut second = grid.join(2, &tokens[1], true);
    grid.wait_for("the tunnel", Grid::is_joined);
    for gateway_runs in [false, true] {
        grid.said(&["revoke", "site2"]);
        grid.wait_for("the end of what is revoked", |grid| {
            grid.status(1).is_some_and(|status| status.tunnels.is_empty())
        });
        // At the revoked site, too, at once and for good.
        grid.wait_for("the reason at the revoked site", |grid| {
            let status = grid.status(2).unwrap();
            let reason = status.sites.get(1).and_then(|site| site.unreachable.clone());
            status.tunnels.is_empty() && reason.is_some_and(|why| why.contains("site2 was revoked"))
        });
        let token = grid.said(&["token", "--site", "site2"]);
        if gateway_runs {
            let ended = grid
                .gateway(2, &["--join", &token], &grid.log(2))
                .0
                .wait()
                .unwrap();
            assert_eq!(ended.code(), Some(0));
        } else {
            second.stop();
            second = grid.gateway(2, &["--join", &token], &grid.log(2));
        }
        grid.wait_for("the tunnel, once more", Grid::is_joined);
    }
}

#[test]
fn a_mistake_is_found_before_the_token_is_spent_and_the_corrected_command_joins() {
    let grid = Grid::create();
    let _broker = grid.broker();
    let token = grid.said(&["token", "--site", "site1"]);
    let net = grid.net;
    let (subnet, lan) = (format!("127.{net}.1.0/24"), format!("127.{net}.1.253:7000"));
    let held = TcpListener::bind(format!("127.{net}.0.1:7001")).unwrap();
    let in_use = held.local_addr().unwrap().to_string();
    for (mistake, reason) in [
        (["--node".to_owned(), "n1=10.9.9.9:4".to_owned()], "10.9.9.9"),
        (["--wan".to_owned(), in_use.clone()], in_use.as_str()),
        // An address for documentation, which no host has.
        (
            ["--wan".to_owned(), "192.0.2.1:7001".to_owned()],
            "192.0.2.1:7001",
        ),
    ] {
        let mut words = vec!["--join", &token, "--subnet", &subnet, "--lan", &lan];
        words.extend(mistake.iter().map(String::as_str));
        let ended = grid.gateway(1, &words, &grid.log(1)).0.wait().unwrap();
        assert_eq!(ended.code(), Some(2), "{mistake:?}");
        assert!(grid.says(1, reason), "{mistake:?}");
        assert!(!grid.site(1).join("causeway/gateway.toml").exists());
    }
    assert!(grid.said(&["list"]).contains("no site has joined yet"));
    drop(held);
    let _first = grid.join(1, &token, true);
    grid.wait_for("the gateway", |grid| grid.status(1).is_some());
    // The file for one site does not work for another site's token.
    let other = grid.said(&["token", "--site", "site2"]);
    let ended = grid
        .gateway(1, &["--join", &other], &grid.log(1))
        .0
        .wait()
        .unwrap();
    assert_eq!(ended.code(), Some(2));
    assert!(grid.says(
        1,
        "is the configuration of site site1, but the token is for site site2"
    ));
    let _second = grid.join(2, &other, false);
    grid.wait_for("the tunnel", Grid::is_joined);
}

#[test]
fn two_sites_that_let_nobody_in_punch_a_way_which_outlives_the_broker_and_is_punched_anew_when_lost() {
    let grid = Grid::create();
    let mut broker = grid.broker();
    let tokens = ["site1", "site2"].map(|site| grid.said(&["token", "--site", site]));
    let first = grid.join(1, &tokens[0], false);
    grid.wait_for("the first gateway", |grid| grid.status(1).is_some());
    let second = grid.join(2, &tokens[1], false);
    grid.wait_for("the reason why there is no lane yet", |grid| {
        let status = grid.status(1);
        let others = status.into_iter().flat_map(|status| status.sites);
        let mut reasons = others.filter_map(|site| site.unreachable);
        grid.is_joined() || reasons.any(|why| why.starts_with("neither gateway can be dialled; punching"))
    });
    grid.wait_for("the tunnel", Grid::is_joined);
    let punched = [("QUIC".to_owned(), "punched".to_owned())];
    for site in [1, 2] {
        assert_eq!(grid.techniques(site), punched);
    }
    grid.streams_are_whole();
    broker.stop();
    grid.wait_for("news of the broker's end", |grid| {
        let away = |site| {
            grid.status(site)
                .is_some_and(|s| s.grid.unwrap().broker_away.is_some())
        };
        away(1) && away(2)
    });
    assert!(grid.is_joined());
    grid.streams_are_whole();
    // Without the broker there is no new tunnel; with it there is.
    drop(second);
    grid.wait_for("the loss of the far gateway", |grid| !grid.is_joined());
    let second = grid.gateway(2, &[], &grid.log(2));
    let _broker = grid.broker();
    grid.wait_for("the tunnel that is punched anew", Grid::is_joined);
    // By whichever protocol has its turn when the broker is back.
    for site in [1, 2] {
        let mut techniques = grid.techniques(site).into_iter();
        assert!(techniques.all(|(_, how)| how.starts_with("punched")));
    }
    grid.streams_are_whole();
    drop((first, second));
}

#[test]
fn two_sites_that_let_nobody_in_meet_by_simultaneous_open_where_one_has_no_lanes_over_udp() {
    let grid = Grid::create();
    let _broker = grid.broker();
    let tokens = ["site1", "site2"].map(|site| grid.said(&["token", "--site", site]));
    let first = grid.join(1, &tokens[0], false);
    grid.wait_for("the first gateway", |grid| grid.status(1).is_some());
    drop(first);
    let file = grid.site(1).join("causeway/gateway.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(
        &file,
        text.replace("[grid]\n", "[grid]\ntransport = \"tcp\"\nlanes = 2\n"),
    )
    .unwrap();
    let first = grid.gateway(1, &[], &grid.log(1));
    let second = grid.join(2, &tokens[1], false);
    grid.wait_for("the tunnel", Grid::is_joined);
    let one = ("TLS 1.3".to_owned(), "punched (TCP)".to_owned());
    let both = |grid: &Grid| {
        let mut sites = [1, 2].into_iter();
        sites.all(|site| grid.techniques(site) == [one.clone(), one.clone()])
    };
    grid.wait_for("both lanes", both);
    grid.streams_are_whole();
    drop(second);
    grid.wait_for("the loss of the far gateway", |grid| !grid.is_joined());
    let second = grid.gateway(2, &[], &grid.log(2));
    grid.wait_for("both lanes, punched anew", both);
    grid.streams_are_whole();
    drop((first, second));
}

#[test]
fn two_sites_one_with_lanes_over_udp_alone_and_one_with_none_do_not_meet_and_the_logs_say_why() {
    let grid = Grid::create();
    let _broker = grid.broker();
    let tokens = ["site1", "site2"].map(|site| grid.said(&["token", "--site", site]));
    let transports = ["tcp", "quic"].map(|transport| format!("[grid]\ntransport = \"{transport}\"\n"));
    let gateways = [1, 2].map(|site: u8| {
        let place = usize::from(site) - 1;
        let once = grid.join(site, &tokens[place], false);
        grid.wait_for("the gateway", |grid| grid.status(site).is_some());
        drop(once);
        let file = grid.site(site).join("causeway/gateway.toml");
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::write(&file, text.replace("[grid]\n", &transports[place])).unwrap();
        grid.gateway(site, &[], &grid.log(site))
    });
    for (site, way) in [(1, "TCP"), (2, "UDP")] {
        let why = format!("punching a way over {way} failed: no answer by way of the broker");
        grid.wait_for("the reason in the log", |grid| grid.says(site, &why));
    }
    assert!(!grid.is_joined());
    drop(gateways);
}

/// A web proxy at an address of its own, from which it also connects. It lets nobody in without a password.
fn proxy(grid: &Grid) -> (Running, String) {
    let address = format!("127.{}.9.9", grid.net);
    let file = grid.dir.path().join("tinyproxy.conf");
    let text = format!(
        "Port 3128\nListen {address}\nBind {address}\nTimeout 600\nMaxClients 100\nBasicAuth ada secret\nConnectPort 7001\n\
         ConnectPort 7443\nLogLevel Error\nLogFile \"{}\"\n",
        grid.dir.path().join("tinyproxy.log").display()
    );
    std::fs::write(&file, text).unwrap();
    let mut command = Command::new("tinyproxy");
    let running = Running(command.arg("-d").arg("-c").arg(&file).spawn().unwrap());
    let place = format!("{address}:3128");
    grid.wait_for("the proxy", |_| TcpStream::connect(&place).is_ok());
    (running, format!("http://{place}"))
}

#[test]
fn a_site_behind_a_web_proxy_joins_and_has_its_lanes_through_it() {
    let grid = Grid::create();
    let _broker = grid.broker();
    let (_proxy, url) = proxy(&grid);
    let credentials = grid.dir.path().join("proxy.txt");
    let use_credentials = |text: &str| {
        std::fs::write(&credentials, text).unwrap();
        std::fs::set_permissions(&credentials, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    };
    let file = credentials.display().to_string();
    let through = ["--proxy", &url, "--proxy-credentials", &file];
    let _two = grid.join(2, &grid.said(&["token", "--site", "site2"]), true);
    let token = grid.said(&["token", "--site", "site1"]);
    use_credentials("ada:wrong\n");
    let refused = grid.join_with(1, &token, false, &through).0.wait().unwrap();
    assert_eq!(refused.code(), Some(2));
    assert!(grid.says(1, "it wants a user and a password"));
    use_credentials("ada:secret\n");
    let one = grid.join_with(1, &token, false, &through);
    grid.wait_for("the tunnel", Grid::is_joined);
    grid.streams_are_whole();
    let lanes = grid.status(2).unwrap().tunnels.remove(0).lanes;
    let proxy = format!("127.{}.9.9:", grid.net);
    assert!(!lanes.is_empty() && lanes.iter().all(|lane| lane.peer.to_string().starts_with(&proxy)));
    // What the joining command wrote is valid at the next start, too.
    drop(one);
    let _one = grid.gateway(1, &[], &grid.log(1));
    grid.wait_for("the tunnel of the next start", Grid::is_joined);
}
