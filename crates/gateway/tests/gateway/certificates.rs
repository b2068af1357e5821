//! Who may have a lane in a grid with a broker: the test plays gateways at the WAN port of a real one, with
//! certificates of its grid, of another grid with the same name, of another site, and with none.

use crate::common::{DEADLINE, wait_for};
use causeway_broker::admin::{self, AdminReply, AdminRequest};
use causeway_broker::api::{Reach, Record, Subnet, new_instance};
use causeway_broker::authority::{Authority, BACKDATED_SECONDS, new_key};
use causeway_broker::client::{Client, ClientConfig, Membership, join};
use causeway_broker::clock::Clock;
use causeway_broker::identity::{Certified, Identity};
use causeway_broker::revocation::Revocations;
use causeway_broker::tls::{Expect, client_config, joining_config, server_name};
use causeway_broker::{Broker, BrokerConfig, Credentials, Log, Options};
use causeway_control::{self as control, Reply, Request, Status};
use causeway_gateway::{Config, Gateway};
use causeway_tunnel::hello::{Hello, PROOF_BYTES};
use causeway_tunnel::{Header, Kind};
use hmac::{Hmac, Mac};
use rustls::{ClientConnection, StreamOwned};
use sha2::{Digest, Sha256};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A broker, which stops when this is dropped.
struct Grid {
    dir: tempfile::TempDir,
    config: BrokerConfig,
    _broker: Broker,
}

impl Grid {
    fn new(name: &str) -> Grid {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("grid");
        let file =
            causeway_broker::new_grid::create(name, "localhost:7443", &place, &Clock::system()).unwrap();
        let mut config = BrokerConfig::load(&file).unwrap();
        config.listen = vec!["127.0.0.1:0".parse().unwrap()];
        let options = Options {
            log: Log::new(|_| {}),
            ..Options::default()
        };
        let broker = Broker::start(&config, options).unwrap();
        config.public = vec![broker.addresses()[0].to_string()];
        config.listen = broker.addresses().to_vec();
        Grid {
            dir,
            config,
            _broker: broker,
        }
    }

    fn ask(&self, request: &AdminRequest) -> AdminReply {
        admin::ask(&self.config, request).unwrap().0
    }

    fn home(&self, site: &str) -> PathBuf {
        self.dir.path().join(site)
    }

    fn join(&self, site: &str) -> Membership {
        let request = AdminRequest::Token {
            site: site.into(),
            ttl_seconds: 3600,
            subnets: Vec::new(),
        };
        let AdminReply::Token(line) = self.ask(&request) else {
            panic!("no token");
        };
        let mut token: causeway_broker::join_token::JoinToken = line.parse().unwrap();
        token.brokers = self.config.public.clone();
        join(&token, &self.home(site), &Clock::system()).unwrap()
    }

    /// A site's session with the broker, which makes the site known to the others.
    fn session(&self, membership: &Membership, number: u8) -> Client {
        let record = Record {
            virtual_subnets: vec![],
            instance: new_instance().unwrap(),
            subnets: vec![Subnet(format!("10.{number}.0.0/24").parse().unwrap())],
            lan: vec![([10, number, 0, 253], 7000).into()],
            reach: Reach {
                outbound_only: true,
                ..Reach::default()
            },
            udp_port: None,
            nodes: Vec::new(),
            overlap_ok: false,
            version: "test".into(),
        };
        let home = self.home(&membership.site);
        Client::start(ClientConfig::new(
            membership.clone(),
            home,
            record,
            Box::new(|| {}),
        ))
        .unwrap()
    }
}

/// The gateway of site rennes.
struct Rennes {
    control: PathBuf,
    wan: SocketAddr,
}

impl Rennes {
    fn start(grid: &Grid) -> Rennes {
        grid.join("rennes");
        let net = crate::nets::own();
        let wan = SocketAddr::from(([127, net, 0, 1], 7001));
        let control = grid.dir.path().join("control");
        let text = format!(
            r#"
            [site]
            name = "rennes"
            subnets = ["127.{net}.1.0/24"]
            [listen]
            lan = ["127.{net}.1.253:7000"]
            wan = "{wan}"
            control = "{}"
            [grid]
            membership = "{}"
            transport = "tcp"
            "#,
            control.display(),
            grid.home("rennes").display()
        );
        let config = Config::parse(&text, Path::new("/gateway.toml")).unwrap();
        let mut gateway = Gateway::new(config).unwrap();
        // Ends with the test's process.
        std::thread::spawn(move || gateway.run().unwrap());
        Rennes { control, wan }
    }

    fn status(&self) -> Status {
        match control::ask(&self.control, &Request::Status {}).unwrap() {
            (Reply::Status(status), _) => *status,
            (other, _) => panic!("{other:?}"),
        }
    }

    fn knows(&self, site: &str) -> bool {
        self.status().sites.iter().any(|known| known.name == site)
    }

    fn refused(&self, kind: &str) -> u64 {
        self.status().refused.get(kind).copied().unwrap_or(0)
    }

