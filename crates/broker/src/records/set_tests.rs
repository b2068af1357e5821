//! Shows each rule by example; the model checks the rules over random histories.

use super::*;
use crate::records::{Origin, Unusable};

fn token(number: u8) -> String {
    format!("{number:032x}")
}

fn first(broker: u8, number: u8, given: u64) -> Admission {
    Admission {
        origin: Origin {
            given,
            broker,
            token: token(number),
        },
        generation: 0,
        given,
        broker,
        token: token(number),
        key: "k".repeat(64),
    }
}

fn text(statement: &Statement) -> SignedRecord {
    SignedRecord {
        text: serde_json::to_string(statement).unwrap(),
        signature: String::new(),
    }
}

fn add(records: &mut Records, statement: Statement) -> Added {
    let signed = text(&statement);
    records.add(statement, signed).unwrap()
}

fn admit(records: &mut Records, site: &str, admission: &Admission) -> Added {
    let admitted = Admitted {
        site: site.to_owned(),
        admission: admission.clone(),
        granted: Vec::new(),
    };
    add(records, Statement::Admitted(admitted))
}

fn revoke(records: &mut Records, site: &str, broker: u8, until: u64) -> Added {
    let site = site.to_owned();
    add(records, Statement::Revocation(Revocation { site, until, broker }))
}

fn broker(number: u8, revision: u32, standing: Standing) -> Statement {
    Statement::Broker(BrokerRecord {
        number,
        revision,
        standing,
        public: vec!["a:7443".into()],
        authority: String::new(),
        share: number - 1,
    })
}

#[test]
fn a_revocation_puts_out_every_key_of_a_site_that_was_given_until_then_at_whichever_broker() {
    let mut records = Records::default();
    let (of_one, of_two) = (first(1, 1, 100), first(2, 2, 150));
    admit(&mut records, "rennes", &of_one);
    revoke(&mut records, "rennes", 3, 150);
    // It arrives late, from a broker that had not heard of the revocation. It is kept, because broker 3 may
    // turn out to be expelled.
    assert_eq!(admit(&mut records, "rennes", &of_two), Added::News);
    assert!(records.holder("rennes").is_none());
    for admission in [&of_one, &of_two] {
        assert!(matches!(
            records.judge("rennes", admission),
            Err(Out::Revoked { until: 150, .. })
        ));
    }
    assert_eq!(records.judge("nancy", &of_two), Ok(()));
    let again = records.next_admission("rennes", 2, &token(3), 120, None);
    assert_eq!(
        (again.given, again.generation),
        (151, 1),
        "the clock of 2 is behind"
    );
    assert_eq!(records.may_use("rennes", &again), Ok(()));
    assert_eq!(revoke(&mut records, "rennes", 3, 149), Added::Known);
    assert_eq!(records.revoked_until("rennes"), Some(150));
}

#[test]
fn of_two_sites_with_one_name_the_earlier_has_it_in_whichever_order_they_are_heard_of() {
    let (earlier, later) = (first(2, 1, 100), first(1, 2, 101));
    for order in [[&earlier, &later], [&later, &earlier]] {
        let mut records = Records::default();
        for admission in order {
            admit(&mut records, "rennes", admission);
        }
        assert_eq!(records.holder("rennes").unwrap().admission, earlier);
        assert_eq!(records.judge("rennes", &earlier), Ok(()));
        let out = records.judge("rennes", &later).unwrap_err();
        assert!(
            matches!(
                out,
                Out::Another {
                    broker: 2,
                    given: 100,
                    ..
                }
            ),
            "{out}"
        );
    }
}

#[test]
fn a_site_that_joins_again_by_a_broker_that_knows_it_keeps_its_name_before_others() {
    let mut records = Records::default();
    let before = first(2, 1, 100);
    admit(&mut records, "rennes", &before);
    let mut again = records.next_admission("rennes", 1, &token(7), 500, None);
    again.key = "a".repeat(64);
    assert_eq!(admit(&mut records, "rennes", &again), Added::News);
    assert!(records.judge("rennes", &before).is_err());
    // A broker that did not know gave the name away in between.
    admit(&mut records, "rennes", &first(3, 9, 200));
    assert_eq!(records.holder("rennes").unwrap().admission, again);
}

#[test]
fn an_admission_with_more_generations_than_there_was_time_for_keeps_nobody_out() {
    let mut records = Records::default();
    let good = first(1, 1, 100);
    assert_eq!(admit(&mut records, "rennes", &good), Added::News);
    let in_time = Admission {
        generation: 50,
        given: 150,
        broker: 2,
        token: token(2),
        ..good.clone()
    };
    let newer_generation = Admission {
        generation: 51,
        ..in_time.clone()
    };
    let earlier = Admission {
        generation: 0,
        given: 99,
        ..in_time.clone()
    };
    for admission in [&newer_generation, &earlier] {
        assert_eq!(admit(&mut records, "rennes", admission), Added::Known);
        assert!(matches!(
            records.judge("rennes", admission),
            Err(Out::OutOfOrder { broker: 2, .. })
        ));
    }
    assert_eq!(records.holder("rennes").map(|it| &it.admission), Some(&good));
    assert_eq!(admit(&mut records, "rennes", &in_time), Added::News);
    assert_eq!(records.judge("rennes", &in_time), Ok(()));
}

