//! What gateways learn from the broker, and from each other through it, while it can be reached and while it
//! cannot.

use crate::common::{Grid, connected, member, question, read_answer, record, wait, write_request};
use causeway_broker::admin::{AdminReply, AdminRequest};
use causeway_broker::api::{ErrorKind, JobStart, JobsAnswer, JobsRequest};
use causeway_broker::client::Event;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

fn message(client: &causeway_broker::client::Client) -> (String, String, String) {
    wait(client, "Message", |event| match event {
        Event::Message(message) => Some((message.from.clone(), message.kind.clone(), message.body.clone())),
        _ => None,
    })
}

#[test]
fn sites_learn_of_each_other_and_of_every_change() {
    let grid = Grid::new("g5k");
    let (rennes, nancy) = (grid.join("rennes"), grid.join("nancy"));
    let woken = Arc::new(AtomicUsize::new(0));
    let mut config = grid.session_config(&rennes, record(1));
    let count = woken.clone();
    config.wake = Box::new(move || {
        count.fetch_add(1, Ordering::SeqCst);
    });
    let at_rennes = causeway_broker::client::Client::start(config).unwrap();
    connected(&at_rennes);
    let mut said = record(2);
    let at_nancy = grid.session(&nancy, said.clone());
    let seen = member(&at_rennes, "nancy");
    assert_eq!(seen.record, said);
    assert_eq!(seen.observed.unwrap().ip().to_string(), "127.0.0.1");
    assert_eq!(seen.serial, nancy.certified.serial);
    said.nodes[0].slots = 8;
    at_nancy.update(said.clone());
    assert_eq!(member(&at_rennes, "nancy").record, said);
    assert!(woken.load(Ordering::SeqCst) >= 3);
}

#[test]
fn a_message_reaches_the_other_gateway_with_its_senders_name() {
    let grid = Grid::new("g5k");
    let (rennes, nancy) = (grid.join("rennes"), grid.join("nancy"));
    let at_rennes = grid.session(&rennes, record(1));
    let at_nancy = grid.session(&nancy, record(2));
    member(&at_rennes, "nancy");
    connected(&at_nancy);
    for number in 0..20 {
        at_rennes.send("nancy", "punch", &number.to_string()).unwrap();
        let expected = ("rennes".to_owned(), "punch".to_owned(), number.to_string());
        assert_eq!(message(&at_nancy), expected);
    }
    at_rennes.send("lyon", "punch", "").unwrap();
    let reason = wait(&at_rennes, "Failed", |event| match event {
        Event::Failed { what, reason } if what == "send punch to lyon" => Some(reason.clone()),
        _ => None,
    });
    assert!(reason.contains("no site lyon"), "{reason}");
}

#[test]
fn a_gateway_starts_and_goes_on_while_the_broker_is_away_and_catches_up() {
    let mut grid = Grid::new("g5k");
    let (rennes, nancy) = (grid.join("rennes"), grid.join("nancy"));
    let at_nancy = grid.session(&nancy, record(2));
    let own = record(1);
    let at_rennes = grid.session(&rennes, own.clone());
    member(&at_rennes, "nancy");
    at_rennes.stop();
    grid.stop();
    wait(&at_nancy, "Away", |event| {
        matches!(event, Event::Away(_)).then_some(())
    });
    let at_rennes = grid.session(&rennes, own);
    assert_eq!(
        member(&at_rennes, "nancy").record.nodes[0].name,
        "node-2",
        "from the cache"
    );
    let mut changed = record(2);
    changed.nodes[0].name = "node-two".into();
    at_nancy.update(changed.clone());
    grid.start();
    connected(&at_rennes);
    wait(&at_rennes, "the change", |event| match event {
        Event::Member(member) if member.record == changed => Some(()),
        _ => None,
    });
    connected(&at_nancy);
}

