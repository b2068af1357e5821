//! Random histories of a grid with several brokers, in virtual time: brokers that give tokens and revoke,
//! hosts that join and renew, gateways that carry records. All of them meet at random, die, lose their disks,
//! get old ones back and are expelled. After each history everybody meets everybody, and the rules have to
//! hold. No clock, no socket, no signature.

use super::{Exchange, Log};
use crate::api::{RecordsAnswer, RecordsRequest, Since};
use crate::records::{Added, Admission, Admitted, BrokerRecord, Records, SignedRecord, Standing, Statement};
use std::collections::BTreeMap;

const BROKERS: usize = 3;
const GATEWAYS: usize = 2;
const PARTIES: usize = BROKERS + GATEWAYS;
const NAMES: [&str; 2] = ["rennes", "nancy"];

/// Small numbers from a seed: xorshift, as good as any for choosing steps.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % bound
    }

    fn one_in(&mut self, chances: usize) -> bool {
        self.below(chances) == 0
    }
}

/// A token as its broker keeps it.
#[derive(Clone)]
struct Given {
    site: usize,
    admission: Admission,
    used_by: Option<String>,
}

/// Holds what a party has on its disk.
#[derive(Clone, Default)]
struct Disk {
    records: Records,
    /// Everything that was ever taken, for the answer without any pruning.
    raw: Vec<Statement>,
    tokens: Vec<Given>,
}

struct Party {
    disk: Disk,
    old: Disk,
    log: Log,
    history: u64,
    /// By the other party's number.
    met: BTreeMap<usize, Exchange>,
    is_full: bool,
    /// It keeps nothing in its log that counts no longer.
    prunes: bool,
    /// Seconds that its clock is ahead, less 300.
    clock: u64,
}

impl Party {
    fn new(clock: u64) -> Party {
        Party {
            disk: Disk::default(),
            old: Disk::default(),
            log: Log::default(),
            history: 0,
            met: BTreeMap::new(),
            is_full: false,
            prunes: clock.is_multiple_of(2),
            clock,
        }
    }

    /// On the disk before anybody is told; false where that is full.
    fn keep(&mut self, statement: Statement) -> bool {
        if self.is_full {
            return false;
        }
        let signed = signed(&statement);
        self.disk.raw.push(statement.clone());
        if self.disk.records.add(statement, signed.clone()) == Ok(Added::News) {
            self.log.push(signed);
            self.log.prune(&self.disk.records, self.prunes);
        }
        true
    }

    fn start_again(&mut self) {
        self.history += 1;
        self.log = Log::of(&self.disk.records);
        self.met.clear();
    }

    fn answer(&mut self, asked: &RecordsRequest) -> Option<RecordsAnswer> {
        for record in &asked.records {
            let statement = serde_json::from_str(&record.text).unwrap();
            if !self.keep(statement) {
                return None;
            }
        }
        let history = self.history.to_string();
        let since = asked.since.as_ref().filter(|since| since.history == history);
        let (records, revision, more) = self.log.since(since.map_or(0, |since| since.revision));
        Some(RecordsAnswer {
            now: Since { history, revision },
            records,
            more,
        })
    }
}

fn signed(statement: &Statement) -> SignedRecord {
    SignedRecord {
        text: serde_json::to_string(statement).unwrap(),
        signature: String::new(),
    }
}

fn broker_record(number: u8, revision: u32, standing: Standing) -> Statement {
    Statement::Broker(BrokerRecord {
        number,
        revision,
        standing,
        public: vec![format!("b{number}:7443")],
        authority: String::new(),
        share: number - 1,
    })
}

struct Grid {
    random: Random,
    now: u64,
    parties: Vec<Party>,
    /// Certificates that a host was given: at which name, of which admission.
    hosts: Vec<(usize, Admission)>,
    tokens: u64,
    keys: u64,
    expelled: Option<u8>,
}

impl Grid {
    fn new(seed: u64) -> Grid {
        // Xorshift needs a seed that is not zero.
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let mut parties: Vec<Party> = (0..PARTIES)
            .map(|_| Party::new(random.below(600) as u64))
            .collect();
        for party in &mut parties {
            for number in 1..=BROKERS as u8 {
                party.keep(broker_record(number, 0, Standing::Serving));
            }
            party.start_again();
        }
        Grid {
            random,
            now: 10_000,
            parties,
            hosts: Vec::new(),
            tokens: 0,
            keys: 0,
            expelled: None,
        }
    }

    fn time_of(&self, party: usize) -> u64 {
        self.now + self.parties[party].clock - 300
    }

