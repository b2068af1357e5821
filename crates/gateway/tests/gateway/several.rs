//! A gateway that reaches no broker learns from another gateway which sites were put out.

use crate::common::wait_for;
use causeway_broker::admin::{self, AdminReply, AdminRequest};
use causeway_broker::api::{Reach, Record, Subnet, new_instance};
use causeway_broker::client::{Client, ClientConfig, Membership, join};
use causeway_broker::clock::Clock;
use causeway_broker::join_token::JoinToken;
use causeway_broker::{Broker, BrokerConfig, Log, Options, root};
use causeway_control::{self as control, Reply, Request, Status};
use causeway_gateway::{Config, Gateway};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

struct Grid {
    dir: tempfile::TempDir,
    config: BrokerConfig,
    _broker: Broker,
    net: u8,
}

impl Grid {
    /// A grid that may have several brokers, and has one.
    fn new() -> Grid {
        let dir = tempfile::tempdir().unwrap();
        let net = crate::nets::own();
        let place = format!("127.{net}.9.9:7443");
        let files = root::create_several(
            "g5k",
            std::slice::from_ref(&place),
            &dir.path().join("grid"),
            &Clock::system(),
        );
        let mut config = BrokerConfig::load(&files.unwrap()[0]).unwrap();
        config.listen = vec![place.parse().unwrap()];
        let options = Options {
            log: Log::new(|_| {}),
            ..Options::default()
        };
        let broker = Broker::start(&config, options).unwrap();
        Grid {
            dir,
            config,
            _broker: broker,
            net,
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
        let token: JoinToken = line.parse().unwrap();
        join(&token, &self.home(site), &Clock::system()).unwrap()
    }

    fn wan(&self, number: u8) -> SocketAddr {
        SocketAddr::from(([127, self.net, 0, number], 7001))
    }

    /// Starts the gateway of a site, with further lines in `[grid]`.
    fn gateway(&self, site: &str, number: u8, further: &str) {
        let (net, wan) = (self.net, self.wan(number));
        let text = format!(
            r#"
            [site]
            name = "{site}"
            subnets = ["127.{net}.{number}.0/24"]
            [listen]
            lan = ["127.{net}.{number}.253:7000"]
            wan = "{wan}"
            public = ["{wan}"]
            control = "{}"
            [grid]
            membership = "{}"
            transport = "tcp"
            {further}
            "#,
            self.home(site).join("control").display(),
            self.home(site).display()
        );
        let config = Config::parse(&text, Path::new("/gateway.toml")).unwrap();
        let mut gateway = Gateway::new(config).unwrap();
        // Ends with the test's process.
        std::thread::spawn(move || gateway.run().unwrap());
    }

    fn status(&self, site: &str) -> Status {
        match control::ask(&self.home(site).join("control"), &Request::Status {}).unwrap() {
            (Reply::Status(status), _) => *status,
            (other, _) => panic!("{other:?}"),
        }
    }

    fn has_lane(&self, site: &str, to: &str) -> bool {
        let tunnels = self.status(site).tunnels;
        tunnels
            .iter()
            .any(|tunnel| tunnel.site == to && !tunnel.lanes.is_empty())
    }
}

#[test]
fn a_gateway_that_sees_no_broker_hears_of_a_revocation_over_a_tunnel() {
    let grid = Grid::new();
    grid.join("rennes");
    let nancy = grid.join("nancy");
    grid.join("lyon");
    // What a gateway of nancy sends once, while it still reaches the broker, and what it keeps of the answer.
    let record = Record {
        virtual_subnets: vec![],
        instance: new_instance().unwrap(),
        subnets: vec![Subnet(format!("127.{}.2.0/24", grid.net).parse().unwrap())],
        lan: vec![],
        reach: Reach {
            public: vec![grid.wan(2)],
            ..Reach::default()
        },
        udp_port: None,
        nodes: Vec::new(),
        overlap_ok: false,
        version: "test".into(),
    };
    grid.gateway("rennes", 1, "");
    let config = ClientConfig::new(nancy, grid.home("nancy"), record, Box::new(|| {}));
    let client = Client::start(config).unwrap();
    wait_for("each to know the other", || {
        let kept = std::fs::read_to_string(grid.home("nancy").join("members.json"));
        let known = grid.status("rennes").sites;
        kept.is_ok_and(|kept| kept.contains("rennes")) && known.iter().any(|site| site.name == "nancy")
    });
    client.stop();

    // Nothing listens there, so the gateway reaches no broker and dials nobody.
    grid.gateway("nancy", 2, "proxy = \"http://127.0.0.1:9\"");
    wait_for("the tunnel", || {
        grid.has_lane("rennes", "nancy") && grid.has_lane("nancy", "rennes")
    });
    let nancy = grid.status("nancy").grid.unwrap();
    assert!(
        nancy.brokers.iter().all(|broker| broker.away.is_some()),
        "{nancy:?}"
    );
    let rennes = grid.status("rennes").grid.unwrap();
    assert!(
        rennes.brokers.iter().all(|broker| broker.away.is_none()),
        "{rennes:?}"
    );
    let revoke = AdminRequest::Revoke {
        site: "lyon".into(),
        unknown: false,
    };
    assert!(matches!(grid.ask(&revoke), AdminReply::RevokedUntil(_)));
    wait_for("nancy to hear of it", || {
        let records = std::fs::read_to_string(grid.home("nancy").join("records.json"));
        records.is_ok_and(|records| records.contains("revocation") && records.contains("lyon"))
    });
}
