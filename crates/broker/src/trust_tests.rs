//! The most that a broker can make others believe, although its signatures are right.

use super::*;
use crate::authority::Authority;
use crate::records::{
    BrokerRecord, MOST_AHEAD, MOST_NEWS, NEWS_AN_HOUR, Revocation, Standing, authority_text,
};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::UNIX_EPOCH;

struct Grid {
    trust: Trust,
    root: Authority,
    broker: Authority,
    records: Records,
    time: Arc<AtomicU64>,
}

impl Grid {
    fn new() -> Grid {
        let time = Arc::new(AtomicU64::new(1_800_000_000));
        let shown = Arc::clone(&time);
        let clock = Clock::new(move || UNIX_EPOCH + Duration::from_secs(shown.load(Ordering::Relaxed)));
        let root = Authority::create("g5k", &clock).unwrap();
        let broker = root.create_for_broker(2, &clock).unwrap();
        let trust = Trust::new("g5k", root.certificate(), Revocations::default(), clock).unwrap();
        let record = root.state(&Grid::broker_record(&broker, Standing::Serving));
        let mut records = Records::default();
        trust.union(&mut records, &[record.unwrap()]).unwrap();
        Grid {
            trust,
            root,
            broker,
            records,
            time,
        }
    }

    /// The authority's record of the broker.
    fn broker_record(broker: &Authority, standing: Standing) -> Statement {
        Statement::Broker(BrokerRecord {
            number: 2,
            revision: 0,
            standing,
            public: vec!["b:7443".into()],
            authority: authority_text(broker.own().unwrap()),
            share: 1,
        })
    }

    fn now(&self) -> u64 {
        self.trust.clock().now()
    }

    fn revoke(&mut self, site: &str, until: u64) -> Union {
        let revocation = Revocation {
            site: site.to_owned(),
            until,
            broker: 2,
        };
        let signed = self.broker.state(&Statement::Revocation(revocation)).unwrap();
        self.trust.union(&mut self.records, &[signed]).unwrap()
    }
}

#[test]
fn a_time_that_is_more_than_a_day_ahead_is_believed_when_that_is_over() {
    let mut grid = Grid::new();
    for ahead in [MOST_AHEAD + 1, u64::MAX - grid.now()] {
        let union = grid.revoke("rennes", grid.now() + ahead);
        assert_eq!((union.news.len(), union.postponed), (0, 1), "{ahead}");
    }
    assert_eq!(grid.records.revoked_until("rennes"), None);
    let own = grid.records.revocation("rennes", 1, grid.now(), 0);
    assert_eq!(own.until, grid.now(), "what others sign does not follow it");
    let until = grid.now() + MOST_AHEAD + 1;
    grid.time.fetch_add(1, Ordering::Relaxed);
    assert_eq!(grid.revoke("rennes", until).news.len(), 1);
}

#[test]
fn a_record_whose_time_was_too_far_ahead_is_taken_later_though_nobody_brings_it_again() {
    let mut grid = Grid::new();
    let soon = grid.now() + MOST_AHEAD + 600;
    assert_eq!(grid.revoke("rennes", soon).postponed, 1);
    // One record that no broker that follows the rules signs, and more than there is room for.
    grid.revoke("lyon", grid.now() + 2 * MOST_AHEAD + 1);
    (0..1000).for_each(|number| drop(grid.revoke(&format!("site-{number}"), soon)));
    assert_eq!(grid.trust.union_due(&mut grid.records), Vec::new());
    assert!(!grid.trust.has_due());
    grid.time.fetch_add(600, Ordering::Relaxed);
    assert!(grid.trust.has_due());
    let mut unkept = grid.records.clone();
    let due = grid.trust.union_due(&mut unkept);
    assert_eq!((due.len(), unkept.revoked_until("rennes")), (256, Some(soon)));
    // Since the disk has refused, the next set gets them again.
    assert_eq!(grid.trust.union_due(&mut grid.records).len(), 256);
    assert_eq!(grid.trust.union_due(&mut grid.records), Vec::new());
    assert!(!grid.trust.has_due());
    grid.time.fetch_add(3 * MOST_AHEAD, Ordering::Relaxed);
    assert_eq!(grid.records.revoked_until("lyon"), None);
}

#[test]
fn what_waits_of_a_broker_goes_when_it_is_expelled() {
    let mut grid = Grid::new();
    assert_eq!(grid.revoke("rennes", grid.now() + MOST_AHEAD + 600).postponed, 1);
    let record = grid
        .root
        .state(&Grid::broker_record(&grid.broker, Standing::Expelled));
    let news = grid
        .trust
        .union(&mut grid.records, &[record.unwrap()])
        .unwrap()
        .news;
    assert_eq!(news.len(), 1);
    assert_eq!(grid.trust.union_due(&mut grid.records), Vec::new());
    grid.time.fetch_add(600, Ordering::Relaxed);
    assert!(!grid.trust.has_due());
}

#[test]
fn a_broker_believes_less_than_gateways_do_but_what_it_has_signed_itself_as_much() {
    let mut grid = Grid::new();
    let until = grid.now() + MOST_AHEAD;
    grid.trust.set_broker(1);
    assert_eq!(grid.revoke("rennes", until).postponed, 1);
    grid.trust.set_broker(2);
    assert_eq!(grid.revoke("rennes", until).news.len(), 1);
    // Somebody else may have its key.
    assert_eq!(grid.revoke("rennes", u64::MAX).postponed, 1);
}

#[test]
fn what_was_kept_is_read_back_whatever_the_clock_says() {
    let mut grid = Grid::new();
    grid.revoke("rennes", grid.now() + 10);
    grid.time.fetch_sub(3 * MOST_AHEAD, Ordering::Relaxed);
    let kept: Vec<SignedRecord> = grid.records.signed().cloned().collect();
    let mut read = Records::default();
    grid.trust.read_back(&mut read, &kept).unwrap();
    assert_eq!(read, grid.records);
    let forged = SignedRecord {
        signature: kept[0].signature.clone(),
        ..kept[1].clone()
    };
    assert_eq!(
        grid.trust
            .read_back(&mut Records::default(), &[kept[0].clone(), forged]),
        Err(RecordError::Signature)
    );
}

#[test]
fn a_broker_that_has_news_without_end_is_heard_so_many_times_and_then_so_many_an_hour() {
    let mut grid = Grid::new();
    let from = grid.now() - 100_000;
    let tell = |grid: &mut Grid, first: u64, count: u64| -> usize {
        let told = (first..first + count).map(|number| grid.revoke("rennes", from + number).news.len());
        told.sum()
    };
    assert_eq!(tell(&mut grid, 0, MOST_NEWS + 100), MOST_NEWS as usize);
    assert_eq!(grid.records.len(), 2, "the broker, and the last revocation");
    grid.time.fetch_add(3600, Ordering::Relaxed);
    assert_eq!(tell(&mut grid, 50_000, NEWS_AN_HOUR + 10), NEWS_AN_HOUR as usize);
    grid.time.fetch_sub(7200, Ordering::Relaxed);
    assert_eq!(
        tell(&mut grid, 60_000, 1),
        0,
        "a clock that is set back gives nothing"
    );
}