#[test]
fn a_gateway_that_cannot_write_members_down_is_told_once_until_it_can_again() {
    let grid = Grid::new("unkept");
    let rennes = grid.join("rennes");
    let members = grid.home("rennes").join("members.json");
    let at_rennes = grid.session(&rennes, record(1));
    connected(&at_rennes);
    // No file can replace a directory.
    let _ = std::fs::remove_file(&members);
    std::fs::create_dir(&members).unwrap();
    let mut told = 0;
    for (site, number) in [("nancy", 2), ("lyon", 3), ("orsay", 4)] {
        let joined = grid.join(site);
        let _session = grid.session(&joined, record(number));
        let mut is_known = false;
        while !is_known {
            let event = at_rennes.wait_event(Duration::from_secs(10)).expect("an event");
            told += usize::from(matches!(event, Event::Trouble(_)));
            is_known = matches!(&event, Event::Member(member) if member.site == site);
        }
    }
    assert_eq!(told, 1);
}

#[test]
fn a_second_gateway_of_a_site_takes_over_and_the_first_is_told() {
    let grid = Grid::new("g5k");
    let rennes = grid.join("rennes");
    let first = grid.session(&rennes, record(1));
    connected(&first);
    let second = grid.session(&rennes, record(1));
    connected(&second);
    let message = wait(&first, "Refused", |event| match event {
        Event::Refused {
            kind: ErrorKind::Superseded,
            message,
        } => Some(message.clone()),
        _ => None,
    });
    assert!(
        message.contains("another gateway of site rennes from 127.0.0.1 has taken over"),
        "{message}"
    );
}

#[test]
fn clocks_that_differ_are_told_of_with_by_how_much() {
    let grid = Grid::new("g5k");
    let rennes = grid.join("rennes");
    grid.clock.shift(7200);
    let mut config = grid.session_config(&rennes, record(1));
    config.clock = causeway_broker::clock::Clock::system();
    let client = causeway_broker::client::Client::start(config).unwrap();
    let ahead = wait(&client, "ClockSkew", |event| match event {
        Event::ClockSkew { ahead } => Some(*ahead),
        _ => None,
    });
    assert!((-7210..=-7190).contains(&ahead), "{ahead}");
    let ahead = wait(&client, "Connected", |event| match event {
        Event::Connected { ahead, .. } => Some(*ahead),
        _ => None,
    });
    assert!((-7210..=-7190).contains(&ahead), "{ahead}");
}

#[test]
fn jobs_are_listed_until_they_or_their_gateway_end() {
    let grid = Grid::new("g5k");
    let (rennes, nancy) = (grid.join("rennes"), grid.join("nancy"));
    let own = record(1);
    grid.sync(&rennes, &question(&own)).unwrap();
    grid.sync(&nancy, &question(&record(2))).unwrap();
    let jobs = |who, asked: &JobsRequest| grid.post::<_, JobsAnswer>(who, "/v1/jobs", asked);
    let start = |id: &str| {
        JobsRequest::Start(JobStart {
            id: id.into(),
            name: "ray2mesh".into(),
            sites: vec!["rennes".into(), "nancy".into()],
            ranks: 8,
            age_seconds: 0,
        })
    };
    jobs(&rennes, &start("aa")).unwrap();
    jobs(&rennes, &start("bb")).unwrap();
    let refusal = jobs(&nancy, &start("aa")).unwrap_err();
    assert_eq!(refusal.kind, ErrorKind::NotYours);
    jobs(&nancy, &JobsRequest::End { id: "aa".into() }).unwrap();
    assert_eq!(
        jobs(&nancy, &JobsRequest::List {}).unwrap().jobs.len(),
        2,
        "another's job goes on"
    );
    jobs(&rennes, &JobsRequest::End { id: "aa".into() }).unwrap();
    let left = jobs(&nancy, &JobsRequest::List {}).unwrap().jobs;
    assert_eq!(
        (left.len(), left[0].job.id.as_str(), left[0].from.as_str()),
        (1, "bb", "rennes")
    );
    grid.sync(&rennes, &question(&record(1))).unwrap();
    assert!(
        jobs(&nancy, &JobsRequest::List {}).unwrap().jobs.is_empty(),
        "a gateway that began anew has none"
    );
}