#[test]
fn a_site_from_when_the_grid_had_one_broker_goes_on_with_each_certificate_until_it_joins_again() {
    let mut records = Records::default();
    let old = |begins| Admission::from_single_broker(begins);
    assert_eq!(records.judge("rennes", &old(100)), Ok(()));
    let again = records.next_admission("rennes", 1, &token(1), 90, Some(100));
    assert_eq!((again.generation, again.given), (1, 101));
    admit(&mut records, "rennes", &again);
    assert!(records.judge("rennes", &old(100)).is_err());
    admit(&mut records, "rennes", &first(2, 2, 50));
    assert_eq!(records.holder("rennes").unwrap().admission, again);
    revoke(&mut records, "nancy", 1, 100);
    assert!(records.judge("nancy", &old(100)).is_err() && records.judge("nancy", &old(101)).is_ok());
}

#[test]
fn an_expelled_broker_has_admitted_and_revoked_nobody() {
    let mut records = Records::default();
    add(&mut records, broker(1, 0, Standing::Serving));
    add(&mut records, broker(2, 0, Standing::Serving));
    let (good, stolen, put_out) = (first(1, 1, 100), first(2, 2, 50), first(1, 3, 60));
    admit(&mut records, "rennes", &good);
    admit(&mut records, "rennes", &stolen);
    admit(&mut records, "nancy", &put_out);
    revoke(&mut records, "nancy", 2, 70);
    revoke(&mut records, "lyon", 2, 70);
    assert!(records.judge("rennes", &good).is_err());
    assert!(records.judge("nancy", &put_out).is_err() && records.holder("nancy").is_none());
    // The broker that let a site in signs again that it is put out.
    let revocation = |site: &str| Revocation {
        site: site.to_owned(),
        until: 70,
        broker: 1,
    };
    let has_admitted = |site: &str| records.has_admitted(1, site);
    assert_eq!(records.to_say_again(2, 1, has_admitted), [revocation("nancy")]);
    assert_eq!(records.to_say_again(2, 1, |_| false), []);
    assert_eq!(add(&mut records, broker(2, 1, Standing::Expelled)), Added::News);
    // The authority's own list may be an old copy.
    assert_eq!(add(&mut records, broker(2, 5, Standing::Serving)), Added::Known);
    assert_eq!(admit(&mut records, "rennes", &stolen), Added::Known);
    assert_eq!(revoke(&mut records, "nancy", 2, 90), Added::Known);
    assert_eq!(records.holder("rennes").unwrap().admission, good);
    assert!(matches!(
        records.judge("rennes", &stolen),
        Err(Out::Expelled { broker: 2, .. })
    ));
    assert_eq!(records.revoked_until("nancy"), None);
    assert_eq!(records.holder("nancy").unwrap().admission, put_out);
    assert_eq!((records.count_admitted(1), records.count_admitted(2)), (2, 0));
    assert_eq!((records.count_revoked(2), records.len()), (0, 4));
    revoke(&mut records, "nancy", 1, 70);
    assert!(records.judge("nancy", &put_out).is_err());
    assert_eq!(records.count_admitted(1), 1, "who let it in has put it out");
}

#[test]
fn a_token_that_a_restored_broker_took_twice_lets_one_host_in() {
    let mut records = Records::default();
    let mut one = first(1, 1, 100);
    let mut two = one.clone();
    one.key = "1".repeat(64);
    two.key = "2".repeat(64);
    admit(&mut records, "rennes", &two);
    assert_eq!(records.may_use("rennes", &one), Err(Unusable::Used));
    admit(&mut records, "rennes", &one);
    assert_eq!(records.judge("rennes", &one), Ok(()));
    assert!(records.judge("rennes", &two).is_err());
}

#[test]
fn no_broker_fills_the_memory_of_others() {
    let mut records = Records::default();
    for number in 0..MAX_REVOKED {
        revoke(&mut records, &format!("site-{number}"), 1, 5);
    }
    let more = |broker, site: &str| {
        Statement::Revocation(Revocation {
            site: site.to_owned(),
            until: 5,
            broker,
        })
    };
    let mut take = |statement: Statement| {
        let signed = text(&statement);
        records.add(statement, signed)
    };
    assert_eq!(take(more(1, "one-more")), Err(Full(1)));
    assert_eq!(take(more(1, "site-7")), Ok(Added::Known));
    assert_eq!(take(more(2, "one-more")), Ok(Added::News));
    let mut admitted = |site: String, number: usize| {
        let mut admission = first(1, 1, 100);
        admission.token = format!("{number:032x}");
        take(Statement::Admitted(Admitted {
            site,
            admission,
            granted: Vec::new(),
        }))
    };
    for number in 0..=MAX_OF_SITE {
        let taken = admitted("rennes".to_owned(), number);
        assert_eq!(taken.is_err(), number == MAX_OF_SITE, "{number}");
    }
    for number in MAX_OF_SITE..=MAX_ADMISSIONS {
        let taken = admitted(format!("place-{number}"), 1);
        assert_eq!(taken.is_err(), number == MAX_ADMISSIONS, "{number}");
    }
}

#[test]
fn brokers_get_shares_of_their_own_and_those_of_the_gone_when_no_other_is_left() {
    let mut records = Records::default();
    assert_eq!(records.free_share(), Some(0));
    for number in 1..=SHARES {
        add(&mut records, broker(number, 0, Standing::Serving));
    }
    assert_eq!(records.free_share(), None);
    add(&mut records, broker(5, 1, Standing::Retired));
    assert_eq!(records.free_share(), Some(4));
}