    /// Whether a lane is up.
    fn has_lane(&self, site: &str) -> bool {
        let tunnels = self.status().tunnels;
        tunnels
            .iter()
            .any(|tunnel| tunnel.site == site && !tunnel.lanes.is_empty())
    }
}

/// Somebody who speaks to the gateway at its WAN port.
type Stranger = StreamOwned<ClientConnection, TcpStream>;

fn stranger(mut config: rustls::ClientConfig, wan: SocketAddr) -> Stranger {
    config.alpn_protocols = vec![b"causeway/2".to_vec()];
    let socket = TcpStream::connect(wan).unwrap();
    socket.set_read_timeout(Some(DEADLINE)).unwrap();
    let session = ClientConnection::new(Arc::new(config), server_name()).unwrap();
    StreamOwned::new(session, socket)
}

/// Connects with a site's certificate.
fn member(membership: &Membership, wan: SocketAddr) -> Stranger {
    let trust = membership.trust(Revocations::default(), Clock::system()).unwrap();
    let config = client_config(&membership.credentials, &trust, Expect::Site("rennes".into()));
    stranger(config.unwrap(), wan)
}

/// Says hello as a site, reads the gateway's hello, and gives the proof that every member can give.
fn shake_hands(stranger: &mut Stranger, site: &str, authority: &[u8]) -> io::Result<()> {
    let own = Hello {
        site: site.into(),
        nonce: [3; 32],
        session: 3,
        lane: 0,
    };
    stranger.write_all(&own.encode())?;
    let mut bytes = Vec::new();
    let (other, _) = loop {
        let mut byte = [0];
        stranger.read_exact(&mut byte)?;
        bytes.push(byte[0]);
        if let Some(read) = Hello::decode(&bytes).unwrap() {
            break read;
        }
    };
    stranger.read_exact(&mut [0; PROOF_BYTES])?;
    let shown = stranger.conn.peer_certificates().unwrap();
    let mut mac = Hmac::<Sha256>::new_from_slice(&Sha256::digest(authority)).unwrap();
    mac.update(&own.transcript(&other));
    mac.update(b"TLS");
    mac.update(&Sha256::digest(&shown[0]));
    stranger.write_all(&mac.finalize().into_bytes())
}

/// Waits until the gateway closes the connection, which is true, or something arrives.
fn is_ended(stranger: &mut Stranger) -> bool {
    matches!(stranger.read(&mut [0]), Ok(0) | Err(_))
}

#[test]
fn only_who_shows_a_certificate_of_the_grid_for_the_site_it_says_it_is_gets_a_lane_and_only_until_it_is_revoked()
 {
    let grid = Grid::new("g5k");
    // A grid with the same name, but another one.
    let namesake = Grid::new("g5k");
    let rennes = Rennes::start(&grid);
    let (nancy, lyon) = (grid.join("nancy"), grid.join("lyon"));
    let _sessions = [grid.session(&nancy, 2), grid.session(&lyon, 3)];
    wait_for("the broker to tell of both", || {
        rennes.knows("nancy") && rennes.knows("lyon")
    });
    let authority = &nancy.credentials.authority;

    let mut lane = member(&nancy, rennes.wan);
    shake_hands(&mut lane, "nancy", authority).unwrap();
    wait_for("the lane", || rennes.has_lane("nancy"));

    // A valid certificate, and the name of another site.
    let mut liar = member(&nancy, rennes.wan);
    shake_hands(&mut liar, "lyon", authority).unwrap();
    assert!(is_ended(&mut liar));
    wait_for("the refusal", || rennes.refused("certificate") == 1);
    assert!(!rennes.has_lane("lyon"));

    // Without a certificate of this grid, one does not get to say hello.
    let foreign = namesake.join("lyon");
    let trust = lyon.trust(Revocations::default(), Clock::system()).unwrap();
    let foreign = client_config(&foreign.credentials, &trust, Expect::Site("rennes".into())).unwrap();
    let authority_hash = Sha256::digest(authority).into();
    let none = joining_config(authority_hash, Clock::system()).unwrap();
    for (count, config) in [(1, foreign), (2, none)] {
        let mut other = stranger(config, rennes.wan);
        let shaken = shake_hands(&mut other, "lyon", authority);
        assert!(shaken.is_err() || is_ended(&mut other));
        wait_for("the refusal", || rennes.refused("handshake") == count);
    }
    let mut plain = TcpStream::connect(rennes.wan).unwrap();
    plain.set_read_timeout(Some(DEADLINE)).unwrap();
    plain.write_all(b"\x02CWLNwithout TLS").unwrap();
    assert!(matches!(plain.read(&mut [0; 100]), Ok(_) | Err(_)));
    wait_for("the refusal", || rennes.refused("handshake") == 3);

    // The sites that have a lane noticed none of these; but they notice being put out.
    assert!(rennes.has_lane("nancy") && !rennes.has_lane("lyon"));
    grid.ask(&AdminRequest::Revoke {
        site: "nancy".into(),
        unknown: false,
    });
    wait_for("the end of the lane", || !rennes.has_lane("nancy"));
    let mut again = member(&nancy, rennes.wan);
    let shaken = shake_hands(&mut again, "nancy", authority);
    assert!(shaken.is_err() || is_ended(&mut again));
    wait_for("the refusal", || rennes.refused("handshake") == 4);
}

