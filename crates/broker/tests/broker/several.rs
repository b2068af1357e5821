//! Three brokers that agree on nothing beforehand: in turn, each is away, loses its disk, gets an old one
//! back, or is apart from the others. Still, the same sites are in and out everywhere.

use crate::common::brokers::Brokers;
use crate::common::{Grid, connected, member, question, record, wait};
use causeway_broker::Credentials;
use causeway_broker::admin::AdminRequest;
use causeway_broker::api::{Done, ErrorKind, RecordsAnswer, RecordsRequest, SyncAnswer};
use causeway_broker::client::{Client, Event, JoinError, Membership};
use causeway_broker::clock::Clock;
use causeway_broker::records::{SignedRecord, Standing};
use causeway_broker::tls::{Expect, Trust};
use std::cell::Cell;
use std::net::TcpListener;

fn refusal(error: JoinError) -> ErrorKind {
    match error {
        JoinError::Call {
            source: causeway_broker::client::CallError::Refused(answer),
            ..
        } => answer.kind,
        other => panic!("{other}"),
    }
}

#[test]
fn a_token_names_its_broker_which_alone_takes_it_and_the_site_is_known_at_all() {
    let brokers = Brokers::running(3);
    let token = brokers.token(1, "rennes", &[]);
    assert_eq!(token.brokers, [brokers.place(1)]);
    let mut elsewhere = token.clone();
    elsewhere.brokers = vec![brokers.place(2)];
    let refused = brokers.join(&elsewhere, "early").unwrap_err();
    assert_eq!(refusal(refused), ErrorKind::TokenForged);
    let rennes = brokers.join(&token, "rennes").unwrap();
    assert!(rennes.credentials.between.is_some());
    let refused = brokers.join(&token, "another").unwrap_err();
    assert_eq!(refusal(refused), ErrorKind::TokenUsed);
    for number in 1..=3 {
        brokers.knows(number, "rennes");
        let renewed = brokers.renew(number, &rennes).unwrap();
        let renewed = Credentials::from_pem(&renewed.certificate, &renewed.authority, &new_key()).unwrap();
        let trust = rennes.trust(Default::default(), brokers.clock.clock()).unwrap();
        let certified = trust
            .check(&renewed.chain(), &Expect::Site("rennes".into()))
            .unwrap();
        assert_eq!(certified.admission, rennes.certified.admission, "as it joined");
    }
}

fn new_key() -> String {
    causeway_broker::authority::new_key().unwrap().0
}

#[test]
fn a_site_that_one_broker_revoked_renews_nowhere_also_when_that_one_is_gone() {
    let mut brokers = Brokers::running(3);
    let rennes = brokers.join(&brokers.token(1, "rennes", &[]), "rennes").unwrap();
    brokers.knows(2, "rennes");
    brokers.revoke(3, "rennes");
    brokers.knows_revoked(1, "rennes");
    brokers.knows_revoked(2, "rennes");
    brokers.stop(3);
    for number in [1, 2] {
        assert_eq!(
            brokers.renew(number, &rennes).unwrap_err().kind,
            ErrorKind::Revoked
        );
        let asked = question(&record(1));
        let refused = brokers.post::<_, SyncAnswer>(number, (&rennes, "/v1/sync"), &asked);
        assert_eq!(refused.unwrap_err().kind, ErrorKind::Revoked);
    }
    let again = brokers
        .join(&brokers.token(2, "rennes", &[]), "rennes-again")
        .unwrap();
    assert!(brokers.renew(1, &again).is_ok());
    assert_eq!(brokers.renew(1, &rennes).unwrap_err().kind, ErrorKind::Revoked);
}

#[test]
fn a_token_of_a_site_that_another_broker_revoked_is_void() {
    let brokers = Brokers::running(2);
    let token = brokers.token(1, "rennes", &[]);
    brokers.revoke(2, "rennes");
    brokers.knows_revoked(1, "rennes");
    assert_eq!(
        refusal(brokers.join(&token, "rennes").unwrap_err()),
        ErrorKind::TokenExpired
    );
}