#[test]
fn one_sites_register_neither_names_sites_that_are_none_nor_keeps_others_from_reading_theirs() {
    let grid = Grid::new("g5k");
    let (rennes, nancy) = (grid.join("rennes"), grid.join("nancy"));
    grid.sync(&rennes, &question(&record(1))).unwrap();
    grid.sync(&nancy, &question(&record(2))).unwrap();
    let start = |number: usize| {
        let none = (0..990).map(|other| format!("{other:060}"));
        JobsRequest::Start(JobStart {
            id: format!("{number:x}"),
            // Each letter takes six bytes in an answer.
            name: "\u{1}".repeat(128),
            sites: none
                .chain(["nancy".into(), "nancy".into(), "rennes".into()])
                .collect(),
            ranks: 8,
            age_seconds: 0,
        })
    };
    let mut stream = grid.connect(Some(&rennes));
    let mut start_from = |number| {
        let body = serde_json::to_vec(&start(number)).unwrap();
        write_request(&mut stream, "/v1/jobs", &body, body.len());
        read_answer(&mut stream).unwrap()
    };
    for number in 0..20 {
        assert_eq!(start_from(number).0, 200);
    }
    let listed: JobsAnswer = grid.post(&nancy, "/v1/jobs", &JobsRequest::List {}).unwrap();
    assert_eq!((listed.jobs.len(), listed.left_out), (20, 0));
    assert!(listed.jobs.iter().all(|job| job.job.sites == ["nancy", "rennes"]));
    let own: JobsAnswer = grid.post(&nancy, "/v1/jobs", &start(100)).unwrap();
    assert_eq!(own.jobs.len(), 1, "who begins a job is told of its own");
}

#[test]
fn a_job_whose_beginning_the_broker_missed_is_as_old_as_its_gateway_says_also_after_a_restart() {
    let mut grid = Grid::new("g5k");
    let rennes = grid.join("rennes");
    grid.sync(&rennes, &question(&record(1))).unwrap();
    let start = JobsRequest::Start(JobStart {
        id: "aa".into(),
        name: "ray2mesh".into(),
        sites: vec!["rennes".into()],
        ranks: 8,
        age_seconds: 500,
    });
    let began = grid.clock.clock().now() - 500;
    let told: JobsAnswer = grid.post(&rennes, "/v1/jobs", &start).unwrap();
    assert!(
        (began..began + 30).contains(&told.jobs[0].since),
        "{}",
        told.jobs[0].since
    );
    grid.stop();
    grid.start();
    let AdminReply::Listing(listing) = grid.ask(&AdminRequest::List {}) else {
        panic!("no listing");
    };
    assert_eq!(listing.jobs, told.jobs);
}

#[test]
fn when_a_site_last_spoke_is_known_to_the_minute_after_a_restart() {
    let mut grid = Grid::new("g5k");
    let rennes = grid.join("rennes");
    let own = record(1);
    grid.sync(&rennes, &question(&own)).unwrap();
    grid.clock.shift(3600);
    grid.sync(&rennes, &question(&own)).unwrap();
    let spoke = grid.clock.clock().now();
    grid.stop();
    grid.clock.shift(3600);
    grid.start();
    let AdminReply::Listing(listing) = grid.ask(&AdminRequest::List {}) else {
        panic!("no listing");
    };
    let known = listing.sites[0].last_seen;
    assert!((spoke - 60..=spoke).contains(&known), "{known}, it was {spoke}");
}

#[test]
fn relays_are_offered_the_least_busy_first_and_only_while_they_speak() {
    let grid = Grid::new("g5k");
    let asks = grid.join("lyon");
    let client = grid.session(&asks, record(3));
    connected(&client);
    for (number, (site, load)) in [("rennes", 700), ("nancy", 20)].into_iter().enumerate() {
        let mut own = record(number as u8 + 1);
        own.reach.relay_willing = true;
        own.reach.public = vec![format!("192.0.2.{number}:7001").parse().unwrap()];
        let mut asked = question(&own);
        asked.load = load;
        grid.sync(&grid.join(site), &asked).unwrap();
    }
    let relays = || {
        client.relays().unwrap();
        wait(&client, "Relays", |event| match event {
            Event::Relays(relays) => Some(relays.iter().map(|relay| relay.site.clone()).collect::<Vec<_>>()),
            _ => None,
        })
    };
    assert_eq!(relays(), ["nancy", "rennes"]);
    grid.clock.shift(91);
    assert!(relays().is_empty());
}