#[test]
fn hellos_of_many_strangers_at_once_are_all_answered_though_they_wait_for_a_share_of_each_turn() {
    let grid = Grid::new("g5k");
    let rennes = Rennes::start(&grid);
    let nancy = grid.join("nancy");
    let mut strangers: Vec<_> = (0..60).map(|_| member(&nancy, rennes.wan)).collect();
    for stranger in &mut strangers {
        stranger.conn.write_tls(&mut stranger.sock).unwrap();
    }
    for stranger in &mut strangers {
        while stranger.conn.is_handshaking() {
            stranger.conn.complete_io(&mut stranger.sock).unwrap();
        }
    }
}

/// A site's membership with a certificate that ends after this many seconds.
fn ending(membership: &Membership, authority: &Authority, seconds: u64) -> Membership {
    let (key, request) = new_key().unwrap();
    let life = membership.certified.not_after - membership.certified.not_before - BACKDATED_SECONDS;
    let then = Clock::system().now() - life + seconds;
    let identity = Identity::site("g5k", &membership.site);
    let issued = authority.certify(&request, &identity, then, 0).unwrap();
    let credentials = Credentials::from_pem(&issued.pem, authority.certificate_pem(), &key).unwrap();
    let mut ending = membership.clone();
    ending.certified = Certified::read(&credentials.certificate).unwrap();
    ending.credentials = credentials;
    ending
}

#[test]
fn a_revocation_ends_the_lanes_of_its_site_and_not_those_whose_certificate_has_run_out_meanwhile() {
    let grid = Grid::new("g5k");
    let rennes = Rennes::start(&grid);
    let (nancy, lyon) = (grid.join("nancy"), grid.join("lyon"));
    let _sessions = [grid.session(&nancy, 2), grid.session(&lyon, 3)];
    wait_for("the broker to tell of both", || {
        rennes.knows("nancy") && rennes.knows("lyon")
    });
    let authority = Authority::load("g5k", &grid.config.directory).unwrap();
    // Long enough for two handshakes on a busy host.
    let lyon = ending(&lyon, &authority, 10);
    let mut lanes = Vec::new();
    for site in [&nancy, &lyon] {
        let mut lane = member(site, rennes.wan);
        shake_hands(&mut lane, &site.site, &site.credentials.authority).unwrap();
        wait_for("the lane", || rennes.has_lane(&site.site));
        lanes.push(lane);
    }
    wait_for("the end of the certificate", || {
        Clock::system().now() > lyon.certified.not_after
    });
    grid.ask(&AdminRequest::Revoke {
        site: "nancy".into(),
        unknown: false,
    });
    wait_for("the end of the lane", || !rennes.has_lane("nancy"));
    assert!(rennes.has_lane("lyon"));
}

#[test]
fn what_a_member_announces_counts_as_far_as_the_broker_has_recorded_it() {
    let grid = Grid::new("g5k");
    let rennes = Rennes::start(&grid);
    let nancy = grid.join("nancy");
    let _session = grid.session(&nancy, 2);
    wait_for("the broker to tell of it", || rennes.knows("nancy"));
    let mut lane = member(&nancy, rennes.wan);
    shake_hands(&mut lane, "nancy", &nancy.credentials.authority).unwrap();
    let mut said = 0;
    let mut announce = |subnet: &str, gateway: &str| {
        let site = format!(
            r#"{{"name":"nancy","subnets":["{subnet}"],"gateways":["{gateway}:7000"],"delivery_ports":"20000-32767","nodes":[]}}"#
        );
        let message = format!(r#"{{"version":1,"message":{{"site":{site}}}}}"#);
        let header = Header {
            kind: Kind::Message,
            detail: 0,
            length: message.len() as u16,
            stream: 0,
            position: said,
        };
        said += 1;
        lane.write_all(&[&header.encode()[..], message.as_bytes()].concat())
            .unwrap();
    };
    let trouble = || {
        let mut sites = rennes.status().sites.into_iter();
        sites.find(|site| site.name == "nancy").unwrap().unreachable
    };
    for (subnet, gateway, what) in [
        ("198.51.100.0/24", "198.51.100.1", "subnet 198.51.100.0/24"),
        ("10.2.0.0/24", "10.2.0.252", "gateway 10.2.0.252:7000"),
    ] {
        announce(subnet, gateway);
        let why = format!("announces {what}, which the broker has not recorded");
        wait_for("the announcement not to count", || {
            trouble().is_some_and(|said| said.contains(&why))
        });
    }
    announce("10.2.0.0/25", "10.2.0.253");
    wait_for("the announcement to count", || trouble().is_none());
    assert_eq!(rennes.refused("unrecorded"), 2);
}