    fn step(&mut self) {
        self.now += self.random.below(200) as u64;
        let broker = self.random.below(BROKERS);
        let site = self.random.below(NAMES.len());
        match self.random.below(20) {
            0..=3 => self.give(broker, site),
            4..=6 => self.join(broker),
            7 => self.renew(broker),
            8 => self.revoke(broker, site),
            9..=15 => {
                let (one, other) = (self.random.below(PARTIES), self.random.below(PARTIES));
                let answered = !self.random.one_in(4);
                self.meet(one, other, answered);
            }
            16 => self.parties[broker].start_again(),
            17 => {
                let disk = &self.parties[broker].disk;
                self.parties[broker].old = disk.clone();
            }
            18 if self.random.one_in(3) => self.lose(broker),
            18 => self.parties[broker].is_full ^= true,
            _ if self.random.one_in(10) => self.expel(broker),
            _ => {}
        }
    }

    fn give(&mut self, broker: usize, site: usize) {
        let now = self.time_of(broker);
        self.tokens += 1;
        let token = format!("{:032x}", self.tokens);
        let party = &mut self.parties[broker];
        if party.is_full {
            return;
        }
        let records = &party.disk.records;
        let admission = records.next_admission(NAMES[site], broker as u8 + 1, &token, now, None);
        assert_eq!(
            party.disk.records.may_use(NAMES[site], &admission).is_ok(),
            !party.disk.records.is_expelled(broker as u8 + 1),
            "whoever was revoked can come back by a broker that knows of it"
        );
        party.disk.tokens.push(Given {
            site,
            admission,
            used_by: None,
        });
    }

    /// A host uses a token, perhaps for the second time.
    fn join(&mut self, broker: usize) {
        let count = self.parties[broker].disk.tokens.len();
        if count == 0 {
            return;
        }
        let at = self.random.below(count);
        self.keys += 1;
        let key = format!("{:064x}", self.keys);
        let party = &mut self.parties[broker];
        let mut token = party.disk.tokens[at].clone();
        token.admission.key.clone_from(&key);
        let name = NAMES[token.site];
        let burned = token.used_by.is_some();
        let usable = party.disk.records.may_use(name, &token.admission).is_ok();
        if burned || !usable || party.is_full {
            return;
        }
        party.disk.tokens[at].used_by = Some(key);
        let admitted = Statement::Admitted(Admitted {
            site: name.to_owned(),
            admission: token.admission.clone(),
            granted: Vec::new(),
        });
        party.keep(admitted.clone());
        self.hosts.push((token.site, token.admission));
        // The answer has the record; the host's gateway passes it on as any other.
        let gateway = BROKERS + token.site % GATEWAYS;
        self.parties[gateway].keep(admitted);
    }

    /// A renewed certificate has the same admission: it must not help against a revocation.
    fn renew(&mut self, broker: usize) {
        if self.hosts.is_empty() {
            return;
        }
        let (site, admission) = self.hosts[self.random.below(self.hosts.len())].clone();
        if self.parties[broker]
            .disk
            .records
            .judge(NAMES[site], &admission)
            .is_ok()
        {
            self.hosts.push((site, admission));
        }
    }

    fn revoke(&mut self, broker: usize, site: usize) {
        let now = self.time_of(broker);
        let number = broker as u8 + 1;
        // Such a one refuses.
        if self.parties[broker].disk.records.is_expelled(number) {
            return;
        }
        let revocation = self.parties[broker]
            .disk
            .records
            .revocation(NAMES[site], number, now, 0);
        let known: Vec<Admission> = self.known(broker, site);
        if self.parties[broker].keep(Statement::Revocation(revocation)) {
            for admission in known {
                let records = &self.parties[broker].disk.records;
                assert!(
                    records.judge(NAMES[site], &admission).is_err(),
                    "whom it knew is out"
                );
            }
        }
    }

    fn known(&self, party: usize, site: usize) -> Vec<Admission> {
        let of_site = |statement: &Statement| match statement {
            Statement::Admitted(admitted) if admitted.site == NAMES[site] => Some(admitted.admission.clone()),
            _ => None,
        };
        self.parties[party].disk.raw.iter().filter_map(of_site).collect()
    }

    fn lose(&mut self, broker: usize) {
        let whole = self.random.one_in(2);
        let party = &mut self.parties[broker];
        party.disk = if whole { Disk::default() } else { party.old.clone() };
        party.is_full = false;
        // Those are beside its configuration, and in the records of everybody.
        for number in 1..=BROKERS as u8 {
            party.keep(broker_record(number, 0, Standing::Serving));
        }
        party.start_again();
    }

