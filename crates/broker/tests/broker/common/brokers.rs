//! A grid of several brokers on loopback, each at an address of its own.

use super::{DEADLINE, TestClock, connect_as, post};
use causeway_broker::admin::{self, AdminReply, AdminRequest};
use causeway_broker::api::{CertificateAnswer, ErrorAnswer, Record, RenewRequest, Subnet};
use causeway_broker::authority::new_key;
use causeway_broker::client::{Client, ClientConfig, JoinError, Membership, join};
use causeway_broker::clock::Clock;
use causeway_broker::join_token::JoinToken;
use causeway_broker::root::{self, Root};
use causeway_broker::{Broker, BrokerConfig, Listing, Log, Options};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// The brokers have the numbers 1, 2, 3, ...
pub struct Brokers {
    pub dir: tempfile::TempDir,
    pub configs: Vec<BrokerConfig>,
    running: Vec<Option<Broker>>,
    pub clock: TestClock,
    lines: Arc<(Mutex<Vec<String>>, Condvar)>,
    network: String,
}

/// The tests have different addresses: they run at the same time, and each record of a broker contains its
/// address.
fn network() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = std::process::id().wrapping_mul(31) + NEXT.fetch_add(1, Ordering::SeqCst);
    format!("127.{}.{}", 64 + number / 250 % 180, 1 + number % 250)
}

impl Brokers {
    /// Makes a grid whose brokers do not run yet.
    pub fn new(count: u8) -> Brokers {
        let dir = tempfile::tempdir().unwrap();
        let network = network();
        let places: Vec<String> = (1..=count)
            .map(|number| format!("{network}.{number}:7443"))
            .collect();
        let place = dir.path().join("grid");
        let files = root::create_several("g5k", &places, &place, &Clock::system()).unwrap();
        let mut brokers = Brokers {
            dir,
            configs: Vec::new(),
            running: Vec::new(),
            clock: TestClock::default(),
            lines: Arc::default(),
            network,
        };
        files.into_iter().for_each(|file| brokers.take(file));
        brokers
    }

    /// A grid all of whose brokers run.
    pub fn running(count: u8) -> Brokers {
        let mut brokers = Brokers::new(count);
        (1..=count).for_each(|number| brokers.start(number));
        brokers
    }

    /// Adds the configuration of one more broker.
    pub fn take(&mut self, file: PathBuf) {
        let mut config = BrokerConfig::load(&file).unwrap();
        config.listen = vec![config.public[0].parse().unwrap()];
        config.reach_local = true;
        self.configs.push(config);
        self.running.push(None);
    }

    pub fn place(&self, number: u8) -> String {
        format!("{}.{number}:7443", self.network)
    }

    pub fn root(&self) -> Root {
        Root::open(&self.dir.path().join("grid/authority")).unwrap()
    }

    pub fn config(&self, number: u8) -> &BrokerConfig {
        &self.configs[usize::from(number) - 1]
    }

    pub fn start(&mut self, number: u8) {
        let lines = self.lines.clone();
        let options = Options {
            clock: self.clock.clock(),
            log: Log::new(move |line| {
                lines.0.lock().unwrap().push(format!("{number}: {line}"));
                lines.1.notify_all();
            }),
            ..Options::default()
        };
        let broker = Broker::start(self.config(number), options).unwrap();
        self.running[usize::from(number) - 1] = Some(broker);
    }

    pub fn stop(&mut self, number: u8) {
        self.running[usize::from(number) - 1].take().unwrap().stop();
    }

    pub fn store(&self, number: u8) -> PathBuf {
        self.config(number).directory.join("store.redb")
    }

    pub fn ask(&self, number: u8, request: &AdminRequest) -> AdminReply {
        admin::ask(self.config(number), request).unwrap().0
    }

    pub fn token(&self, number: u8, site: &str, subnets: &[&str]) -> JoinToken {
        let request = AdminRequest::Token {
            site: site.into(),
            ttl_seconds: 3600,
            subnets: subnets.iter().map(|text| Subnet(text.parse().unwrap())).collect(),
        };
        let AdminReply::Token(line) = self.ask(number, &request) else {
            panic!("no token");
        };
        line.parse().unwrap()
    }

    pub fn home(&self, host: &str) -> PathBuf {
        self.dir.path().join(host)
    }

    /// Has a host join.
    pub fn join(&self, token: &JoinToken, host: &str) -> Result<Membership, JoinError> {
        join(token, &self.home(host), &self.clock.clock())
    }

    pub fn revoke(&self, number: u8, site: &str) {
        let request = AdminRequest::Revoke {
            site: site.into(),
            unknown: true,
        };
        assert!(matches!(self.ask(number, &request), AdminReply::RevokedUntil(_)));
    }

    pub fn listing(&self, number: u8) -> Listing {
        let AdminReply::Listing(listing) = self.ask(number, &AdminRequest::List {}) else {
            panic!("no listing");
        };
        listing
    }

    /// Waits until a broker's list satisfies the condition: checks it whenever one of the brokers has said
    /// something.
    pub fn until(&self, number: u8, what: &str, is_so: impl Fn(&Listing) -> bool) {
        let began = std::time::Instant::now();
        let mut lines = self.lines.0.lock().unwrap();
        loop {
            let before = lines.len();
            drop(lines);
            if is_so(&self.listing(number)) {
                return;
            }
            lines = self.lines.0.lock().unwrap();
            let left = DEADLINE.saturating_sub(began.elapsed());
            let waited = self
                .lines
                .1
                .wait_timeout_while(lines, left, |lines| lines.len() == before);
            lines = waited.unwrap().0;
            assert!(
                !left.is_zero(),
                "broker {number} never came to: {what}; they said {lines:#?}"
            );
        }
    }

    pub fn knows(&self, number: u8, site: &str) {
        self.until(number, &format!("{site} has joined"), |listing| {
            let mut sites = listing.sites.iter();
            sites.any(|listed| listed.site == site && listed.revoked.is_none())
        });
    }

    pub fn knows_revoked(&self, number: u8, site: &str) {
        self.until(number, &format!("{site} is revoked"), |listing| {
            let mut sites = listing.sites.iter();
            sites.any(|listed| listed.site == site && listed.revoked.is_some())
        });
    }

    /// A session of a site with all brokers.
    pub fn session(&self, membership: &Membership, host: &str, record: Record) -> Client {
        let mut config = ClientConfig::new(membership.clone(), self.home(host), record, Box::new(|| {}));
        config.clock = self.clock.clock();
        config.retry = Duration::from_millis(10)..=Duration::from_millis(100);
        config.refused = Duration::from_millis(50);
        Client::start(config).unwrap()
    }

    pub fn post<Q: Serialize, A: DeserializeOwned>(
        &self,
        number: u8,
        (who, path): (&Membership, &str),
        asked: &Q,
    ) -> Result<A, ErrorAnswer> {
        let address = self.config(number).listen[0];
        post(&mut connect_as(who, address, &self.clock), path, asked)
    }

    /// Asks a broker for the next certificate.
    pub fn renew(&self, number: u8, who: &Membership) -> Result<CertificateAnswer, ErrorAnswer> {
        let (_, request) = new_key().unwrap();
        self.post(number, (who, "/v1/renew"), &RenewRequest { request })
    }
}