#[test]
fn a_broker_that_lost_its_store_gets_sites_ranges_and_revocations_back_from_the_others() {
    let mut brokers = Brokers::running(2);
    let granted = brokers.token(1, "rennes", &["198.51.100.0/24"]);
    let rennes = brokers.join(&granted, "rennes").unwrap();
    let nancy = brokers.join(&brokers.token(1, "nancy", &[]), "nancy").unwrap();
    brokers.revoke(1, "nancy");
    brokers.knows(2, "rennes");
    brokers.knows_revoked(2, "nancy");
    brokers.stop(1);
    std::fs::remove_file(brokers.store(1)).unwrap();
    brokers.start(1);
    brokers.knows(1, "rennes");
    brokers.knows_revoked(1, "nancy");
    assert_eq!(brokers.renew(1, &nancy).unwrap_err().kind, ErrorKind::Revoked);
    let mut said = record(1);
    said.subnets = vec![causeway_broker::api::Subnet("198.51.100.0/25".parse().unwrap())];
    (said.lan, said.nodes) = (Vec::new(), Vec::new());
    let answer: SyncAnswer = brokers.post(1, (&rennes, "/v1/sync"), &question(&said)).unwrap();
    assert!(
        answer.records.is_some_and(|count| count >= 4),
        "two brokers, rennes, a revocation"
    );
}

#[test]
fn a_broker_that_was_restored_from_an_old_copy_takes_no_token_twice() {
    let mut brokers = Brokers::running(2);
    let token = brokers.token(1, "rennes", &[]);
    brokers.stop(1);
    let copy = brokers.dir.path().join("copy");
    std::fs::copy(brokers.store(1), &copy).unwrap();
    brokers.start(1);
    let rennes = brokers.join(&token, "rennes").unwrap();
    brokers.knows(2, "rennes");
    brokers.stop(1);
    std::fs::copy(&copy, brokers.store(1)).unwrap();
    brokers.start(1);
    brokers.knows(1, "rennes");
    let refused = brokers.join(&token, "thief").unwrap_err();
    assert_eq!(refusal(refused), ErrorKind::TokenUsed);
    assert!(brokers.renew(1, &rennes).is_ok());
}

#[test]
fn of_two_sites_that_brokers_apart_gave_one_name_the_first_has_it_everywhere_and_the_other_is_told() {
    let mut brokers = Brokers::new(2);
    brokers.start(1);
    let first = brokers.join(&brokers.token(1, "rennes", &[]), "first").unwrap();
    brokers.stop(1);
    brokers.clock.shift(10);
    brokers.start(2);
    let second = brokers.join(&brokers.token(2, "rennes", &[]), "second").unwrap();
    let asked = question(&record(2));
    let _: SyncAnswer = brokers.post(2, (&second, "/v1/sync"), &asked).unwrap();
    brokers.start(1);
    // Two brokers and two admissions.
    let has_all = |broker| {
        brokers.until(broker, "has met the other", |listing| {
            listing.brokers.iter().any(|broker| broker.met.is_some())
        });
    };
    has_all(1);
    has_all(2);
    for number in [1, 2] {
        assert!(brokers.renew(number, &first).is_ok());
        let refused = brokers.renew(number, &second).unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Revoked);
        assert!(
            refused
                .message
                .contains("the name rennes belongs to another host"),
            "{refused:?}"
        );
        let refused = brokers.post::<_, SyncAnswer>(number, (&second, "/v1/sync"), &asked);
        assert!(refused.is_err());
    }
}

#[test]
fn brokers_are_added_retired_and_expelled_by_the_authority_alone() {
    let mut brokers = Brokers::running(2);
    let nancy = brokers.join(&brokers.token(2, "nancy", &[]), "nancy").unwrap();
    let mut root = brokers.root();
    let place = brokers.place(3);
    let added = root
        .add_broker(&place, &brokers.dir.path().join("grid"), &brokers.clock.clock())
        .unwrap();
    brokers.take(added.config.unwrap());
    // The third broker has the others' records, and tells them about itself.
    brokers.start(3);
    brokers.until(1, "broker 3 is known", |listing| listing.brokers.len() == 3);
    brokers.knows(3, "nancy");
    let rennes = brokers.join(&brokers.token(3, "rennes", &[]), "rennes").unwrap();
    brokers.knows(1, "rennes");

    let retired = root.retire(3, Standing::Retired).unwrap();
    brokers.ask(
        1,
        &AdminRequest::Take {
            records: retired.records,
        },
    );
    let is_retired = |listing: &causeway_broker::Listing| {
        listing
            .brokers
            .iter()
            .any(|broker| broker.standing == Standing::Retired)
    };
    brokers.until(3, "it is retired", is_retired);
    assert!(brokers.renew(1, &rennes).is_ok(), "whom it admitted stays in");
    assert_eq!(brokers.renew(3, &rennes).unwrap_err().kind, ErrorKind::Busy);

    let expelled = root.retire(2, Standing::Expelled).unwrap();
    brokers.ask(
        1,
        &AdminRequest::Take {
            records: expelled.records,
        },
    );
    let refused = brokers.renew(1, &nancy).unwrap_err();
    assert!(refused.message.contains("expelled"), "{refused:?}");
}