    fn expel(&mut self, broker: usize) {
        let number = *self.expelled.get_or_insert(broker as u8 + 1);
        let told = self.random.below(PARTIES);
        let party = &mut self.parties[told];
        // A broker says first what it stands for itself.
        if told < BROKERS && told as u8 + 1 != number {
            let has_admitted = |site: &str| {
                let mut tokens = party.disk.tokens.iter();
                tokens.any(|token| NAMES[token.site] == site && token.used_by.is_some())
            };
            let records = &party.disk.records;
            for revocation in records.to_say_again(number, told as u8 + 1, has_admitted) {
                party.keep(Statement::Revocation(revocation));
            }
        }
        party.keep(broker_record(number, 1, Standing::Expelled));
    }

    /// One asks another, as gateways and brokers do; an answer may get lost on its way.
    fn meet(&mut self, asking: usize, asked: usize, is_answered: bool) -> bool {
        if asking == asked {
            return true;
        }
        let mut exchange = self.parties[asking].met.remove(&asked).unwrap_or_default();
        let mut settled = false;
        while !settled {
            let request = exchange.request(&self.parties[asking].disk.records);
            let Some(answer) = self.parties[asked].answer(&request).filter(|_| is_answered) else {
                break;
            };
            let took = answer.records.iter().all(|record| {
                let statement = serde_json::from_str(&record.text).unwrap();
                self.parties[asking].keep(statement)
            });
            if !took {
                break;
            }
            settled = exchange.on_answer(&request, &answer, &self.parties[asking].disk.records);
        }
        self.parties[asking].met.insert(asked, exchange);
        settled
    }

    fn settle(&mut self) {
        for party in &mut self.parties {
            party.is_full = false;
        }
        for _ in 0..2 {
            for one in 0..PARTIES {
                for other in 0..PARTIES {
                    assert!(self.meet(one, other, true));
                }
            }
        }
    }

    fn check(&self) {
        let agreed = &self.parties[0].disk.records;
        for party in &self.parties {
            assert_eq!(
                &party.disk.records, agreed,
                "who has met everybody knows the same"
            );
        }
        for (site, name) in NAMES.iter().enumerate() {
            let mut in_force: Vec<&Admission> = Vec::new();
            for (_, admission) in self.hosts.iter().filter(|(of, _)| *of == site) {
                if agreed.judge(name, admission).is_ok()
                    && !in_force.iter().any(|known| known.is_same(admission))
                {
                    in_force.push(admission);
                }
            }
            assert!(in_force.len() <= 1, "one host has the name {name}: {in_force:?}");
            for party in &self.parties {
                let expected = naive_holder(&party.disk.raw, name);
                let holder = party.disk.records.holder(name).map(|held| &held.admission);
                assert_eq!(
                    holder,
                    expected.as_ref(),
                    "who has {name} by all that was ever said"
                );
            }
        }
    }
}

/// The rules without any shortcut.
fn naive_holder(raw: &[Statement], site: &str) -> Option<Admission> {
    let expelled: Vec<u8> = raw
        .iter()
        .filter_map(|statement| match statement {
            Statement::Broker(record) if record.standing == Standing::Expelled => Some(record.number),
            _ => None,
        })
        .collect();
    let until = raw.iter().filter_map(|statement| match statement {
        Statement::Revocation(revocation) if revocation.site == site => {
            (!expelled.contains(&revocation.broker)).then_some(revocation.until)
        }
        _ => None,
    });
    let until = until.max();
    let live = raw.iter().filter_map(|statement| match statement {
        Statement::Admitted(admitted) if admitted.site == site => Some(&admitted.admission),
        _ => None,
    });
    let live = live.filter(|admission| {
        until.is_none_or(|until| admission.given > until) && !expelled.contains(&admission.broker)
    });
    live.reduce(|best, other| if other.precedes(best) { other } else { best })
        .cloned()
}

fn run(seeds: std::ops::Range<u64>) {
    for seed in seeds {
        let history = std::panic::catch_unwind(|| {
            let mut grid = Grid::new(seed);
            let steps = 10 + grid.random.below(60);
            for _ in 0..steps {
                grid.step();
            }
            grid.settle();
            grid.check();
        });
        if let Err(failed) = history {
            eprintln!("the history of seed {seed} breaks a rule");
            std::panic::resume_unwind(failed);
        }
    }
}

#[test]
fn whoever_has_met_knows_the_same_and_each_name_has_one_host() {
    run(0..3000);
}

/// `cargo test --release -p causeway-broker model:: -- --ignored`
#[test]
#[ignore = "a million histories take some minutes"]
fn a_million_histories_keep_the_rules() {
    run(0..1_000_000);
}
