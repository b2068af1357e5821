//! A broker whose keys somebody else has: what that person can make the others believe, and what is left of
//! that once the grid's authority has expelled it.

use crate::common::brokers::Brokers;
use causeway_broker::admin::AdminRequest;
use causeway_broker::api::{ErrorKind, MAX_RECORDS, RecordsAnswer, RecordsRequest};
use causeway_broker::authority::Authority;
use causeway_broker::client::Membership;
use causeway_broker::records::{MAX_REVOKED, Revocation, SignedRecord, Standing, Statement};

/// Gives records to broker 1, as a gateway does; returns all records that it then has.
fn exchange(brokers: &Brokers, who: &Membership, records: &[SignedRecord]) -> Vec<SignedRecord> {
    let ask = |records: &[SignedRecord]| {
        let asked = RecordsRequest {
            since: None,
            records: records.to_vec(),
        };
        brokers
            .post::<_, RecordsAnswer>(1, (who, "/v1/records"), &asked)
            .unwrap()
    };
    records.chunks(MAX_RECORDS).for_each(|some| drop(ask(some)));
    ask(&[]).records
}

#[test]
fn what_a_thief_of_its_keys_has_said_goes_with_a_broker_and_who_was_put_out_stays_out() {
    let mut brokers = Brokers::running(2);
    let rennes = brokers.join(&brokers.token(1, "rennes", &[]), "rennes").unwrap();
    let nancy = brokers.join(&brokers.token(1, "nancy", &[]), "nancy").unwrap();
    let before = exchange(&brokers, &nancy, &[]).len();
    let stored = |brokers: &Brokers| std::fs::metadata(brokers.store(1)).unwrap().len();
    let stored_before = stored(&brokers);
    brokers.stop(2);
    let thief = Authority::load("g5k", &brokers.config(2).directory).unwrap();
    let now = brokers.clock.clock().now();
    let revoke = |site: String, until: u64| {
        let broker = 2;
        thief
            .state(&Statement::Revocation(Revocation { site, until, broker }))
            .unwrap()
    };
    let mut said = vec![
        revoke("rennes".to_owned(), now),
        revoke("lyon".to_owned(), u64::MAX),
    ];
    said.extend((0..3000).map(|number| revoke("nobody".to_owned(), now - 5000 + number)));
    said.extend((0..MAX_REVOKED).map(|number| revoke(format!("nobody-{number}"), now)));
    exchange(&brokers, &nancy, &said);
    assert_eq!(brokers.renew(1, &rennes).unwrap_err().kind, ErrorKind::Revoked);
    let lyon = brokers.join(&brokers.token(1, "lyon", &[]), "lyon").unwrap();

    assert!(stored(&brokers) > 5 * stored_before);
    let expelled = brokers.root().retire(2, Standing::Expelled).unwrap().records;
    brokers.ask(1, &AdminRequest::Take { records: expelled });
    for _ in 0..2 {
        assert!(10 * stored(&brokers) <= 11 * stored_before);
        let left = exchange(&brokers, &nancy, &[]);
        assert!(left.iter().all(|record| !record.text.contains("nobody")));
        // Only Lyon's admission is left, and the record that Rennes is out instead of in.
        assert_eq!(left.len(), before + 1);
        assert_eq!(brokers.renew(1, &rennes).unwrap_err().kind, ErrorKind::Revoked);
        assert!(brokers.renew(1, &lyon).is_ok() && brokers.renew(1, &nancy).is_ok());
        // Nothing that it says from now on counts.
        exchange(&brokers, &nancy, &said[..10]);
        brokers.stop(1);
        brokers.start(1);
    }
    for (site, host) in [("nobody-7", "new"), ("rennes", "again")] {
        assert!(brokers.join(&brokers.token(1, site, &[]), host).is_ok(), "{site}");
    }
}