#[test]
fn records_that_nobody_of_the_grid_signed_are_refused_and_one_broker_has_none() {
    let brokers = Brokers::running(2);
    let rennes = brokers.join(&brokers.token(1, "rennes", &[]), "rennes").unwrap();
    let exchange = |who: &Membership, records: Vec<SignedRecord>| {
        let asked = RecordsRequest { since: None, records };
        brokers.post::<_, RecordsAnswer>(1, (who, "/v1/records"), &asked)
    };
    let known = exchange(&rennes, Vec::new()).unwrap().records;
    assert_eq!(known.len(), 3, "two brokers and rennes");
    for (from, to) in [
        ("rennes", "nancy"),
        ("\"generation\":0", "\"generation\":7"),
        ("\"revision\":0", "\"revision\":1"),
    ] {
        let forged = known.iter().find(|record| record.text.contains(from)).unwrap();
        let forged = SignedRecord {
            text: forged.text.replace(from, to),
            signature: forged.signature.clone(),
        };
        let refused = exchange(&rennes, vec![forged]).unwrap_err();
        assert_eq!(refused.kind, ErrorKind::BadRequest);
    }
    let other = Brokers::new(1);
    let foreign = other.root().retire(1, Standing::Expelled).unwrap().records;
    assert_eq!(
        exchange(&rennes, foreign).unwrap_err().kind,
        ErrorKind::BadRequest
    );
    assert_eq!(exchange(&rennes, Vec::new()).unwrap().records, known);

    let one = Grid::new("g5k");
    let site = one.join("rennes");
    assert!(site.certified.admission.is_none() && site.credentials.between.is_none());
    let refused = one.post::<_, Done>(&site, "/v1/records", &RecordsRequest::default());
    assert_eq!(refused.unwrap_err().kind, ErrorKind::BadRequest);
    let trust = Trust::new(
        "g5k",
        &site.credentials.authority,
        Default::default(),
        one.clock.clock(),
    )
    .unwrap();
    let foreign = trust.check(&rennes.credentials.chain(), &Expect::AnySite);
    assert!(foreign.is_err());
}

/// Two sites with sessions at all brokers.
fn two_sessions(brokers: &Brokers) -> (Client, Client) {
    let rennes = brokers.join(&brokers.token(1, "rennes", &[]), "rennes").unwrap();
    let nancy = brokers.join(&brokers.token(2, "nancy", &[]), "nancy").unwrap();
    let at_rennes = brokers.session(&rennes, "rennes", record(1));
    let at_nancy = brokers.session(&nancy, "nancy", record(2));
    member(&at_rennes, "nancy");
    member(&at_nancy, "rennes");
    (at_rennes, at_nancy)
}

fn has_heard(brokers: &Brokers, number: u8, site: &str) {
    brokers.until(number, &format!("{site} has spoken"), |listing| {
        let mut sites = listing.sites.iter();
        sites.any(|listed| listed.site == site && listed.last_seen > 0)
    });
}

#[test]
fn a_gateway_has_a_session_with_each_broker_and_goes_on_with_those_that_are_left() {
    let mut brokers = Brokers::running(3);
    let (at_rennes, at_nancy) = two_sessions(&brokers);
    for number in 1..=3 {
        has_heard(&brokers, number, "rennes");
        has_heard(&brokers, number, "nancy");
    }
    brokers.stop(1);
    brokers.stop(2);
    // The messages arrive through the broker that both still see, and only once.
    for body in ["first", "second"] {
        at_rennes.send("nancy", "punch", body).unwrap();
        let told = wait(&at_nancy, "Message", |event| match event {
            Event::Message(message) => Some(message.body.clone()),
            _ => None,
        });
        assert_eq!(told, body);
    }
    let mut said = record(1);
    said.nodes[0].slots = 9;
    at_rennes.update(said.clone());
    let told = wait(&at_nancy, "Member", |event| match event {
        Event::Member(member) if member.record == said => Some(member.site.clone()),
        _ => None,
    });
    assert_eq!(told, "rennes");
    brokers.stop(3);
    wait(&at_rennes, "Away", |event| {
        matches!(event, Event::Away(_)).then_some(())
    });
    brokers.start(2);
    connected(&at_rennes);
}

