//! A thousand gateways with a hundred thousand nodes: how much time and memory that takes. Nothing is
//! asserted about time; docs/broker.md has the figures. In a release build, for people: `cargo test --release
//! -p causeway-broker --test broker size:: -- --ignored --nocapture`

use crate::common::{DEADLINE, Grid, question, read_answer, write_request};
use causeway_broker::api::{Member, Node, Record, Subnet};
use causeway_broker::authority::{Authority, new_key};
use causeway_broker::identity::Identity;
use causeway_broker::members::Members;
use causeway_broker::revocation::Revocations;
use causeway_broker::tls::{Expect, Trust, client_config, server_name};
use causeway_broker::{Credentials, Limits, Rate};
use std::net::{IpAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

const SITES: usize = 1000;
const NODES: usize = 100;

fn record(site: usize) -> Record {
    let (a, b) = (site / 250, site % 250);
    let address = |node: usize| -> IpAddr { [10, 100 + a as u8, b as u8, 1 + node as u8].into() };
    let nodes = (0..NODES).map(|node| Node {
        name: format!("node-{node}.site-{site}.example.org"),
        addresses: vec![address(node)],
        slots: 64,
    });
    Record {
        subnets: vec![Subnet(format!("10.{}.{b}.0/24", 100 + a).parse().unwrap())],
        lan: vec![(address(252), 7000).into()],
        nodes: nodes.collect(),
        ..crate::common::record(1)
    }
}

fn resident_megabytes() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .unwrap();
    line.trim().trim_end_matches(" kB").parse::<f64>().unwrap() / 1024.0
}

fn mean(times: usize, what: impl Fn(usize) -> bool) -> Duration {
    let began = Instant::now();
    for time in 0..times {
        assert!(what(time));
    }
    began.elapsed() / times as u32
}

#[test]
#[ignore = "prints figures, which a debug build falsifies"]
fn a_thousand_sites_fit_into_an_index() {
    let before = resident_megabytes();
    let mut members = Members::default();
    let began = Instant::now();
    for site in 0..SITES {
        let member = Member {
            virtual_subnets: vec![],
            site: format!("site-{site}"),
            record: record(site),
            observed: None,
            last_seen: 0,
            serial: "40".repeat(16),
            not_before: 0,
        };
        members.admit(&member.site, &member.record).unwrap();
        members.put(member);
    }
    let filled = began.elapsed();
    println!(
        "{SITES} sites with {NODES} nodes each: {:.1} MB, filled in {filled:.2?}",
        resident_megabytes() - before
    );
    let by_name = mean(1_000_000, |time| {
        let name = format!("node-{}.site-{}.example.org", time % NODES, time % SITES);
        members.sites_of_node(&name).len() == 1
    });
    let by_address = mean(1_000_000, |time| {
        let address = [
            10,
            100 + (time % SITES / 250) as u8,
            (time % SITES % 250) as u8,
            7,
        ];
        members.sites_of_address(address.into()).len() == 1
    });
    println!("a node by name: {by_name:?} (and the making of the name), an address: {by_address:?}");
    let began = Instant::now();
    let (mut at, mut pages, mut bytes) = (0, 0, 0);
    loop {
        let page = members.since(at, 1024 * 1024);
        bytes += serde_json::to_vec(&page.members).unwrap().len();
        pages += 1;
        at = page.revision;
        if !page.more {
            break;
        }
    }
    println!(
        "all of them: {pages} answers, {:.1} MB of JSON, made in {:.0?}",
        bytes as f64 / 1e6,
        began.elapsed()
    );
    let again = record(SITES / 2);
    let admitted = mean(100, |_| {
        members.admit(&format!("site-{}", SITES / 2), &again).is_ok()
    });
    println!("a record is checked against all others in {admitted:.0?}");
}

/// Without the bounds for one address, because all gateways have the same one here.
fn unbounded() -> Limits {
    let hellos = Rate {
        in_all: u32::MAX,
        to_one: u32::MAX,
        every: Duration::from_secs(1),
    };
    Limits {
        hellos,
        ..Limits::default()
    }
}

#[test]
#[ignore = "prints figures, which a debug build falsifies"]
fn a_thousand_gateways_register_with_a_broker() {
    let mut grid = Grid::with("g5k", unbounded());
    let authority = Authority::load("g5k", &grid.config.directory).unwrap();
    let clock = grid.clock.clock();
    let trust = Trust::new(
        "g5k",
        authority.certificate(),
        Revocations::default(),
        clock.clone(),
    )
    .unwrap();
    let (key, request) = new_key().unwrap();
    let began = Instant::now();
    let configs: Vec<_> = (0..SITES)
        .map(|site| {
            let identity = Identity::site("g5k", &format!("site-{site}"));
            let issued = authority.certify(&request, &identity, clock.now(), 0).unwrap();
            let own = Credentials::from_pem(&issued.pem, authority.certificate_pem(), &key).unwrap();
            Arc::new(client_config(&own, &trust, Expect::Broker).unwrap())
        })
        .collect();
    println!("{SITES} certificates in {:.2?}", began.elapsed());
    let before = resident_megabytes();
    let began = Instant::now();
    let mut streams = Vec::new();
    for (site, config) in configs.iter().enumerate() {
        let socket = TcpStream::connect(grid.address).unwrap();
        socket.set_read_timeout(Some(DEADLINE)).unwrap();
        socket.set_nodelay(true).unwrap();
        let session = rustls::ClientConnection::new(config.clone(), server_name()).unwrap();
        let mut stream = rustls::StreamOwned::new(session, socket);
        let body = serde_json::to_vec(&question(&record(site))).unwrap();
        write_request(&mut stream, "/v1/sync", &body, body.len());
        assert_eq!(read_answer(&mut stream).unwrap().0, 200);
        streams.push(stream);
    }
    let took = began.elapsed();
    println!(
        "{SITES} gateways, {} nodes registered one after the other over TLS in {took:.2?} ({:.1?} each, both ends on this \
         host); {:.0} MB more resident, both ends of all connections among them",
        SITES * NODES,
        took / SITES as u32,
        resident_megabytes() - before
    );
    drop(streams);
    grid.stop();
    let began = Instant::now();
    grid.start();
    println!(
        "the broker starts again with all of them in {:.0?}",
        began.elapsed()
    );
    let store = grid.config.directory.join("store.redb");
    println!(
        "the store has {:.1} MB",
        store.metadata().unwrap().len() as f64 / 1e6
    );
}