#[test]
fn who_hears_that_a_site_is_gone_knows_by_then_that_it_was_revoked() {
    let mut brokers = Brokers::running(2);
    brokers.stop(1);
    // No other broker lists it any more: what the only one says is news.
    let rennes = brokers.join(&brokers.token(2, "rennes", &[]), "rennes").unwrap();
    let nancy = brokers.join(&brokers.token(2, "nancy", &[]), "nancy").unwrap();
    let _at_rennes = brokers.session(&rennes, "rennes", record(1));
    let at_nancy = brokers.session(&nancy, "nancy", record(2));
    member(&at_nancy, "rennes");
    brokers.revoke(2, "rennes");
    wait(&at_nancy, "Removed", |event| {
        matches!(event, Event::Removed(site) if site == "rennes").then_some(())
    });
    assert!(at_nancy.trust().records().revoked_until("rennes").is_some());
}

#[test]
fn a_revocation_reaches_every_gateway_by_whichever_broker_it_still_sees() {
    let mut brokers = Brokers::running(3);
    let (at_rennes, at_nancy) = two_sessions(&brokers);
    brokers.stop(1);
    brokers.revoke(2, "rennes");
    wait(&at_nancy, "Removed", |event| {
        matches!(event, Event::Removed(site) if site == "rennes").then_some(())
    });
    let kind = wait(&at_rennes, "Refused", |event| match event {
        Event::Refused { kind, .. } => Some(*kind),
        _ => None,
    });
    assert_eq!(kind, ErrorKind::Revoked);
    assert!(at_nancy.trust().records().revoked_until("rennes").is_some());
    brokers.stop(2);
    brokers.stop(3);
    drop(at_nancy);
    // The gateway also knows that if it is started while no broker is reachable.
    let nancy = Membership::load(&brokers.home("nancy")).unwrap().unwrap();
    let at_nancy = brokers.session(&nancy, "nancy", record(2));
    assert!(at_nancy.trust().records().revoked_until("rennes").is_some());
    // And the gateway tells a broker that has never heard of it.
    brokers.start(1);
    brokers.knows_revoked(1, "rennes");
}

#[test]
fn a_gateway_gives_back_what_the_only_broker_left_has_lost() {
    let mut brokers = Brokers::running(2);
    let (_at_rennes, _at_nancy) = two_sessions(&brokers);
    brokers.knows(1, "nancy");
    brokers.stop(1);
    brokers.stop(2);
    std::fs::remove_file(brokers.store(2)).unwrap();
    brokers.start(2);
    for site in ["rennes", "nancy"] {
        has_heard(&brokers, 2, site);
    }
    let token = brokers.token(2, "nancy", &[]);
    let again = brokers.join(&token, "nancy-again").unwrap();
    let admission = again.certified.admission.unwrap();
    assert_eq!(
        admission.generation, 1,
        "it knows that there was one: {admission:?}"
    );
}

#[test]
fn a_certificate_that_is_due_is_renewed_at_whichever_broker_is_there() {
    let mut brokers = Brokers::running(2);
    let rennes = brokers.join(&brokers.token(1, "rennes", &[]), "rennes").unwrap();
    brokers.knows(2, "rennes");
    brokers.stop(1);
    brokers.clock.shift(21 * 86_400);
    let at_rennes = brokers.session(&rennes, "rennes", record(1));
    let renewed = wait(&at_rennes, "Renewed", |event| match event {
        Event::Renewed(renewed) => Some((**renewed).clone()),
        _ => None,
    });
    assert_ne!(
        renewed.0.between, rennes.credentials.between,
        "by the other one's authority"
    );
    assert_eq!(renewed.1.admission, rennes.certified.admission);
}

#[test]
fn a_renewal_that_one_broker_holds_up_is_made_at_another() {
    let mut brokers = Brokers::running(2);
    let rennes = brokers.join(&brokers.token(1, "rennes", &[]), "rennes").unwrap();
    brokers.knows(2, "rennes");
    brokers.stop(1);
    brokers.stop(2);
    brokers.clock.shift(21 * 86_400);
    let mute = TcpListener::bind(brokers.place(1)).unwrap();
    let at_rennes = brokers.session(&rennes, "rennes", record(1));
    let (asking, _) = mute.accept().unwrap();
    // The first broker has been asked: the second broker's line finds the renewal in progress.
    brokers.start(2);
    let nancy = brokers.join(&brokers.token(2, "nancy", &[]), "nancy").unwrap();
    let mut said = record(2);
    let renewed = Cell::new(false);
    for slots in [5, 6] {
        said.nodes[0].slots = slots;
        let _: SyncAnswer = brokers.post(2, (&nancy, "/v1/sync"), &question(&said)).unwrap();
        wait(&at_rennes, "Member", |event| {
            renewed.set(renewed.get() || matches!(event, Event::Renewed(_)));
            matches!(event, Event::Member(member) if member.record == said).then_some(())
        });
    }
    // The gateway has asked the second broker what comes next, and has nothing else to ask.
    drop((asking, mute));
    if !renewed.get() {
        wait(&at_rennes, "Renewed", |event| {
            matches!(event, Event::Renewed(_)).then_some(())
        });
    }
}

#[test]
fn a_site_with_virtual_addresses_has_the_same_at_all_brokers() {
    let brokers = Brokers::running(3);
    let rennes = brokers.join(&brokers.token(2, "rennes", &[]), "rennes").unwrap();
    let mut said = record(1);
    said.overlap_ok = true;
    let at_rennes = brokers.session(&rennes, "rennes", said.clone());
    let given = member(&at_rennes, "rennes").virtual_subnets;
    assert_eq!(given.len(), 1);
    // What a gateway does once it has been told about its virtual addresses.
    said.virtual_subnets = given.clone();
    at_rennes.update(said);
    for number in 1..=3 {
        brokers.until(number, "the range is known", |listing| {
            let mut sites = listing.sites.iter();
            sites.any(|site| site.virtual_subnets == [given[0].0.to_string()])
        });
    }
}

#[test]
fn a_grid_of_one_broker_goes_on_with_its_sites_once_it_is_given_more() {
    let mut grid = Grid::new("g5k");
    let granted = grid.token_for("rennes", &["198.51.100.0/24"]);
    let rennes = causeway_broker::client::join(&granted, &grid.home("rennes"), &grid.clock.clock()).unwrap();
    let nancy = grid.join("nancy");
    let revoked = grid.join("lyon");
    let mut said = record(1);
    said.subnets = vec![causeway_broker::api::Subnet("198.51.100.0/25".parse().unwrap())];
    (said.lan, said.nodes) = (Vec::new(), Vec::new());
    let _ = grid.sync(&rennes, &question(&said)).unwrap();
    let at_nancy = grid.session(&nancy, record(2));
    member(&at_nancy, "rennes");
    let unused = grid.token("metz");
    grid.revoke("lyon");
    let authority = grid.dir.path().join("authority");
    let running = causeway_broker::root::move_authority(&grid.config, &authority, &Clock::system());
    assert!(running.is_err(), "the broker runs");
    grid.stop();
    causeway_broker::root::move_authority(&grid.config, &authority, &Clock::system()).unwrap();
    assert!(!grid.config.directory.join("ca.key").exists() && authority.join("ca.key").exists());
    grid.start();
    // The members that the gateway knew, recognised by their certificates.
    let _ = grid.sync(&rennes, &question(&said)).unwrap();
    assert_eq!(
        grid.sync(&revoked, &question(&record(3))).unwrap_err().kind,
        ErrorKind::Revoked
    );
    connected(&at_nancy);
    let metz = causeway_broker::client::join(&unused, &grid.home("metz"), &grid.clock.clock()).unwrap();
    assert!(metz.certified.admission.is_some());

    let mut brokers = Brokers::new(1);
    let mut root = causeway_broker::root::Root::open(&authority).unwrap();
    let place = brokers.place(2);
    let added = root
        .add_broker(&place, grid.dir.path(), &Clock::system())
        .unwrap();
    brokers.take(added.config.unwrap());
    // These tests go on with the second broker: the first one of `brokers` does not run.
    brokers.start(2);
    grid.ask(&AdminRequest::Take {
        records: added.records,
    });
    for site in ["rennes", "nancy", "metz"] {
        brokers.knows(2, site);
    }
    let renewed = brokers.renew(2, &nancy).unwrap();
    let renewed = Credentials::from_pem(&renewed.certificate, &renewed.authority, &new_key()).unwrap();
    let trust = at_nancy.trust();
    assert!(
        trust
            .check(&renewed.chain(), &Expect::Site("nancy".into()))
            .is_ok()
    );
    let _: SyncAnswer = brokers.post(2, (&rennes, "/v1/sync"), &question(&said)).unwrap();
    brokers.revoke(2, "rennes");
    wait(&at_nancy, "Removed", |event| {
        matches!(event, Event::Removed(site) if site == "rennes").then_some(())
    });
}
